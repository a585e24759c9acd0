"""Import of CTranslate2 folders as runs: model.bin, config.json, vocabularies, and SentencePiece models.

Quantized weights become float32, without recovering the rounding error. The format does not define the tokenizer; the
folder must contain a SentencePiece model.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError
from regard.interop.ctranslate2_file import ModelFile, read_model_file
from regard.interop.imported_run import build_bundle, save_run
from regard.interop.tensor_map import PARAMETERS, ModelMapping, TensorMapping, TokenizerPair, tensor
from regard.interop.tokenizer_import import read_bytes, read_json
from regard.interop.transforms import Identity, JoinRows, Sinusoids, SplitRows, TheirsOnly, VocabularyRows
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.runs.ctranslate2_conversion import norm_epsilon, sinusoids
from regard.special_tokens import BOS, PAD

SIDES = ("encoder", "decoder")
ACTIVATIONS = ("relu", "gelu-tanh", "silu", "gelu")  # by their number
GATED = {"silu": "swiglu", "gelu": "geglu"}
# Settings with one supported value: others are for relative positions, several sources, shared keys and the like.
SUPPORTED = {
    "alibi": 0,
    "multi_query_attention": 0,
    "embeddings_merge": 0,
    "project_in": 0,
    "project_out": 0,
    "parallel_residual": 0,
}
# Settings that are read, or that do not affect the result.
KNOWN = (
    *("alibi_use_positive_positions", "alignment_heads", "alignment_layer", "scale_alibi", "scale_embeddings"),
    *("start_from_zero_embedding", "activation", "num_heads", "pre_norm", "rms_norm"),
)
ZERO_START = "decoder/start_from_zero_embedding"  # the vector before a target's first token is zero
OUTPUT_BIAS = "decoder/projection/bias"


def import_ctranslate2(folder: Path, run: Path) -> Bundle:
    """Import a CTranslate2 translation model into a new run. Raises RegardError for an unsupported one."""
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise RegardError(f"{folder / 'config.json'}: expected a JSON object.")
    path = folder / "model.bin"
    file = read_model_file(path)
    zero_start = bool(file.number(ZERO_START))
    settings = _settings(path, file, config)
    tokenizers = TokenizerPair(
        _load_tokenizer(folder, config, "source", zero_start=False),
        _load_tokenizer(folder, config, "target", zero_start=zero_start),
    )
    mapping = _mapping(file, settings, tokenizers)
    theirs = {name: torch.from_numpy(array.copy()) for name, array in file.arrays.items() if array.ndim}
    if settings.tie == "none" and OUTPUT_BIAS not in theirs:
        theirs[OUTPUT_BIAS] = torch.zeros(tokenizers.target.description["size"])
    bundle, _ = build_bundle(mapping, theirs, tokenizers, str(path))
    _reset_bos(bundle, zero_start=zero_start)
    save_run(run, bundle)
    return bundle


@torch.no_grad()
def _reset_bos(bundle: Bundle, *, zero_start: bool) -> None:
    """Zero the bias of tokens that are never predicted, and the embedding of BOS if the model starts from zero."""
    model = bundle.model
    if model.output.bias is not None:
        model.output.bias[[PAD, BOS]] = 0
    if zero_start:
        model.decoder.embedding.weight[BOS] = 0


# --- settings -------------------------------------------------------------------------------------------------------


def _settings(path: Path, file: ModelFile, config: Mapping[str, Any]) -> ModelSettings:
    """Raises RegardError for an unsupported model."""
    try:
        _check_known(file)
        tie = _tie(file)
        components = {side: _side_settings(file, config, side) for side in SIDES}
        source = {"kind": "text", "bos": bool(config.get("add_source_bos", False))}
        output_bias = OUTPUT_BIAS in file and tie != "none"
        return ModelSettings.parse({"source": source, **components, "tie": tie, "output_bias": output_bias})
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
        raise RegardError(f"{path}: {reason.rstrip('.')}.") from None


def _check_known(file: ModelFile) -> None:
    for name, array in file.arrays.items():
        side, _, setting = name.rpartition("/")
        if not array.ndim and side in SIDES:
            if setting in SUPPORTED and int(array) != SUPPORTED[setting]:
                raise RegardError(f"{name} = {int(array)} is not supported, only {SUPPORTED[setting]}")
            if setting not in SUPPORTED and setting not in KNOWN:
                raise RegardError(f"{name} is not known here")


def _tie(file: ModelFile) -> str:
    """Which of the embeddings and the output layer are one array."""
    source, target, output = _tables(file)
    if target != output:
        return "none"
    return "all" if source == target else "target"


def _tables(file: ModelFile) -> tuple[str, str, str]:
    """The names of the source's and the target's embedding and of the output layer's weight."""
    names = ("encoder/embeddings_0/weight", "decoder/embeddings/weight", "decoder/projection/weight")
    source, target, output = map(file.original, names)
    return source, target, output


