"""Captured attention as files: JSON that any program reads, and safetensors, exact and small.

docs/seeing.md has the schema. JSON may keep only the largest weights of each row, with the sum of the rest.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from regard.alignment.alignment_head import AlignmentHead
from regard.errors import RegardError
from regard.interpret.captured_attention import KINDS, Axis, CapturedAttention, Kind, SourceMedia, Weights

FORMAT = "regard attention 1"
DIGITS = 6  # of a weight in JSON


def as_record(captured: CapturedAttention, *, top: int | None = None) -> dict[str, Any]:
    """What JSON says. top: so many weights of each row at most, the largest."""
    return {
        **_about(captured),
        "weights": {
            kind: [[[_row(row, top) for row in head] for head in layer] for layer in captured.weights[kind]]
            for kind in captured.kinds
        },
        "hidden": {kind: [_rounded(layer) for layer in layers] for kind, layers in captured.hidden_weights.items()},
        "attribution": attribution_record(captured.attribution),
        "aligned": None if captured.alignment_weights is None else _rounded(captured.alignment_weights),
        "shown": captured.source_media and shown_record(captured.source_media),
    }


def from_record(record: Any) -> CapturedAttention:
    """Of what JSON says. Raises RegardError if it is not what `as_record` writes."""
    try:
        if record["format"] != FORMAT:
            raise RegardError(f"it is of the format {record['format']!r}; this version reads {FORMAT!r}.")
        axes = {name: _axis(record[name]) for name in ("source", "target", "before")}
        weights: dict[Kind, list[Weights]] = {}
        for kind in KINDS:
            columns = len(axes[KINDS[kind][1]])
            if record["weights"].get(kind):
                weights[kind] = [
                    np.array([[_dense(row, columns) for row in head] for head in layer], np.float32)
                    for layer in record["weights"][kind]
                ]
        return CapturedAttention(
            axes["source"],
            axes["target"],
            axes["before"],
            weights=weights,
            hidden_weights={
                kind: [np.array(layer, np.float32) for layer in of] for kind, of in record["hidden"].items()
            },
            attribution={over: np.array(values, np.float32) for over, values in record["attribution"].items()},
            alignment_weights=None if record["aligned"] is None else np.array(record["aligned"], np.float32),
            alignment_head=None if record["choice"] is None else _choice(record["choice"]),
            model=str(record["model"]),
            source_media=None if record.get("shown") is None else _shown(record["shown"]),
        )
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise RegardError(f"this is no captured attention: {type(error).__name__} at {error}.") from None


def save(captured: CapturedAttention, path: str | Path, *, top: int | None = None) -> None:
    """Into a .json or a .safetensors file."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        path.write_text(json.dumps(as_record(captured, top=top), ensure_ascii=True) + "\n", "utf-8")
    elif path.suffix.lower() == ".safetensors":
        path.write_bytes(as_bytes(captured))
    else:
        raise RegardError(f"{path}: attention is saved as .json or .safetensors.")


def as_bytes(captured: CapturedAttention) -> bytes:
    """A safetensors file's content."""
    tensors = {
        f"{kind}.{number}": layer for kind in captured.kinds for number, layer in enumerate(captured.weights[kind])
    }
    for kind, layers in captured.hidden_weights.items():
        tensors |= {f"hidden.{kind}.{number}": layer for number, layer in enumerate(layers)}
    tensors |= {f"attribution.{over}": values for over, values in captured.attribution.items()}
    if captured.alignment_weights is not None:
        tensors["aligned"] = captured.alignment_weights
    shown = {"shown": captured.source_media and shown_record(captured.source_media)}
    about = {"regard": json.dumps(_about(captured) | shown)}
    return save_tensors({name: np.ascontiguousarray(each) for name, each in tensors.items()}, about)


