"""Selected attention: one matrix of each capture as a panel, drawn in the terminal or into a file."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError
from regard.interpret.captured_attention import KINDS, CapturedAttention, Kind, Weights
from regard.views.heat_map import SUFFIXES, LabeledMatrix, write_heat_maps
from regard.views.overlay import Overlay, render_overlay, write_overlay
from regard.views.terminal import render_list, render_matrix

DATA_SUFFIXES = (".json", ".safetensors")  # of files with all weights
FILE_SUFFIXES = (*SUFFIXES, ".html", *DATA_SUFFIXES)
MIN_REPORTED_WEIGHT = 0.02  # on hidden special tokens
CAVEAT = "Attention weights show where a model attended, not why it predicted a token"
ATTRIBUTION_HINT = "--attribution shows what would change it."
Captures = Sequence[tuple[str, CapturedAttention]]  # each with its name


@dataclass(frozen=True)
class Selection:
    """What is drawn of a capture.

    kind: None for cross, or the first kind that the model has. layer, head: from 1; without them the ones that align
    best, or the mean. attribution: gradient times input instead. subwords: tokens, not words. special: with special
    tokens, such as the end of sequence.
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

    def resolve_kind(self, captures: Captures) -> Kind:
        """The kind of attention that is drawn. Raises RegardError if a model does not have the requested one."""
        kinds = captures[-1][1].kinds
        if self.attribution or not kinds:
            return "cross"
        if self.kind is None:
            return "cross" if "cross" in kinds else kinds[0]
        for name, captured in captures:
            if self.kind not in captured.kinds:
                raise RegardError(
                    f"--kind: {name} has no attention of the kind {self.kind}; it has {_list_kinds(captured)}."
                )
        return next(kind for kind in KINDS if kind == self.kind)

    def check_layer_and_head(self, captures: Captures, kind: Kind) -> None:
        """Raise RegardError if no capture has this layer or head."""
        layers = [captured.weights.get(kind) or [] for _, captured in captures]
        max_layers = max(map(len, layers))
        max_heads = max((min(map(len, each)) for each in layers if each), default=0)
        for name, number, count in (("layer", self.layer, max_layers), ("head", self.head, max_heads)):
            if max_layers and number is not None and number > count:
                raise RegardError(f"--{name}: there are {count}; there is no {number}.")

    def initial_page_state(self, kind: Kind) -> dict[str, str | int | bool]:
        """The initial selection of the page, as `render_page` takes it."""
        state: dict[str, str | int | bool] = {"kind": kind, "special": self.special}
        if self.subwords:
            state["words"] = False
        if self.head is not None:
            state |= {"head": self.head - 1, "layer": "mean"}
        if self.layer is not None:
            state["layer"] = self.layer - 1
        if self.attribution:
            state["layer"] = "attribution"
        return state


@dataclass(frozen=True)
class AttentionPanel:
    """One drawing: a title, the capture without hidden positions, and the weights [rows, columns]."""

    title: str
    captured: CapturedAttention
    weights: Weights
    kind: Kind

    @property
    def labeled_matrix(self) -> LabeledMatrix:
        """As a matrix with labels."""
        columns, rows = self.captured.columns(self.kind).labels, self.captured.rows(self.kind).labels
        return LabeledMatrix(columns, rows, self.weights.tolist(), self.title)

    @property
    def is_overlay(self) -> bool:
        """Whether it is drawn over an image or a recording."""
        media = self.captured.source_media
        return media is not None and self.kind in media.drawn_kinds


def check_drawable(captures: Captures) -> None:
    """Raise RegardError if no capture has attention or attribution."""
    if not any(captured.kinds or captured.attribution for _, captured in captures):
        raise RegardError("this model does not attend; --attribution is what can be seen of it.")


def select_panels(captures: Captures, selection: Selection, *, strip: bool = False) -> list[AttentionPanel]:
    """The panel of each capture. strip: the captures' names are the titles. Raises RegardError."""
    check_drawable(captures)
    kind = selection.resolve_kind(captures)
    words = not selection.subwords and all(captured.rows(kind).merges_by_default for _, captured in captures)
    panels = []
    for name, captured in captures:
        selected = captured if selection.special else captured.without_special_tokens()
        selected = selected.merge_words() if words else selected
        weights, description = _select_weights(selected, kind, selection)
        title = name if strip else description if len(captures) == 1 else f"{name}: {description}"
        panels.append(AttentionPanel(title, selected, weights, kind))
    return panels


