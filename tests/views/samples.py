"""Random captured attention."""

from typing import Any

import numpy as np

from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import Axis, CapturedAttention, Kind


def random_capture(seed: int, layers: int = 2, heads: int = 3) -> CapturedAttention:
    """Attention of every kind, over three to six words of one to three tokens."""
    rng = np.random.default_rng(seed)

    def random_tokens(letter: str) -> list[str]:
        words = range(int(rng.integers(3, 7)))
        return [
            f"{'▁' if piece == 0 else ''}{letter}{word}{piece}" for word in words for piece in range(rng.integers(1, 4))
        ]

    source, target = random_tokens("s"), random_tokens("t")
    axes: dict[str, Any] = {
        "source": Axis((*source, "</s>"), (*[False] * len(source), True)),
        "target": Axis((*target, "</s>"), (*[False] * len(target), True)),
        "decoder_input": Axis(("<s>", *target), (True, *[False] * len(target))),
    }
    S, T = len(source) + 1, len(target) + 1

    def random_layers(rows: int, columns: int, *, causal: bool = False) -> list[np.ndarray]:
        matrices = []
        for _ in range(layers):
            raw = rng.gamma(0.4, size=(heads, rows, columns)) + 1e-6
            raw = np.tril(raw) if causal else raw
            matrices.append((raw / raw.sum(-1, keepdims=True)).astype(np.float32))
        return matrices

    weights: dict[Kind, list[np.ndarray]] = {
        "cross": random_layers(T, S),
        "encoder": random_layers(S, S),
        "decoder": random_layers(T, T, causal=True),
    }
    attribution = {
        "source": rng.normal(size=(T, S)).astype(np.float32),
        "decoder_input": rng.normal(size=(T, T)).astype(np.float32),
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


def assert_close(found: Any, expected: Any, *, atol: float, rtol: float = 0.0) -> None:
    """Raise AssertionError if two arrays differ by more than the tolerance."""
    np.testing.assert_allclose(found, expected, atol=atol, rtol=rtol)
