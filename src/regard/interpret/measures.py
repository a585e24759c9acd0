"""What can be said of captured attention in numbers: how sharp and how far each head looks, and what reaches what
through all layers."""

import ctypes
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.interpret.captured import Axis, Captured, Kind
from regard.native import library

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
    """Raises RegardError where places were taken away or merged: what reaches what can no longer be told."""
    if not captured.whole:
        raise RegardError(
            "measures are taken of attention as it was captured, before words are merged or marks hidden."
        )


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
    encoder, own, cross = _layers(captured)
    T, S = len(captured.target), len(captured.source)
    of_source = np.eye(S)
    for mixed in encoder:
        of_source = mixed @ of_source
    source, before = np.zeros((T, S)), np.eye(T)
    for mixed, looked in zip(own, cross, strict=True):
        source = 0.5 * (mixed @ source) + 0.5 * (looked @ of_source)
        before = 0.5 * (mixed @ before)
    return source, before


def _layers(captured: Captured) -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
    """Of the encoder, of the decoder over what went before, and over the encoder."""
    cross = [_shares(layer.mean(0)) for layer in captured.weights.get("cross", [])]
    own = _mixed(captured, "decoder") or [np.eye(len(captured.target))] * len(cross)
    return _mixed(captured, "encoder"), own, cross


def _shares(matrix: NDArray[np.float32]) -> Matrix:
    """Rows that sum to one, or are nothing."""
    weights = matrix.astype(np.float64)
    total = weights.sum(-1, keepdims=True)
    shares: Matrix = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return shares


def _mixed(captured: Captured, kind: Kind) -> list[Matrix]:
    """Of each layer, half what it found and half what it had."""
    return [0.5 * _shares(layer.mean(0)) + 0.5 * np.eye(layer.shape[-1]) for layer in captured.weights.get(kind, [])]


def flow(captured: Captured, rows: Sequence[int] | None = None) -> tuple[Matrix, Matrix]:
    """The greatest flow from each step to each source place, [rows, source], and to each place before, [rows, before].

    Attention flow (Abnar and Zuidema 2020, arXiv:2005.00928): layers as in rollout are a network whose edges hold as
    much as their weights. rows: of the target, all if none are named; the time grows with the cube of the length.
    """
    _whole(captured)
    encoder, own, cross = _layers(captured)
    T, S = len(captured.target), len(captured.source)
    wanted = list(range(T)) if rows is None else [operator.index(row) for row in rows]
    if not cross:
        raise RegardError("this model does not attend: nothing flows.")
    if beyond := [row for row in wanted if not 0 <= row < T]:
        raise RegardError(f"rows: there are {T}, from 0; there is no {beyond[0]}.")
    top, bottom = len(encoder) * S, (len(encoder) + 1) * S  # the encoder's last layer; where the decoder's begin
    parts: list[tuple[int, int, Matrix]] = [(S * (at + 1), S * at, mixed) for at, mixed in enumerate(encoder)]
    for at, (mixed, looked) in enumerate(zip(own, cross, strict=True)):
        here = bottom + T * (at + 1)
        parts += [(here, here - T, 0.5 * mixed), (here, top, 0.5 * looked)]
    edges: list[tuple[NDArray[np.int32], NDArray[np.int32], Matrix]] = []
    for upper, lower, capacity in parts:
        down, across = np.nonzero(capacity > 0)
        edges.append(((upper + down).astype(np.int32), (lower + across).astype(np.int32), capacity[down, across]))
    ends = [*range(S), *range(bottom, bottom + T)]
    pairs = [(bottom + T * len(cross) + row, end) for row in wanted for end in ends]
    joined: list[NDArray[Any]] = [np.concatenate([each[part] for each in edges]) for part in range(3)]
    found = _flows(joined[0], joined[1], joined[2], pairs, bottom + T * (len(cross) + 1)).reshape(len(wanted), S + T)
    return found[:, :S], found[:, S:]


def _flows(
    above: NDArray[np.int32], below: NDArray[np.int32], capacity: Matrix, pairs: Sequence[tuple[int, int]], nodes: int
) -> Matrix:
    """The greatest flow of each pair of nodes."""
    lib = library()
    if lib is None:
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(range(nodes))
        edges = zip(above.tolist(), below.tolist(), capacity.tolist(), strict=True)
        graph.add_edges_from((a, b, {"capacity": c}) for a, b, c in edges)
        values = [networkx.maximum_flow_value(graph, a, b) if a != b else 0.0 for a, b in pairs]
        return np.array(values, np.float64)
    sources, sinks = np.array(pairs, np.int32).reshape(-1, 2).T
    found: Matrix = np.zeros(len(pairs))
    arrays: list[NDArray[Any]] = [np.ascontiguousarray(each, np.int32) for each in (above, below)]
    arrays += [np.ascontiguousarray(capacity, np.float64), sources.copy(), sinks.copy(), found]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    if lib.regard_max_flow_compute(*pointers, 0, len(pairs), nodes, len(capacity)):
        raise MemoryError
    return found
