"""The cached keys and values of previous steps: a value, passed in and returned, never modified.

    cache = Cache()
    for token in tokens:                      # [B, 1, width]
        attended = attention(token, cache=cache)
        cache = attended.cache

An older cache stays valid: two continuations of one prefix do not affect each other. Under `torch.no_grad()` or
`torch.inference_mode()` appending is nevertheless cheap, because a cache has spare capacity, and only the first
continuation may write there. Where gradients are recorded, the cached tensors are copied.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from regard.errors import RegardError

MIN_CAPACITY = 32


@dataclass
class _Storage:
    """Storage that caches share: keys and values with spare positions, of which the first `used` are in use."""

    keys: Tensor  # [B, G, capacity, D]
    values: Tensor  # [B, G, capacity, Dv]
    used: int

    def has_room(self, start: int, keys: Tensor) -> bool:
        """Whether new positions after `start` can be written here without overwriting those of another cache."""
        if self.used != start or self.keys.shape[2] < start + keys.shape[2]:
            return False
        return self.keys.is_inference() == torch.is_inference_mode_enabled() and self.keys.dtype == keys.dtype


@dataclass(frozen=True)
class Cache:
    """`Cache()` is empty, for self-attention step by step; `Attention.prepare(memory)` gives one to cross-attend to."""

    length: int = 0  # keys held
    steps: int = 0  # previous queries: the position of the next one
    fixed: bool = False  # a prepared memory, which does not grow
    _storage: _Storage | None = field(default=None, repr=False)
    past_weights: Tensor | None = field(default=None, repr=False)  # [B, H, Tk], of a location score

    @property
    def key_values(self) -> tuple[Tensor, Tensor]:
        """Key features [B, G, length, D] and values [B, G, length, Dv]. Raises RegardError for an empty cache."""
        if self._storage is None:
            raise RegardError("cache: it is empty; attend with it first.")
        return self._storage.keys[:, :, : self.length], self._storage.values[:, :, : self.length]

    @staticmethod
    def memory(keys: Tensor, values: Tensor) -> "Cache":
        """A fixed cache of these key features and values."""
        return Cache(length=keys.shape[2], fixed=True, _storage=_Storage(keys, values, keys.shape[2]))

    def append(self, keys: Tensor, values: Tensor) -> "Cache":
        """A cache that holds these too, keys [B, G, T, D] and values [B, G, T, Dv]."""
        added = keys.shape[2]
        length = self.length + added
        if self._storage is not None:
            self._check_fits(keys, values)
        if torch.is_grad_enabled():
            # Autograd may have saved the shared storage: writing to it would corrupt the backward pass.
            if self._storage is not None:
                keys, values = (torch.cat(pair, 2) for pair in zip(self.key_values, (keys, values), strict=True))
            return Cache(length, self.steps + added, False, _Storage(keys, values, length))
        storage = self._storage
        if storage is None or not storage.has_room(self.length, keys):
            storage = self._grown_storage(keys, values, length)
        storage.keys[:, :, self.length : length] = keys.detach()
        storage.values[:, :, self.length : length] = values.detach()
        storage.used = length
        return Cache(length, self.steps + added, False, storage)

    def advance(self, steps: int, past_weights: Tensor | None = None) -> "Cache":
        """The same memory, `steps` queries later; past_weights: of these queries, for a location score."""
        return Cache(self.length, self.steps + steps, self.fixed, self._storage, past_weights)

    def select(self, index: Tensor) -> "Cache":
        """The batch entries of this index, in its order: what beam search does after each step."""
        if self._storage is None:
            return self
        keys, values = (x.index_select(0, index) for x in self.key_values)
        selected = self.select_past_weights(index)
        return Cache(self.length, self.steps, self.fixed, _Storage(keys, values, self.length), selected.past_weights)

    def select_past_weights(self, index: Tensor) -> "Cache":
        """The same memory with the past weights of this index: for entries of the same source."""
        if self.past_weights is None:
            return self
        return replace(self, past_weights=self.past_weights.index_select(0, index))

    def _check_fits(self, keys: Tensor, values: Tensor) -> None:
        for cached, added_tensor in zip(self.key_values, (keys, values), strict=True):
            if cached.shape[0] != added_tensor.shape[0]:
                raise RegardError(
                    f"cache: it holds a batch of {cached.shape[0]}, the query is one of {added_tensor.shape[0]}."
                )
            if (cached.shape[1], cached.shape[3]) != (added_tensor.shape[1], added_tensor.shape[3]):
                raise RegardError(
                    f"cache: it holds {cached.shape[1]} heads of width {cached.shape[3]}, this attention has "
                    f"{added_tensor.shape[1]} of {added_tensor.shape[3]}; each layer needs a cache of its own."
                )

    def _grown_storage(self, keys: Tensor, values: Tensor, length: int) -> _Storage:
        capacity = max(MIN_CAPACITY, 2 * length)
        storage = _Storage(
            keys.new_empty(*keys.shape[:2], capacity, keys.shape[3]),
            values.new_empty(*values.shape[:2], capacity, values.shape[3]),
            self.length,
        )
        if self._storage is not None:
            for added_tensor, cached in zip((storage.keys, storage.values), self.key_values, strict=True):
                added_tensor[:, :, : self.length] = cached.detach()
        return storage
