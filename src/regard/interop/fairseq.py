"""Conversion of fairseq's Transformers (Ott et al. 2019, arXiv:1904.01038) to a folder that can be imported.

Opening a checkpoint can execute code. So this is a separate step: only tensors, plain values and argparse's
Namespace are allowed, and the result is a folder of safetensors, dictionaries and settings.
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
from regard.interop.family import MAX_LAYERS, MAX_ROWS, MAX_WIDTH
from regard.interop.imported_run import check_is_new
from regard.interop.tensor_map import PARAMETERS
from regard.interop.tokenizer_import import read_bytes
from regard.runs.bundle import serialize_tensors
from regard.runs.folder import write_durably

MODEL_TYPE = "fairseq-transformer"  # in the config.json of a converted checkpoint
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")  # with which every dictionary of fairseq's begins
FIRST_POSITION = 2  # the row of a text's first token among the position embeddings; those before are for padding
DEFAULT_POSITIONS = 1024
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu-tanh", "gelu_fast": "gelu-tanh", "swish": "silu"}
UNSUPPORTED = (  # settings of unsupported variants
    *("adaptive_input", "adaptive_softmax_cutoff", "no_cross_attention", "cross_self_attention", "base_layers"),
    *("no_token_positional_embeddings", "scale_resids", "scale_heads", "scale_fc", "scale_attn"),
)
NORM_NAMES = {  # in the order of their numbers in older versions
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


def convert_checkpoint(
    checkpoint: Path, dictionaries: Path, folder: Path, *, sentencepiece: tuple[Path, ...] = ()
) -> list[str]:
    """Convert a checkpoint into a folder that `regard import` reads; returns the names of its files.

    dictionaries: the folder of its two dict.LANGUAGE.txt. sentencepiece: the models that tokenize its texts, one, or
    one for each side. Raises RegardError.
    """
    check_is_new(folder)
    if len(sentencepiece) > 2:
        raise RegardError("--sentencepiece: give one model for both, or two: the source's, then the target's.")
    settings, theirs = _read_checkpoint(checkpoint)
    languages = tuple(_language(settings, name) for name in ("source_lang", "target_lang"))
    files: dict[str, bytes] = {}
    for side, language in zip(("source", "target"), languages, strict=True):
        path = dictionaries / f"dict.{language}.txt"
        if not path.is_file():
            raise RegardError(
                f"{path}: there is no such file; the folder of the dictionaries has one for each language."
            )
        files[f"{side}.dict.txt"] = path.read_bytes()
    models = sentencepiece * (2 // len(sentencepiece)) if sentencepiece else ()
    for side, path in zip(("source", "target"), models, strict=False):
        if not path.is_file():
            raise RegardError(f"{path}: there is no such file.")
        files[f"{side}.spm"] = path.read_bytes()
    config = _configuration(settings, languages)
    files["config.json"] = json.dumps(config, indent=2).encode()
    files["model.safetensors"] = serialize_tensors(_normalize_tensors(theirs, config))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_durably(folder / name, content)
    return sorted(files)


def _read_checkpoint(checkpoint: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Settings and tensors of a checkpoint."""
    if not checkpoint.is_file():
        raise RegardError(f"{checkpoint}: there is no such file.")
    try:
        with torch.serialization.safe_globals([argparse.Namespace]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever the format's reader raises
        refused = re.search(r"GLOBAL ([\w.]+)|global[: ]+`?([\w.]+\.[\w.]+)", str(error))
        reason = f"it has a {next(filter(None, refused.groups()))}" if refused else "it is damaged, or no checkpoint"
        raise RegardError(
            f"{checkpoint}: it cannot be opened with its weights and plain values alone ({reason})."
        ) from None
    theirs = content.get("model") if isinstance(content, dict) else None
    if not isinstance(theirs, dict) or not all(isinstance(each, Tensor) for each in theirs.values()):
        raise RegardError(f"{checkpoint}: it is no checkpoint of fairseq's: it has no tensors under the name model.")
    settings: dict[str, Any] = {}
    for section in (content.get("args"), *((content.get("cfg") or {}).get(name) for name in ("task", "model"))):
        settings |= vars(section) if isinstance(section, argparse.Namespace) else dict(section or {})
    if not settings:
        raise RegardError(f"{checkpoint}: it has no settings of its model.")
    return settings, {str(name): tensor for name, tensor in theirs.items()}


def _language(settings: Mapping[str, Any], name: str) -> str:
    language = settings.get(name)
    if not isinstance(language, str) or not language.replace("_", "").replace("-", "").isalnum():
        raise RegardError(f"the checkpoint does not name its {name}.")
    return language


# --- settings -------------------------------------------------------------------------------------------------------


def _configuration(settings: Mapping[str, Any], languages: tuple[str, ...]) -> dict[str, Any]:
    """The config.json of the converted folder. Raises RegardError for an unsupported model."""
    for name in UNSUPPORTED:
        if settings.get(name):
            raise RegardError(f"the checkpoint's {name} = {settings[name]!r} is not supported.")
    for name in ("decoder_output_dim", "decoder_input_dim"):
        if settings.get(name) not in (None, settings.get("decoder_embed_dim")):
            raise RegardError(f"the checkpoint's {name} = {settings[name]!r} is not supported.")
    if settings.get("activation_fn", "relu") not in ACTIVATIONS:
        raise RegardError(f"the checkpoint's activation {settings['activation_fn']!r} is not known.")
    if settings.get("share_all_embeddings"):
        tie = "all"
    else:
        tie = "target" if settings.get("share_decoder_input_output_embed") else "none"
    return {
        "model_type": MODEL_TYPE,
        "source": languages[0],
        "target": languages[1],
        "tie": tie,
        "encoder": _side_settings(settings, "encoder", "max_source_positions"),
        "decoder": _side_settings(settings, "decoder", "max_target_positions"),
    }


def _side_settings(settings: Mapping[str, Any], side: str, positions: str) -> dict[str, Any]:
    """The settings of the encoder or the decoder, by regard's names."""
    try:
        found = {
            "width": int(settings[f"{side}_embed_dim"]),
            "layers": int(settings[f"{side}_layers"]),
            "heads": int(settings[f"{side}_attention_heads"]),
            "feedforward": int(settings[f"{side}_ffn_embed_dim"]),
            "norm_first": bool(settings.get(f"{side}_normalize_before")),
            "max_positions": int(settings.get(positions) or DEFAULT_POSITIONS),
            "norm_embedding": bool(settings.get("layernorm_embedding")),
            "scale_embedding": not settings.get("no_scale_embedding"),
            "activation": ACTIVATIONS[settings.get("activation_fn", "relu")],
            "dropout": float(settings.get("dropout", 0.1)),
            "attention_dropout": float(settings.get("attention_dropout", 0.0)),
            "activation_dropout": float(settings.get("activation_dropout", 0.0)),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise RegardError(f"the checkpoint has no valid settings of its {side} ({error}).") from None
    check_sizes(side, found)
    return found


def check_sizes(side: str, settings: Mapping[str, Any]) -> None:
    """Raises RegardError for sizes above those of any real model."""
    limits = {
        "width": MAX_WIDTH,
        "layers": MAX_LAYERS,
        "heads": MAX_WIDTH,
        "feedforward": MAX_ROWS,
        "max_positions": MAX_ROWS,
    }
    for name, limit in limits.items():
        if not 1 <= settings[name] <= limit:
            raise RegardError(
                f"the checkpoint's {side} has {name} {settings[name]:,}; it must lie between 1 and {limit:,}."
            )


# --- tensors --------------------------------------------------------------------------------------------------------


def _normalize_tensors(theirs: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors under one set of names, whatever version of fairseq wrote them."""
    ignored = ("version", "_float_tensor")
    tensors = {name: tensor for name, tensor in theirs.items() if name.rpartition(".")[2] not in ignored}
    for side in ("encoder", "decoder"):
        _write_positions(tensors, side, config[side])
        for number in range(config[side]["layers"]):
            _rename_norms(tensors, f"{side}.layers.{number}", NORM_NAMES[side])
            _split_projections(tensors, f"{side}.layers.{number}")
    if "decoder.embed_out" in tensors:
        tensors["decoder.output_projection.weight"] = tensors.pop("decoder.embed_out")
    _drop_shared(tensors, config["tie"])
    if config["tie"] == "none":
        tensors["output.bias"] = torch.zeros(len(tensors["decoder.output_projection.weight"]))
    return {name: tensor.float().contiguous() for name, tensor in tensors.items()}


def _write_positions(tensors: dict[str, Tensor], side: str, settings: Mapping[str, Any]) -> None:
    """The position embeddings from a text's first token on, computed where the checkpoint has none."""
    tensors.pop(f"{side}.embed_positions.weights", None)
    table = tensors.pop(f"{side}.embed_positions.weight", None)
    if table is None:
        table = fairseq_sinusoids(settings["max_positions"] + FIRST_POSITION, settings["width"])
    tensors[f"{side}.embed_positions.weight"] = table[FIRST_POSITION:].clone()


def _rename_norms(tensors: dict[str, Tensor], layer: str, names: tuple[str, ...]) -> None:
    """Older versions numbered the norms."""
    for number, name in enumerate(names):
        for parameter in PARAMETERS:
            old = f"{layer}.layer_norms.{number}.{parameter}"
            if old in tensors:
                tensors[f"{layer}.{name}.{parameter}"] = tensors.pop(old)


def _split_projections(tensors: dict[str, Tensor], layer: str) -> None:
    """Older versions had one projection for queries, keys and values."""
    for attention in ("self_attn", "encoder_attn"):
        for parameter in PARAMETERS:
            joint = tensors.pop(f"{layer}.{attention}.in_proj_{parameter}", None)
            if joint is not None:
                for name, tensor in zip("qkv", joint.chunk(3), strict=False):
                    tensors[f"{layer}.{attention}.{name}_proj.{parameter}"] = tensor.clone()


def _drop_shared(tensors: dict[str, Tensor], tie: str) -> None:
    """Remove tensors that are shared with another one. Raises RegardError if they differ."""
    output = "decoder.output_projection.weight"
    shared = {"all": ("decoder.embed_tokens.weight", output), "target": (output,), "none": ()}[tie]
    original = f"{'encoder' if tie == 'all' else 'decoder'}.embed_tokens.weight"
    for name in shared:
        if name in tensors and not torch.equal(tensors.pop(name), tensors[original]):
            raise RegardError(f"the checkpoint declares that {name} is shared, and it is not.")


def fairseq_sinusoids(length: int, width: int) -> Tensor:
    """Sinusoidal positions as in fairseq: all sines, then all cosines, of frequencies from 1 to 1/10,000; zero for
    padding. [length, width]"""
    half = width // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / max(1, half - 1)))
    angles = torch.arange(length, dtype=torch.float)[:, None] * frequencies
    table = torch.cat([angles.sin(), angles.cos(), torch.zeros(length, width % 2)], 1)
    table[1] = 0
    return table


# --- tokenizers -----------------------------------------------------------------------------------------------------


def load_dictionary(folder: Path, side: str) -> ImportedTokenizer:
    """A dictionary of a converted checkpoint, with its sentencepiece model; without one, texts must
    already be tokenized into pieces separated by blanks."""
    path, model = folder / f"{side}.dict.txt", folder / f"{side}.spm"
    try:
        lines = read_bytes(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RegardError(f"{path}: it cannot be read ({error}).") from None
    own = [line.removesuffix(" #fairseq:overwrite").rpartition(" ")[0] for line in lines if line.strip()]
    pieces = [*SPECIAL_TOKENS, *own]
    description: dict[str, Any] = {
        "kind": "sentencepiece" if model.is_file() else "words",
        "size": len(pieces),
        "special": [SPECIAL_TOKENS.index(name) for name in ("<pad>", "<unk>", "</s>", "</s>")],
        "mask": None,
        "pieces": pieces,
    }
    if model.is_file():
        description["model"] = base64.b64encode(read_bytes(model)).decode()
    return ImportedTokenizer.from_description(description)
