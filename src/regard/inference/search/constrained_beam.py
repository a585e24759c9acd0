"""Beam search whose outputs must contain certain words, wherever they fit best.

Dynamic beam allocation (Post and Vilar 2018, arXiv:1804.06609): hypotheses are kept in banks by how many of the
required tokens they have said, so that those on their way are not crowded out by likelier ones that say nothing of the
kind. One source at a time, with lists: few sources have such wishes.
"""

from dataclasses import dataclass

import torch

from regard.inference.results import Hypothesis, Search
from regard.inference.search.constraints import Rules
from regard.inference.search.greedy import scored
from regard.models.logits import mask_reserved_tokens
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN, END

NARROWEST = 5  # a beam below this could not keep a bank for what is missing and one for what is there

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Going:
    """A hypothesis on its way."""

    tokens: tuple[int, ...]
    total: float
    missing: tuple[Phrase, ...]  # phrases that have not been said
    begun: tuple[int, ...]  # of each of these, how many tokens the hypothesis ends with
    finished: bool = False  # a phrase, with its last token

    @staticmethod
    def of(tokens: tuple[int, ...], total: float, wanted: tuple[Phrase, ...]) -> "Going":
        """After these tokens, of which all but the last were looked at before."""
        missing = tuple(phrase for phrase in wanted if tokens[-len(phrase) :] != phrase)
        begun = tuple(_overlap(tokens, phrase) for phrase in missing)
        return Going(tokens, total, missing, begun, len(missing) < len(wanted))

    @property
    def due(self) -> int:
        """Required tokens that are still to be said."""
        return sum(map(len, self.missing)) - max(self.begun, default=0)

    def wanted(self) -> set[int]:
        """Tokens that bring it nearer."""
        furthest = max(self.begun, default=0)
        return {phrase[begun] for phrase, begun in zip(self.missing, self.begun, strict=True) if begun == furthest}


def _overlap(tokens: tuple[int, ...], phrase: Phrase) -> int:
    """How much of the phrase's beginning the tokens end with."""
    return next(n for n in range(min(len(tokens), len(phrase) - 1), -1, -1) if n == 0 or tokens[-n:] == phrase[:n])


def constrained_search(model: Seq2Seq, memory: EncoderOutput, rules: Rules, how: Search) -> list[Hypothesis]:
    """The best hypotheses of one source, best first; all have what was required, if there was room for it."""
    K, limit, device = max(how.beam, NARROWEST), rules.limits[0], memory.states.device
    required = tuple(dict.fromkeys(phrase for phrase in rules.wishes[0].required if phrase))
    going = [Going.of((), 0.0, required)]
    state = model.start(memory)
    found: list[tuple[int, Hypothesis]] = []  # with the number of tokens that it lacks
    for step in range(1, limit + 1):
        tokens = [each.tokens[-1] if each.tokens else BEGIN for each in going]
        logits, state = model.step(torch.tensor(tokens, device=device), state)
        mask_reserved_tokens(logits)
        whole = logits.logsumexp(-1, keepdim=True)
        rules.apply(logits, [0] * len(going), [each.tokens for each in going], step)
        logs = logits - whole
        for row, each in enumerate(going):
            if each.finished and rules.pieces:  # no longer word is made of its last one
                logs[row, rules.continuing] = -torch.inf
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
        chosen: dict[tuple[int, ...], tuple[int, Going]] = {}
        for row, each in enumerate(going):
            options = {*words[row].tolist(), *each.wanted()}
            for token in options:
                value = float(logs[row, token])
                if not value > -torch.inf:  # nor what is not a number
                    continue
                total = each.total + value
                if token == END:
                    found.append((each.due, scored([*each.tokens, END], total, how)))
                else:
                    longer = (*each.tokens, token)
                    chosen[longer] = row, Going.of(longer, total, each.missing)
        kept_rows = _banked(list(chosen.values()), K)
        if not kept_rows or step == limit or _settled(found, kept_rows, how, K):
            break
        going = [each for _, each in kept_rows]
        state = state.select(torch.tensor([row for row, _ in kept_rows], device=device))
    return [hypothesis for _, hypothesis in sorted(found, key=lambda pair: (pair[0], -pair[1].score))][: how.nbest]


def _settled(found: list[tuple[int, Hypothesis]], going: list[tuple[int, Going]], how: Search, K: int) -> bool:
    """Whether K have ended and none that goes on is ahead of them."""
    if len(found) < K:
        return False
    best = sorted((hypothesis.score for _, hypothesis in found), reverse=True)[how.nbest - 1]
    return all(each.total / len(each.tokens) ** how.length_penalty <= best for _, each in going)


def _banked(candidates: list[tuple[int, Going]], K: int) -> list[tuple[int, Going]]:
    """K of them: each bank's best in turn, those with the fewest tokens due first."""
    banks: dict[int, list[tuple[int, Going]]] = {}
    for candidate in sorted(candidates, key=lambda pair: (-pair[1].total, pair[1].tokens)):
        banks.setdefault(candidate[1].due, []).append(candidate)
    kept: list[tuple[int, Going]] = []
    place = 0
    while len(kept) < K and any(len(bank) > place for bank in banks.values()):
        for due in sorted(banks):
            if len(banks[due]) > place and len(kept) < K:
                kept.append(banks[due][place])
        place += 1
    return kept
