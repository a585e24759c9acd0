"""Which tensors of another project's model are which of regard's.

A family describes both sides once, as a list of names with a transform; import goes through the list in one direction,
export in the other. A tensor that is not described is refused by name, in both directions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError
from regard.interop.transforms import Compose, Identity, SplitRows, TensorError, Transform, Transpose
from regard.models.settings import ModelSettings

PARAMETERS = ("weight", "bias")  # of a linear layer or a norm


class TokenizerPair(NamedTuple):
    """The tokenizers of source and target; often one and the same."""

    source: ImportedTokenizer
    target: ImportedTokenizer


@dataclass(frozen=True)
class TensorMapping:
    """Tensors there, tensors here, and what happens between them."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    transform: Transform


@dataclass(frozen=True)
class ModelMapping:
    """One model in both projects."""

    settings: ModelSettings
    tensors: list[TensorMapping]
    labels: tuple[str, ...] = ()  # of a classifier
    # Names there under which another tensor may be stored once more, each with that tensor's name.
    duplicates: Mapping[str, str] = field(default_factory=dict)
    max_length: int | None = None  # in tokens, where the settings do not say it
    # Tensors there that nothing here uses. They are kept for an export, if they are there. A TensorMapping may name
    # one of them among `ours`, for the part of a tensor that is not used.
    unused: Sequence[str] = ()


def tensor(theirs: str, ours: str, transform: Transform | None = None) -> TensorMapping:
    """One tensor there, one here."""
    return TensorMapping((theirs,), (ours,), transform or Identity())


def layer(theirs: str, *ours: str, transposed: bool = False) -> list[TensorMapping]:
    """The weight and the bias of a linear layer or a norm; several of ours are one layer there."""
    split: tuple[Transform, ...] = (SplitRows(len(ours)),) if len(ours) > 1 else ()
    transforms: tuple[tuple[Transform, ...], ...] = ((Transpose(), *split) if transposed else split, split)
    return [
        TensorMapping(
            (f"{theirs}.{parameter}",),
            tuple(f"{name}.{parameter}" for name in ours),
            steps[0] if len(steps) == 1 else Compose(steps) if steps else Identity(),
        )
        for parameter, steps in zip(PARAMETERS, transforms, strict=True)
    ]


def load_tensors(
    mapping: ModelMapping, theirs: Mapping[str, Tensor], where: str
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Their tensors under our names, and those that are unused. Raises RegardError, naming what does not fit."""
    _check_duplicates(mapping, theirs, where)
    ours: dict[str, Tensor] = {}
    unused = {name: theirs[name] for name in mapping.unused if name in theirs}
    remaining = set(theirs) - set(unused) - set(mapping.duplicates)
    for each in mapping.tensors:
        for name in each.theirs:
            if name not in theirs:
                raise RegardError(f"{where}: tensor {name} is missing.")
        remaining -= set(each.theirs)
        try:
            loaded = each.transform.load(*(theirs[name] for name in each.theirs))
        except TensorError as error:
            raise RegardError(f"{where}: tensor {(each.theirs or each.ours)[0]} {error}.") from None
        for name, value in zip(each.ours, loaded, strict=True):
            (unused if name in mapping.unused else ours)[name] = value.contiguous()
    if remaining:
        raise RegardError(f"{where}: tensor {min(remaining)} has no place in this model.")
    return ours, unused


def _check_duplicates(mapping: ModelMapping, theirs: Mapping[str, Tensor], where: str) -> None:
    for name, original in mapping.duplicates.items():
        if name in theirs and (original not in theirs or not torch.equal(theirs[name], theirs[original])):
            raise RegardError(
                f"{where}: tensor {name} is not {original}, which it is in every such model that is known here."
            )


def export_tensors(
    mapping: ModelMapping, ours: Mapping[str, Tensor], unused: Mapping[str, Tensor], where: str
) -> dict[str, Tensor]:
    """Our tensors under their names, with those that are unused here. Raises RegardError, naming what does not fit."""
    theirs = {name: value for name, value in unused.items() if name in mapping.unused}
    available = {**theirs, **ours}
    for each in mapping.tensors:
        for name in each.ours:
            if name not in available:
                raise RegardError(f"{where}: tensor {name} is missing.")
        try:
            exported = each.transform.export(*(available[name] for name in each.ours))
        except TensorError as error:
            raise RegardError(f"{where}: tensor {(each.ours or each.theirs)[0]} {error}.") from None
        theirs |= {name: value.contiguous() for name, value in zip(each.theirs, exported, strict=True)}
    if remaining := set(ours) - {name for each in mapping.tensors for name in each.ours}:
        raise RegardError(f"{where}: tensor {min(remaining)} has no place in such a model.")
    return theirs
