"""Transforms of tensors between other projects' models and regard's.

A transform is a small class with two methods: `load` takes their tensors and returns ours, `export` takes ours and
returns theirs. `export(*load(*theirs))` gives back `theirs`, bit by bit. Most transforms take and return one tensor,
some split or join several. A tensor with an unexpected shape raises TensorError.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError
from regard.runs.ctranslate2_conversion import sinusoids
from regard.special_tokens import EOS

Tensors = tuple[Tensor, ...]


class TensorError(RegardError):
    """What is wrong with a tensor; the caller prepends its name."""


class Transform(Protocol):
    def load(self, *theirs: Tensor) -> Tensors:
        """Ours from theirs. Raises TensorError."""

    def export(self, *ours: Tensor) -> Tensors:
        """Theirs from ours. Raises TensorError."""


# --- of one tensor --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """The same tensor in both."""

    def load(self, *theirs: Tensor) -> Tensors:
        return theirs

    def export(self, *ours: Tensor) -> Tensors:
        return ours


@dataclass(frozen=True)
class Transpose:
    """A matrix [in, out] in theirs, as in GPT-2; [out, in] in ours."""

    def load(self, *theirs: Tensor) -> Tensors:
        return tuple(_matrix(tensor).t() for tensor in theirs)

    export = load


@dataclass(frozen=True)
class FlipRows:
    """Rows in reverse order: classes 0 and 1 swapped."""

    def load(self, *theirs: Tensor) -> Tensors:
        return tuple(tensor.flip(0) for tensor in theirs)

    export = load


@dataclass(frozen=True)
class RemoveBatchAxis:
    """[1, ...] in theirs, [...] in ours."""

    def load(self, *theirs: Tensor) -> Tensors:
        return tuple(tensor.squeeze(0) for tensor in theirs)

    def export(self, *ours: Tensor) -> Tensors:
        return tuple(tensor[None] for tensor in ours)


@dataclass(frozen=True)
class VocabularyRows:
    """A row for each token of the vocabulary, in the order of its ids; in ours, special tokens are first."""

    tokenizer: ImportedTokenizer

    def load(self, *theirs: Tensor) -> Tensors:
        size = int(self.tokenizer.description["size"])
        for tensor in theirs:
            if _rows(tensor) != size:
                raise TensorError(
                    f"has {_rows(tensor):,} entries, and the vocabulary (config.json's vocab_size) {size:,}"
                )
        entries = torch.from_numpy(self.tokenizer.original_ids)
        return tuple(tensor[entries] for tensor in theirs)

    def export(self, *ours: Tensor) -> Tensors:
        # Where several of our tokens are one of theirs, the last is exported: EOS is predicted, BOS is input only.
        present = [token for token in range(len(self.tokenizer)) if token not in self.tokenizer.missing]
        entries = torch.from_numpy(self.tokenizer.original_ids[present])
        found = []
        for tensor in ours:
            theirs = tensor.new_zeros(int(self.tokenizer.description["size"]), *tensor.shape[1:])
            theirs[entries] = tensor[present]
            found.append(theirs)
        return tuple(found)


@dataclass(frozen=True)
class ClassRows:
    """A row for each class; in ours after rows of zeros for the special tokens."""

    def load(self, *theirs: Tensor) -> Tensors:
        return tuple(torch.cat([tensor.new_zeros(EOS + 1, *tensor.shape[1:]), tensor]) for tensor in theirs)

    def export(self, *ours: Tensor) -> Tensors:
        return tuple(tensor[EOS + 1 :] for tensor in ours)


@dataclass(frozen=True)
class RepeatRows:
    """One segment embedding in theirs; in ours the same for two segments."""

    def load(self, *theirs: Tensor) -> Tensors:
        return tuple(torch.cat([tensor, tensor]) for tensor in theirs)

    def export(self, *ours: Tensor) -> Tensors:
        return tuple(tensor[: len(tensor) // 2] for tensor in ours)


@dataclass(frozen=True)
class RotaryRows:
    """The rows of query or key projections with rotary positions: the two features of a pair are half a head apart in
    theirs, and adjacent in ours."""

    heads: int

    def load(self, *theirs: Tensor) -> Tensors:
        return tuple(tensor[torch.argsort(self._their_order(tensor))] for tensor in theirs)

    def export(self, *ours: Tensor) -> Tensors:
        return tuple(tensor[self._their_order(tensor)] for tensor in ours)

    def _their_order(self, tensor: Tensor) -> Tensor:
        """Our rows in their order. [rows]"""
        _check_divisible(tensor, 2 * self.heads)
        return torch.arange(len(tensor)).view(self.heads, -1, 2).transpose(1, 2).reshape(-1)


# --- of several tensors ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitRows:
    """One tensor in theirs, several of the same size in ours: queries, keys and values."""

    count: int

    def load(self, *theirs: Tensor) -> Tensors:
        (tensor,) = theirs
        _check_divisible(tensor, self.count)
        return tensor.chunk(self.count)

    def export(self, *ours: Tensor) -> Tensors:
        return (torch.cat(ours),)


@dataclass(frozen=True)
class JoinRows:
    """Several tensors of the same size in theirs, one in ours: the two halves of a gated layer."""

    count: int

    def load(self, *theirs: Tensor) -> Tensors:
        return SplitRows(self.count).export(*theirs)

    def export(self, *ours: Tensor) -> Tensors:
        return SplitRows(self.count).load(*ours)


@dataclass(frozen=True)
class SplitFirstRows:
    """One tensor in theirs; two in ours, its first rows and the rest."""

    count: int

    def load(self, *theirs: Tensor) -> Tensors:
        (tensor,) = theirs
        if _rows(tensor) <= self.count:
            raise TensorError(f"has {_rows(tensor):,} rows; more than {self.count} were expected")
        return tensor[: self.count], tensor[self.count :]

    def export(self, *ours: Tensor) -> Tensors:
        return (torch.cat(ours),)


@dataclass(frozen=True)
class SplitHeads:
    """Queries, keys and values in one tensor, head by head, in theirs; three tensors in ours."""

    heads: int

    def load(self, *theirs: Tensor) -> Tensors:
        (tensor,) = theirs
        _check_divisible(tensor, 3 * self.heads)
        by_head = tensor.reshape(self.heads, 3, -1, *tensor.shape[1:])  # [H, 3, D, ...]
        return tuple(by_head.transpose(0, 1).flatten(1, 2).unbind())  # 3 times [H * D, ...]

    def export(self, *ours: Tensor) -> Tensors:
        by_kind = torch.stack([tensor.reshape(self.heads, -1, *tensor.shape[1:]) for tensor in ours])  # [3, H, D, ...]
        return (by_kind.transpose(0, 1).flatten(0, 2),)


@dataclass(frozen=True)
class PerTensor:
    """A transform for each of several tensors."""

    transforms: tuple[Transform, ...]

    def load(self, *theirs: Tensor) -> Tensors:
        return tuple(one for each, tensor in zip(self.transforms, theirs, strict=True) for one in each.load(tensor))

    def export(self, *ours: Tensor) -> Tensors:
        return tuple(one for each, tensor in zip(self.transforms, ours, strict=True) for one in each.export(tensor))


@dataclass(frozen=True)
class Compose:
    """Transforms applied in sequence."""

    transforms: tuple[Transform, ...]

    def load(self, *theirs: Tensor) -> Tensors:
        for transform in self.transforms:
            theirs = transform.load(*theirs)
        return theirs

    def export(self, *ours: Tensor) -> Tensors:
        for transform in reversed(self.transforms):
            ours = transform.export(*ours)
        return ours


# --- of tensors that only one side has ------------------------------------------------------------------------------


class Constant(Protocol):
    """A tensor whose value is known."""

    def value(self) -> Tensor: ...


@dataclass(frozen=True)
class Zeros:
    shape: tuple[int, ...]

    def value(self) -> Tensor:
        return torch.zeros(self.shape)


@dataclass(frozen=True)
class Sinusoids:
    """Sinusoidal positions, sines and cosines interleaved. [length, width]"""

    length: int
    width: int

    def value(self) -> Tensor:
        return torch.from_numpy(sinusoids(self.length, self.width))


@dataclass(frozen=True)
class SplitSinusoids:
    """Sinusoidal positions as in Marian: all sines, then all cosines. [length, width]"""

    length: int
    width: int

    def value(self) -> Tensor:
        frequencies = 10000.0 ** -(torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        angles = torch.arange(self.length, dtype=torch.float64)[:, None] * frequencies
        return torch.cat([angles.sin(), angles.cos()], 1).float()


@dataclass(frozen=True)
class OursOnly:
    """A tensor that only ours has, with a known value; it can be exported only while it has that value."""

    constant: Constant

    def load(self, *theirs: Tensor) -> Tensors:
        assert not theirs
        return (self.constant.value(),)

    def export(self, *ours: Tensor) -> Tensors:
        (tensor,) = ours
        if not torch.equal(tensor, self.constant.value()):
            raise TensorError("was trained, and such models have no tensor for it")
        return ()


@dataclass(frozen=True)
class TheirsOnly:
    """A tensor that only theirs has, with a known value."""

    constant: Constant

    def load(self, *theirs: Tensor) -> Tensors:
        return ()

    def export(self, *ours: Tensor) -> Tensors:
        assert not ours
        return (self.constant.value(),)


def _rows(tensor: Tensor) -> int:
    return len(tensor) if tensor.ndim else 0


def _matrix(tensor: Tensor) -> Tensor:
    if tensor.ndim != 2:
        raise TensorError(f"is {tuple(tensor.shape)}; a matrix was expected")
    return tensor


def _check_divisible(tensor: Tensor, count: int) -> None:
    if not _rows(tensor) or _rows(tensor) % count:
        raise TensorError(f"has {_rows(tensor):,} rows; a multiple of {count} was expected")
