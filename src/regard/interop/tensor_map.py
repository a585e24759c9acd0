"""Which tensors of another project's model are which of regard's.

A family describes the mapping once, as a list of names with a transform, which import applies in one direction and
export in the other. A tensor that is not in the list is an error in both directions.
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
    """The tokenizers of source and target; often the same object."""

    source: ImportedTokenizer
    target: ImportedTokenizer


@dataclass(frozen=True)
class TensorMapping:
    """The names of their tensors and of ours, and the transform between them."""

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    transform: Transform


@dataclass(frozen=True)
class ModelMapping:
    """A model's settings, and the mapping between their tensors and ours."""

    settings: ModelSettings
    tensors: list[TensorMapping]
    labels: tuple[str, ...] = ()  # of a classifier
    # Their names under which another tensor may be stored again, each with the name of that tensor.
    duplicates: Mapping[str, str] = field(default_factory=dict)
    max_length: int | None = None  # in tokens, where the settings do not determine it
    # Their tensors that ours do not need; they are kept for export. A TensorMapping may name one of them in `ours`, for
    # the unused rows of a tensor.
    unused: Sequence[str] = ()


def tensor(theirs: str, ours: str, transform: Transform | None = None) -> TensorMapping:
    """A mapping of one tensor."""
    return TensorMapping((theirs,), (ours,), transform or Identity())


def layer(theirs: str, *ours: str, transposed: bool = False) -> list[TensorMapping]:
    """The weight and the bias of a linear layer or a norm; several layers of ours are one of theirs."""
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
    """Their tensors under our names, and the unused ones. Raises RegardError, which names the tensor."""
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
        raise RegardError(f"{where}: tensor {min(remaining)} does not belong to this model.")
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
    """Our tensors under their names, with the unused ones. Raises RegardError, which names the tensor."""
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
        raise RegardError(f"{where}: tensor {min(remaining)} does not belong to such a model.")
    return theirs
