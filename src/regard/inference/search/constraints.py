"""What may be said next: the limits of every search, and what a person asked for.

All rules look at one sentence's own words only, so what a sentence gets does not depend on its company.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.inference.results import Search, Wish
from regard.special_tokens import END

SPACE = "▁"


class Rules:
    """Of one batch of sources.

    limits: the most tokens of each source's output. pieces: what each token looks like, which forbidden words need.
    """

    def __init__(
        self, how: Search, limits: Sequence[int], wishes: Sequence[Wish] | None = None, pieces: Sequence[str] = ()
    ) -> None:
        self.wishes = list(wishes) if wishes is not None else [Wish()] * len(limits)
        self.limits = [min(limit, wish.most or limit) for limit, wish in zip(limits, self.wishes, strict=True)]
        self.no_repeat = how.no_repeat
        self.forbidden = tuple(SPACE + phrase.strip().replace(" ", SPACE) for phrase in how.forbidden if phrase.strip())
        self.pieces = pieces
        if self.forbidden and not pieces:
            raise RegardError("forbidden: words can be forbidden only where tokens have a text.")
        # The words of an output matter only to these; without them a step costs one comparison.
        self.looks_back = bool(self.no_repeat or self.forbidden or any(wish.counted for wish in self.wishes))
        self._prefixed = any(wish.prefix for wish in self.wishes)
        self._longest = max((len(phrase) for phrase in self.forbidden), default=0)
        self._completing = lru_cache(1 << 14)(self._pieces_that_begin_with)

    def apply(self, logits: Tensor, owners: Sequence[int], said: Sequence[Sequence[int]], step: int) -> None:
        """Set what may not come next to minus infinity, in place.

        logits [N, V] of rows that belong to the sources `owners`, at `step` (from 1); said: each row's words so far,
        which may be left empty unless `looks_back`.
        """
        if self.looks_back:
            for row, owner in enumerate(owners):
                self._by_what_was_said(logits[row], self.wishes[owner], said[row], self.limits[owner] - step)
        last = [row for row, owner in enumerate(owners) if self.limits[owner] == step]
        if last:
            self._only(logits, last, [END] * len(last))
        if self._prefixed:
            begun = [row for row, owner in enumerate(owners) if step <= len(self.wishes[owner].prefix)]
            if begun:
                self._only(logits, begun, [self.wishes[owners[row]].prefix[step - 1] for row in begun])

    @staticmethod
    def _only(logits: Tensor, rows: list[int], tokens: list[int]) -> None:
        """Nothing but one token in each of these rows, whatever it costs."""
        kept = logits[rows, tokens]
        logits[rows] = -torch.inf
        # What was forbidden before is possible after all: there is nothing else left.
        logits[rows, tokens] = kept.clamp_min(torch.finfo(logits.dtype).min / 4)

    def _by_what_was_said(self, logits: Tensor, wish: Wish, said: Sequence[int], room: int) -> None:
        """`room`: tokens that may follow the next one."""
        n = self.no_repeat
        if n and len(said) >= n:
            tail = list(said[len(said) - n + 1 :])
            again = [said[at + n - 1] for at in range(len(said) - n + 1) if list(said[at : at + n - 1]) == tail]
            logits[again] = -torch.inf
        if self.forbidden:
            logits[self._forbidden_after(said)] = -torch.inf
        if wish.counted:
            left = Counter(dict(wish.counted))
            left.subtract(token for token in said if token in wish.counted)
            logits[[token for token, count in left.items() if count <= 0]] = -torch.inf
            due = {token: count for token, count in left.items() if count > 0}
            if due:
                logits[END] = -torch.inf
                if sum(due.values()) >= room:  # just enough room for them and the end
                    others = torch.ones_like(logits, dtype=torch.bool)
                    others[list(due)] = False
                    logits[others] = -torch.inf

    def _forbidden_after(self, said: Sequence[int]) -> list[int]:
        """The tokens that would complete a forbidden phrase."""
        tail = "".join(self.pieces[token] for token in said[-self._longest :] if token != END)
        found: list[int] = []
        for phrase in self.forbidden:
            for length in range(len(phrase)):
                if tail.endswith(phrase[:length]):
                    found += self._completing(phrase[length:])
        return found

    @cached_property
    def continuing(self) -> list[int]:
        """Tokens that go on with a word. (Scripts without cases do not separate words, or have few such tokens.)"""
        return [token for token, piece in enumerate(self.pieces) if token > END and _goes_on(piece)]

    def _pieces_that_begin_with(self, rest: str) -> tuple[int, ...]:
        """Tokens that say this, and then nothing that would make a longer word of it."""
        return tuple(
            token
            for token, piece in enumerate(self.pieces)
            if piece.startswith(rest) and not piece[len(rest) : len(rest) + 1].isalnum()
        )


def _goes_on(piece: str) -> bool:
    if byte := re.fullmatch("<0x(..)>", piece):
        number = int(byte[1], 16)
        return number >= 0x80 or chr(number).isalnum()
    return piece[:1].upper() != piece[:1].lower()
