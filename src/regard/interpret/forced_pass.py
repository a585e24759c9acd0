"""One forced pass over finished outputs: what each token was worth, and what was attended to.

Search keeps none of this, so it costs nothing when nobody asks, and any engine, beam and batch gives the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from regard.data.batching import collate_sources, pad_sequences
from regard.data.vocabulary import Given
from regard.interpret.captured import KINDS, Kind, Weights
from regard.models.logits import mask_reserved_tokens
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.special_tokens import BEGIN

AT_ONCE = 64  # outputs in one pass
ROOM = 1 << 26  # weights held by one pass, at most


class Forced(NamedTuple):
    """Of one output."""

    token_scores: list[float]  # log-probability of each token, the end included
    weights: dict[Kind, list[Weights]]  # of each kind and layer, ends included


@torch.inference_mode()
def forced(
    bundle: Bundle,
    sources: Sequence[Given],
    outputs: Sequence[Sequence[int]],
    *,
    attention: bool = True,
    scores: bool = True,
) -> list[Forced]:
    """Of each source and its output, tokens with their ends. scores: what each token was worth, which a model that says
    nothing step by step cannot tell."""
    device = next(bundle.model.parameters()).device
    found: list[Forced] = []
    at_once = AT_ONCE
    if attention and sources:
        longest = max(max(map(len, side)) for side in (sources, outputs))
        at_once = max(1, min(AT_ONCE, ROOM // (longest**2 * _heads(bundle.model.settings))))
    for at in range(0, len(sources), at_once):
        some, theirs = sources[at : at + at_once], outputs[at : at + at_once]
        source, mask = (each.to(device) for each in collate_sources(bundle.source_side, some))
        after = pad_sequences([list(each) for each in theirs]).to(device)
        before = pad_sequences([[BEGIN, *each[:-1]] for each in theirs]).to(device)
        decoded = bundle.model(source, mask, before, need_weights=attention)
        logs = torch.zeros(after.shape)
        if scores:
            logs = (
                mask_reserved_tokens(bundle.model.scores(decoded, source))
                .log_softmax(-1)
                .gather(2, after[..., None])[..., 0]
            )
        places = decoded.source_lengths.tolist()
        of_kind = {
            "cross": decoded.cross_attention,
            "encoder": decoded.encoder_attention,
            "decoder": decoded.self_attention,
        }
        layers = {kind: [each.float().cpu().numpy() for each in of_kind[kind]] for kind in KINDS}
        for row, said in enumerate(theirs):
            sizes = {"source": places[row], "target": len(said), "before": len(said)}
            # Copies: a view would keep the whole batch's weights alive.
            weights = {
                kind: [each[row, :, : sizes[looks], : sizes[seen]].copy() for each in layers[kind]]
                for kind, (looks, seen) in KINDS.items()
                if layers[kind]
            }
            found.append(Forced(logs[row, : len(said)].tolist(), weights))
    return found


def _heads(settings: ModelSettings) -> int:
    """How many matrices of weights a model has."""
    encoder, decoder = settings.encoder, settings.decoder
    own = encoder.layers * getattr(encoder, "heads", 0)
    return own + decoder.layers * 2 * getattr(decoder, "heads", 1)
