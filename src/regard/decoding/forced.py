"""One forced pass over finished outputs: what each token was worth, and what was attended to.

Search keeps none of this, so it costs nothing when nobody asks, and any engine, beam and batch gives the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batches import padded
from regard.decoding.bundle import Bundle
from regard.decoding.searches.rules import possible
from regard.tokens import BEGIN, PAD

AT_ONCE = 64  # outputs in one pass


class Forced(NamedTuple):
    """Of one output."""

    token_scores: list[float]  # log-probability of each token, the end included
    attention: list[NDArray[np.float32]]  # weights [H, Tt, Ts] of each layer that attends, ends included


@torch.inference_mode()
def forced(
    bundle: Bundle, sources: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]], *, attention: bool = True
) -> list[Forced]:
    """Of each source and its output, tokens with their ends."""
    device = next(bundle.model.parameters()).device
    found: list[Forced] = []
    for at in range(0, len(sources), AT_ONCE):
        some, theirs = sources[at : at + AT_ONCE], outputs[at : at + AT_ONCE]
        source = padded([list(each) for each in some]).to(device)
        after = padded([list(each) for each in theirs]).to(device)
        before = padded([[BEGIN, *each[:-1]] for each in theirs]).to(device)
        decoded = bundle.model(source, source != PAD, before, need_weights=attention)
        logs = possible(bundle.model.logits(decoded.features)).log_softmax(-1).gather(2, after[..., None])[..., 0]
        layers = [weights.float().cpu().numpy() for weights in decoded.cross]
        for row, (given, said) in enumerate(zip(some, theirs, strict=True)):
            # Copies: a view would keep the whole batch's weights alive.
            weights = [layer[row, :, : len(said), : len(given)].copy() for layer in layers]
            found.append(Forced(logs[row, : len(said)].tolist(), weights))
    return found
