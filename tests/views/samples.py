"""Random captured attention."""

from typing import Any

import numpy as np

from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import Axis, CapturedAttention, Kind


def sample(seed: int, layers: int = 2, heads: int = 3) -> CapturedAttention:
    """Attention of every kind, over three to six words of one to three tokens."""
    dice = np.random.default_rng(seed)

    def side(letter: str) -> list[str]:
        words = range(int(dice.integers(3, 7)))
        return [
            f"{'▁' if piece == 0 else ''}{letter}{word}{piece}"
            for word in words
            for piece in range(dice.integers(1, 4))
        ]

    source, target = side("s"), side("t")
    axes: dict[str, Any] = {
        "source": Axis((*source, "</s>"), (*[False] * len(source), True)),
        "target": Axis((*target, "</s>"), (*[False] * len(target), True)),
        "before": Axis(("<s>", *target), (True, *[False] * len(target))),
    }
    S, T = len(source) + 1, len(target) + 1

    def drawn(rows: int, columns: int, *, causal: bool = False) -> list[np.ndarray]:
        found = []
        for _ in range(layers):
            raw = dice.gamma(0.4, size=(heads, rows, columns)) + 1e-6
            raw = np.tril(raw) if causal else raw
            found.append((raw / raw.sum(-1, keepdims=True)).astype(np.float32))
        return found

    weights: dict[Kind, list[np.ndarray]] = {
        "cross": drawn(T, S),
        "encoder": drawn(S, S),
        "decoder": drawn(T, T, causal=True),
    }
    attribution = {
        "source": dice.normal(size=(T, S)).astype(np.float32),
        "before": dice.normal(size=(T, T)).astype(np.float32),
    }
    choice = AlignmentHead(layers - 1, 0, shifted=bool(seed % 2))
    return CapturedAttention(
        **axes,
        weights=weights,
        attribution=attribution,
        alignment_weights=choice.select(weights["cross"]),
        alignment_head=choice,
        model="sample",
    )


def close(found: Any, wanted: Any, *, atol: float, rtol: float = 0.0) -> None:
    """All of one as of the other."""
    np.testing.assert_allclose(found, wanted, atol=atol, rtol=rtol)
