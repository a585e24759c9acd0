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
from regard.renames import migrate_attention, new_attention_tensor_name

FORMAT = "regard attention 2"
DIGITS = 6  # of a weight in JSON


def to_record(captured: CapturedAttention, *, top: int | None = None) -> dict[str, Any]:
    """The JSON object. top: only so many weights of each row, the largest."""
    return {
        **_metadata(captured),
        "weights": {
            kind: [[[_row(row, top) for row in head] for head in layer] for layer in captured.weights[kind]]
            for kind in captured.kinds
        },
        "hidden_weights": {
            kind: [_rounded(layer) for layer in layers] for kind, layers in captured.hidden_weights.items()
        },
        "attribution": attribution_record(captured.attribution),
        "alignment_weights": None if captured.alignment_weights is None else _rounded(captured.alignment_weights),
        "source_media": captured.source_media and source_media_record(captured.source_media),
    }


def from_record(record: Any) -> CapturedAttention:
    """Captured attention from a JSON object. Raises RegardError if it is not what `to_record` returns."""
    try:
        record = migrate_attention(record)
        if record["format"] != FORMAT:
            raise RegardError(f"it is of the format {record['format']!r}; this version reads {FORMAT!r}.")
        axes = {name: _axis(record[name]) for name in ("source", "target", "decoder_input")}
        weights: dict[Kind, list[Weights]] = {}
        for kind in KINDS:
            columns = len(axes[KINDS[kind][1]])
            if record["weights"].get(kind):
                weights[kind] = [
                    np.array([[_dense_row(row, columns) for row in head] for head in layer], np.float32)
                    for layer in record["weights"][kind]
                ]
        return CapturedAttention(
            axes["source"],
            axes["target"],
            axes["decoder_input"],
            weights=weights,
            hidden_weights={
                kind: [np.array(layer, np.float32) for layer in layers]
                for kind, layers in record["hidden_weights"].items()
            },
            attribution={over: np.array(values, np.float32) for over, values in record["attribution"].items()},
            alignment_weights=None
            if record["alignment_weights"] is None
            else np.array(record["alignment_weights"], np.float32),
            alignment_head=None if record["alignment_head"] is None else _alignment_head(record["alignment_head"]),
            model=str(record["model"]),
            source_media=None if record.get("source_media") is None else _source_media(record["source_media"]),
        )
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise RegardError(f"this is no captured attention: {type(error).__name__} at {error}.") from None


def save(captured: CapturedAttention, path: str | Path, *, top: int | None = None) -> None:
    """Write captured attention into a .json or a .safetensors file."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        path.write_text(json.dumps(to_record(captured, top=top), ensure_ascii=True) + "\n", "utf-8")
    elif path.suffix.lower() == ".safetensors":
        path.write_bytes(to_safetensors(captured))
    else:
        raise RegardError(f"{path}: attention is saved as .json or .safetensors.")


def to_safetensors(captured: CapturedAttention) -> bytes:
    """The content of a safetensors file."""
    tensors = {
        f"{kind}.{number}": layer for kind in captured.kinds for number, layer in enumerate(captured.weights[kind])
    }
    for kind, layers in captured.hidden_weights.items():
        tensors |= {f"hidden_weights.{kind}.{number}": layer for number, layer in enumerate(layers)}
    tensors |= {f"attribution.{over}": values for over, values in captured.attribution.items()}
    if captured.alignment_weights is not None:
        tensors["alignment_weights"] = captured.alignment_weights
    source_media = {"source_media": captured.source_media and source_media_record(captured.source_media)}
    metadata = {"regard": json.dumps(_metadata(captured) | source_media)}
    return save_tensors({name: np.ascontiguousarray(each) for name, each in tensors.items()}, metadata)


def load(path: str | Path) -> CapturedAttention:
    """Read a file that `save` has written. Raises RegardError if it is not one."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RegardError(f"{path}: it cannot be read ({error.strerror}).") from None
    try:
        is_tensors = path.suffix.lower() == ".safetensors"
        return _check_weights(_from_tensors(raw) if is_tensors else from_record(json.loads(raw)))
    except (ValueError, RecursionError, SafetensorError) as error:
        raise RegardError(f"{path}: {error}") from None


def _check_weights(captured: CapturedAttention) -> CapturedAttention:
    """The same. Raises RegardError if a weight is negative or not finite."""
    for kind, layers in captured.weights.items():
        if not all(((layer >= 0) & (layer < np.inf)).all() for layer in layers):
            raise RegardError(f"weights of {kind} are not all numbers from 0 on.")
    return captured


