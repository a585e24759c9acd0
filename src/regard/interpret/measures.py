"""Measures of captured attention: entropy and distance of each head, and rollout and flow through all layers."""

import ctypes
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.interpret.captured_attention import Axis, CapturedAttention, Kind
from regard.native import library

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class HeadStatistics:
    """Statistics of one head, means over its rows.

    entropy: in bits; 0 if all weight is on one position. normalized_entropy: as a share of the largest possible.
    distance: from query to key, in positions; for cross-attention, from the diagonal. max_weight: the largest weight.
    special_weight: the weight on special tokens, such as the end of sequence.
    """

    kind: Kind
    layer: int
    head: int
    entropy: float
    normalized_entropy: float
    distance: float
    max_weight: float
    special_weight: float


def _check_unmodified(captured: CapturedAttention) -> None:
    """Raise RegardError if positions were removed or merged."""
    if not captured.is_unmodified:
        raise RegardError(
            "measures are taken of attention as it was captured, before words are merged or special tokens removed."
        )


def statistics(captured: CapturedAttention) -> list[HeadStatistics]:
    """Statistics of every head."""
    _check_unmodified(captured)
    found: list[HeadStatistics] = []
    for kind in captured.kinds:
        rows, columns = captured.rows(kind), captured.columns(kind)
        for layer, matrices in enumerate(captured.weights[kind]):
            found += [_head_statistics(kind, layer, head, each, rows, columns) for head, each in enumerate(matrices)]
    return found


def entropy(weights: Matrix) -> Matrix:
    """[..., columns] -> [...], in bits; of the row divided by its sum, where that is not one."""
    total = weights.sum(-1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    bits: Matrix = -(shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0)).sum(-1)
    return bits


def _head_statistics(
    kind: Kind, layer: int, head: int, matrix: NDArray[np.float32], rows: Axis, columns: Axis
) -> HeadStatistics:
    weights = matrix.astype(np.float64)
    if not weights.size:
        return HeadStatistics(kind, layer, head, 0.0, 0.0, 0.0, 0.0, 0.0)
    query, key = np.arange(len(rows), dtype=np.float64)[:, None], np.arange(len(columns))[None]
    if kind == "cross":
        query = query * (len(columns) - 1) / max(1, len(rows) - 1)
    # How many keys a row can attend to; a decoder is causal.
    key_counts = np.arange(1, len(rows) + 1) if kind == "decoder" else np.full(len(rows), len(columns))
    bits = entropy(weights)
    max_bits = np.log2(np.maximum(key_counts, 2))
    total = weights.sum(-1)
    distance = (weights * np.abs(query - key)).sum(-1) / np.where(total > 0, total, 1)
    special = weights[:, np.array(columns.special, bool)].sum(-1)
    means = [float(each.mean()) for each in (bits, bits / max_bits, distance, weights.max(-1), special)]
    return HeadStatistics(kind, layer, head, *means)


def rollout(captured: CapturedAttention) -> tuple[Matrix, Matrix]:
    """Attention rollout (Abnar and Zuidema 2020, arXiv:2005.00928): [target, source] and [target, decoder_input].

    Heads are averaged, each layer is half attention and half the residual connection, and layers are multiplied. Rows
    of the two matrices together sum to one.
    """
    _check_unmodified(captured)
    encoder, decoder, cross = _layer_matrices(captured)
    T, S = len(captured.target), len(captured.source)
    encoder_rollout = np.eye(S)
    for matrix in encoder:
        encoder_rollout = matrix @ encoder_rollout
    source, before = np.zeros((T, S)), np.eye(T)
    for self_matrix, cross_matrix in zip(decoder, cross, strict=True):
        source = 0.5 * (self_matrix @ source) + 0.5 * (cross_matrix @ encoder_rollout)
        before = 0.5 * (self_matrix @ before)
    return source, before


def _layer_matrices(captured: CapturedAttention) -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
    """Means over heads of each layer: self-attention of the encoder and of the decoder, and cross-attention."""
    cross = [_normalize_rows(layer.mean(0)) for layer in captured.weights.get("cross", [])]
    decoder = _with_residual(captured, "decoder") or [np.eye(len(captured.target))] * len(cross)
    return _with_residual(captured, "encoder"), decoder, cross


