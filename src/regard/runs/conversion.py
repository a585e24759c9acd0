"""Transformers in CTranslate2's format, converted once and kept in the run's folder.

float32 and int8 weights lie side by side, each a folder that CTranslate2 opens. A stamp says which weights they were
converted from; they are converted again when those have changed. Nothing here imports PyTorch.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from regard.alignment.shortlist import Shortlist
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.models.settings import ModelSettings, TransformerDecoder, TransformerEncoder
from regard.runs.folder import Opened, stamp_of
from regard.special_tokens import BEGIN, END, PAD, UNKNOWN

PRECISIONS = ("float32", "int8")
STAMP = "made_from"  # the file with the stamp of the weights
NEVER_PREDICTED = -1e9  # the bias of tokens that are never predicted
GATED = ("swiglu", "geglu")
Arrays = dict[str, NDArray[Any]]
Part = TransformerEncoder | TransformerDecoder


# --- which models can be converted ----------------------------------------------------------------------------------


def not_text_to_text(model: ModelSettings) -> str:
    """Why a model is not one that reads a text and predicts another token by token, as a clause; empty if it is."""
    if not model.source.is_text:
        return f"it reads {model.source.description}, not text"
    if not model.decoder.predicts_tokens:
        return f"it predicts {model.decoder.predicts}"
    if not model.decoder.autoregressive:
        return "it does not predict one token after the other"
    if model.decoder.copies:
        return "it copies tokens from its source"
    if any(getattr(part, "share_layers", False) for part in (model.encoder, model.decoder)):
        return "its layers share their weights"
    return "its sources have segments" if model.source.segments_of_text > 1 else ""


def unsupported_by_ctranslate2(model: ModelSettings) -> str:
    """Why CTranslate2 cannot run this model, as a clause; empty if it can."""
    if reason := not_text_to_text(model):
        return reason
    for name, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        if not isinstance(part, Part):
            return f"the {name} is {part.kind}, not a Transformer"
        if reason := _unsupported_part(name, part):
            return reason
    encoder, decoder = _parts(model)
    if encoder.width != decoder.width or encoder.norm != decoder.norm:
        return "encoder and decoder differ in width or norm"
    return ""


def _unsupported_part(name: str, part: Part) -> str:
    if part.normalize != "softmax":
        return f"the {name} attends by {part.normalize}, not by softmax"
    if part.window is not None:
        return f"the {name}'s self-attention is restricted to a window"
    if part.position not in ("sinusoidal", "learned", "none"):
        return f"the {name}'s positions are {part.position}"
    if part.norm_embedding:
        return f"the {name} normalizes its embeddings"
    if part.norm_epsilon not in (None, norm_epsilon(part.norm)):
        return f"the {name}'s norms have another epsilon"
    if part.embedding_width != part.width:
        return f"the {name}'s embeddings are not as wide as its layers"
    return ""


def norm_epsilon(norm: str) -> float:
    """The epsilon of a layer norm or an RMS norm, if no other is set."""
    return 1e-5 if norm == "layer" else 1e-6


def _parts(model: ModelSettings) -> tuple[TransformerEncoder, TransformerDecoder]:
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    return encoder, decoder


# --- the converted folder -------------------------------------------------------------------------------------------


def convert_to_ctranslate2(opened: Opened, precision: str) -> Path:
    """The folder of the converted model: the run's own, or a temporary one where the run is not writable."""
    stamp = stamp_of(opened.folder)
    folder = opened.folder / "ctranslate2" / precision
    if _stamp_in(folder) == stamp:
        return folder
    try:
        folder.parent.mkdir(exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{precision}.", dir=folder.parent))
    except OSError:
        temporary = Path(tempfile.mkdtemp(prefix="regard."))
        _write(opened, temporary, precision, stamp)
        return temporary
    try:
        _write(opened, temporary, precision, stamp)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{precision}.", dir=folder.parent))
            os.replace(folder, old)
            shutil.rmtree(old, ignore_errors=True)
        os.replace(temporary, folder)
    except OSError:
        if _stamp_in(folder) != stamp:  # unless another process has just converted the same weights
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _stamp_in(folder: Path) -> str:
    try:
        return (folder / STAMP).read_text()
    except OSError:
        return ""


def _write(opened: Opened, folder: Path, precision: str, stamp: str) -> None:
    spec = build_spec(opened)
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))
    shortlist = opened.shortlist()
    if shortlist is not None:
        (folder / "vmap.txt").write_text(_vocabulary_map(opened, shortlist), "utf-8")
    (folder / STAMP).write_text(stamp)


