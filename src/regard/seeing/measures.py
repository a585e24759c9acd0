"""What can be said of captured attention in numbers: how sharp and how far each head looks, and what reaches what
through all layers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.seeing.captured import Axis, Captured, Kind

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class HeadStatistics:
    """Of one head, means over its rows.

    entropy: in bits; 0 looks at one place. spread: the same as a share of the most that is possible. distance: between
    the place that looks and where it looks, in places; for attention to the source, from the diagonal. peak: the
    largest weight. special: the weight on marks such as the end.
    """

    kind: Kind
    layer: int
    head: int
    entropy: float
    spread: float
    distance: float
    peak: float
    special: float


def _whole(captured: Captured) -> None:
    """Raises ValueError where places were taken away or merged: what reaches what can no longer be told."""
    if captured.hidden or captured.source.unit == "words":
        raise ValueError("measures are taken of attention as it was captured, before words are merged or marks hidden.")


def statistics(captured: Captured) -> list[HeadStatistics]:
    """Of every head."""
    _whole(captured)
    found: list[HeadStatistics] = []
    for kind in captured.kinds:
        rows, columns = captured.rows(kind), captured.columns(kind)
        for number, layer in enumerate(captured.weights[kind]):
            found += [_of_head(kind, number, head, each, rows, columns) for head, each in enumerate(layer)]
    return found


def entropy(weights: Matrix) -> Matrix:
    """[..., columns] -> [...], in bits; of what a row gives away, where that is not one."""
    total = weights.sum(-1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    bits: Matrix = -(shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0)).sum(-1)
    return bits


def _of_head(
    kind: Kind, layer: int, head: int, given: NDArray[np.float32], rows: Axis, columns: Axis
) -> HeadStatistics:
    weights = given.astype(np.float64)
    if not weights.size:
        return HeadStatistics(kind, layer, head, 0.0, 0.0, 0.0, 0.0, 0.0)
    here, there = np.arange(len(rows), dtype=np.float64)[:, None], np.arange(len(columns))[None]
    if kind == "cross":
        here = here * (len(columns) - 1) / max(1, len(rows) - 1)
    # What a row can see: a step of a decoder only what went before it.
    room = np.arange(1, len(rows) + 1) if kind == "decoder" else np.full(len(rows), len(columns))
    bits = entropy(weights)
    most = np.log2(np.maximum(room, 2))
    total = weights.sum(-1)
    distance = (weights * np.abs(here - there)).sum(-1) / np.where(total > 0, total, 1)
    special = weights[:, np.array(columns.special, bool)].sum(-1)
    means = [float(each.mean()) for each in (bits, bits / most, distance, weights.max(-1), special)]
    return HeadStatistics(kind, layer, head, *means)


def rollout(captured: Captured) -> tuple[Matrix, Matrix]:
    """How much of each source place, [target, source], and of each place before, [target, before], is in each step.

    Attention rollout (Abnar and Zuidema 2020, arXiv:2005.00928): heads are averaged, half of each layer is what it
    found and half what it had, and layers are multiplied. Steps of a decoder mix both sides; together they sum to one.
    """
    _whole(captured)
    encoder = _mixed(captured, "encoder")
    T, S = len(captured.target), len(captured.source)
    of_source = np.eye(S)
    for mixed in encoder:
        of_source = mixed @ of_source
    cross = [_shares(layer.mean(0)) for layer in captured.weights.get("cross", [])]
    own = _mixed(captured, "decoder") or [np.eye(T)] * len(cross)
    source, before = np.zeros((T, S)), np.eye(T)
    for mixed, looked in zip(own, cross, strict=True):
        source = 0.5 * (mixed @ source) + 0.5 * (looked @ of_source)
        before = 0.5 * (mixed @ before)
    return source, before


def _shares(matrix: NDArray[np.float32]) -> Matrix:
    """Rows that sum to one, or are nothing."""
    weights = matrix.astype(np.float64)
    total = weights.sum(-1, keepdims=True)
    shares: Matrix = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return shares


def _mixed(captured: Captured, kind: Kind) -> list[Matrix]:
    """Of each layer, half what it found and half what it had."""
    return [0.5 * _shares(layer.mean(0)) + 0.5 * np.eye(layer.shape[-1]) for layer in captured.weights.get(kind, [])]
