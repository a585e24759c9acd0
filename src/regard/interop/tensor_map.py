"""Where each tensor of another project's model has its place in regard's, and what must be done to it on the way.

A family describes both sides once; import goes one way through it, export the other. What is not described is refused
by name, in both directions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError
from regard.models.settings import ModelSettings
from regard.special_tokens import END

How = Literal[
    "as it is",
    "transposed",
    "words",
    "flipped",
    "row",
    "repeated",
    "classes",
    "sinusoids",
    "nothing",
    "known",
    "turned",
    "by heads",
]


@dataclass(frozen=True)
class Place:
    """One tensor there, and what it is here: one tensor, or several that stand one after the other.

    how: transposed, as GPT-2 keeps its matrices; words: rows are the vocabulary's entries, in their order; flipped:
    rows the other way round; row: one row there, a vector here; repeated: one row there, the same twice here; classes:
    rows are classes, before which our special entries come; sinusoids: what need not be written there, since it is
    known; nothing: what is not there at all, zeros here; known: what is not needed here; turned: of rotary places,
    whose pairs stand otherwise in a head; by heads: the same, and queries, keys and values are one, head after head.
    skip: rows that come before the first that is used. also: a second tensor there, which comes after the first here.
    """

    theirs: str
    ours: tuple[str, ...]
    how: How = "as it is"
    skip: int = 0
    also: str = ""
    heads: int = 1


@dataclass(frozen=True)
class Family:
    """How one kind of model stands in both projects."""

    model: ModelSettings
    places: list[Place]
    labels: tuple[str, ...] = ()  # of a model that tells classes apart
    # Names there that are another's: the same tensor again, if they are there at all.
    again: Mapping[str, str] = field(default_factory=dict)
    longest: int | None = None  # tokens that it has places for, where its settings do not say it
    unused: Sequence[str] = ()  # what may be there and is kept, but has no use here


def taken(
    family: Family, theirs: Mapping[str, Tensor], sides: tuple[ImportedTokenizer, ImportedTokenizer], where: str
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Their tensors by our names, and those that are only kept; sides: the vocabularies of what reads and of what says.
    Raises RegardError naming what does not fit."""
    ours: dict[str, Tensor] = {}
    kept = {name: theirs[name] for name in family.unused if name in theirs}
    left = set(theirs) - set(kept)
    for name, same in family.again.items():
        if name in theirs:
            left.discard(name)
            if same not in theirs or not torch.equal(theirs[name], theirs[same]):
                raise RegardError(f"{where}: tensor {name} is not {same}, which it is in every such model known here.")
    for place in family.places:
        if place.how == "nothing":
            segments = place.ours[0] == "encoder.embedding.segment"
            ours[place.ours[0]] = torch.zeros(*((2, family.model.encoder.width) if segments else (len(sides[1]),)))
            continue
        if place.how == "known":
            left.discard(place.theirs)
            continue
        tensor = theirs.get(place.theirs)
        if place.also:
            if place.also not in theirs:
                raise RegardError(f"{where}: tensor {place.also} is missing.")
            left.discard(place.also)
            tensor = None if tensor is None else torch.cat([tensor, theirs[place.also]])
        if tensor is None and place.how == "sinusoids":
            tensor = halves(*_size_of(family, place))
        if tensor is None:
            raise RegardError(f"{where}: tensor {place.theirs} is missing.")
        left.discard(place.theirs)
        words = _words(place, sides)
        rows = tensor.shape[-1] if place.how == "row" else len(tensor)
        if place.how in ("words", "row") and rows != words.description["size"]:
            raise RegardError(
                f"{where}: tensor {place.theirs} has {rows:,} entries, and the vocabulary (config.json's "
                f"vocab_size) {words.description['size']:,}."
            )
        if place.skip:
            kept[place.theirs] = tensor[: place.skip].clone()
        ours |= zip(place.ours, _here(place, tensor[place.skip :], words), strict=True)
    if left:
        raise RegardError(f"{where}: tensor {min(left)} has no place in this model.")
    return ours, kept


