"""Hugging Face's folders as runs: config.json, safetensors, vocabulary files. Nothing is run or fetched.

What has no use here but belongs to the model (its configuration, its vocabulary's files, tensors that only training
there would need) is kept in the run's folder `imported`, so that an export gives back what came.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import RegardError
from regard.interop import fairseq
from regard.interop.families import family_of
from regard.interop.new_run import arrived, check_new, save
from regard.interop.vocabularies import FILES, read_json, vocabularies
from regard.runs.bundle import Bundle, as_bytes, read_tensors
from regard.runs.folder import write_durably

KEPT = "imported"  # the folder of what an export gives back


def import_folder(folder: Path, run: Path) -> Bundle:
    """A model of Hugging Face's, or of CTranslate2's, into a new run. Raises RegardError, naming what does not fit."""
    if not folder.is_dir():
        raise RegardError(f"{folder}: there is no such folder; give one with a config.json.")
    if not (folder / "config.json").exists():
        raise RegardError(f"{folder}: it has no config.json; a folder of Hugging Face's or CTranslate2's has one.")
    if (folder / "model.bin").exists():
        from regard.interop.ctranslate2_import import import_ctranslate

        return import_ctranslate(folder, run)
    if any((folder / f"{name}_vocabulary.json").exists() for name in ("shared", "source", "target")):
        raise RegardError(f"{folder}: it looks like a folder of CTranslate2's, and has no model.bin.")
    check_new(run)
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise RegardError(f"{folder / 'config.json'}: expected a JSON object.")
    theirs = weights_in(folder)
    try:
        family = family_of(config, set(theirs))
    except KeyError as error:
        raise RegardError(f"{folder / 'config.json'}: {error.args[0]} is missing.") from None
    except RegardError as error:
        raise RegardError(f"{folder}: {error}") from None
    except (TypeError, AttributeError, IndexError) as error:
        raise RegardError(f"{folder / 'config.json'}: it cannot be understood ({error}).") from None
    try:
        source, target = vocabularies(folder, config)
    except (KeyError, TypeError, AttributeError) as error:
        raise RegardError(f"{folder}: its vocabulary cannot be understood ({error}).") from None
    except RegardError as error:
        raise RegardError(str(error) if str(error).startswith(str(folder)) else f"{folder}: {error}") from None
    languages = _language(folder, config, "source"), _language(folder, config, "target")
    bundle, kept = arrived(family, theirs, (source, target), str(folder), languages)
    run.mkdir(parents=True, exist_ok=True)
    if config["model_type"] != fairseq.MODEL_TYPE:  # to which nothing goes back
        _keep(folder, run / KEPT, kept, sorted(theirs))
    save(run, bundle)
    return bundle


def _keep(folder: Path, into: Path, rest: dict[str, Tensor], names: list[str]) -> None:
    into.mkdir()
    for name in ("config.json", *FILES):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, into / name)
    write_durably(into / "rest.safetensors", as_bytes(rest))
    write_durably(into / "tensors.json", json.dumps(names).encode())


def weights_in(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, of one safetensors file or of several that an index names."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").exists():
        return read_tensors(folder / "model.safetensors")
    if index.exists():
        content = read_json(index)
        named = content.get("weight_map") if isinstance(content, dict) else None
        if not isinstance(named, dict):
            raise RegardError(f"{index}: it has no weight_map.")
        tensors: dict[str, Tensor] = {}
        for name in sorted({str(each) for each in named.values()}):
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise RegardError(f"{index}: {name!r} is no safetensors file of this folder.")
            tensors |= read_tensors(folder / name)
        return tensors
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
        raise RegardError(
            f"{folder}: the format of its weights can run anything when it is opened; save them as safetensors first, "
            f"with model.save_pretrained(folder) in transformers."
        )
    raise RegardError(f"{folder}: it has no model.safetensors.")


def _language(folder: Path, config: dict[str, Any], side: str) -> str | None:
    """As Marian's vocabulary or configuration names it: opus-mt-en-de."""
    if config["model_type"] == fairseq.MODEL_TYPE:
        return str(config[side])
    told = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    known = told.get(f"{side}_lang") if isinstance(told, dict) else None
    if config["model_type"] == "marian" and isinstance(known, str) and known.isascii() and 2 <= len(known) <= 12:
        return known
    name = str(config.get("_name_or_path") or "")
    parts = name.rpartition("opus-mt-")[2].split("-") if "opus-mt-" in name else []
    return parts[0 if side == "source" else 1] if len(parts) == 2 else None
