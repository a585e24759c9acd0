"""fairseq's Transformers (Ott et al. 2019), in two steps that are kept apart.

`convert` opens a checkpoint, whose format could otherwise run anything, with nothing but tensors, plain values and
argparse's Namespace allowed, and writes a folder of safetensors, dictionaries and settings. Import reads that folder.
"""

import argparse
import base64
import json
import math
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError
from regard.interop.new_run import check_new
from regard.interop.vocabularies import LARGEST
from regard.runs.bundle import as_bytes
from regard.runs.folder import write_durably

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # which every dictionary of fairseq's begins with
BEFORE = 2  # rows of its tables of places that no word has: those up to padding's own
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu-tanh", "gelu_fast": "gelu-tanh", "swish": "silu"}
# What other models have, which is not built from these parts.
ABSENT = (
    *("adaptive_input", "adaptive_softmax_cutoff", "no_cross_attention", "cross_self_attention", "base_layers"),
    *("no_token_positional_embeddings", "scale_resids", "scale_heads", "scale_fc", "scale_attn"),
)
BOTH = ("weight", "bias")
MANY, WIDE, LONG = 1_000, 1 << 16, 1 << 20  # layers, numbers of a vector, entries of a table: no model has more
MODEL_TYPE = "fairseq-transformer"
OLD_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


