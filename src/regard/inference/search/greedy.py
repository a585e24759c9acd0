"""Word by word, without looking back: greedy search takes the best each time."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.inference.results import Hypothesis, Search
from regard.inference.search.constraints import Rules
from regard.inference.search.prefill import begun
from regard.models.logits import mask_reserved_tokens
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN, END, PAD


def scored(tokens: list[int], log_probability: float, how: Search) -> Hypothesis:
    """A hypothesis with the score it is ranked by."""
    return Hypothesis(tokens, log_probability, log_probability / len(tokens) ** how.length_penalty)


Heard = Callable[[list[int], list[int]], None]  # rows, and the token that each has just said


def greedy_search(
    model: Seq2Seq, memory: EncoderOutput, rules: Rules, how: Search, heard: Heard | None = None
) -> list[Hypothesis]:
    """One hypothesis for each source."""
    owners = list(range(len(rules.limits)))
    return word_by_word(model, memory, rules, how, owners, lambda logits, rows, step: logits.argmax(-1), heard)


def word_by_word(
    model: Seq2Seq,
    memory: EncoderOutput,
    rules: Rules,
    how: Search,
    owners: Sequence[int],
    pick: Callable[[Tensor, Tensor, int], Tensor],
    heard: Heard | None = None,
) -> list[Hypothesis]:
    """One hypothesis for each entry of the memory, which belong to the sources `owners`.

    pick: from logits [N, V] of the entries [N] that go on, at a step from 0, to the tokens [N] that they say.
    """
    count, most, device = len(owners), max(rules.limits), memory.states.device
    read, state, before = begun(model, memory, rules, owners)
    first = before.shape[1]
    alive = torch.arange(count, device=device)
    tokens = torch.full((count,), BEGIN, device=device)
    said = torch.full((count, most), PAD, device=device)
    said[:, :first] = before
    if heard is not None:
        for column in before.unbind(1):
            heard(alive.tolist(), column.tolist())
    totals = torch.zeros(count, dtype=torch.float64, device=device)
    for step in range(first, most):
        if read is not None:
            logits, read = read, None
        else:
            logits, state = model.step(tokens, state)
        mask_reserved_tokens(logits)
        whole = logits.logsumexp(-1)
        past = said[alive, :step].tolist() if rules.looks_back else []
        rules.apply(logits, [owners[row] for row in alive.tolist()], past, step + 1)
        tokens = pick(logits, alive, step)
        totals[alive] += (logits.gather(1, tokens[:, None])[:, 0] - whole).double()
        said[alive, step] = tokens
        if heard is not None:
            heard(alive.tolist(), tokens.tolist())
        going = (tokens != END).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(alive):
            alive, tokens, state = alive[going], tokens[going], state.select(going)
    rows = [row[: row.index(END) + 1] for row in said.tolist()]
    return [scored(row, total, how) for row, total in zip(rows, totals.tolist(), strict=True)]
