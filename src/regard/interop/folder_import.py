"""Import of Hugging Face and CTranslate2 folders as runs. Nothing in them is executed, and nothing is downloaded.

A Hugging Face folder has a config.json, weights as safetensors, and vocabulary files. Its configuration, vocabulary
files and unused tensors are kept in the run's folder `imported`, so that an export restores the original folder.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import RegardError
from regard.interop.family import Family, family_of
from regard.interop.imported_run import build_bundle, check_is_new, save_run
from regard.interop.tensor_map import ModelMapping, TokenizerPair
from regard.interop.tokenizer_import import TOKENIZER_FILES, read_json
from regard.runs.bundle import Bundle, read_tensors, serialize_tensors
from regard.runs.folder import write_durably

IMPORTED = "imported"  # the folder with what an export needs
UNUSED = "rest.safetensors"  # in it: the unused tensors
TENSOR_NAMES = "tensors.json"  # in it: the names of all original tensors


def import_folder(folder: Path, run: Path) -> Bundle:
    """Import a Hugging Face or CTranslate2 model into a new run. Raises RegardError for an unsupported folder."""
    if not folder.is_dir():
        raise RegardError(f"{folder}: there is no such folder; give one with a config.json.")
    if not (folder / "config.json").exists():
        raise RegardError(f"{folder}: it has no config.json; a folder of Hugging Face's or CTranslate2's has one.")
    check_is_new(run)
    if (folder / "model.bin").exists():
        from regard.interop.ctranslate2_import import import_ctranslate2

        return import_ctranslate2(folder, run)
    if any((folder / f"{name}_vocabulary.json").exists() for name in ("shared", "source", "target")):
        raise RegardError(f"{folder}: it seems to be a CTranslate2 model, but has no model.bin.")
    return _import_huggingface(folder, run)


def _import_huggingface(folder: Path, run: Path) -> Bundle:
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise RegardError(f"{folder / 'config.json'}: expected a JSON object.")
    theirs = read_weights(folder)
    family = _find_family(folder, config)
    tokenizers = _load_tokenizers(folder, family)
    mapping = _map_model(folder, family, set(theirs), tokenizers)
    bundle, unused = build_bundle(mapping, theirs, tokenizers, str(folder), family.languages(folder))
    run.mkdir(parents=True, exist_ok=True)
    if family.exports_imported:
        _keep_for_export(folder, run / IMPORTED, unused, sorted(theirs))
    save_run(run, bundle)
    return bundle


def _find_family(folder: Path, config: dict[str, Any]) -> Family:
    try:
        return family_of(config)
    except RegardError as error:
        raise RegardError(f"{folder}: {error}") from None


def _load_tokenizers(folder: Path, family: Family) -> TokenizerPair:
    try:
        return family.tokenizers(folder)
    except (KeyError, TypeError, AttributeError) as error:
        raise RegardError(f"{folder}: its vocabulary cannot be understood ({error}).") from None
    except ValueError as error:
        raise RegardError(str(error) if str(error).startswith(str(folder)) else f"{folder}: {error}") from None


def _map_model(folder: Path, family: Family, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
    try:
        return family.mapping(names, tokenizers)
    except KeyError as error:
        raise RegardError(f"{folder / 'config.json'}: {error.args[0]} is missing.") from None
    except RegardError as error:
        raise RegardError(f"{folder}: {error}") from None
    except (TypeError, AttributeError, IndexError) as error:
        raise RegardError(f"{folder / 'config.json'}: it cannot be understood ({error}).") from None


def _keep_for_export(folder: Path, into: Path, unused: dict[str, Tensor], names: list[str]) -> None:
    into.mkdir()
    for name in ("config.json", *TOKENIZER_FILES):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, into / name)
    write_durably(into / UNUSED, serialize_tensors(unused))
    write_durably(into / TENSOR_NAMES, json.dumps(names).encode())


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, from one safetensors file or from several that an index names. Raises RegardError."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").exists():
        return read_tensors(folder / "model.safetensors")
    if index.exists():
        return _read_indexed(folder, index)
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
        raise RegardError(
            f"{folder}: the format of its weights can run anything when it is opened; save them as safetensors first, "
            f"with model.save_pretrained(folder) in transformers."
        )
    raise RegardError(f"{folder}: it has no model.safetensors.")


def _read_indexed(folder: Path, index: Path) -> dict[str, Tensor]:
    content = read_json(index)
    files = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(files, dict):
        raise RegardError(f"{index}: it has no weight_map.")
    tensors: dict[str, Tensor] = {}
    for name in sorted({str(each) for each in files.values()}):
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise RegardError(f"{index}: {name!r} is no safetensors file of this folder.")
        tensors |= read_tensors(folder / name)
    return tensors
