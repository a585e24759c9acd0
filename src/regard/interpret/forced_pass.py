"""One forced pass (teacher forcing) over finished outputs: the log-probability of each token, and attention weights.

Search stores neither, so they cost nothing unless they are requested, and any engine, beam and batch gives the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from regard.data.batch import collate_sources, pad_sequences
from regard.data.vocabulary import SourceInput
from regard.interpret.captured_attention import KINDS, Kind, Weights
from regard.models.logits import mask_reserved_tokens
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.special_tokens import BOS

MAX_BATCH_SIZE = 64  # outputs in one pass
MAX_BATCH_WEIGHTS = 1 << 26  # attention weights in memory at once


class ForcedPass(NamedTuple):
    """The result for one output."""

    token_scores: list[float]  # log-probability of each token, the end of sequence included
    weights: dict[Kind, list[Weights]]  # for each kind, [heads, rows, columns] of each layer, special tokens included


@torch.inference_mode()
def run_forced_pass(
    bundle: Bundle,
    sources: Sequence[SourceInput],
    outputs: Sequence[Sequence[int]],
    *,
    attention: bool = True,
    scores: bool = True,
) -> list[ForcedPass]:
    """The result for each source and its output, tokens with their end of sequence. attention: with weights. scores:
    with log-probabilities, which models without an output per step do not have; zeros without."""
    device = next(bundle.model.parameters()).device
    found: list[ForcedPass] = []
    batch_size = MAX_BATCH_SIZE
    if attention and sources:
        max_length = max(max(map(len, side)) for side in (sources, outputs))
        batch_size = max(
            1, min(MAX_BATCH_SIZE, MAX_BATCH_WEIGHTS // (max_length**2 * _head_count(bundle.model.settings)))
        )
    for start in range(0, len(sources), batch_size):
        batch_sources, batch_outputs = sources[start : start + batch_size], outputs[start : start + batch_size]
        source, mask = (each.to(device) for each in collate_sources(bundle.source_processor, batch_sources))
        targets = pad_sequences([list(each) for each in batch_outputs]).to(device)
        decoder_input = pad_sequences([[BOS, *each[:-1]] for each in batch_outputs]).to(device)
        decoded = bundle.model(source, mask, decoder_input, need_weights=attention)
        log_probabilities = torch.zeros(targets.shape)
        if scores:
            log_probabilities = (
                mask_reserved_tokens(bundle.model.scores(decoded, source))
                .log_softmax(-1)
                .gather(2, targets[..., None])[..., 0]
            )
        source_lengths = decoded.source_lengths.tolist()
        tensors = {
            "cross": decoded.cross_attention,
            "encoder": decoded.encoder_attention,
            "decoder": decoded.self_attention,
        }
        layers = {kind: [each.float().cpu().numpy() for each in tensors[kind]] for kind in KINDS}
        for row, output in enumerate(batch_outputs):
            sizes = {"source": source_lengths[row], "target": len(output), "decoder_input": len(output)}
            # Copies: a view would keep the whole batch's weights alive.
            weights = {
                kind: [each[row, :, : sizes[query], : sizes[key]].copy() for each in layers[kind]]
                for kind, (query, key) in KINDS.items()
                if layers[kind]
            }
            found.append(ForcedPass(log_probabilities[row, : len(output)].tolist(), weights))
    return found


def _head_count(settings: ModelSettings) -> int:
    """How many matrices of weights a model has."""
    encoder, decoder = settings.encoder, settings.decoder
    encoder_heads = encoder.layers * getattr(encoder, "heads", 0)
    return encoder_heads + decoder.layers * 2 * getattr(decoder, "heads", 1)
