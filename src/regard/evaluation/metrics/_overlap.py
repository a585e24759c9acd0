"""F1 of two multisets, for ROUGE and SQuAD's F1."""

from collections import Counter
from typing import Any


def overlap_f1(a: Counter[Any], b: Counter[Any]) -> float:
    """Twice the size of the intersection, over the sum of both sizes."""
    common = sum((a & b).values())
    return 2 * common / (sum(a.values()) + sum(b.values())) if common else 0.0
