"""Runs in other projects' formats."""

import base64
from collections.abc import Callable
from pathlib import Path

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError
from regard.interop.imported_run import check_is_new
from regard.runs.bundle import load_bundle
from regard.runs.ctranslate2_conversion import (
    FINGERPRINT_FILE,
    PRECISIONS,
    convert_to_ctranslate2,
    unsupported_by_ctranslate2,
)
from regard.runs.folder import RunFolder, open_run, write_durably

MODEL_FILES = (  # of a run: the model alone, without its training
    *("model.toml", "model.safetensors", "source.subwords", "target.subwords", "target.labels", "alignment.json"),
)
Files = dict[str, bytes]  # by name


def export_run(run: Path, to: str, folder: Path, *, precision: str = "float32") -> list[str]:
    """Write a run into a new folder; returns the names of its files. precision: of CTranslate2's weights. Raises
    RegardError."""
    if to not in FORMATS:
        raise RegardError(f"--to: there is no {to!r}; there are {', '.join(FORMATS)}.")
    if precision not in PRECISIONS:
        raise RegardError(f"--precision: there is no {precision!r}; there are {', '.join(PRECISIONS)}.")
    if precision != "float32" and to != "ctranslate2":
        raise RegardError(f"--precision: {precision} is for ctranslate2; leave it out for {to}.")
    opened = open_run(run)
    check_is_new(folder)
    files = FORMATS[to](opened, precision)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_durably(folder / name, content)
    return sorted(files)


def _huggingface(opened: RunFolder, precision: str) -> Files:
    from regard.interop import huggingface_export

    return huggingface_export.export_huggingface(opened)


def _ctranslate2(opened: RunFolder, precision: str) -> Files:
    if reason := unsupported_by_ctranslate2(opened.description.model):
        raise RegardError(f"{opened.folder}: CTranslate2 cannot run this model, since {reason}.")
    converted = convert_to_ctranslate2(opened, precision)
    files = {path.name: path.read_bytes() for path in sorted(converted.iterdir()) if path.name != FINGERPRINT_FILE}
    return files | _sentencepiece_models(opened)


def _onnx(opened: RunFolder, precision: str) -> Files:
    from regard.interop.onnx import export_onnx

    return export_onnx(load_bundle(opened.folder))


def _safetensors(opened: RunFolder, precision: str) -> Files:
    return {name: (opened.folder / name).read_bytes() for name in MODEL_FILES if (opened.folder / name).exists()}


FORMATS: dict[str, Callable[[RunFolder, str], Files]] = {
    "huggingface": _huggingface,
    "ctranslate2": _ctranslate2,
    "onnx": _onnx,
    "safetensors": _safetensors,
}


def _sentencepiece_models(opened: RunFolder) -> Files:
    """The sentencepiece models of source and target, where they have such."""
    files: Files = {}
    for name, side in (("source", opened.source_processor), ("target", opened.target_vocabulary)):
        if isinstance(side, ImportedTokenizer) and side.description["kind"] == "sentencepiece":
            files[f"{name}.spm"] = base64.b64decode(side.description["model"])
        elif isinstance(side, SubwordTokenizer) and not isinstance(side, ImportedTokenizer):
            files[f"{name}.spm"] = side.model
    return files
