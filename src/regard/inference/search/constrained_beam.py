"""Beam search whose outputs must contain certain words, wherever they fit best.

Dynamic beam allocation (Post and Vilar 2018, arXiv:1804.06609): hypotheses are kept in banks by how many of the
required tokens they contain, so that those on their way are not crowded out by likelier ones that contain none of that
kind. One source at a time, with lists: few sources have such constraints.
"""

from dataclasses import dataclass

import torch

from regard.inference.constraints import OutputConstraints
from regard.inference.results import Hypothesis, SearchConfig
from regard.inference.search_algorithm import SEARCHES, SearchAlgorithm, SearchInput
from regard.inference.stepwise import scored_hypothesis
from regard.models.logits import mask_reserved_tokens
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN, END

MIN_BEAM = 5  # a beam below this could not keep a bank for what is missing and one for what is there

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class PartialHypothesis:
    """An unfinished hypothesis."""

    tokens: tuple[int, ...]
    total: float
    missing: tuple[Phrase, ...]  # phrases that it does not contain yet
    matched: tuple[int, ...]  # of each of these, how many of its first tokens the hypothesis ends with
    finished: bool = False  # a phrase, with its last token

    @staticmethod
    def of(tokens: tuple[int, ...], total: float, wanted: tuple[Phrase, ...]) -> "PartialHypothesis":
        """After these tokens, of which all but the last were looked at before."""
        missing = tuple(phrase for phrase in wanted if tokens[-len(phrase) :] != phrase)
        matched = tuple(_overlap(tokens, phrase) for phrase in missing)
        return PartialHypothesis(tokens, total, missing, matched, len(missing) < len(wanted))

    @property
    def due(self) -> int:
        """Required tokens that are still missing."""
        return sum(map(len, self.missing)) - max(self.matched, default=0)

    def wanted(self) -> set[int]:
        """Tokens that bring it nearer."""
        furthest = max(self.matched, default=0)
        return {phrase[count] for phrase, count in zip(self.missing, self.matched, strict=True) if count == furthest}


def _overlap(tokens: tuple[int, ...], phrase: Phrase) -> int:
    """How much of the phrase's beginning the tokens end with."""
    return next(n for n in range(min(len(tokens), len(phrase) - 1), -1, -1) if n == 0 or tokens[-n:] == phrase[:n])


@SEARCHES.register("constrained-beam")
class ConstrainedBeamSearch(SearchAlgorithm):
    """Beam search for one source whose output must contain certain phrases."""

    def search(self, given: SearchInput) -> list[list[Hypothesis]]:
        return [_constrained_search(given.model, given.encoded, given.constraints, given.config)]


def _constrained_search(
    model: Seq2Seq, encoded: EncoderOutput, constraints: OutputConstraints, config: SearchConfig
) -> list[Hypothesis]:
    """The best hypotheses of one source, best first; all contain what is required, if there was room for it."""
    K, limit, device = max(config.beam, MIN_BEAM), constraints.limits[0], encoded.states.device
    required = tuple(dict.fromkeys(phrase for phrase in constraints.each[0].required if phrase))
    partial = [PartialHypothesis.of((), 0.0, required)]
    state = model.start(encoded)
    found: list[tuple[int, Hypothesis]] = []  # with the number of tokens that it lacks
    for step in range(1, limit + 1):
        tokens = [each.tokens[-1] if each.tokens else BEGIN for each in partial]
        logits, state = model.step(torch.tensor(tokens, device=device), state)
        mask_reserved_tokens(logits)
        log_partition = logits.logsumexp(-1, keepdim=True)
        constraints.apply(logits, [0] * len(partial), [each.tokens for each in partial], step)
        logs = logits - log_partition
        for row, each in enumerate(partial):
            if each.finished and constraints.pieces:  # no longer word is made of its last one
                logs[row, constraints.continuing_tokens] = -torch.inf
            if step == limit:
                continue
            if each.due:
                logs[row, END] = -torch.inf
            if each.due >= limit - step:  # just enough room for them and the end
                only = [token for token in each.wanted() if logs[row, token] > -torch.inf]
                if only:
                    kept = logs[row, only].clone()
                    logs[row] = -torch.inf
                    logs[row, only] = kept
        words = logs.topk(min(2 * K, logs.shape[-1]), -1).indices
        chosen: dict[tuple[int, ...], tuple[int, PartialHypothesis]] = {}
        for row, each in enumerate(partial):
            options = {*words[row].tolist(), *each.wanted()}
            for token in options:
                value = float(logs[row, token])
                if not value > -torch.inf:  # nor what is not a number
                    continue
                total = each.total + value
                if token == END:
                    found.append((each.due, scored_hypothesis([*each.tokens, END], total, config)))
                else:
                    longer = (*each.tokens, token)
                    chosen[longer] = row, PartialHypothesis.of(longer, total, each.missing)
        kept_rows = _select_by_bank(list(chosen.values()), K)
        if not kept_rows or step == limit or _is_settled(found, kept_rows, config, K):
            break
        partial = [each for _, each in kept_rows]
        state = state.select(torch.tensor([row for row, _ in kept_rows], device=device))
    return [hypothesis for _, hypothesis in sorted(found, key=lambda pair: (pair[0], -pair[1].score))][: config.nbest]


def _is_settled(
    found: list[tuple[int, Hypothesis]], partial: list[tuple[int, PartialHypothesis]], config: SearchConfig, K: int
) -> bool:
    """Whether K have ended and no unfinished one is ahead of them."""
    if len(found) < K:
        return False
    best = sorted((hypothesis.score for _, hypothesis in found), reverse=True)[config.nbest - 1]
    return all(each.total / len(each.tokens) ** config.length_penalty <= best for _, each in partial)


def _select_by_bank(candidates: list[tuple[int, PartialHypothesis]], K: int) -> list[tuple[int, PartialHypothesis]]:
    """K of them: each bank's best in turn, those with the fewest tokens due first."""
    banks: dict[int, list[tuple[int, PartialHypothesis]]] = {}
    for candidate in sorted(candidates, key=lambda pair: (-pair[1].total, pair[1].tokens)):
        banks.setdefault(candidate[1].due, []).append(candidate)
    kept: list[tuple[int, PartialHypothesis]] = []
    place = 0
    while len(kept) < K and any(len(bank) > place for bank in banks.values()):
        for due in sorted(banks):
            if len(banks[due]) > place and len(kept) < K:
                kept.append(banks[due][place])
        place += 1
    return kept
