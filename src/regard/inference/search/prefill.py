"""Prefill: the state of a decoder before the first token that is generated.

A language model processes its whole prompt in one pass, not token by token.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.inference.search.constraints import OutputConstraints
from regard.models.outputs import EncoderOutput, State
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BOS


class PrefillOutput(NamedTuple):
    """The rows of a search after the prompt."""

    logits: Tensor | None  # [N, V] of the next token; None without a prompt
    state: State
    tokens: Tensor  # [N, L]: the prompt, up to the prefilled length


def prefill(
    model: Seq2Seq, encoded: EncoderOutput, constraints: OutputConstraints, owners: Sequence[int]
) -> PrefillOutput:
    """The state of each row of an encoder output, which belong to the sources `owners`.

    Without a source, the prompts of all rows are prefilled, up to the length of the shortest; constraints force the
    rest. The prompt does not count for the score: it was not predicted.
    """
    device = encoded.states.device
    state = model.start(encoded)
    no_tokens = torch.zeros(len(owners), 0, dtype=torch.long, device=device)
    if encoded.mask.shape[1]:
        return PrefillOutput(None, state, no_tokens)
    prompts = [constraints.per_source[owner].prefix for owner in owners]
    length = min(*map(len, prompts), min(constraints.limits) - 1)
    tokens = torch.tensor([prompt[:length] for prompt in prompts], dtype=torch.long, device=device).view(
        len(owners), length
    )
    with_bos = getattr(model.settings.source, "bos", True) or not length
    first = torch.full((len(owners), int(with_bos)), BOS, device=device)
    logits, state = model.step(torch.cat([first, tokens], 1), state)
    return PrefillOutput(logits, state, tokens)