def _vocabulary_map(opened: Opened, shortlist: Shortlist) -> str:
    """A shortlist as CTranslate2 reads it: a source subword, a tab, its candidates; first the candidates of all."""
    source = in_text(opened.source_side).pieces(range(len(in_text(opened.source_side))))
    target = opened.target_side.pieces(range(len(opened.target_side)))
    lines = ["\t" + " ".join(target[token] for token in shortlist.always.tolist())]
    for name, row in zip(source, shortlist.candidates.tolist(), strict=True):
        lines.append(f"{name}\t{' '.join(target[token] for token in row if token >= 0)}")
    return "\n".join(lines) + "\n"


# --- CTranslate2's specification of a model -------------------------------------------------------------------------


def build_spec(opened: Opened) -> Any:
    """The model as a TransformerSpec."""
    model = opened.description.model
    encoder, decoder = _parts(model)
    arrays = read_arrays(opened.folder / "model.safetensors")
    spec = _empty_spec(encoder, decoder)
    source_table = "encoder.embedding.weight"
    target_table = source_table if model.tie == "all" else "decoder.embedding.weight"
    spec.encoder.embeddings[0].weight = _weight(arrays, source_table)
    spec.decoder.embeddings.weight = _weight(arrays, target_table)
    max_positions = opened.description.longest + 1
    _fill_side(spec.encoder, encoder, "encoder", arrays, max_positions)
    _fill_side(spec.decoder, decoder, "decoder", arrays, max_positions)
    spec.decoder.projection.weight = _weight(arrays, target_table if model.tie != "none" else "output.weight")
    bias = np.zeros(len(opened.target_side), np.float32)
    if model.tie == "none" or model.output_bias:
        bias += _weight(arrays, "output.bias")
    bias[[PAD, BEGIN]] = NEVER_PREDICTED
    spec.decoder.projection.bias = bias
    _fill_vocabularies(spec, opened)
    spec.config.layer_norm_epsilon = norm_epsilon(encoder.norm)
    return spec


def _empty_spec(encoder: TransformerEncoder, decoder: TransformerDecoder) -> Any:
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec

    activations = {
        "relu": Activation.RELU,
        "gelu": Activation.GELU,
        "gelu-tanh": Activation.GELUTanh,
        "silu": Activation.SWISH,
        "swiglu": Activation.SWISH,
        "geglu": Activation.GELU,
    }

    def side(kind: Any, settings: Part) -> Any:
        return kind(
            settings.layers,
            settings.heads,
            pre_norm=settings.norm_first,
            activation=activations[settings.activation],
            ffn_glu=settings.activation in GATED,
            rms_norm=settings.norm == "rms",
        )

    return TransformerSpec(side(TransformerEncoderSpec, encoder), side(TransformerDecoderSpec, decoder))


def _fill_vocabularies(spec: Any, opened: Opened) -> None:
    source, target = (side.pieces(range(len(side))) for side in (in_text(opened.source_side), opened.target_side))
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    config = spec.config
    config.bos_token, config.eos_token, config.unk_token = (target[token] for token in (BEGIN, END, UNKNOWN))
    config.decoder_start_token = target[BEGIN]
    config.add_source_bos = config.add_source_eos = False


