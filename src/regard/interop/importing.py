"""Hugging Face's folders as runs: config.json, safetensors, vocabulary files. Nothing is run or fetched.

What has no use here but belongs to the model (its configuration, its vocabulary's files, tensors that only training
there would need) is kept in the run's folder `imported`, so that an export gives back what came.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.data.labels import Ends, Labels, Tags
from regard.data.sides import Vocabulary
from regard.decoding.bundle import Bundle, as_bytes, check_tensors, new_model, put_tensors, read_tensors, save_bundle
from regard.decoding.folder import Description, write_durably
from regard.interop.families import family_of
from regard.interop.places import Family, taken
from regard.interop.vocabularies import FILES, read_json, vocabularies

KEPT = "imported"  # the folder of what an export gives back
NEVER = -1e9  # added to what can never be said


def import_folder(folder: Path, run: Path) -> Bundle:
    """A model of Hugging Face's into a new run. Raises ValueError, naming what does not fit."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder; give one with a config.json.")
    if not (folder / "config.json").exists():
        raise ValueError(f"{folder}: it has no config.json; a folder of Hugging Face's has one.")
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise ValueError(f"{run}: it exists; choose another folder with -o.")
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise ValueError(f"{folder / 'config.json'}: expected a JSON object.")
    theirs = weights_in(folder)
    try:
        family = family_of(config, set(theirs))
    except KeyError as error:
        raise ValueError(f"{folder / 'config.json'}: {error.args[0]} is missing.") from None
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    except (TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{folder / 'config.json'}: it cannot be understood ({error}).") from None
    try:
        source, target = vocabularies(folder, config)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder}: its vocabulary cannot be understood ({error}).") from None
    except ValueError as error:
        raise ValueError(str(error) if str(error).startswith(str(folder)) else f"{folder}: {error}") from None
    ours, kept = taken(family, theirs, source, str(folder))
    model_settings = family.model
    says: Vocabulary = _said(family, target)
    if model_settings.step_by_step and any(token in target.missing for token in (1,)):
        # What stands for an unknown word there is nothing; here it must never be said.
        model_settings = model_settings.model_copy(update={"output_bias": True})
        ours["output.bias"] = torch.zeros(len(target))
        ours["output.bias"][target.missing] = NEVER
    description = Description(
        source_language=_language(folder, config, "source"),
        target_language=_language(folder, config, "target"),
        longest=_longest(model_settings),
        whole=bool(family.labels) or not model_settings.step_by_step,
        per_token=0.0 if model_settings.source.kind == "nothing" else 2.0,
        model=model_settings,
    )
    from regard.data.media import medium_of

    side = medium_of(model_settings.source) or source
    with torch.device("meta"):  # before memory is spent: whether the tensors are those of such a model
        check_tensors(new_model(model_settings, side, says), ours, str(folder))
    with torch.random.fork_rng(devices=[]):
        model = new_model(model_settings, side, says)
    put_tensors(model, {name: tensor.float() for name, tensor in ours.items()}, str(folder))
    bundle = Bundle(description, model.eval(), side, says)
    run.mkdir(parents=True, exist_ok=True)
    (run / KEPT).mkdir()
    for name in ("config.json", *FILES):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, run / KEPT / name)
    write_durably(run / KEPT / "rest.safetensors", as_bytes(kept))
    write_durably(run / KEPT / "tensors.json", json.dumps(sorted(theirs)).encode())
    save_bundle(run, bundle)
    return bundle


def weights_in(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, of one safetensors file or of several that an index names."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").exists():
        return read_tensors(folder / "model.safetensors")
    if index.exists():
        content = read_json(index)
        named = content.get("weight_map") if isinstance(content, dict) else None
        if not isinstance(named, dict):
            raise ValueError(f"{index}: it has no weight_map.")
        tensors: dict[str, Tensor] = {}
        for name in sorted({str(each) for each in named.values()}):
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise ValueError(f"{index}: {name!r} is no safetensors file of this folder.")
            tensors |= read_tensors(folder / name)
        return tensors
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
        raise ValueError(
            f"{folder}: the format of its weights can run anything when it is opened; save them as safetensors first, "
            f"with model.save_pretrained(folder) in transformers."
        )
    raise ValueError(f"{folder}: it has no model.safetensors.")


def _said(family: Family, words: Vocabulary) -> Vocabulary:
    """What a model says."""
    if family.model.says == "text":
        return words
    if family.model.says == "span":
        return Ends()
    return Tags(family.labels) if family.model.tags else Labels(family.labels)


def _longest(model: Any) -> int:
    """Tokens that it has places for."""
    parts = [part.most_tokens for part in (model.encoder, model.decoder)]
    return min((most for most in parts if most is not None), default=512)


def _language(folder: Path, config: dict[str, Any], side: str) -> str | None:
    """As Marian's vocabulary or configuration names it: opus-mt-en-de."""
    told = read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    known = told.get(f"{side}_lang") if isinstance(told, dict) else None
    if config["model_type"] == "marian" and isinstance(known, str) and known.isascii() and 2 <= len(known) <= 12:
        return known
    name = str(config.get("_name_or_path") or "")
    parts = name.rpartition("opus-mt-")[2].split("-") if "opus-mt-" in name else []
    return parts[0 if side == "source" else 1] if len(parts) == 2 else None