def _from_tensors(raw: bytes) -> CapturedAttention:
    tensors = {new_attention_tensor_name(name): tensor for name, tensor in load_tensors(raw).items()}
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    record = json.loads(header.get("__metadata__", {}).get("regard", "{}"))
    if not isinstance(record, dict):
        raise RegardError("this is no captured attention.")

    def layers(name: str) -> list[Weights]:
        arrays: list[Weights] = []
        while f"{name}.{len(arrays)}" in tensors:
            arrays.append(tensors.pop(f"{name}.{len(arrays)}").astype(np.float32, copy=False))
        return arrays

    hidden_weights: dict[Kind, list[Weights]] = {
        kind: found for kind in KINDS if (found := layers(f"hidden_weights.{kind}"))
    }
    weights: dict[Kind, list[Weights]] = {kind: found for kind in KINDS if (found := layers(kind))}
    inputs = [over for over in ("source", "decoder_input") if f"attribution.{over}" in tensors]
    attribution = {over: tensors.pop(f"attribution.{over}") for over in inputs}
    alignment_weights = tensors.pop("alignment_weights", None)
    if tensors:
        raise RegardError(f"this is no captured attention: {min(tensors)} belongs to nothing.")
    no_arrays: dict[str, Any] = {
        "weights": {},
        "hidden_weights": {},
        "attribution": {},
        "alignment_weights": None,
    }
    empty = from_record({**record, **no_arrays})
    axes = empty.source, empty.target, empty.decoder_input
    return CapturedAttention(
        *axes,
        weights,
        hidden_weights,
        attribution,
        alignment_weights,
        empty.alignment_head,
        empty.model,
        source_media=empty.source_media,
    )


def source_media_record(source_media: SourceMedia) -> dict[str, Any]:
    """The JSON object of an image or a recording, its bytes in Base64."""
    return {
        "kind": source_media.kind,
        "shape": list(source_media.values.shape),
        "values": base64.b64encode(np.ascontiguousarray(source_media.values).tobytes()).decode(),
        "seconds": source_media.seconds,
        "audio": base64.b64encode(source_media.audio).decode(),
    }


def _source_media(record: Any) -> SourceMedia:
    raw = base64.b64decode(record["values"], validate=True)
    values = np.frombuffer(raw, np.uint8).reshape([int(size) for size in record["shape"]])
    audio = base64.b64decode(record["audio"], validate=True)
    return SourceMedia(record["kind"], values, float(record["seconds"]), audio)


def _alignment_head(record: Any) -> AlignmentHead:
    layer, head, shifted = record["layer"], record["head"], record["shifted"]
    is_default = record.get("is_default", False)
    is_position = isinstance(layer, int) and isinstance(head, int | None)
    if not (is_position and isinstance(shifted, bool) and isinstance(is_default, bool)):
        raise RegardError("this is no captured attention: its alignment head is none.")
    return AlignmentHead(layer, head, shifted, is_default)


def _metadata(captured: CapturedAttention) -> dict[str, Any]:
    """Everything but numbers: format, model, axes, alignment head."""
    axes = {name: getattr(captured, name) for name in ("source", "target", "decoder_input")}
    head = captured.alignment_head
    return {
        "format": FORMAT,
        "model": captured.model,
        **{
            name: {"unit": axis.unit, "labels": list(axis.labels), "special": list(axis.special)}
            for name, axis in axes.items()
        },
        "alignment_head": head and asdict(head),
    }


def _axis(record: Any) -> Axis:
    return Axis(tuple(map(str, record["labels"])), tuple(map(bool, record["special"])), str(record["unit"]))


def attribution_record(attribution: Mapping[str, Weights], digits: int = 8) -> dict[str, list[list[float]]]:
    """Rounded to significant digits: all are tiny for a token that the model is sure of."""
    return {
        over: [[float(f"{value:.{digits}g}") for value in row] for row in values.tolist()]
        for over, values in attribution.items()
    }


def _rounded(values: Weights) -> Any:
    return np.round(values.astype(np.float64), DIGITS).tolist()


def _row(row: Weights, top: int | None) -> Any:
    """Every weight; or {"at": positions of the largest, "weights": their weights, "rest": the sum of all others}."""
    if top is not None and top < 1:
        raise RegardError(f"top: at least one weight of each row is kept, not {top}.")
    if top is None or top >= len(row):
        return _rounded(row)
    positions = np.sort(np.argpartition(-row, top - 1)[:top])
    largest = row[positions]
    rest = round(float(row.sum() - largest.sum()), DIGITS)
    return {"at": positions.tolist(), "weights": _rounded(largest), "rest": rest}


def _dense_row(row: Any, columns: int) -> list[float]:
    """All weights of a row, zero where only the largest were kept."""
    if isinstance(row, list):
        return row
    dense = [0.0] * columns
    for position, weight in zip(row["at"], row["weights"], strict=True):
        if not 0 <= position < columns:
            raise RegardError(f"this is no captured attention: a row has no position {position}.")
        dense[position] = weight
    return dense