def _side_settings(file: ModelFile, config: Mapping[str, Any], side: str) -> dict[str, Any]:
    """The settings of encoder or decoder."""
    layers = _layer_count(file, side)
    heads = file.number(f"{side}/num_heads")
    if not layers or not heads:
        raise RegardError(f"{side}/layer_0 or {side}/num_heads is missing")
    width, feedforward = file.arrays[f"{side}/layer_0/ffn/linear_1/weight"].shape
    norm = "layer" if f"{side}/layer_0/ffn/layer_norm/beta" in file else "rms"
    activation = ACTIVATIONS[file.number(f"{side}/activation")]
    gated = f"{side}/layer_0/ffn/linear_0_noact/weight" in file
    positions = _positions(file, side)
    settings = {
        "kind": "transformer",
        "width": width,
        "layers": layers,
        "heads": heads,
        "feedforward": feedforward,
        "activation": GATED[activation] if gated else activation,
        "norm": norm,
        "norm_first": bool(file.number(f"{side}/pre_norm", 1)),
        "position": "sinusoidal" if _is_sinusoidal(positions) else "learned",
        "scale_embedding": bool(file.number(f"{side}/scale_embeddings", 1)),
    }
    if settings["position"] == "learned":
        settings["max_positions"] = len(positions)
    epsilon = float(config.get("layer_norm_epsilon") or norm_epsilon(norm))
    if epsilon != norm_epsilon(norm):
        settings["norm_epsilon"] = epsilon
    return settings


def _layer_count(file: ModelFile, side: str) -> int:
    layers = 0
    while f"{side}/layer_{layers}/ffn/linear_1/weight" in file:
        layers += 1
    return layers


def _positions(file: ModelFile, side: str) -> Any:
    """The table of positions. [length, width]"""
    name = f"{side}/position_encodings/encodings"
    if file.original(name) not in file:
        raise RegardError(f"{name} is missing")
    return file.arrays[file.original(name)]


def _is_sinusoidal(table: Any) -> bool:
    return bool(np.allclose(table, sinusoids(*table.shape), atol=1e-6))


# --- tensors --------------------------------------------------------------------------------------------------------


def _mapping(file: ModelFile, settings: ModelSettings, tokenizers: TokenizerPair) -> ModelMapping:
    source, target = VocabularyRows(tokenizers.source), VocabularyRows(tokenizers.target)
    source_table, target_table, output_table = _tables(file)
    tensors = [tensor(source_table, "encoder.embedding.weight", source)]
    if settings.tie != "all":
        tensors.append(tensor(target_table, "decoder.embedding.weight", target))
    if settings.tie == "none":
        tensors.append(tensor(output_table, "output.weight", target))
    if settings.output_bias or settings.tie == "none":
        tensors.append(tensor(OUTPUT_BIAS, "output.bias", target))
    components = {"encoder": settings.encoder, "decoder": settings.decoder}
    for side, component in components.items():
        tensors += _side_mapping(file, side, component)
    # Where positions are computed, the table has one more row than a source can have positions: for BOS.
    computed = any(getattr(component, "position", "") == "sinusoidal" for component in components.values())
    max_length = min(len(_positions(file, side)) for side in SIDES) - computed
    return ModelMapping(settings, tensors, max_length=max_length)


def _side_mapping(file: ModelFile, side: str, component: Any) -> list[TensorMapping]:
    table = file.original(f"{side}/position_encodings/encodings")
    if component.position == "learned":
        tensors = [tensor(table, f"{side}.embedding.position.table.weight")]
    else:
        tensors = [TensorMapping((table,), (), TheirsOnly(Sinusoids(*file.arrays[table].shape)))]
    if component.norm_first:
        tensors += _norm(f"{side}/layer_norm", f"{side}.norm", component)
    for number in range(component.layers):
        tensors += _layer_mapping(f"{side}/layer_{number}", f"{side}.layers.{number}", component, side=side)
    return tensors


