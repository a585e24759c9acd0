"""Which tokens may come next in each output: length limits, prefixes, forbidden words, repeated n-grams, counts.

Constraints look at one output's own tokens only, so they are batch-invariant.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.inference.search_config import Constraints, SearchConfig
from regard.special_tokens import EOS

SPACE = "▁"


class OutputConstraints:
    """The constraints on the outputs of one batch of sources.

    limits: the maximum output length for each source, in tokens. pieces: the text of each token, for forbidden words.
    """

    def __init__(
        self,
        config: SearchConfig,
        limits: Sequence[int],
        constraints: Sequence[Constraints] | None = None,
        pieces: Sequence[str] = (),
    ) -> None:
        self.per_source = list(constraints) if constraints is not None else [Constraints()] * len(limits)
        self.limits = [min(limit, own.max_length or limit) for limit, own in zip(limits, self.per_source, strict=True)]
        self.no_repeat_ngram_size = config.no_repeat_ngram_size
        phrases = [phrase.strip() for phrase in config.forbidden]
        self.forbidden = tuple(SPACE + phrase.replace(" ", SPACE) for phrase in phrases if phrase)
        self.pieces = pieces
        if self.forbidden and not pieces:
            raise RegardError("forbidden: words can be forbidden only where tokens have a text.")
        # The tokens of an output matter only to these; without them a step costs one comparison.
        self.needs_history = bool(
            self.no_repeat_ngram_size or self.forbidden or any(own.counts for own in self.per_source)
        )
        self._has_prefixes = any(own.prefix for own in self.per_source)
        self._longest_phrase = max((len(phrase) for phrase in self.forbidden), default=0)
        self._completions = lru_cache(1 << 14)(self._pieces_starting_with)

    def apply(self, logits: Tensor, owners: Sequence[int], history: Sequence[Sequence[int]], step: int) -> None:
        """Set the logits of tokens that may not come next to minus infinity, in place.

        logits [N, V] of rows that belong to the sources `owners`, at `step` (from 1); history: each row's tokens so
        far, which may be left empty unless `needs_history`.
        """
        if self.needs_history:
            for row, owner in enumerate(owners):
                self._apply_history(logits[row], self.per_source[owner], history[row], self.limits[owner] - step)
        last = [row for row, owner in enumerate(owners) if self.limits[owner] == step]
        if last:
            self._force(logits, last, [EOS] * len(last))
        if self._has_prefixes:
            forced = [row for row, owner in enumerate(owners) if step <= len(self.per_source[owner].prefix)]
            if forced:
                self._force(logits, forced, [self.per_source[owners[row]].prefix[step - 1] for row in forced])

    @staticmethod
    def _force(logits: Tensor, rows: list[int], tokens: list[int]) -> None:
        """Allow nothing but one token in each of these rows."""
        forced = logits[rows, tokens]
        logits[rows] = -torch.inf
        # A token that was forbidden before is allowed after all: nothing else is left.
        logits[rows, tokens] = forced.clamp_min(torch.finfo(logits.dtype).min / 4)

    def _apply_history(self, logits: Tensor, own: Constraints, history: Sequence[int], remaining: int) -> None:
        """Constraints that depend on the tokens so far. remaining: tokens that may follow the next one."""
        n = self.no_repeat_ngram_size
        if n and len(history) >= n:
            tail = list(history[len(history) - n + 1 :])
            starts = range(len(history) - n + 1)
            repeated = [history[at + n - 1] for at in starts if list(history[at : at + n - 1]) == tail]
            logits[repeated] = -torch.inf
        if self.forbidden:
            logits[self._forbidden_after(history)] = -torch.inf
        if own.counts:
            missing = Counter(dict(own.counts))
            missing.subtract(token for token in history if token in own.counts)
            logits[[token for token, count in missing.items() if count <= 0]] = -torch.inf
            due = {token: count for token, count in missing.items() if count > 0}
            if due:
                logits[EOS] = -torch.inf
                if sum(due.values()) >= remaining:  # just enough room for them and the end of sequence
                    forbidden = torch.ones_like(logits, dtype=torch.bool)
                    forbidden[list(due)] = False
                    logits[forbidden] = -torch.inf

    def _forbidden_after(self, history: Sequence[int]) -> list[int]:
        """The tokens that would complete a forbidden phrase."""
        tail = "".join(self.pieces[token] for token in history[-self._longest_phrase :] if token != EOS)
        found: list[int] = []
        for phrase in self.forbidden:
            for length in range(len(phrase)):
                if tail.endswith(phrase[:length]):
                    found += self._completions(phrase[length:])
        return found

    @cached_property
    def continuing_tokens(self) -> list[int]:
        """Tokens that continue a word. (Scripts without case do not separate words, or have few such tokens.)"""
        return [token for token, piece in enumerate(self.pieces) if token > EOS and _continues_word(piece)]

    def _pieces_starting_with(self, text: str) -> tuple[int, ...]:
        """Tokens that begin with this text, and do not continue it as a longer word."""
        return tuple(
            token
            for token, piece in enumerate(self.pieces)
            if piece.startswith(text) and not piece[len(text) : len(text) + 1].isalnum()
        )


def _continues_word(piece: str) -> bool:
    if byte := re.fullmatch("<0x(..)>", piece):
        number = int(byte[1], 16)
        return number >= 0x80 or chr(number).isalnum()
    return piece[:1].upper() != piece[:1].lower()
