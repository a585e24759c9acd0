"""Searches over any decoder, through `start` and `step` alone: greedy, beam, diverse beam, constrained, sampling.

Sentences whose search has ended leave the batch. What a sentence gets does not depend on its company.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.inference.results import Hypothesis, Search, Wish
from regard.inference.search.beam import beam_search
from regard.inference.search.constrained_beam import constrained_search
from regard.inference.search.constraints import Rules
from regard.inference.search.coverage_penalty import covering
from regard.inference.search.greedy import Heard, greedy_search
from regard.inference.search.sampling import sample
from regard.inference.search.top_classes import choose
from regard.models.seq2seq import Seq2Seq


@torch.inference_mode()
def search(
    model: Seq2Seq,
    source: Tensor,
    mask: Tensor,
    how: Search,
    wishes: Sequence[Wish] | None = None,
    pieces: Sequence[str] = (),
    heard: Heard | None = None,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each source [B, Ts], best first, `how.nbest` of them or fewer.

    wishes: what each output must be like. pieces: what each target token looks like, for forbidden words. heard: is
    told every token as it is said, where nothing is ever taken back: greedily, or by draws.
    """
    required = [bool(wish.required) for wish in wishes] if wishes is not None else []
    if any(required):
        return _apart(model, source, mask, how, wishes or [], pieces, required)
    memory = model.encode(source, mask)
    if how.single:
        return choose(model, memory, how)
    rules = Rules(how, [how.limit(int(length)) for length in memory.mask.sum(1)], wishes, pieces)
    if how.sampling is not None:
        return sample(model, memory, rules, how, _keys(source, mask, wishes), heard)
    if how.beam == 1:
        return [[best] for best in greedy_search(model, memory, rules, how, heard)]
    found = beam_search(model, memory, rules, how)
    if not all(found):
        raise RegardError(
            "the model's outputs are not finite numbers: its weights are damaged; train or copy it again."
        )
    found = _best(found, how.beam)
    if how.coverage_penalty:
        found = covering(model, memory, found, how)
    return _best(found, how.nbest)


def _apart(
    model: Seq2Seq,
    source: Tensor,
    mask: Tensor,
    how: Search,
    wishes: Sequence[Wish],
    pieces: Sequence[str],
    required: list[bool],
) -> list[list[Hypothesis]]:
    """Sources whose outputs must have certain words are searched one by one, the others as usual."""
    found: dict[int, list[Hypothesis]] = {}
    for row, wanted in enumerate(required):
        if wanted:
            length = int(mask[row].sum())
            one = source[row : row + 1, :length] if source.ndim < 4 else source[row : row + 1]
            memory = model.encode(one, mask[row : row + 1, :length])
            found[row] = constrained_search(model, memory, Rules(how, [how.limit(length)], [wishes[row]], pieces), how)
    usual = [row for row, wanted in enumerate(required) if not wanted]
    if usual:
        others = search(model, source[usual], mask[usual], how, [wishes[row] for row in usual], pieces)
        found |= dict(zip(usual, others, strict=True))
    return [found[row] for row in range(len(required))]


def _best(found: list[list[Hypothesis]], count: int) -> list[list[Hypothesis]]:
    return [sorted(hypotheses, key=lambda h: -h.score)[:count] for hypotheses in found]


def _keys(source: Tensor, mask: Tensor, wishes: Sequence[Wish] | None) -> list[bytes]:
    """What is drawn for a source depends on its tokens, never on its place in a batch; without a source, on how the
    text begins."""
    if not mask.shape[1] and wishes is not None:
        return [repr(wish.prefix).encode() for wish in wishes]
    if source.ndim == 4:
        return [row.cpu().numpy().tobytes() for row in source]
    return [row[there].cpu().numpy().tobytes() for row, there in zip(source, mask, strict=True)]
