"""Greedy and beam search over any decoder, through `start` and `step` alone.

Sentences whose search has ended leave the batch. What a sentence gets does not depend on its company.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.models.memory import Memory
from regard.models.seq2seq import Seq2Seq
from regard.tokens import BEGIN, END, PAD


@dataclass(frozen=True)
class Hypothesis:
    """One finished output: its tokens with the end, log-probability, and the score it is ranked by."""

    tokens: list[int]
    log_probability: float
    score: float


@dataclass(frozen=True)
class Search:
    """How to search.

    beam: hypotheses kept; 1 is greedy. length_penalty: scores are log p / length^penalty; 0 compares plain sums.
    coverage_penalty: weight of sum log min(attention a source word got, 1) (Wu et al. 2016, arXiv:1609.08144), which
    ranks the finished hypotheses of models that attend. longest: tokens at most, for each source token (`per_token`)
    and in all.
    """

    beam: int = 5
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    nbest: int = 1
    per_token: float = 2.0
    longest: int = 256

    def __post_init__(self) -> None:
        if self.beam < 1 or not 1 <= self.nbest <= self.beam:
            raise ValueError(
                f"beam: {self.beam} is not possible with the best {self.nbest} wanted; it must be at least that many."
            )

    def limit(self, source_length: int) -> int:
        """The most tokens for a source so long, the end included."""
        return max(1, min(self.longest, int(self.per_token * source_length) + 20))


@torch.inference_mode()
def search(model: Seq2Seq, source: Tensor, mask: Tensor, how: Search) -> list[list[Hypothesis]]:
    """The best hypotheses of each source [B, Ts], best first, `how.nbest` of them or fewer."""
    memory = model.encode(source, mask)
    limits = [how.limit(int(length)) for length in mask.sum(1)]
    if how.beam == 1:
        return [[best] for best in _greedy(model, memory, limits, how)]
    found = _beam(model, memory, limits, how)
    if not all(found):
        raise ValueError("the model's outputs are not finite numbers: its weights are damaged; train or copy it again.")
    found = _best(found, how.beam)
    if how.coverage_penalty:
        found = _covering(model, memory, found, how)
    return _best(found, how.nbest)


def _best(found: list[list[Hypothesis]], count: int) -> list[list[Hypothesis]]:
    return [sorted(hypotheses, key=lambda h: -h.score)[:count] for hypotheses in found]


def _scored(tokens: list[int], log_probability: float, how: Search) -> Hypothesis:
    return Hypothesis(tokens, log_probability, log_probability / len(tokens) ** how.length_penalty)


def _greedy(model: Seq2Seq, memory: Memory, limits: list[int], how: Search) -> list[Hypothesis]:
    B, device = len(limits), memory.states.device
    state = model.start(memory)
    alive = torch.arange(B, device=device)
    room = torch.tensor(limits, device=device)
    tokens = torch.full((B,), BEGIN, device=device)
    said = torch.full((B, max(limits)), PAD, device=device)
    totals = torch.zeros(B, dtype=torch.float64, device=device)
    for step in range(max(limits)):
        logits, state = model.step(tokens, state)
        whole = logits.logsumexp(-1)
        _only_possible(logits, room[alive] == step + 1)
        best, tokens = logits.max(-1)
        totals[alive] += (best - whole).double()
        said[alive, step] = tokens
        going = (tokens != END).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(alive):
            alive, tokens, state = alive[going], tokens[going], state.select(going)
    rows = [row[: row.index(END) + 1] for row in said.tolist()]
    return [_scored(row, total, how) for row, total in zip(rows, totals.tolist(), strict=True)]


def _beam(model: Seq2Seq, memory: Memory, limits: list[int], how: Search) -> list[list[Hypothesis]]:
    K, device = how.beam, memory.states.device
    found: list[list[Hypothesis]] = [[] for _ in limits]
    alive = list(range(len(limits)))  # which sentences are still searched
    state = model.start(memory.select(torch.arange(len(limits), device=device).repeat_interleave(K)))
    # Of the K equal beginnings only the first counts.
    totals = torch.full((len(alive), K), -torch.inf, device=device)
    totals[:, 0] = 0
    tokens = torch.full((len(alive) * K,), BEGIN, device=device)
    said = tokens.new_empty(len(alive), K, 0)
    room = torch.tensor(limits, device=device)
    step = 0
    while alive:
        step += 1
        logits, state = model.step(tokens, state)
        whole = logits.logsumexp(-1, keepdim=True)
        _only_possible(logits, room[alive].repeat_interleave(K) == step)
        # Twice as many as are kept: even if K of them end, K can go on.
        values, words = logits.topk(min(2 * K, logits.shape[-1]), -1)
        values = (values - whole).view(len(alive), K, -1) + totals[..., None]
        width = values.shape[-1]
        totals, picked = values.flatten(1).topk(min(2 * K, K * width), -1)  # [N, 2K]
        words = words.view(len(alive), -1).gather(1, picked)
        beams = picked // width
        ended = words == END
        kept = _keep(alive, found, how, totals, beams, ended, said)
        # The best K that go on: those that ended are put behind all others.
        order = torch.where(ended, -torch.inf, totals).topk(K, -1).indices
        totals = torch.where(ended, -torch.inf, totals).gather(1, order)
        words, beams = words.gather(1, order), beams.gather(1, order)
        said = torch.cat([said.gather(1, beams[..., None].expand(-1, -1, said.shape[-1])), words[..., None]], -1)
        rows = torch.arange(len(alive), device=device)[:, None] * K + beams
        if len(kept) < len(alive):
            where = torch.tensor(kept, dtype=torch.int64, device=device)
            alive = [alive[row] for row in kept]
            totals, words, said, rows = totals[where], words[where], said[where], rows[where]
            if not alive:
                break
            state = state.select(rows.flatten())
        else:
            state = state.select(rows.flatten(), same_sources=True)
        tokens = words.flatten()
    return found


def _only_possible(logits: Tensor, last: Tensor) -> None:
    """Padding and beginning are never said; with no room for another word [B], only the end is, whatever it costs."""
    logits[:, [PAD, BEGIN]] = -torch.inf
    if last.any():
        end = logits[last, END]
        logits[last] = -torch.inf
        logits[last, END] = end


def _keep(
    alive: list[int],
    found: list[list[Hypothesis]],
    how: Search,
    totals: Tensor,
    beams: Tensor,
    ended: Tensor,
    said: Tensor,
) -> list[int]:
    """Put what ended among a sentence's best K aside; the rows of the sentences whose search goes on.

    A search ends when K hypotheses have, and none that goes on is ahead of the best of them, as far as it has come.
    (K alone would not do: where the vocabulary is small, K bad ends are found long before the good one.)
    """
    K, length = how.beam, said.shape[-1] + 1
    going: list[int] = []
    ends, scores, parents = ended.tolist(), totals.tolist(), beams.tolist()
    for row, sentence in enumerate(alive):
        for place in range(K):
            if ends[row][place] and scores[row][place] > -torch.inf:
                tokens = [*said[row, parents[row][place]].tolist(), END]
                found[sentence].append(_scored(tokens, scores[row][place], how))
        # What is not a number is not above minus infinity either, and goes nowhere.
        on = [score for score, end in zip(scores[row], ends[row], strict=True) if not end and score > -torch.inf]
        best = sorted((hypothesis.score for hypothesis in found[sentence]), reverse=True)
        if on and (len(best) < K or max(on) / length**how.length_penalty > best[how.nbest - 1]):
            going.append(row)
    return going


def _covering(model: Seq2Seq, memory: Memory, found: list[list[Hypothesis]], how: Search) -> list[list[Hypothesis]]:
    """Scores with the coverage penalty, from the attention of one forced pass over the finished outputs."""
    owners = torch.tensor([row for row, each in enumerate(found) for _ in each], device=memory.states.device)
    everything = [hypothesis for each in found for hypothesis in each]
    longest = max(len(h.tokens) for h in everything)
    before = owners.new_full((len(everything), longest), PAD)
    for row, hypothesis in enumerate(everything):
        before[row, : len(hypothesis.tokens)] = torch.tensor([BEGIN, *hypothesis.tokens[:-1]])
    chosen = memory.select(owners)
    cross = model.decoder(before, chosen, need_weights=True).cross
    if not cross:
        return found
    weights = cross[-1].mean(1)  # [N, Tt, Ts], the last layer's heads together
    there = torch.tensor([len(h.tokens) for h in everything], device=weights.device)[:, None]
    weights = weights * (torch.arange(longest, device=weights.device) < there)[..., None]
    covered = weights.sum(1).clamp(1e-6, 1).log() * chosen.mask
    penalties = iter((how.coverage_penalty * covered.sum(1)).tolist())
    return [[Hypothesis(h.tokens, h.log_probability, h.score + next(penalties)) for h in each] for each in found]
