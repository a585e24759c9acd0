"""The keys and values a decoder has already seen: a value, passed in and returned, never changed.

    cache = Cache()
    for token in tokens:                      # [B, 1, width]
        attended = attention(token, cache=cache)
        cache = attended.cache

An older cache stays good: two continuations of one beginning do not disturb each other. Under `torch.no_grad()` or
`torch.inference_mode()` appending is nevertheless cheap, because a cache keeps room to grow in, and only the first to
continue from it may write there. Where gradients are recorded, the past is copied.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from regard.errors import RegardError

MIN_CAPACITY = 32


@dataclass
class _Storage:
    """Storage that caches share: keys and values with spare positions, of which `filled` are taken."""

    keys: Tensor  # [B, G, capacity, D]
    values: Tensor  # [B, G, capacity, Dv]
    filled: int

    def takes(self, start: int, keys: Tensor) -> bool:
        """Whether new positions after `start` can be written here without disturbing anyone."""
        if self.filled != start or self.keys.shape[2] < start + keys.shape[2]:
            return False
        return self.keys.is_inference() == torch.is_inference_mode_enabled() and self.keys.dtype == keys.dtype


@dataclass(frozen=True)
class Cache:
    """`Cache()` is empty, for self-attention step by step; `Attention.prepare(memory)` gives one to cross-attend to."""

    length: int = 0  # keys held
    steps: int = 0  # queries that went before: the position of the next one
    fixed: bool = False  # a prepared memory, which does not grow
    _storage: _Storage | None = field(default=None, repr=False)
    past_weights: Tensor | None = field(default=None, repr=False)  # [B, H, Tk], of a location score

    @property
    def key_values(self) -> tuple[Tensor, Tensor]:
        """Key features [B, G, length, D] and values [B, G, length, Dv]. An empty cache has none to show."""
        if self._storage is None:
            raise RegardError("cache: it is empty; attend with it first.")
        return self._storage.keys[:, :, : self.length], self._storage.values[:, :, : self.length]

    @staticmethod
    def memory(keys: Tensor, values: Tensor) -> "Cache":
        """A fixed cache of these key features and values."""
        return Cache(length=keys.shape[2], fixed=True, _storage=_Storage(keys, values, keys.shape[2]))

    def append(self, keys: Tensor, values: Tensor) -> "Cache":
        """A cache that holds these too, keys [B, G, T, D] and values [B, G, T, Dv]."""
        more = keys.shape[2]
        length = self.length + more
        if self._storage is not None:
            self._check_fits(keys, values)
        if torch.is_grad_enabled():
            # Autograd may have saved what the shared room holds: writing there would pull it from under its feet.
            if self._storage is not None:
                keys, values = (torch.cat(both, 2) for both in zip(self.key_values, (keys, values), strict=True))
            return Cache(length, self.steps + more, False, _Storage(keys, values, length))
        room = self._storage
        if room is None or not room.takes(self.length, keys):
            room = self._larger(keys, values, length)
        room.keys[:, :, self.length : length] = keys.detach()
        room.values[:, :, self.length : length] = values.detach()
        room.filled = length
        return Cache(length, self.steps + more, False, room)

    def after(self, steps: int, past_weights: Tensor | None = None) -> "Cache":
        """The same memory, `steps` queries later; past_weights: where these attended, for a location score."""
        return Cache(self.length, self.steps + steps, self.fixed, self._storage, past_weights)

    def select(self, index: Tensor) -> "Cache":
        """The batch entries of this index, in its order: what beam search does after each step."""
        if self._storage is None:
            return self
        keys, values = (x.index_select(0, index) for x in self.key_values)
        again = self.select_past_weights(index)
        return Cache(self.length, self.steps, self.fixed, _Storage(keys, values, self.length), again.past_weights)

    def select_past_weights(self, index: Tensor) -> "Cache":
        """The same memory with the past weights of this index: for entries of the same source."""
        if self.past_weights is None:
            return self
        return replace(self, past_weights=self.past_weights.index_select(0, index))

    def _check_fits(self, keys: Tensor, values: Tensor) -> None:
        for held, new in zip(self.key_values, (keys, values), strict=True):
            if held.shape[0] != new.shape[0]:
                raise RegardError(f"cache: it holds a batch of {held.shape[0]}, the query is one of {new.shape[0]}.")
            if (held.shape[1], held.shape[3]) != (new.shape[1], new.shape[3]):
                raise RegardError(
                    f"cache: it holds {held.shape[1]} heads of width {held.shape[3]}, this attention has "
                    f"{new.shape[1]} of {new.shape[3]}; each layer needs a cache of its own."
                )

    def _larger(self, keys: Tensor, values: Tensor, length: int) -> _Storage:
        capacity = max(MIN_CAPACITY, 2 * length)
        room = _Storage(
            keys.new_empty(*keys.shape[:2], capacity, keys.shape[3]),
            values.new_empty(*values.shape[:2], capacity, values.shape[3]),
            self.length,
        )
        if self._storage is not None:
            for new, old in zip((room.keys, room.values), self.key_values, strict=True):
                new[:, :, : self.length] = old.detach()
        return room
