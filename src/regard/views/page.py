"""Captured attention as a page: one file that needs nothing else, asks nothing of any network, and runs only its own
script. Everything from a person or a model is put in as text."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.interpret.captured import Axis, Captured
from regard.interpret.measures import rollout, statistics
from regard.views.storage import attribution_record, shown_record

SCRIPTS = ("data.js", "matrix.js", "media.js", "views.js", "beam.js", "page.js")
DENSE = 4_000_000  # weights up to which all are kept
TOP = 16  # of each row, the largest, where there are more
FULL = 65535  # what a weight of one is written as


def write_page(
    captures: Sequence[tuple[str, Captured]],
    path: Path,
    *,
    over_time: bool = False,
    first: Mapping[str, Any] | None = None,
) -> None:
    """One or several, each with its name, side by side; or one after the other, over time. first: see `page_of`."""
    path.write_text(page_of(captures, over_time=over_time, first=first), "utf-8")


def page_of(
    captures: Sequence[tuple[str, Captured]], *, over_time: bool = False, first: Mapping[str, Any] | None = None
) -> str:
    """The whole file's text.

    first: what is shown first: kind; layer and head, from 0, or "mean", or "attribution" as a layer; words; marks.
    """
    script, style = parts()
    allowed = [f"'sha256-{_digest(part)}'" for part in (script, style)]
    policy = (
        f"default-src 'none'; script-src {allowed[0]}; style-src {allowed[1]}; img-src data: blob:; "
        "media-src data:; base-uri 'none'"
    )
    records = [packed(captured, name) for name, captured in captures]
    data = json.dumps({"captures": records, "over_time": over_time, "first": dict(first or {})}, ensure_ascii=True)
    # In JSON nothing but a string has these signs; written so, none of them ends the element that holds it.
    data = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return filled(
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>',
        scripts=f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>',
    )


def parts() -> tuple[str, str]:
    """The page's script and its style."""
    folder = resources.files("regard.views") / "page"
    script = "\n".join((folder / name).read_text("utf-8") for name in SCRIPTS)
    return script, (folder / "page.css").read_text("utf-8")


def filled(*, head: str, scripts: str, live: str = "") -> str:
    """The page with these in their places."""
    page = (resources.files("regard.views") / "page" / "page.html").read_text("utf-8")
    for name, part in {"head": head, "live": live, "scripts": scripts}.items():  # scripts last: they have the data
        page = page.replace(f"<!--{name}-->", part, 1)
    return page


def _digest(part: str) -> str:
    return base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()


def packed(captured: Captured, name: str) -> dict[str, Any]:
    """What the page is told of one: weights as 16-bit shares, the largest of each row where there are many."""
    weights = {kind: captured.weights[kind] for kind in captured.kinds}
    many = sum(layer.size for layers in weights.values() for layer in layers) > DENSE
    return {
        "name": name,
        "source": _axis(captured.source),
        "target": _axis(captured.target),
        "before": _axis(captured.before),
        "weights": {
            kind: [[_matrix(head, TOP if many else None) for head in layer] for layer in layers]
            for kind, layers in weights.items()
        },
        "aligned": None if captured.aligned is None else _matrix(captured.aligned, None),
        "choice": captured.choice and astuple(captured.choice),
        "rollout": _matrix(rollout(captured)[0].astype(np.float32), None)
        if weights.get("cross") and captured.whole and captured.shown is None
        else None,
        "attribution": attribution_record(captured.attribution, digits=5),
        "beam": [
            {
                "score": branch.score,
                "token_scores": [round(each, 4) for each in branch.token_scores],
                "labels": [_known(label) for label in branch.target.labels],
                "aligned": _matrix(branch.aligned, None),
            }
            for branch in captured.beam
        ],
        "shown": captured.shown and shown_record(captured.shown),
        "statistics": [astuple(each) for each in statistics(captured)] if captured.whole else [],
    }


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "labels": [_known(label) for label in axis.labels],
        "special": list(axis.special),
        "unit": axis.unit,
        "words": list(axis.words),
        "word_labels": [_known(label) for label in axis.merged().labels],
    }


def _known(label: str) -> str:
    """Without half characters, which have no place in a file."""
    return label.encode("utf-8", "replace").decode("utf-8")


def _matrix(weights: NDArray[np.float32], top: int | None) -> dict[str, Any]:
    rows, columns = weights.shape
    shares = np.round(np.clip(weights, 0, 1) * FULL).astype("<u2")
    about: dict[str, Any] = {"rows": rows, "columns": columns}
    if top is None or top >= columns:
        return {**about, "weights": _text(shares)}
    at = np.sort(np.argpartition(-weights, top - 1, axis=1)[:, :top], axis=1)
    return {**about, "at": _text(at.astype("<u2")), "weights": _text(np.take_along_axis(shares, at, 1))}


def _text(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
