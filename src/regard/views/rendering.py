"""Captured attention as a user selects it: one matrix of each capture, drawn in the terminal or into a file."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.interpret.captured_attention import KINDS, CapturedAttention, Kind, Weights
from regard.views.alignment_plot import SUFFIXES, Alignment, write_picture
from regard.views.overlay import in_terminal, write_overlay
from regard.views.terminal import below, matrix

NUMBER_SUFFIXES = (".json", ".safetensors")  # of files with all weights
FILE_SUFFIXES = (*SUFFIXES, ".html", *NUMBER_SUFFIXES)
MIN_REPORTED_SHARE = 0.02  # of the weight on special tokens
CAVEAT = "Weights say where a model looked, not why it wrote a word"
ATTRIBUTION_HINT = "--attribution says what would change it."
Captures = Sequence[tuple[str, CapturedAttention]]  # each with its name


@dataclass(frozen=True)
class Selection:
    """What is drawn of a capture.

    kind: cross if the model has it, else what it has, if none is named. layer, head: from 1; without them the ones that
    align best, or the mean. attribution: gradient times input instead. subwords: tokens, not words. special: with
    special tokens, such as the end of sequence.
    """

    kind: str | None = None
    layer: int | None = None
    head: int | None = None
    attribution: bool = False
    subwords: bool = False
    special: bool = False

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise RegardError(f"--kind: there is no {self.kind!r}; there are {', '.join(KINDS)}.")
        if self.attribution and (self.kind not in (None, "cross") or self.layer is not None or self.head is not None):
            raise RegardError("--attribution: it has no kind, layer or head; leave them out.")

    def kind_of(self, captures: Captures) -> Kind:
        """The kind of attention that is drawn. Raises RegardError if a model does not have the one that is named."""
        kinds = captures[-1][1].kinds
        if self.attribution or not kinds:
            return "cross"
        if self.kind is None:
            return "cross" if "cross" in kinds else kinds[0]
        for name, captured in captures:
            if self.kind not in captured.kinds:
                raise RegardError(f"--kind: {name} has no attention of the kind {self.kind}; it has {_list(captured)}.")
        return next(kind for kind in KINDS if kind == self.kind)

    def check_position(self, captures: Captures, kind: Kind) -> None:
        """Raise RegardError if no capture has this layer or head."""
        layers = [captured.weights.get(kind) or [] for _, captured in captures]
        most_layers = max(map(len, layers))
        most_heads = max((min(map(len, each)) for each in layers if each), default=0)
        for name, number, count in (("layer", self.layer, most_layers), ("head", self.head, most_heads)):
            if most_layers and number is not None and number > count:
                raise RegardError(f"--{name}: there are {count}; there is no {number}.")

    def initial(self, kind: Kind) -> dict[str, str | int | bool]:
        """What the page shows at first."""
        shown: dict[str, str | int | bool] = {"kind": kind, "special": self.special}
        if self.subwords:
            shown["words"] = False
        if self.head is not None:
            shown |= {"head": self.head - 1, "layer": "mean"}
        if self.layer is not None:
            shown["layer"] = self.layer - 1
        if self.attribution:
            shown["layer"] = "attribution"
        return shown


@dataclass(frozen=True)
class Panel:
    """One drawing: a title, the capture without what is not shown, and the weights of each row."""

    title: str
    captured: CapturedAttention
    weights: Weights
    kind: Kind

    @property
    def alignment(self) -> Alignment:
        """As a matrix with labels."""
        columns, rows = self.captured.columns(self.kind).labels, self.captured.rows(self.kind).labels
        return Alignment(columns, rows, self.weights.tolist(), self.title)

    @property
    def is_overlay(self) -> bool:
        """Whether it is drawn over an image or a recording."""
        return self.captured.source_media is not None and self.kind == "cross"


def check_drawable(captures: Captures) -> None:
    """Raise RegardError if no model attends, and there are no gradients either."""
    if not any(captured.kinds or captured.attribution for _, captured in captures):
        raise RegardError("this model does not attend; --attribution is what can be seen of it.")


def select_panels(captures: Captures, selection: Selection, *, strip: bool = False) -> list[Panel]:
    """What is drawn of each capture. strip: the captures' names are the titles. Raises RegardError."""
    check_drawable(captures)
    kind = selection.kind_of(captures)
    words = not selection.subwords and all(captured.rows(kind).merges_by_default for _, captured in captures)
    panels = []
    for name, captured in captures:
        shown = captured if selection.special else captured.without_special()
        shown = shown.merge_words() if words else shown
        weights, description = _weights(shown, kind, selection)
        title = name if strip else description if len(captures) == 1 else f"{name}: {description}"
        panels.append(Panel(title, shown, weights, kind))
    return panels