def convert(checkpoint: Path, dictionaries: Path, folder: Path, *, pieces: tuple[Path, ...] = ()) -> list[str]:
    """A checkpoint, the folder of its two dict.LANGUAGE.txt, and the sentencepiece models that cut its texts (one, or
    one for each side), as a folder that `regard import` reads; the names of its files. Raises RegardError."""
    check_new(folder)
    if len(pieces) > 2:
        raise RegardError("--sentencepiece: give one model for both sides, or two: the source's, then the target's.")
    settings, theirs = _opened(checkpoint)
    languages = tuple(_text(settings, name) for name in ("source_lang", "target_lang"))
    files: dict[str, bytes] = {}
    for side, language in zip(("source", "target"), languages, strict=True):
        path = dictionaries / f"dict.{language}.txt"
        if not path.is_file():
            raise RegardError(
                f"{path}: there is no such file; the folder of the dictionaries has one for each language."
            )
        files[f"{side}.dict.txt"] = path.read_bytes()
    for side, model in zip(("source", "target"), pieces * (2 // len(pieces)) if pieces else (), strict=False):
        if not model.is_file():
            raise RegardError(f"{model}: there is no such file.")
        files[f"{side}.spm"] = model.read_bytes()
    config = _config(settings, languages)
    files["config.json"] = json.dumps(config, indent=2).encode()
    files["model.safetensors"] = as_bytes(_plain(theirs, config))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_durably(folder / name, content)
    return sorted(files)


def _opened(checkpoint: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Settings and tensors of a checkpoint."""
    if not checkpoint.is_file():
        raise RegardError(f"{checkpoint}: there is no such file.")
    try:
        with torch.serialization.safe_globals([argparse.Namespace]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever the format's reader stumbles over
        refused = re.search(r"GLOBAL ([\w.]+)|global[: ]+`?([\w.]+\.[\w.]+)", str(error))
        reason = f"it has a {next(filter(None, refused.groups()))}" if refused else "it is damaged, or no checkpoint"
        raise RegardError(
            f"{checkpoint}: it cannot be opened with its weights and plain values alone ({reason})."
        ) from None
    theirs = content.get("model") if isinstance(content, dict) else None
    if not isinstance(theirs, dict) or not all(isinstance(each, Tensor) for each in theirs.values()):
        raise RegardError(f"{checkpoint}: it is no checkpoint of fairseq's: it has no tensors under the name model.")
    settings: dict[str, Any] = {}
    for part in (content.get("args"), *((content.get("cfg") or {}).get(name) for name in ("task", "model"))):
        settings |= vars(part) if isinstance(part, argparse.Namespace) else dict(part or {})
    if not settings:
        raise RegardError(f"{checkpoint}: it does not say what model it is of.")
    return settings, {str(name): tensor for name, tensor in theirs.items()}


def _text(settings: Mapping[str, Any], name: str) -> str:
    found = settings.get(name)
    if not isinstance(found, str) or not found.replace("_", "").replace("-", "").isalnum():
        raise RegardError(f"the checkpoint does not name its {name}.")
    return found


def _config(settings: Mapping[str, Any], languages: tuple[str, ...]) -> dict[str, Any]:
    """What import needs to know."""
    for name in ABSENT:
        if settings.get(name):
            raise RegardError(f"the checkpoint's {name} = {settings[name]!r} is not possible here.")
    for name in ("decoder_output_dim", "decoder_input_dim"):
        if settings.get(name) not in (None, settings.get("decoder_embed_dim")):
            raise RegardError(f"the checkpoint's {name} = {settings[name]!r} is not possible here.")
    tie = "all" if settings.get("share_all_embeddings") else "none"
    tie = "target" if tie == "none" and settings.get("share_decoder_input_output_embed") else tie
    if settings.get("activation_fn", "relu") not in ACTIVATIONS:
        raise RegardError(f"the checkpoint's activation {settings['activation_fn']!r} is not known.")
    parts = {}
    for part, most in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        try:
            parts[part] = {
                "width": int(settings[f"{part}_embed_dim"]),
                "layers": int(settings[f"{part}_layers"]),
                "heads": int(settings[f"{part}_attention_heads"]),
                "feedforward": int(settings[f"{part}_ffn_embed_dim"]),
                "norm_place": "pre" if settings.get(f"{part}_normalize_before") else "post",
                "positions": int(settings.get(most) or 1024),
                "norm_embedding": bool(settings.get("layernorm_embedding")),
                "scale_embedding": not settings.get("no_scale_embedding"),
                "activation": ACTIVATIONS[settings.get("activation_fn", "relu")],
                "dropout": float(settings.get("dropout", 0.1)),
                "attention_dropout": float(settings.get("attention_dropout", 0.0)),
                "activation_dropout": float(settings.get("activation_dropout", 0.0)),
            }
        except (KeyError, TypeError, ValueError) as error:
            raise RegardError(f"the checkpoint does not say what its {part} is ({error}).") from None
        _check_sizes(part, parts[part])
    return {"model_type": MODEL_TYPE, "source": languages[0], "target": languages[1], "tie": tie, **parts}


def _check_sizes(part: str, settings: Mapping[str, Any]) -> None:
    """Raises RegardError for what no model has."""
    limits = {"width": WIDE, "layers": MANY, "heads": WIDE, "feedforward": LONG, "positions": LONG}
    for name, most in limits.items():
        if not 1 <= settings[name] <= most:
            raise RegardError(
                f"the checkpoint's {part} has {name} {settings[name]:,}; it must lie between 1 and {most:,}."
            )


def _plain(theirs: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors by one set of names, whatever version of fairseq wrote them; places as tables from the first word."""
    found = {
        name: tensor for name, tensor in theirs.items() if name.rpartition(".")[2] not in ("version", "_float_tensor")
    }
    for name in ("encoder", "decoder"):
        part = config[name]
        found.pop(f"{name}.embed_positions.weights", None)
        table = found.pop(f"{name}.embed_positions.weight", None)
        table = sinusoids(part["positions"] + BEFORE, part["width"]) if table is None else table
        found[f"{name}.embed_positions.weight"] = table[BEFORE:].clone()
        for number in range(part["layers"]):
            here = f"{name}.layers.{number}"
            for old, new in enumerate(OLD_NORMS[name]):
                for each in BOTH:
                    if f"{here}.layer_norms.{old}.{each}" in found:
                        found[f"{here}.{new}.{each}"] = found.pop(f"{here}.layer_norms.{old}.{each}")
            for look in ("self_attn", "encoder_attn"):
                for each in BOTH:
                    whole = found.pop(f"{here}.{look}.in_proj_{each}", None)
                    for kind, tensor in zip("qkv", whole.chunk(3) if whole is not None else (), strict=False):
                        found[f"{here}.{look}.{kind}_proj.{each}"] = tensor.clone()
    said = found.pop("decoder.embed_out", None)
    if said is not None:
        found["decoder.output_projection.weight"] = said
    shared = {"all": ("decoder.embed_tokens.weight", "decoder.output_projection.weight"), "none": ()}
    for name in shared.get(config["tie"], ("decoder.output_projection.weight",)):
        first = found["encoder.embed_tokens.weight" if config["tie"] == "all" else "decoder.embed_tokens.weight"]
        if name in found and not torch.equal(found.pop(name), first):
            raise RegardError(f"the checkpoint says that {name} is shared, and it is not.")
    if config["tie"] == "none":
        found["output.bias"] = torch.zeros(len(found["decoder.output_projection.weight"]))
    return {name: tensor.float().contiguous() for name, tensor in found.items()}


def sinusoids(length: int, width: int) -> Tensor:
    """Places as fairseq has them: all sines, then all cosines, of frequencies from 1 to 1/10,000. [length, width]"""
    half = width // 2
    rates = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / max(1, half - 1)))
    angles = torch.arange(length, dtype=torch.float)[:, None] * rates
    table = torch.cat([angles.sin(), angles.cos(), torch.zeros(length, width % 2)], 1)
    table[1] = 0  # padding's
    return table


def vocabulary(folder: Path, side: str) -> ImportedTokenizer:
    """A dictionary, and what cuts texts: sentencepiece, or the blanks of texts that are cut already."""
    path = folder / f"{side}.dict.txt"
    try:
        if path.stat().st_size > LARGEST:
            raise RegardError(f"{path}: it is larger than any such file.")
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RegardError(f"{path}: it cannot be read ({error}).") from None
    own = [line.removesuffix(" #fairseq:overwrite").rpartition(" ")[0] for line in lines if line.strip()]
    pieces = [*SPECIAL, *own]
    model = folder / f"{side}.spm"
    about: dict[str, Any] = {
        "kind": "sentencepiece" if model.is_file() else "words",
        "size": len(pieces),
        "special": [pieces.index(name) for name in ("<pad>", "<unk>", "</s>", "</s>")],
        "mask": None,
        "pieces": pieces,
    }
    if model.is_file():
        about["model"] = base64.b64encode(model.read_bytes()).decode()
    return ImportedTokenizer.from_description(about)
