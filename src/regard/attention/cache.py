"""The keys and values a decoder has already seen: a value, passed in and returned, never changed.

    cache = Cache()
    for token in tokens:                      # [B, 1, width]
        attended = attention(token, cache=cache)
        cache = attended.cache

An older cache stays good: two continuations of one beginning do not disturb each other. Appending is nevertheless
cheap, because a cache keeps room to grow in, and only the first to continue from it may write there.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

SMALLEST_ROOM = 32


@dataclass
class _Room:
    """Storage that caches share: keys and values with spare places, of which `filled` are taken."""

    keys: Tensor  # [B, G, capacity, D]
    values: Tensor  # [B, G, capacity, Dv]
    filled: int

    def takes(self, start: int, keys: Tensor) -> bool:
        """Whether new places after `start` can be written here without disturbing anyone."""
        if self.filled != start or self.keys.shape[2] < start + keys.shape[2]:
            return False
        return self.keys.is_inference() == torch.is_inference_mode_enabled() and self.keys.dtype == keys.dtype


@dataclass(frozen=True)
class Cache:
    """`Cache()` is empty, for self-attention step by step; `Attention.prepare(memory)` gives one to cross-attend to."""

    length: int = 0  # keys held
    steps: int = 0  # queries that went before: the place of the next one
    fixed: bool = False  # a prepared memory, which does not grow
    _room: _Room | None = field(default=None, repr=False)

    @property
    def held(self) -> tuple[Tensor, Tensor]:
        """Key features [B, G, length, D] and values [B, G, length, Dv]. An empty cache has none to show."""
        if self._room is None:
            raise ValueError("cache: it is empty; attend with it first.")
        return self._room.keys[:, :, : self.length], self._room.values[:, :, : self.length]

    @staticmethod
    def memory(keys: Tensor, values: Tensor) -> "Cache":
        """A fixed cache of these key features and values."""
        return Cache(length=keys.shape[2], fixed=True, _room=_Room(keys, values, keys.shape[2]))

    def append(self, keys: Tensor, values: Tensor) -> "Cache":
        """A cache that holds these too, keys [B, G, T, D] and values [B, G, T, Dv]."""
        more = keys.shape[2]
        length = self.length + more
        if self._room is not None and self._room.keys.shape[0] != keys.shape[0]:
            raise ValueError(
                f"cache: it holds a batch of {self._room.keys.shape[0]}, the query is one of {keys.shape[0]}."
            )
        if torch.is_grad_enabled() and (keys.requires_grad or values.requires_grad or self._requires_grad):
            # Writing into shared room would pull what autograd has saved from under its feet.
            if self._room is not None:
                keys, values = (torch.cat(both, 2) for both in zip(self.held, (keys, values), strict=True))
            return Cache(length, self.steps + more, False, _Room(keys, values, length))
        room = self._room
        if room is None or not room.takes(self.length, keys):
            room = self._larger(keys, values, length)
        room.keys[:, :, self.length : length] = keys.detach()
        room.values[:, :, self.length : length] = values.detach()
        room.filled = length
        return Cache(length, self.steps + more, False, room)

    def after(self, steps: int) -> "Cache":
        """The same memory, `steps` queries later."""
        return Cache(self.length, self.steps + steps, self.fixed, self._room)

    def select(self, index: Tensor) -> "Cache":
        """The batch entries of this index, in its order: what beam search does after each step."""
        if self._room is None:
            return self
        keys, values = (x.index_select(0, index) for x in self.held)
        return Cache(self.length, self.steps, self.fixed, _Room(keys, values, self.length))

    @property
    def _requires_grad(self) -> bool:
        return self._room is not None and (self._room.keys.requires_grad or self._room.values.requires_grad)

    def _larger(self, keys: Tensor, values: Tensor, length: int) -> _Room:
        capacity = max(SMALLEST_ROOM, 2 * length)
        room = _Room(
            keys.new_empty(*keys.shape[:2], capacity, keys.shape[3]),
            values.new_empty(*values.shape[:2], capacity, values.shape[3]),
            self.length,
        )
        if self._room is not None:
            for new, old in zip((room.keys, room.values), self.held, strict=True):
                new[:, :, : self.length] = old.detach()
        return room
