"""The attention page in a notebook, in a sandboxed frame."""

import html
from dataclasses import fields
from typing import Self

from regard.interpret.captured_attention import CapturedAttention
from regard.views.html_page import render_page

MIN_HEIGHT, MAX_HEIGHT = 500, 720  # pixels: room for the arcs, and less than a screen
CONTROLS_HEIGHT = 350  # around the matrix: the controls, the labels of its columns, the status line
ROW_HEIGHT = 24


class AttentionView(CapturedAttention):
    """Captured attention that a notebook displays as the attention page."""

    @classmethod
    def from_captured(cls, captured: CapturedAttention) -> Self:
        """The same attention as a view."""
        return cls(**{each.name: getattr(captured, each.name) for each in fields(captured)})

    def _repr_html_(self) -> str:
        return render_frame(self.model or "attention", self)


def render_frame(name: str, captured: CapturedAttention) -> str:
    """The page as an iframe.

    Its script runs under the frame's own policy and has no access to the notebook, so it cannot set the frame's height.
    The text between the tags is shown where frames are removed, as in a notebook that is not trusted yet.
    """
    page = html.escape(render_page([(name, captured)]), quote=True)
    style = f"width:100%;height:{_height(captured)}px;border:0"
    return (
        f'<iframe title="What a model attends to" style="{style}" sandbox="allow-scripts allow-downloads" '
        f'srcdoc="{page}">{html.escape(repr(captured))} Trust this notebook, or run it, to see the page.</iframe>'
    )


def _height(captured: CapturedAttention) -> int:
    """Pixels for the initial view: an image or a recording below the words, or the matrix."""
    if captured.source_media is not None:
        return MAX_HEIGHT
    rows = captured.target.merge_words() if captured.target.merges_by_default else captured.target
    return min(MAX_HEIGHT, max(MIN_HEIGHT, CONTROLS_HEIGHT + ROW_HEIGHT * len(rows)))
