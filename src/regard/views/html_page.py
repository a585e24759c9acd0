"""Captured attention as a page: one HTML file that needs no network and runs only its own script.

Its modules are in page/; the service serves the same modules as separate files. Text of a person or a model is inserted
as text, never as markup.
"""

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

from regard.interpret.captured_attention import Axis, CapturedAttention
from regard.interpret.measures import rollout, statistics
from regard.views.es_modules import bundle_modules
from regard.views.storage import attribution_record, source_media_record

FOLDER = resources.files("regard.views") / "page"
ENTRY = "saved_page.js"
STYLES = ("theme.css", "attention.css")
MAX_DENSE_WEIGHTS = 4_000_000  # a capture with more of them keeps the largest of each row
TOP_WEIGHTS = 16  # of each row, in this case
FULL_WEIGHT = 65535  # a weight of 1


def write_page(
    captures: Sequence[tuple[str, CapturedAttention]],
    path: Path,
    *,
    over_time: bool = False,
    initial: Mapping[str, Any] | None = None,
) -> None:
    """Write captures, each with its name: side by side, or one at a time over time. initial: see `render_page`."""
    path.write_text(render_page(captures, over_time=over_time, initial=initial), "utf-8")


def render_page(
    captures: Sequence[tuple[str, CapturedAttention]],
    *,
    over_time: bool = False,
    initial: Mapping[str, Any] | None = None,
) -> str:
    """The HTML of the page.

    initial: the initial selection: kind; layer and head, from 0, or "mean", or "attribution" as a layer; words
    (whether tokens are merged into words; by default `Axis.merges_by_default`); special (whether special tokens are
    shown).
    """
    script = bundle_modules(FOLDER, ENTRY)
    style = "".join((FOLDER / name).read_text("utf-8") for name in STYLES)
    policy = (
        f"default-src 'none'; script-src '{_csp_hash(script)}'; style-src '{_csp_hash(style)}'; "
        "img-src data: blob:; media-src data:; base-uri 'none'"
    )
    records = [pack_capture(captured, name) for name, captured in captures]
    data = json.dumps({"captures": records, "over_time": over_time, "initial": dict(initial or {})}, ensure_ascii=True)
    # In JSON these characters occur in strings only. Escaped, they cannot end the element that holds the data.
    data = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return fill_template(
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>',
        scripts=f'<script type="application/json" id="data">{data}</script>\n<script type="module">{script}</script>',
    )


def fill_template(*, head: str, scripts: str, form: str = "") -> str:
    """The HTML of the page with these sections inserted."""
    page = (FOLDER / "attention.html").read_text("utf-8")
    for name, section in {"head": head, "form": form, "scripts": scripts}.items():  # scripts last: they hold the data
        page = page.replace(f"<!--{name}-->", section, 1)
    return page


def _csp_hash(content: str) -> str:
    """As a Content-Security-Policy names an inline script or style that is allowed."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def pack_capture(captured: CapturedAttention, name: str) -> dict[str, Any]:
    """A record for the page: weights in 16 bits, and only the largest of each row where there are many."""
    weights = {kind: captured.weights[kind] for kind in captured.kinds}
    is_large = sum(layer.size for layers in weights.values() for layer in layers) > MAX_DENSE_WEIGHTS
    top = TOP_WEIGHTS if is_large else None
    return {
        "name": name,
        "source": _pack_axis(captured.source),
        "target": _pack_axis(captured.target),
        "decoder_input": _pack_axis(captured.decoder_input),
        "weights": {
            kind: [[_pack_matrix(head, top) for head in layer] for layer in layers] for kind, layers in weights.items()
        },
        "alignment_weights": None if captured.alignment_weights is None else _pack_matrix(captured.alignment_weights),
        "alignment_head": captured.alignment_head and astuple(captured.alignment_head),
        "rollout": _pack_matrix(rollout(captured)[0].astype(np.float32))
        if weights.get("cross") and captured.is_unmodified and captured.source_media is None
        else None,
        "attribution": attribution_record(captured.attribution, digits=5),
        "beam": [
            {
                "score": hypothesis.score,
                "token_scores": [round(each, 4) for each in hypothesis.token_scores],
                "labels": [_encodable(label) for label in hypothesis.target.labels],
                "alignment_weights": _pack_matrix(hypothesis.alignment_weights),
            }
            for hypothesis in captured.beam
        ],
        "source_media": captured.source_media and source_media_record(captured.source_media),
        "statistics": [astuple(each) for each in statistics(captured)] if captured.is_unmodified else [],
    }


def _pack_axis(axis: Axis) -> dict[str, Any]:
    return {
        "labels": [_encodable(label) for label in axis.labels],
        "special": list(axis.special),
        "unit": axis.unit,
        "words": list(axis.word_indices),
        "merge": axis.merges_by_default,
        "word_labels": [_encodable(label) for label in axis.merge_words().labels],
    }


def _encodable(label: str) -> str:
    """Without unpaired surrogates, which have no encoding in UTF-8."""
    return label.encode("utf-8", "replace").decode("utf-8")


def _pack_matrix(weights: NDArray[np.float32], top: int | None = None) -> dict[str, Any]:
    """top: only so many weights of each row, the largest, with their positions."""
    rows, columns = weights.shape
    quantized = np.round(np.clip(weights, 0, 1) * FULL_WEIGHT).astype("<u2")
    shape: dict[str, Any] = {"rows": rows, "columns": columns}
    if top is None or top >= columns:
        return {**shape, "weights": _base64(quantized)}
    positions = np.sort(np.argpartition(-weights, top - 1, axis=1)[:, :top], axis=1)
    largest = np.take_along_axis(quantized, positions, 1)
    return {**shape, "at": _base64(positions.astype("<u2")), "weights": _base64(largest)}


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