def _layer_mapping(theirs: str, ours: str, component: Any, *, side: str) -> list[TensorMapping]:
    attention = [f"{ours}.self_attention.{name}" for name in ("query", "key", "value")]
    tensors = [
        *_norm(f"{theirs}/self_attention/layer_norm", f"{ours}.self_attention_norm", component),
        *_linear(f"{theirs}/self_attention/linear_0", *attention),
        *_linear(f"{theirs}/self_attention/linear_1", f"{ours}.self_attention.output"),
    ]
    if side == "decoder":
        tensors += [
            *_norm(f"{theirs}/attention/layer_norm", f"{ours}.cross_attention_norm", component),
            *_linear(f"{theirs}/attention/linear_0", f"{ours}.cross_attention.query"),
            *_linear(f"{theirs}/attention/linear_1", f"{ours}.cross_attention.key", f"{ours}.cross_attention.value"),
            *_linear(f"{theirs}/attention/linear_2", f"{ours}.cross_attention.output"),
        ]
    first = _gated if component.activation in GATED.values() else _linear
    return [
        *tensors,
        *_norm(f"{theirs}/ffn/layer_norm", f"{ours}.feedforward_norm", component),
        *first(f"{theirs}/ffn/linear_0", f"{ours}.feedforward.inner"),
        *_linear(f"{theirs}/ffn/linear_1", f"{ours}.feedforward.outer"),
    ]


def _linear(theirs: str, *ours: str) -> list[TensorMapping]:
    """A linear layer; several of ours are one of theirs."""
    transform = SplitRows(len(ours)) if len(ours) > 1 else Identity()
    return [
        TensorMapping((f"{theirs}/{parameter}",), tuple(f"{name}.{parameter}" for name in ours), transform)
        for parameter in PARAMETERS
    ]


def _gated(theirs: str, ours: str) -> list[TensorMapping]:
    """A gated layer: the activated half and the linear half are two layers in theirs."""
    return [
        TensorMapping(
            (f"{theirs}/{parameter}", f"{theirs}_noact/{parameter}"),
            (f"{ours}.{parameter}",),
            JoinRows(2),
        )
        for parameter in PARAMETERS
    ]


def _norm(theirs: str, ours: str, component: Any) -> list[TensorMapping]:
    weight = tensor(f"{theirs}/gamma", f"{ours}.weight")
    return [weight, tensor(f"{theirs}/beta", f"{ours}.bias")] if component.norm == "layer" else [weight]


# --- tokenizers -----------------------------------------------------------------------------------------------------


def _load_tokenizer(folder: Path, config: Mapping[str, Any], side: str, *, zero_start: bool) -> ImportedTokenizer:
    """A SentencePiece tokenizer with the token ids of the model."""
    pieces = _read_pieces(folder, side)
    entries = {piece: entry for entry, piece in reversed(list(enumerate(pieces)))}  # of several the first
    names = {
        "unk_token": config.get("unk_token") or "<unk>",
        "eos_token": config.get("eos_token") or "</s>",
        "bos_token": config.get("decoder_start_token") or config.get("bos_token") or "<s>",
    }
    if side == "source" and config.get("add_source_bos"):
        names["bos_token"] = config.get("bos_token") or "<s>"
    special = {name: entries.get(str(piece)) for name, piece in names.items()}
    for name in ("unk_token", "eos_token"):
        if special[name] is None:
            raise RegardError(f"{folder}: its {side} vocabulary has no {names[name]!r}, the {name} of config.json.")
    if special["bos_token"] is None and side == "target" and not zero_start:
        raise RegardError(f"{folder}: its target vocabulary has no {names['bos_token']!r}, with which a text begins.")
    pad = next((entries[piece] for piece in ("<pad>", "<blank>") if piece in entries), None)
    bos = None if zero_start else special["bos_token"]
    description = {
        "kind": "sentencepiece",
        "size": len(pieces),
        "special": [pad, special["unk_token"], bos, special["eos_token"]],
        "mask": None,
        "model": base64.b64encode(_read_sentencepiece(folder, side)).decode(),
        "pieces": pieces,
    }
    return ImportedTokenizer.from_description(description)


def _read_pieces(folder: Path, side: str) -> list[str]:
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        if (folder / f"{name}.json").exists():
            pieces = read_json(folder / f"{name}.json")
            if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
                raise RegardError(f"{folder / f'{name}.json'}: expected a list of texts.")
            return pieces
        if (folder / f"{name}.txt").exists():
            return (folder / f"{name}.txt").read_text("utf-8").removesuffix("\n").split("\n")
    raise RegardError(f"{folder}: it has no vocabulary: neither {side}_vocabulary.json nor shared_vocabulary.json.")


def _read_sentencepiece(folder: Path, side: str) -> bytes:
    """The sentencepiece model of a side."""
    either = ("sentencepiece.model", "sentencepiece.bpe.model", "spm.model", "spiece.model")
    for name in (f"{side}.spm", f"{side}.model", *either):
        if (folder / name).is_file():
            return read_bytes(folder / name)
    raise RegardError(
        f"{folder}: it has no tokenizer; put the model's sentencepiece files into it, as "
        f"{side}.spm, or one for both as sentencepiece.model."
    )