def read_arrays(path: Path) -> Arrays:
    """A model's weights, by name. Raises RegardError if they are damaged."""
    try:
        arrays: Arrays = load_file(path)
    except (OSError, SafetensorError) as error:
        raise RegardError(f"{path}: it is damaged and cannot be read ({error}).") from None
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise RegardError(f"{path}: {name} has numbers that are not finite; train the model or copy it again.")
    return arrays


def _weight(arrays: Arrays, name: str) -> NDArray[np.float32]:
    if name not in arrays:
        raise RegardError(f"model.safetensors: tensor {name} is missing.")
    return np.ascontiguousarray(arrays[name], np.float32)


def _fill_side(spec: Any, settings: Part, side: str, arrays: Arrays, max_positions: int) -> None:
    """Positions and layers of encoder or decoder."""
    spec.scale_embeddings = settings.scale_embedding
    if settings.position == "learned":
        spec.position_encodings.encodings = _weight(arrays, f"{side}.embedding.place.table.weight")
    elif settings.position == "none":
        spec.position_encodings.encodings = np.zeros((max_positions, settings.width), np.float32)
    else:
        spec.position_encodings.encodings = sinusoids(max_positions, settings.width)
    if settings.norm_first:
        _fill_norm(spec.layer_norm, arrays, f"{side}.norm", settings)
    for number, layer in enumerate(spec.layer):
        _fill_layer(layer, arrays, f"{side}.layers.{number}", settings, cross_attention=side == "decoder")


def _fill_layer(layer: Any, arrays: Arrays, name: str, settings: Part, *, cross_attention: bool) -> None:
    attention = layer.self_attention
    _fill_norm(attention.layer_norm, arrays, f"{name}.itself_norm", settings)
    _fill_linear(attention.linear[0], arrays, *(f"{name}.itself.{each}" for each in ("query", "key", "value")))
    _fill_linear(attention.linear[1], arrays, f"{name}.itself.output")
    if cross_attention:
        _fill_norm(layer.attention.layer_norm, arrays, f"{name}.memory_norm", settings)
        _fill_linear(layer.attention.linear[0], arrays, f"{name}.memory.query")
        _fill_linear(layer.attention.linear[1], arrays, f"{name}.memory.key", f"{name}.memory.value")
        _fill_linear(layer.attention.linear[2], arrays, f"{name}.memory.output")
    _fill_norm(layer.ffn.layer_norm, arrays, f"{name}.feedforward_norm", settings)
    inner = f"{name}.feedforward.inner"
    if settings.activation in GATED:
        weights, biases = (np.split(_weight(arrays, f"{inner}.{each}"), 2) for each in ("weight", "bias"))
        for half, into in enumerate((layer.ffn.linear_0, layer.ffn.linear_0_noact)):
            into.weight, into.bias = weights[half], biases[half]
    else:
        _fill_linear(layer.ffn.linear_0, arrays, inner)
    _fill_linear(layer.ffn.linear_1, arrays, f"{name}.feedforward.outer")


def _fill_linear(into: Any, arrays: Arrays, *names: str) -> None:
    into.weight = np.concatenate([_weight(arrays, f"{name}.weight") for name in names])
    into.bias = np.concatenate([_weight(arrays, f"{name}.bias") for name in names])


def _fill_norm(into: Any, arrays: Arrays, name: str, settings: Part) -> None:
    into.gamma = _weight(arrays, f"{name}.weight")
    if settings.norm == "layer":
        into.beta = _weight(arrays, f"{name}.bias")


def sinusoids(length: int, width: int) -> NDArray[np.float32]:
    """Sinusoidal positions, as attention/positions/sinusoidal.py has them. [length, width]"""
    angles = np.arange(length)[:, None] * 10000.0 ** -(np.arange(0, width, 2) / width)
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, -1)
    return table[:, :width].astype(np.float32)
