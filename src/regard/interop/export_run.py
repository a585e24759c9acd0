"""Runs in other projects' formats."""

import base64
import json
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError
from regard.interop.families import family_of
from regard.interop.import_folder import KEPT
from regard.interop.new_run import NEVER
from regard.interop.tensor_map import given
from regard.interop.vocabularies import FILES, read_json
from regard.runs.bundle import as_bytes, load_bundle, read_tensors, tensors_of
from regard.runs.conversion import KINDS, converted, refuses
from regard.runs.folder import Opened, open_folder, write_durably

FORMATS = ("huggingface", "ctranslate2", "onnx", "safetensors")
OWN = ("model.toml", "model.safetensors", "source.subwords", "target.subwords", "target.labels", "alignment.json")


def export(run: Path, to: str, folder: Path, *, kind: str = "float32") -> list[str]:
    """A run into a new folder; the names of its files. kind: of CTranslate2's weights. Raises RegardError."""
    if to not in FORMATS:
        raise RegardError(f"--to: there is no {to!r}; there are {', '.join(FORMATS)}.")
    if kind not in KINDS:
        raise RegardError(f"--precision: there is no {kind!r}; there are {', '.join(KINDS)}.")
    if kind != "float32" and to != "ctranslate2":
        raise RegardError(f"--precision: {kind} is for ctranslate2; leave it out for {to}.")
    opened = open_folder(run)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RegardError(f"{folder}: it exists; choose another folder with -o.")
    if to == "huggingface":
        files = _huggingface(opened)
    elif to == "onnx":
        from regard.interop.onnx import graphs

        files = graphs(load_bundle(run))
    elif to == "ctranslate2":
        if why := refuses(opened.description.model):
            raise RegardError(f"{run}: CTranslate2 cannot run this model, since {why}.")
        made = converted(opened, kind)
        files = {path.name: path.read_bytes() for path in sorted(made.iterdir()) if path.name != "made_from"}
        files |= _sides(opened)
    else:
        files = {name: (run / name).read_bytes() for name in OWN if (run / name).exists()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_durably(folder / name, content)
    return sorted(files)


def _sides(opened: Opened) -> dict[str, bytes]:
    """What cuts texts: sentencepiece's own models, where they are such."""
    found: dict[str, bytes] = {}
    for name, side in (("source", opened.source_side), ("target", opened.target_side)):
        if isinstance(side, ImportedTokenizer) and side.description["kind"] == "sentencepiece":
            found[f"{name}.spm"] = base64.b64decode(side.description["model"])
        elif isinstance(side, SubwordTokenizer) and not isinstance(side, ImportedTokenizer):
            found[f"{name}.spm"] = side.model
    return found


def _huggingface(opened: Opened) -> dict[str, bytes]:
    """As it was imported, with its own configuration and vocabulary and the weights of now; what was trained here, as
    the architecture there that is the same model."""
    kept = opened.folder / KEPT
    if not (kept / "config.json").exists():
        from regard.interop.huggingface_export import published

        try:
            return published(load_bundle(opened.folder))
        except RegardError as error:
            raise RegardError(f"{opened.folder}: {error}") from None
    config: dict[str, Any] = read_json(kept / "config.json")
    family = family_of(config, set(read_json(kept / "tensors.json")))
    bundle = load_bundle(opened.folder)
    if _shape(family.model) != _shape(bundle.description.model):
        raise RegardError(f"{opened.folder}: this is no longer the kind of model that was imported.")
    words = bundle.target_side if isinstance(bundle.target_side, ImportedTokenizer) else bundle.source_side
    assert isinstance(words, ImportedTokenizer)
    ours: dict[str, Tensor] = tensors_of(bundle.model)
    if "output.bias" in ours and not family.model.output_bias and family.model.tie != "none":
        bias = ours.pop("output.bias")  # which only says what is never said
        if not bool(((bias == 0) | (bias == NEVER)).all()):
            raise RegardError(f"{opened.folder}: tensor output.bias was trained, and has no place in such a model.")
    theirs = given(family, ours, read_tensors(kept / "rest.safetensors"), (words, words), str(opened.folder))
    files = {"model.safetensors": as_bytes(theirs, {"format": "pt"})}
    for name in ("config.json", *FILES):
        if (kept / name).exists():
            files[name] = (kept / name).read_bytes()
    return files


def _shape(model: Any) -> str:
    """What must be the same on both sides."""
    return json.dumps(model.model_dump(exclude={"output_bias"}), sort_keys=True, default=str)
