"""Beam search, and diverse beam search (Vijayakumar et al. 2016, arXiv:1610.02424).

A beam in G groups is G small beams for each source, which step together: the groups take turns, and each pays for the
words that the ones before it have just chosen. What is paid decides what is kept, never the score it is ranked by.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.inference.results import Hypothesis, Search
from regard.inference.search.constraints import Rules
from regard.inference.search.greedy import scored
from regard.inference.search.prefill import begun
from regard.models.logits import mask_reserved_tokens
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN, END


@dataclass
class Chosen:
    """The best 2K continuations of some beams, the ones to keep first: [N, 2K]."""

    totals: Tensor
    words: Tensor
    beams: Tensor  # which of its K beginnings each one continues


def beam_search(model: Seq2Seq, memory: EncoderOutput, rules: Rules, how: Search) -> list[list[Hypothesis]]:
    """Hypotheses of each source, in no order."""
    B, G, device = len(rules.limits), how.groups, memory.states.device
    K = how.beam // G
    found: list[list[Hypothesis]] = [[] for _ in range(B * G)]
    alive = list(range(B * G))  # the beams that are still searched: source * G + group
    sources = torch.arange(B, device=device).repeat_interleave(G * K)
    read, state, before = begun(model, memory.select(sources), rules, sources.tolist())
    # Of the K equal beginnings only the first counts.
    totals = torch.full((len(alive), K), -torch.inf, device=device)
    totals[:, 0] = 0
    tokens = torch.full((len(alive) * K,), BEGIN, device=device)
    said = before.view(len(alive), K, -1)
    step = before.shape[1]
    while alive:
        step += 1
        if read is not None:
            logits, read = read, None
        else:
            logits, state = model.step(tokens, state)
        mask_reserved_tokens(logits)
        whole = logits.logsumexp(-1, keepdim=True)
        owners = [beam // G for beam in alive for _ in range(K)]
        rules.apply(logits, owners, said.flatten(0, 1).tolist() if rules.looks_back else [], step)
        if G == 1:
            chosen = _choose(logits, whole, totals)
        else:
            chosen = _choose_in_turn(logits - whole, totals, alive, how)
        ended = chosen.words == END
        kept = _keep(alive, found, how, chosen, ended, said, K)
        # The best K that go on: those that ended are put behind all others.
        totals = torch.where(ended, -torch.inf, chosen.totals)
        order = _first(~ended, K)
        totals, words, beams = (x.gather(1, order) for x in (totals, chosen.words, chosen.beams))
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
    return [_different(found[source * G : (source + 1) * G]) for source in range(B)]


def _different(groups: list[list[Hypothesis]]) -> list[Hypothesis]:
    """Of all groups, what several have found once."""
    return list({tuple(h.tokens): h for found in groups for h in found}.values())


def _first(wanted: Tensor, count: int) -> Tensor:
    """The places [N, count] of the first wanted ones, in their order; then of others, where there are too few."""
    places = torch.arange(wanted.shape[1], device=wanted.device)
    return torch.where(wanted, places, places + wanted.shape[1]).topk(count, -1, largest=False).indices


def _choose(logits: Tensor, whole: Tensor, totals: Tensor) -> Chosen:
    """The best of logits [N * K, V], whose log-partition is `whole`, after beginnings of these totals [N, K]."""
    N, K = totals.shape
    # Twice as many as are kept: even if K of them end, K can go on.
    values, words = logits.topk(min(2 * K, logits.shape[-1]), -1)
    values = (values - whole).view(N, K, -1) + totals[..., None]
    width = values.shape[-1]
    best, picked = values.flatten(1).topk(min(2 * K, K * width), -1)
    return Chosen(best, words.view(N, -1).gather(1, picked), picked // width)


def _choose_in_turn(logs: Tensor, totals: Tensor, alive: list[int], how: Search) -> Chosen:
    """The same with log-probabilities [N * K, V], group after group, each paying for what was said before it."""
    (N, K), V, G = totals.shape, logs.shape[-1], how.groups
    logs = logs.view(N, K, V)
    width = min(2 * K, K * V)
    out = Chosen(
        totals.new_full((N, width), -torch.inf),
        torch.full((N, width), END, device=totals.device),
        torch.zeros((N, width), dtype=torch.int64, device=totals.device),
    )
    paid = totals.new_zeros(max(alive) // G + 1, V)  # by source: what each word costs by now
    for group in range(G):
        rows = [row for row, beam in enumerate(alive) if beam % G == group]
        if not rows:
            continue
        sources = torch.tensor([alive[row] // G for row in rows], device=totals.device)
        where = torch.tensor(rows, device=totals.device)
        values = (logs[where] + totals[where][..., None]).flatten(1)  # [n, K * V]
        picked = (values - paid[sources].repeat(1, K)).topk(width, -1).indices
        out.totals[where], out.words[where] = values.gather(1, picked), picked % V
        out.beams[where] = picked // V
        said = out.words[where][:, :K]
        cost = torch.where(said == END, 0.0, how.diversity).to(paid.dtype)
        paid.index_put_((sources[:, None].expand_as(said), said), cost, accumulate=True)
    return out


def _keep(
    alive: list[int],
    found: list[list[Hypothesis]],
    how: Search,
    chosen: Chosen,
    ended: Tensor,
    said: Tensor,
    K: int,
) -> list[int]:
    """Put what ended among a beam's best K aside; the rows of the beams whose search goes on.

    A search ends when K hypotheses have; a patient one only if none that goes on is ahead of the best of them, as far
    as it has come.
    """
    length = said.shape[-1] + 1
    wanted = min(how.nbest, K)
    going: list[int] = []
    ends, scores, parents = ended.tolist(), chosen.totals.tolist(), chosen.beams.tolist()
    for row, beam in enumerate(alive):
        for place in range(K):
            if ends[row][place] and scores[row][place] > -torch.inf:
                tokens = [*said[row, parents[row][place]].tolist(), END]
                found[beam].append(scored(tokens, scores[row][place], how))
        # What is not a number is not above minus infinity either, and goes nowhere.
        on = [score for score, end in zip(scores[row], ends[row], strict=True) if not end and score > -torch.inf]
        if not on:
            continue
        best = sorted((hypothesis.score for hypothesis in found[beam]), reverse=True)
        if len(best) < K or (how.patient and max(on) / length**how.length_penalty > best[wanted - 1]):
            going.append(row)
    return going
