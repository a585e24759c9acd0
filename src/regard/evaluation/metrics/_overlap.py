"""F1 of two bags of things, which ROUGE and SQuAD's F1 share."""

from collections import Counter
from typing import Any


def overlap_f1(a: Counter[Any], b: Counter[Any]) -> float:
    """Twice what is in both, over the sizes of both."""
    common = sum((a & b).values())
    return 2 * common / (sum(a.values()) + sum(b.values())) if common else 0.0
