"""The family's table of contents: every axis and every choice, with its formula, paper and kernels.

It is read from the classes themselves: built-in ones are not imported for it, so listing them is instant and needs no
PyTorch.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from regard.attention.axis import Axis
from regard.attention.channels import CHANNELS
from regard.attention.extents import EXTENTS
from regard.attention.normalizers import NORMALIZERS
from regard.attention.positions import POSITIONS
from regard.attention.scores import SCORES
from regard.errors import RegardError

AXES: dict[str, Axis[Any]] = {axis.axis: axis for axis in (SCORES, EXTENTS, NORMALIZERS, POSITIONS, CHANNELS)}

KERNELS = {
    "short": "softmax attention over few positions, in C; the weights are kept for the backward pass",
    "sdpa": "PyTorch's fused softmax attention; nothing of size Tq x Tk is stored",
    "window": "chunks with look-around over sdpa; time and memory grow with T x radius",
    "dense": "the four stages over the whole Tq x Tk matrix",
    "tiled": "the four stages over one tile of rows at a time, recomputed for gradients; memory grows with T",
    "reference": "the specification in attention/reference.py",
}

UNFUSED = ("dense", "tiled", "reference")


@dataclass(frozen=True)
class Entry:
    """One choice on one axis."""

    axis: str
    name: str
    formula: str
    summary: str
    paper: str
    kernels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    use: str = ""  # how it is written in Python


def entries(axis: str | None = None) -> list[Entry]:
    """Every choice, of one axis or of all, in the order they are taught."""
    return [_entry(each, name) for each in AXES.values() if axis in (None, each.axis) for name in each.ordered()]


def find(name: str) -> Entry:
    """The entry of that name or alias, on any axis. Raises RegardError with the likely spelling if there is none."""
    for axis in AXES.values():
        if (known := axis.canonical_name(name)) is not None:
            return _entry(axis, known)
    matches = get_close_matches(name.lower(), [each for axis in AXES.values() for each in axis.spellings()], n=1)
    suggestion = f"did you mean {matches[0]!r}? " if matches else ""
    choices = ", ".join(each for axis in AXES.values() for each in axis.ordered())
    raise RegardError(f"there is no mechanism {name!r}; {suggestion}the choices are {choices}.")


def _entry(axis: Axis[Any], name: str) -> Entry:
    declared = axis.declaration(name)
    descriptions = {field: declared.own.get(field, "") for field in ("formula", "summary", "paper")}
    use = declared.own.get("use") or f"attend(q, k, v, {axis.keyword}={name!r})"
    return Entry(
        axis.axis,
        name,
        **descriptions,
        kernels=_kernels(axis.axis, declared.constants),
        aliases=declared.aliases,
        use=use,
    )


def _kernels(axis: str, constants: dict[str, Any]) -> tuple[str, ...]:
    """The kernels that support a choice with everything else at its default, from the constants of its class."""
    all_kernels = ("short", "sdpa", "window", *UNFUSED)
    if axis == "score" and constants.get("sequential", False):
        return ("dense", "tiled")  # keys change from query to query: there is no call for the reference
    if axis == "score":
        return all_kernels if constants.get("compare", "dot") == "dot" else UNFUSED
    if axis == "normalizer":
        return all_kernels if constants.get("is_softmax", False) else UNFUSED
    if axis == "extent":
        fused = {
            "all": ("short", "sdpa"),
            "causal": ("short", "sdpa"),
            "band": ("sdpa", "window"),
            "positions": ("sdpa",),
            "predicted": (),
        }
        return (*fused[constants.get("form", "positions")], *UNFUSED)
    if axis == "position" and "embeds" not in constants:
        if constants.get("may_add_values", False):
            return UNFUSED
        return ("sdpa", *UNFUSED) if constants.get("adds_bias", False) else all_kernels
    return ()
