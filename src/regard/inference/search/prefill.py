"""Before the first word: nothing, or how a text begins, which a language model reads at once, not word by word."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.inference.search.constraints import Rules
from regard.models.outputs import EncoderOutput, State
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN


class Begun(NamedTuple):
    """Rows of a search before they say anything of their own."""

    logits: Tensor | None  # [N, V] of the next word; None if nothing was read yet
    state: State
    said: Tensor  # [N, L]: what was read


def begun(model: Seq2Seq, memory: EncoderOutput, rules: Rules, owners: Sequence[int]) -> Begun:
    """The state of each entry of a memory, which belong to the sources `owners`.

    Without a source, what all rows begin with is read, as long as the shortest of their beginnings; rules force the
    rest. What was read counts for nothing in a score: nobody chose it.
    """
    device = memory.states.device
    state = model.start(memory)
    nothing = torch.zeros(len(owners), 0, dtype=torch.long, device=device)
    if memory.mask.shape[1]:
        return Begun(None, state, nothing)
    prefixes = [rules.wishes[owner].prefix for owner in owners]
    length = min(*map(len, prefixes), min(rules.limits) - 1)
    said = torch.tensor([prefix[:length] for prefix in prefixes], dtype=torch.long, device=device).view(
        len(owners), length
    )
    marked = getattr(model.settings.source, "begin", True) or not length
    first = torch.full((len(owners), int(marked)), BEGIN, device=device)
    logits, state = model.step(torch.cat([first, said], 1), state)
    return Begun(logits, state, said)