def write_panels(panels: Sequence[AttentionPanel], output: Path, *, strip: bool = False) -> list[str]:
    """Draw panels into a .png, .svg or .pdf; returns the characters that no installed font has."""
    overlays = [Overlay(panel.title, panel.captured, panel.weights, panel.kind) for panel in panels if panel.is_overlay]
    return (
        write_overlay(overlays, output)
        if overlays
        else write_heat_maps([panel.labeled_matrix for panel in panels], output, strip=strip)
    )


def render_panels(panels: Sequence[AttentionPanel]) -> str:
    """Panels as text for the terminal, one below the other, with their titles."""
    width = shutil.get_terminal_size((100, 40)).columns
    overlays = [panel for panel in panels if panel.is_overlay]
    texts = []
    for panel in overlays or panels:
        if panel.is_overlay:
            text = render_overlay(Overlay("", panel.captured, panel.weights, panel.kind), width)
        else:
            text = _render_heat_map(panel, width)
        texts.append(f"{text}\n\n{panel.title}")
    return "\n\n".join(texts)


def interpretation_caveat(captures: Captures, selection: Selection) -> str:
    """What attention weights do not show; empty for gradients."""
    if selection.attribution:
        return ""
    return f"{CAVEAT}; {ATTRIBUTION_HINT}" if "cross" in captures[0][1].kinds else f"{CAVEAT}."


def select_evenly(captures: Captures, count: int) -> Captures:
    """At most so many captures, evenly spaced, with the first and the last."""
    last = len(captures) - 1
    indices = sorted({round(number * last / max(1, count - 1)) for number in range(count)})
    return [captures[index] for index in indices]


def _render_heat_map(panel: AttentionPanel, width: int) -> str:
    matrix = panel.labeled_matrix
    if panel.kind == "cross" and panel.captured.source.unit == "sentences":
        return render_list(matrix.weights, matrix.source, matrix.target, width)
    colored = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return render_matrix(matrix.weights, matrix.source, matrix.target, width, colored=colored)


def _select_weights(captured: CapturedAttention, kind: Kind, selection: Selection) -> tuple[Weights, str]:
    """The matrix to draw, and a description of it."""
    if selection.attribution:
        values = abs(captured.attribution["source"])
        largest = values.max(1, keepdims=True, initial=1e-30)
        return values / largest, "gradient times input: its size, the largest of each row full"
    alignment_head = captured.alignment_head
    unselected = selection.layer is None and selection.head is None
    if kind == "cross" and unselected and captured.alignment_weights is not None and alignment_head is not None:
        description = (
            f"attention, {_describe_layer_and_head(alignment_head.layer, alignment_head.head)}, "
            + ("since nothing is known of which aligns best" if alignment_head.is_default else "which aligns best")
            + ("; of the step after each word's own" if alignment_head.shifted else "")
        )
        hidden = _describe_hidden_weight(captured, kind, alignment_head.layer, alignment_head.head)
        return captured.alignment_weights, description + hidden
    selection.check_layer_and_head([("", captured)], kind)
    layer = None if selection.layer is None else selection.layer - 1
    head = None if selection.head is None else selection.head - 1
    description = f"attention of the kind {kind}, {_describe_layer_and_head(layer, head)}"
    return captured.matrix(kind, layer, head), description + _describe_hidden_weight(captured, kind, layer, head)


def _describe_hidden_weight(captured: CapturedAttention, kind: Kind, layer: int | None, head: int | None) -> str:
    """How much of the weight is on hidden special tokens, if it is not negligible."""
    layers = captured.hidden_weights.get(kind) or []
    selected = layers if layer is None else layers[layer : layer + 1]
    means = [float((each if head is None else each[head]).mean()) for each in selected if each.size]
    hidden = sum(means) / max(1, len(means))
    if hidden <= MIN_REPORTED_WEIGHT:
        return ""
    return f"; {hidden:.0%} of it on special tokens, which --special-tokens shows"


def _describe_layer_and_head(layer: int | None, head: int | None) -> str:
    """A layer and a head in words, from 1."""
    layers = "the mean of all layers" if layer is None else f"layer {layer + 1}"
    return f"{layers}, {'the mean of its heads' if head is None else f'head {head + 1}'}"


def _list_kinds(captured: CapturedAttention) -> str:
    return ", ".join(captured.kinds) or "none"
