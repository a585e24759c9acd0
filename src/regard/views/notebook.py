"""The page in a notebook: as a frame, which neither needs anything of the notebook nor can reach it."""

import html
from dataclasses import fields
from typing import Self

from regard.interpret.captured import Captured
from regard.views.page import page_of

LOW, HIGH = 500, 720  # pixels: room for the arcs, and less than a screen
AROUND = 350  # of the matrix: controls above it, names of columns, the line below
ROW = 24


class CapturedView(Captured):
    """Captured attention that a notebook shows as the page."""

    @classmethod
    def of(cls, captured: Captured) -> Self:
        """The same attention."""
        return cls(**{each.name: getattr(captured, each.name) for each in fields(captured)})

    def _repr_html_(self) -> str:
        return framed(self.model or "attention", self)


def framed(name: str, captured: Captured) -> str:
    """The page as part of another one.

    Its script runs, since the frame has its own policy, but sees nothing outside of it, and so cannot tell how high it
    would like to be. What stands between the tags is seen only where frames are taken out, as of a notebook that is
    not trusted yet.
    """
    page = html.escape(page_of([(name, captured)]), quote=True)
    style = f"width:100%;height:{_height(captured)}px;border:0"
    return (
        f'<iframe title="What a model attends to" style="{style}" sandbox="allow-scripts allow-downloads" '
        f'srcdoc="{page}">{html.escape(repr(captured))} Trust this notebook, or run it, to see the page.</iframe>'
    )


def _height(captured: Captured) -> int:
    """Pixels in which what is seen first has room: the words above a picture or a recording, or the matrix."""
    if captured.shown is not None:
        return HIGH
    return min(HIGH, max(LOW, AROUND + ROW * len(captured.target.merged())))