def load(path: str | Path) -> CapturedAttention:
    """From a file that `save` has written. Raises RegardError if it is none."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RegardError(f"{path}: it cannot be read ({error.strerror}).") from None
    try:
        return _checked(_from_tensors(raw) if path.suffix.lower() == ".safetensors" else from_record(json.loads(raw)))
    except (ValueError, RecursionError, SafetensorError) as error:
        raise RegardError(f"{path}: {error}") from None


def _checked(captured: CapturedAttention) -> CapturedAttention:
    """Raises RegardError if its weights are none."""
    for kind, layers in captured.weights.items():
        if not all(((layer >= 0) & (layer < np.inf)).all() for layer in layers):
            raise RegardError(f"weights of {kind} are not all numbers from 0 on.")
    return captured


def _from_tensors(raw: bytes) -> CapturedAttention:
    tensors = load_tensors(raw)
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    record = json.loads(header.get("__metadata__", {}).get("regard", "{}"))
    if not isinstance(record, dict):
        raise RegardError("this is no captured attention.")

    def layers(name: str) -> list[Weights]:
        found: list[Weights] = []
        while f"{name}.{len(found)}" in tensors:
            found.append(tensors.pop(f"{name}.{len(found)}").astype(np.float32, copy=False))
        return found

    hidden: dict[Kind, list[Weights]] = {kind: some for kind in KINDS if (some := layers(f"hidden.{kind}"))}
    weights: dict[Kind, list[Weights]] = {kind: some for kind in KINDS if (some := layers(kind))}
    sides = [over for over in ("source", "before") if f"attribution.{over}" in tensors]
    attribution = {over: tensors.pop(f"attribution.{over}") for over in sides}
    aligned = tensors.pop("aligned", None)
    if tensors:
        raise RegardError(f"this is no captured attention: {min(tensors)} belongs to nothing.")
    nothing: dict[str, Any] = {"weights": {}, "hidden": {}, "attribution": {}, "aligned": None, "choice": None}
    empty = from_record({**record, **nothing})
    choice = None if record.get("choice") is None else _choice(record["choice"])
    axes = empty.source, empty.target, empty.before
    return CapturedAttention(
        *axes, weights, hidden, attribution, aligned, choice, empty.model, source_media=empty.source_media
    )


def shown_record(shown: SourceMedia) -> dict[str, Any]:
    """What a source that is no text looks like, its bytes in base 64."""
    return {
        "kind": shown.kind,
        "shape": list(shown.values.shape),
        "values": base64.b64encode(np.ascontiguousarray(shown.values).tobytes()).decode(),
        "seconds": shown.seconds,
        "sound": base64.b64encode(shown.audio).decode(),
    }


def _shown(record: Any) -> SourceMedia:
    raw = base64.b64decode(record["values"], validate=True)
    values = np.frombuffer(raw, np.uint8).reshape([int(size) for size in record["shape"]])
    sound = base64.b64decode(record["sound"], validate=True)
    return SourceMedia(record["kind"], values, float(record["seconds"]), sound)


def _choice(record: Any) -> AlignmentHead:
    layer, head, shifted = record["layer"], record["head"], record["shifted"]
    guessed = record.get("guessed", False)
    whole = isinstance(layer, int) and isinstance(head, int | None)
    if not (whole and isinstance(shifted, bool) and isinstance(guessed, bool)):
        raise RegardError("this is no captured attention: its choice is none.")
    return AlignmentHead(layer, head, shifted, guessed)


def _about(captured: CapturedAttention) -> dict[str, Any]:
    axes = {name: getattr(captured, name) for name in ("source", "target", "before")}
    choice = captured.alignment_head
    return {
        "format": FORMAT,
        "model": captured.model,
        **{
            name: {"unit": axis.unit, "labels": list(axis.labels), "special": list(axis.special)}
            for name, axis in axes.items()
        },
        "choice": choice and asdict(choice),
    }


def _axis(record: Any) -> Axis:
    return Axis(tuple(map(str, record["labels"])), tuple(map(bool, record["special"])), str(record["unit"]))


def attribution_record(attribution: Mapping[str, Weights], digits: int = 8) -> dict[str, list[list[float]]]:
    """Rounded by their own size: of a word that a model is sure of, all of them are tiny."""
    return {
        over: [[float(f"{value:.{digits}g}") for value in row] for row in values.tolist()]
        for over, values in attribution.items()
    }


def _rounded(values: Weights) -> Any:
    return np.round(values.astype(np.float64), DIGITS).tolist()


def _row(row: Weights, top: int | None) -> Any:
    """Every weight; or {"at": places, "weights": theirs, "rest": the sum of all others}."""
    if top is not None and top < 1:
        raise RegardError(f"top: at least one weight of each row is kept, not {top}.")
    if top is None or top >= len(row):
        return _rounded(row)
    at = np.sort(np.argpartition(-row, top - 1)[:top])
    kept = row[at]
    return {"at": at.tolist(), "weights": _rounded(kept), "rest": round(float(row.sum() - kept.sum()), DIGITS)}


def _dense(row: Any, columns: int) -> list[float]:
    if isinstance(row, list):
        return row
    found = [0.0] * columns
    for at, weight in zip(row["at"], row["weights"], strict=True):
        if not 0 <= at < columns:
            raise RegardError(f"this is no captured attention: a row has no place {at}.")
        found[at] = weight
    return found