def given(
    family: Family,
    ours: Mapping[str, Tensor],
    kept: Mapping[str, Tensor],
    sides: tuple[ImportedTokenizer, ImportedTokenizer],
    where: str,
) -> dict[str, Tensor]:
    """The other way: our tensors by their names, with what was kept."""
    theirs = {name: tensor for name, tensor in kept.items() if name in family.unused}
    used: set[str] = set()
    for place in family.places:
        for name in place.ours:
            if name not in ours:
                raise RegardError(f"{where}: tensor {name} is missing.")
        used |= set(place.ours)
        if place.how == "nothing":
            if ours[place.ours[0]].any():
                raise RegardError(f"{where}: {place.ours[0]} was trained, and such models have no place for that.")
            continue
        tensor = _there(place, [ours[name] for name in place.ours], _words(place, sides))
        if place.how == "sinusoids":
            if not torch.equal(tensor, halves(*tensor.shape)):
                raise RegardError(f"{where}: {place.ours[0]} was trained, and such models have no place for that.")
            continue
        if place.skip:
            before = kept.get(place.theirs)
            before = tensor.new_zeros(place.skip, *tensor.shape[1:]) if before is None else before
            tensor = torch.cat([before, tensor])
        theirs[place.theirs] = tensor.contiguous()
    if left := set(ours) - used:
        raise RegardError(f"{where}: tensor {min(left)} has no place in such a model.")
    return theirs


def _words(place: Place, sides: tuple[ImportedTokenizer, ImportedTokenizer]) -> ImportedTokenizer:
    return sides[0 if place.ours[0].startswith("encoder") else 1]


def _here(place: Place, tensor: Tensor, words: ImportedTokenizer) -> list[Tensor]:
    if place.how == "transposed":
        tensor = tensor.t()
    elif place.how == "words":
        tensor = tensor[torch.from_numpy(words.original_ids)]
    elif place.how == "flipped":
        tensor = tensor.flip(0)
    elif place.how == "row":
        tensor = tensor[0][torch.from_numpy(words.original_ids)]
    elif place.how == "repeated":
        tensor = torch.cat([tensor, tensor])
    elif place.how == "turned":
        tensor = tensor[torch.argsort(_turned(len(tensor), place.heads))]
    elif place.how == "by heads":
        inner = len(tensor) // (3 * place.heads)
        parts = (
            tensor.reshape(place.heads, 3, inner, *tensor.shape[1:]).transpose(0, 1).flatten(1, 2)
        )  # [3, width, ...]
        back = torch.argsort(_turned(parts.shape[1], place.heads))
        return [parts[0][back].contiguous(), parts[1][back].contiguous(), parts[2].contiguous()]
    elif place.how == "classes":
        tensor = torch.cat([tensor.new_zeros(END + 1, *tensor.shape[1:]), tensor])
    return [part.contiguous() for part in tensor.chunk(len(place.ours))]


def _there(place: Place, tensors: Sequence[Tensor], words: ImportedTokenizer) -> Tensor:
    if place.how == "by heads":
        order = _turned(len(tensors[0]), place.heads)
        three = torch.stack([tensors[0][order], tensors[1][order], tensors[2]])
        apart = three.reshape(3, place.heads, -1, *three.shape[2:])
        return apart.transpose(0, 1).flatten(0, 2)
    tensor = torch.cat(list(tensors)) if len(tensors) > 1 else tensors[0]
    if place.how == "transposed":
        return tensor.t()
    if place.how in ("words", "row"):
        # An entry that stands for several of ours is what its last one is: BEGIN is only ever read, END is said, too.
        whole = tensor.new_zeros(int(words.description["size"]), *tensor.shape[1:])
        there = [ours for ours in range(len(words)) if ours not in words.missing]
        whole[torch.from_numpy(words.original_ids[there])] = tensor[there]
        return whole[None] if place.how == "row" else whole
    if place.how == "flipped":
        return tensor.flip(0)
    if place.how == "turned":
        return tensor[_turned(len(tensor), place.heads)]
    if place.how == "classes":
        return tensor[END + 1 :]
    return tensor[: len(tensor) // 2] if place.how == "repeated" else tensor


def _turned(width: int, heads: int) -> Tensor:
    """Our rows in their order: rotary places turn neighbours here, and there the two halves of a head."""
    rows = torch.arange(width).view(heads, -1, 2)
    return rows.transpose(1, 2).reshape(-1)


def _size_of(family: Family, place: Place) -> tuple[int, int]:
    part = family.model.encoder if place.ours[0].startswith("encoder") else family.model.decoder
    return int(getattr(part, "positions", 0)), part.width


def halves(length: int, width: int) -> Tensor:
    """Sinusoidal positions as Marian has them: all sines, then all cosines. [length, width]"""
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** -(
        torch.arange(0, width, 2, dtype=torch.float64) / width
    )
    return torch.cat([angles.sin(), angles.cos()], 1).float()
