"""Beam search, and diverse beam search (Vijayakumar et al. 2016, arXiv:1610.02424).

A beam in G groups is G small beams for each source, which step together: the groups take turns, and each pays a penalty
for the tokens that the groups before it have just chosen. The penalty affects which hypotheses are kept, never the
score that a hypothesis is ranked by.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.inference.results import Hypothesis
from regard.inference.search.base import SEARCHES, SearchAlgorithm, SearchInput
from regard.inference.search.prefill import prefill
from regard.inference.search.stepwise import scored_hypothesis
from regard.inference.search_config import SearchConfig
from regard.models.logits import mask_reserved_tokens
from regard.special_tokens import BOS, EOS


@dataclass
class Candidates:
    """The best 2K continuations of some beams, the best first: [N, 2K]."""

    totals: Tensor
    tokens: Tensor
    parents: Tensor  # which of its K hypotheses each one continues


@SEARCHES.register("beam")
class BeamSearch(SearchAlgorithm):
    """The best hypotheses of each source."""

    def search(self, search_input: SearchInput) -> list[list[Hypothesis]]:
        model, constraints, config = search_input.model, search_input.constraints, search_input.config
        B, G, device = len(constraints.limits), config.beam_groups, search_input.encoded.states.device
        K = config.beam // G
        found: list[list[Hypothesis]] = [[] for _ in range(B * G)]
        unfinished = list(range(B * G))  # the beams that are still searched: source * G + group
        sources = torch.arange(B, device=device).repeat_interleave(G * K)
        repeated = search_input.encoded.select(sources)
        prompt_logits, state, prompt = prefill(model, repeated, constraints, sources.tolist())
        # Of the K equal hypotheses at the beginning only the first counts.
        totals = torch.full((len(unfinished), K), -torch.inf, device=device)
        totals[:, 0] = 0
        tokens = torch.full((len(unfinished) * K,), BOS, device=device)
        outputs = prompt.view(len(unfinished), K, -1)
        step = prompt.shape[1]
        while unfinished:
            step += 1
            if prompt_logits is not None:
                logits, prompt_logits = prompt_logits, None
            else:
                logits, state = model.step(tokens, state)
            mask_reserved_tokens(logits)
            log_partition = logits.logsumexp(-1, keepdim=True)
            owners = [beam // G for beam in unfinished for _ in range(K)]
            history = outputs.flatten(0, 1).tolist() if constraints.needs_history else []
            constraints.apply(logits, owners, history, step)
            if G == 1:
                best = _best_candidates(logits, log_partition, totals)
            else:
                best = _best_candidates_of_groups(logits - log_partition, totals, unfinished, config)
            ended = best.tokens == EOS
            continuing = _collect_finished(unfinished, found, config, best, ended, outputs, K)
            # The best K that continue: those that ended are sorted behind all others.
            totals = torch.where(ended, -torch.inf, best.totals)
            order = _first_columns(~ended, K)
            totals, chosen, parents = (x.gather(1, order) for x in (totals, best.tokens, best.parents))
            previous = outputs.gather(1, parents[..., None].expand(-1, -1, outputs.shape[-1]))
            outputs = torch.cat([previous, chosen[..., None]], -1)
            rows = torch.arange(len(unfinished), device=device)[:, None] * K + parents
            if len(continuing) < len(unfinished):
                where = torch.tensor(continuing, dtype=torch.int64, device=device)
                unfinished = [unfinished[row] for row in continuing]
                totals, chosen, outputs, rows = totals[where], chosen[where], outputs[where], rows[where]
                if not unfinished:
                    break
                state = state.select(rows.flatten())
            else:
                state = state.select(rows.flatten(), same_sources=True)
            tokens = chosen.flatten()
        return [_without_duplicates(found[source * G : (source + 1) * G]) for source in range(B)]


def _without_duplicates(groups: list[list[Hypothesis]]) -> list[Hypothesis]:
    """The hypotheses of all groups, without duplicates."""
    return list({tuple(h.tokens): h for found in groups for h in found}.values())


def _first_columns(selected: Tensor, count: int) -> Tensor:
    """Indices [N, count] of the first selected columns of each row, in order, then of others if there are too few."""
    columns = torch.arange(selected.shape[1], device=selected.device)
    return torch.where(selected, columns, columns + selected.shape[1]).topk(count, -1, largest=False).indices


def _best_candidates(logits: Tensor, log_partition: Tensor, totals: Tensor) -> Candidates:
    """The best continuations of hypotheses with these totals [N, K], from logits [N * K, V]."""
    N, K = totals.shape
    # Twice the beam size: even if K of them end, K can continue.
    values, tokens = logits.topk(min(2 * K, logits.shape[-1]), -1)
    values = (values - log_partition).view(N, K, -1) + totals[..., None]
    width = values.shape[-1]
    best, picked = values.flatten(1).topk(min(2 * K, K * width), -1)
    return Candidates(best, tokens.view(N, -1).gather(1, picked), picked // width)


def _best_candidates_of_groups(logs: Tensor, totals: Tensor, unfinished: list[int], config: SearchConfig) -> Candidates:
    """The same from log-probabilities [N * K, V], group after group, each with its penalty."""
    (N, K), V, G = totals.shape, logs.shape[-1], config.beam_groups
    logs = logs.view(N, K, V)
    width = min(2 * K, K * V)
    out = Candidates(
        totals.new_full((N, width), -torch.inf),
        torch.full((N, width), EOS, device=totals.device),
        torch.zeros((N, width), dtype=torch.int64, device=totals.device),
    )
    penalties = totals.new_zeros(max(unfinished) // G + 1, V)  # of each source and token
    for group in range(G):
        rows = [row for row, beam in enumerate(unfinished) if beam % G == group]
        if not rows:
            continue
        sources = torch.tensor([unfinished[row] // G for row in rows], device=totals.device)
        where = torch.tensor(rows, device=totals.device)
        values = (logs[where] + totals[where][..., None]).flatten(1)  # [n, K * V]
        picked = (values - penalties[sources].repeat(1, K)).topk(width, -1).indices
        out.totals[where], out.tokens[where] = values.gather(1, picked), picked % V
        out.parents[where] = picked // V
        chosen = out.tokens[where][:, :K]
        penalty = torch.where(chosen == EOS, 0.0, config.diversity_penalty).to(penalties.dtype)
        penalties.index_put_((sources[:, None].expand_as(chosen), chosen), penalty, accumulate=True)
    return out


def _collect_finished(
    unfinished: list[int],
    found: list[list[Hypothesis]],
    config: SearchConfig,
    candidates: Candidates,
    ended: Tensor,
    outputs: Tensor,
    K: int,
) -> list[int]:
    """Add the hypotheses that ended among a beam's best K to `found`; the rows of the beams whose search continues.

    A search ends when K hypotheses have ended; a patient one only if no unfinished hypothesis is ahead of the best of
    them so far.
    """
    length = outputs.shape[-1] + 1
    nbest = min(config.nbest, K)
    continuing: list[int] = []
    ends, scores, parents = ended.tolist(), candidates.totals.tolist(), candidates.parents.tolist()
    for row, beam in enumerate(unfinished):
        for rank in range(K):
            if ends[row][rank] and scores[row][rank] > -torch.inf:
                tokens = [*outputs[row, parents[row][rank]].tolist(), EOS]
                found[beam].append(scored_hypothesis(tokens, scores[row][rank], config))
        # NaN is not above minus infinity either, so it ends the search.
        open_scores = [
            score for score, end in zip(scores[row], ends[row], strict=True) if not end and score > -torch.inf
        ]
        if not open_scores:
            continue
        best = sorted((hypothesis.score for hypothesis in found[beam]), reverse=True)
        ahead = config.patient and len(best) >= K and max(open_scores) / length**config.length_penalty > best[nbest - 1]
        if len(best) < K or ahead:
            continuing.append(row)
    return continuing
