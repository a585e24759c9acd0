"""Greedy search: the best word, each time."""

import torch

from regard.decoding.results import Hypothesis, Search
from regard.decoding.searches.rules import Rules, possible
from regard.models.memory import Memory
from regard.models.seq2seq import Seq2Seq
from regard.tokens import BEGIN, END, PAD


def scored(tokens: list[int], log_probability: float, how: Search) -> Hypothesis:
    """A hypothesis with the score it is ranked by."""
    return Hypothesis(tokens, log_probability, log_probability / len(tokens) ** how.length_penalty)


def greedy_search(model: Seq2Seq, memory: Memory, rules: Rules, how: Search) -> list[Hypothesis]:
    """One hypothesis for each source."""
    B, device = len(rules.limits), memory.states.device
    most = max(rules.limits)
    state = model.start(memory)
    alive = torch.arange(B, device=device)
    tokens = torch.full((B,), BEGIN, device=device)
    said = torch.full((B, most), PAD, device=device)
    totals = torch.zeros(B, dtype=torch.float64, device=device)
    for step in range(most):
        logits, state = model.step(tokens, state)
        possible(logits)
        whole = logits.logsumexp(-1)
        rules.apply(logits, alive.tolist(), said[alive, :step].tolist() if rules.looks_back else [], step + 1)
        best, tokens = logits.max(-1)
        totals[alive] += (best - whole).double()
        said[alive, step] = tokens
        going = (tokens != END).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(alive):
            alive, tokens, state = alive[going], tokens[going], state.select(going)
    rows = [row[: row.index(END) + 1] for row in said.tolist()]
    return [scored(row, total, how) for row, total in zip(rows, totals.tolist(), strict=True)]