def _normalize_rows(matrix: NDArray[np.float32]) -> Matrix:
    """Rows that sum to one, or are zero."""
    weights = matrix.astype(np.float64)
    total = weights.sum(-1, keepdims=True)
    shares: Matrix = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return shares


def _with_residual(captured: CapturedAttention, kind: Kind) -> list[Matrix]:
    """Of each layer, half its attention and half the residual connection."""
    return [
        0.5 * _normalize_rows(layer.mean(0)) + 0.5 * np.eye(layer.shape[-1]) for layer in captured.weights.get(kind, [])
    ]


def flow(captured: CapturedAttention, rows: Sequence[int] | None = None) -> tuple[Matrix, Matrix]:
    """Attention flow (Abnar and Zuidema 2020, arXiv:2005.00928): [rows, source] and [rows, decoder_input].

    The maximum flow from each target row to each position of the source and of the decoder's input, in a network of the
    layers as in rollout, whose edges have their weights as capacities. rows: of the target, from 0; all if none are
    given. The time grows with the cube of the length.
    """
    _check_unmodified(captured)
    encoder, decoder, cross = _layer_matrices(captured)
    T, S = len(captured.target), len(captured.source)
    selected = list(range(T)) if rows is None else [operator.index(row) for row in rows]
    if not cross:
        raise RegardError("this model does not attend: nothing flows.")
    if invalid := [row for row in selected if not 0 <= row < T]:
        raise RegardError(f"rows: there are {T}, from 0; there is no {invalid[0]}.")
    # Nodes: the encoder's input and layers, S each, then the decoder's input and layers, T each.
    encoder_output, decoder_input = len(encoder) * S, (len(encoder) + 1) * S
    blocks: list[tuple[int, int, Matrix]] = [  # first node of the rows, first node of the columns, capacities
        (S * (layer + 1), S * layer, matrix) for layer, matrix in enumerate(encoder)
    ]
    for layer, (self_matrix, cross_matrix) in enumerate(zip(decoder, cross, strict=True)):
        first = decoder_input + T * (layer + 1)
        blocks += [(first, first - T, 0.5 * self_matrix), (first, encoder_output, 0.5 * cross_matrix)]
    edges: list[tuple[NDArray[np.int32], NDArray[np.int32], Matrix]] = []
    for first_row, first_column, capacity in blocks:
        row, column = np.nonzero(capacity > 0)
        tails, heads = (first_row + row).astype(np.int32), (first_column + column).astype(np.int32)
        edges.append((tails, heads, capacity[row, column]))
    sinks = [*range(S), *range(decoder_input, decoder_input + T)]
    pairs = [(decoder_input + T * len(cross) + row, sink) for row in selected for sink in sinks]
    arrays: list[NDArray[Any]] = [np.concatenate([each[field] for each in edges]) for field in range(3)]
    nodes = decoder_input + T * (len(cross) + 1)
    flows = _max_flows(arrays[0], arrays[1], arrays[2], pairs, nodes).reshape(len(selected), S + T)
    return flows[:, :S], flows[:, S:]


def _max_flows(
    tails: NDArray[np.int32], heads: NDArray[np.int32], capacity: Matrix, pairs: Sequence[tuple[int, int]], nodes: int
) -> Matrix:
    """The maximum flow of each pair of nodes, over edges from tails to heads."""
    lib = library()
    if lib is None:
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(range(nodes))
        edges = zip(tails.tolist(), heads.tolist(), capacity.tolist(), strict=True)
        graph.add_edges_from((a, b, {"capacity": c}) for a, b, c in edges)
        values = [networkx.maximum_flow_value(graph, a, b) if a != b else 0.0 for a, b in pairs]
        return np.array(values, np.float64)
    sources, sinks = np.array(pairs, np.int32).reshape(-1, 2).T
    flows: Matrix = np.zeros(len(pairs))
    arrays: list[NDArray[Any]] = [np.ascontiguousarray(each, np.int32) for each in (tails, heads)]
    arrays += [np.ascontiguousarray(capacity, np.float64), sources.copy(), sinks.copy(), flows]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    if lib.regard_max_flow_compute(*pointers, 0, len(pairs), nodes, len(capacity)):
        raise MemoryError
    return flows