def write_panels(panels: Sequence[Panel], output: Path, *, strip: bool = False) -> list[str]:
    """Draw panels into a .png, .svg or .pdf; the characters that no font can draw."""
    overlays = [(panel.title, panel.captured, panel.weights) for panel in panels if panel.is_overlay]
    return (
        write_overlay(overlays, output)
        if overlays
        else write_picture([panel.alignment for panel in panels], output, strip=strip)
    )


def draw_panels(panels: Sequence[Panel]) -> str:
    """Panels as text for the terminal, one below the other, with their titles."""
    width = shutil.get_terminal_size((100, 40)).columns
    overlays = [panel for panel in panels if panel.is_overlay]
    drawn = []
    for panel in overlays or panels:
        if panel.is_overlay:
            text = in_terminal(panel.captured, panel.weights, width)
        else:
            text = _draw_matrix(panel, width)
        drawn.append(f"{text}\n\n{panel.title}")
    return "\n\n".join(drawn)


def caveat(captures: Captures, selection: Selection) -> str:
    """What attention weights do not show; empty for gradients."""
    if selection.attribution:
        return ""
    return f"{CAVEAT}; {ATTRIBUTION_HINT}" if "cross" in captures[0][1].kinds else f"{CAVEAT}."


def spread(captures: Captures, count: int) -> Captures:
    """So many captures, at equal distances, the first and the last among them."""
    last = len(captures) - 1
    return [captures[at] for at in sorted({round(number * last / max(1, count - 1)) for number in range(count)})]


def _draw_matrix(panel: Panel, width: int) -> str:
    alignment = panel.alignment
    if panel.kind == "cross" and panel.captured.source.unit == "sentences":
        return below(alignment.weights, alignment.source, alignment.target, width)
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    how: dict[str, Any] = {"coloured": coloured}
    return matrix(alignment.weights, alignment.source, alignment.target, width, **how)


def _weights(captured: CapturedAttention, kind: Kind, selection: Selection) -> tuple[Weights, str]:
    """The matrix to draw, and a description of it."""
    if selection.attribution:
        values = abs(captured.attribution["source"])
        largest = values.max(1, keepdims=True, initial=1e-30)
        return values / largest, "gradient times input: its size, the largest of each row full"
    head, unselected = captured.alignment_head, selection.layer is None and selection.head is None
    if kind == "cross" and unselected and captured.alignment_weights is not None and head is not None:
        description = (
            f"attention, {_position(head.layer, head.head)}, "
            + ("since nothing is known of which aligns best" if head.guessed else "which aligns best")
            + ("; of the step after each word's own" if head.shifted else "")
        )
        return captured.alignment_weights, description + _share_on_special(captured, kind, head.layer, head.head)
    selection.check_position([("", captured)], kind)
    layer = None if selection.layer is None else selection.layer - 1
    one = None if selection.head is None else selection.head - 1
    description = f"attention of the kind {kind}, {_position(layer, one)}"
    return captured.matrix(kind, layer, one), description + _share_on_special(captured, kind, layer, one)


def _share_on_special(captured: CapturedAttention, kind: Kind, layer: int | None, head: int | None) -> str:
    """How much of the weight is on special tokens that are not shown, if that matters."""
    layers = captured.hidden_weights.get(kind) or []
    some = layers if layer is None else layers[layer : layer + 1]
    means = [float((each if head is None else each[head]).mean()) for each in some if each.size]
    hidden = sum(means) / max(1, len(means))
    if hidden <= MIN_REPORTED_SHARE:
        return ""
    return f"; {hidden:.0%} of it on marks such as the end, which --special shows"


def _position(layer: int | None, head: int | None) -> str:
    """A layer and a head in words, from 1."""
    one = "the mean of all layers" if layer is None else f"layer {layer + 1}"
    return f"{one}, {'the mean of its heads' if head is None else f'head {head + 1}'}"


def _list(captured: CapturedAttention) -> str:
    return ", ".join(captured.kinds) or "none"
