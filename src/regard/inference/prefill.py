"""Prefill: the state of a decoder before the first token that is searched for.

A language model reads its whole prompt in one pass, not token by token.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.inference.constraints import OutputConstraints
from regard.models.outputs import EncoderOutput, State
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN


class Prefilled(NamedTuple):
    """Rows of a search before they produce a token."""

    logits: Tensor | None  # [N, V] of the next token; None if no prompt was read
    state: State
    tokens: Tensor  # [N, L]: the prompt that was read


def prefill(model: Seq2Seq, encoded: EncoderOutput, constraints: OutputConstraints, owners: Sequence[int]) -> Prefilled:
    """The state of each row of an encoder output, which belong to the sources `owners`.

    Without a source, the prompts of all rows are read, up to the length of the shortest; constraints force the rest.
    What was read does not count for the score: nothing chose it.
    """
    device = encoded.states.device
    state = model.start(encoded)
    nothing = torch.zeros(len(owners), 0, dtype=torch.long, device=device)
    if encoded.mask.shape[1]:
        return Prefilled(None, state, nothing)
    prompts = [constraints.each[owner].prefix for owner in owners]
    length = min(*map(len, prompts), min(constraints.limits) - 1)
    tokens = torch.tensor([prompt[:length] for prompt in prompts], dtype=torch.long, device=device).view(
        len(owners), length
    )
    with_bos = getattr(model.settings.source, "bos", True) or not length
    first = torch.full((len(owners), int(with_bos)), BEGIN, device=device)
    logits, state = model.step(torch.cat([first, tokens], 1), state)
    return Prefilled(logits, state, tokens)
