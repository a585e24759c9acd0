"""Beam search whose outputs must contain required phrases, at the positions that score best.

Dynamic beam allocation (Post and Vilar 2018, arXiv:1804.06609): hypotheses are kept in banks by how many of the
required tokens they contain, so that those that contain some are not crowded out by likelier ones that contain none.
One source at a time, with lists: few sources have such constraints.
"""

from dataclasses import dataclass

import torch

from regard.inference.results import Hypothesis
from regard.inference.search.base import SEARCHES, SearchAlgorithm, SearchInput
from regard.inference.search.constraints import OutputConstraints
from regard.inference.search.stepwise import scored_hypothesis
from regard.inference.search_config import SearchConfig
from regard.models.logits import mask_reserved_tokens
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BOS, EOS

MIN_BEAM = 5  # a smaller beam has no room for banks with and without the required tokens

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class PartialHypothesis:
    """An unfinished hypothesis."""

    tokens: tuple[int, ...]
    total: float
    missing: tuple[Phrase, ...]  # phrases that it does not contain yet
    matched: tuple[int, ...]  # of each of these, how many of its first tokens the hypothesis ends with
    completed_phrase: bool = False  # its last token completes a required phrase

    @staticmethod
    def after(tokens: tuple[int, ...], total: float, required: tuple[Phrase, ...]) -> "PartialHypothesis":
        """After these tokens. required: phrases that were missing before the last token."""
        missing = tuple(phrase for phrase in required if tokens[-len(phrase) :] != phrase)
        matched = tuple(_overlap(tokens, phrase) for phrase in missing)
        return PartialHypothesis(tokens, total, missing, matched, len(missing) < len(required))

    @property
    def due(self) -> int:
        """Required tokens that are still missing."""
        return sum(map(len, self.missing)) - max(self.matched, default=0)

    def next_required(self) -> set[int]:
        """Tokens that continue the required phrase that is matched furthest."""
        furthest = max(self.matched, default=0)
        return {phrase[count] for phrase, count in zip(self.missing, self.matched, strict=True) if count == furthest}


def _overlap(tokens: tuple[int, ...], phrase: Phrase) -> int:
    """The length of the longest proper prefix of the phrase that the tokens end with."""
    return next(n for n in range(min(len(tokens), len(phrase) - 1), -1, -1) if n == 0 or tokens[-n:] == phrase[:n])


@SEARCHES.register("constrained-beam")
class ConstrainedBeamSearch(SearchAlgorithm):
    """Beam search for one source whose output must contain certain phrases."""

    automatic = True

    def search(self, search_input: SearchInput) -> list[list[Hypothesis]]:
        return [
            _constrained_search(search_input.model, search_input.encoded, search_input.constraints, search_input.config)
        ]


def _constrained_search(
    model: Seq2Seq, encoded: EncoderOutput, constraints: OutputConstraints, config: SearchConfig
) -> list[Hypothesis]:
    """The best hypotheses of one source, best first; all contain the required phrases, if there was room for them."""
    K, limit, device = max(config.beam, MIN_BEAM), constraints.limits[0], encoded.states.device
    required = tuple(dict.fromkeys(phrase for phrase in constraints.per_source[0].required if phrase))
    partial = [PartialHypothesis.after((), 0.0, required)]
    state = model.start(encoded)
    found: list[tuple[int, Hypothesis]] = []  # with the number of required tokens that are missing
    for step in range(1, limit + 1):
        tokens = [each.tokens[-1] if each.tokens else BOS for each in partial]
        logits, state = model.step(torch.tensor(tokens, device=device), state)
        mask_reserved_tokens(logits)
        log_partition = logits.logsumexp(-1, keepdim=True)
        constraints.apply(logits, [0] * len(partial), [each.tokens for each in partial], step)
        logs = logits - log_partition
        for row, each in enumerate(partial):
            if each.completed_phrase and constraints.pieces:  # its last word must not become a longer word
                logs[row, constraints.continuing_tokens] = -torch.inf
            if step == limit:
                continue
            if each.due:
                logs[row, EOS] = -torch.inf
            if each.due >= limit - step:  # just enough room for them and the end of sequence
                only = [token for token in each.next_required() if logs[row, token] > -torch.inf]
                if only:
                    allowed = logs[row, only].clone()
                    logs[row] = -torch.inf
                    logs[row, only] = allowed
        best_tokens = logs.topk(min(2 * K, logs.shape[-1]), -1).indices
        chosen: dict[tuple[int, ...], tuple[int, PartialHypothesis]] = {}
        for row, each in enumerate(partial):
            candidates = {*best_tokens[row].tolist(), *each.next_required()}
            for token in candidates:
                value = float(logs[row, token])
                if not value > -torch.inf:  # also true for NaN
                    continue
                total = each.total + value
                if token == EOS:
                    found.append((each.due, scored_hypothesis([*each.tokens, EOS], total, config)))
                else:
                    longer = (*each.tokens, token)
                    chosen[longer] = row, PartialHypothesis.after(longer, total, each.missing)
        selected = _select_by_bank(list(chosen.values()), K)
        if not selected or step == limit or _is_settled(found, selected, config, K):
            break
        partial = [each for _, each in selected]
        state = state.select(torch.tensor([row for row, _ in selected], device=device))
    return [hypothesis for _, hypothesis in sorted(found, key=lambda pair: (pair[0], -pair[1].score))][: config.nbest]


def _is_settled(
    found: list[tuple[int, Hypothesis]], partial: list[tuple[int, PartialHypothesis]], config: SearchConfig, K: int
) -> bool:
    """Whether K hypotheses have ended and no unfinished one scores better."""
    if len(found) < K:
        return False
    best = sorted((hypothesis.score for _, hypothesis in found), reverse=True)[config.nbest - 1]
    return all(each.total / len(each.tokens) ** config.length_penalty <= best for _, each in partial)


def _select_by_bank(candidates: list[tuple[int, PartialHypothesis]], K: int) -> list[tuple[int, PartialHypothesis]]:
    """K candidates: the best of each bank in turn, banks with the fewest missing tokens first."""
    banks: dict[int, list[tuple[int, PartialHypothesis]]] = {}
    for candidate in sorted(candidates, key=lambda pair: (-pair[1].total, pair[1].tokens)):
        banks.setdefault(candidate[1].due, []).append(candidate)
    selected: list[tuple[int, PartialHypothesis]] = []
    rank = 0
    while len(selected) < K and any(len(bank) > rank for bank in banks.values()):
        for due in sorted(banks):
            if len(banks[due]) > rank and len(selected) < K:
                selected.append(banks[due][rank])
        rank += 1
    return selected
