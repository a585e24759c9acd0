"""Conversion of Transformers to CTranslate2's format, cached in the run's folder.

Each precision has a folder of its own, which CTranslate2 opens. A file in it has the fingerprint of the model that was
converted; the conversion is repeated when that has changed. Nothing here imports PyTorch.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from regard.alignment.shortlist import Shortlist
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.models.settings import ModelSettings, TransformerDecoderSettings, TransformerEncoderSettings
from regard.runs.folder import RunFolder, model_fingerprint, stored_names
from regard.special_tokens import BOS, EOS, PAD, UNK

PRECISIONS = ("float32", "int8")
FINGERPRINT_FILE = "fingerprint"  # in the converted folder: the fingerprint of the model it was converted from
NEVER_PREDICTED = -1e9  # the output bias of tokens that must never be predicted
GATED_ACTIVATIONS = ("swiglu", "geglu")
Arrays = dict[str, NDArray[Any]]
Component = TransformerEncoderSettings | TransformerDecoderSettings


# --- which models can be converted ----------------------------------------------------------------------------------


def not_text_to_text(model: ModelSettings) -> str:
    """Why a model is not an autoregressive one from texts to texts, as a clause; empty if it is one."""
    if not model.source.is_text:
        return f"it reads {model.source.description}, not text"
    if not model.decoder.predicts_tokens:
        return f"it predicts {model.decoder.predicts}"
    if not model.decoder.autoregressive:
        return "it does not predict one token after the other"
    if model.decoder.copies:
        return "it copies tokens from its source"
    if any(getattr(component, "share_layers", False) for component in (model.encoder, model.decoder)):
        return "its layers share their weights"
    return "its sources have segments" if model.source.segments_of_text > 1 else ""


def unsupported_by_ctranslate2(model: ModelSettings) -> str:
    """Why CTranslate2 cannot run this model, as a clause; empty if it can."""
    if reason := not_text_to_text(model):
        return reason
    for name, component in (("encoder", model.encoder), ("decoder", model.decoder)):
        if not isinstance(component, Component):
            return f"the {name} is {component.kind}, not a Transformer"
        if reason := _unsupported_component(name, component):
            return reason
    encoder, decoder = _encoder_and_decoder(model)
    if encoder.width != decoder.width or encoder.norm != decoder.norm:
        return "encoder and decoder differ in width or norm"
    return ""


def _unsupported_component(name: str, component: Component) -> str:
    if component.normalize != "softmax":
        return f"the {name} attends by {component.normalize}, not by softmax"
    if component.window is not None:
        return f"the {name}'s self-attention is restricted to a window"
    if component.position not in ("sinusoidal", "learned", "none"):
        return f"the {name}'s positions are {component.position}"
    if component.norm_embedding:
        return f"the {name} normalizes its embeddings"
    if component.norm_epsilon not in (None, norm_epsilon(component.norm)):
        return f"the {name}'s norms have another epsilon"
    if component.embedding_width != component.width:
        return f"the {name}'s embeddings are not as wide as its layers"
    return ""


def norm_epsilon(norm: str) -> float:
    """The epsilon of a layer norm or an RMS norm, if no other is set."""
    return 1e-5 if norm == "layer" else 1e-6


def _encoder_and_decoder(model: ModelSettings) -> tuple[TransformerEncoderSettings, TransformerDecoderSettings]:
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoderSettings)
    assert isinstance(decoder, TransformerDecoderSettings)
    return encoder, decoder


# --- the converted folder -------------------------------------------------------------------------------------------


def convert_to_ctranslate2(run: RunFolder, precision: str) -> Path:
    """The folder of the converted model: the run's own, or a temporary one where the run is not writable."""
    fingerprint = model_fingerprint(run.folder)
    folder = run.folder / "ctranslate2" / precision
    if _read_fingerprint(folder) == fingerprint:
        return folder
    try:
        folder.parent.mkdir(exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{precision}.", dir=folder.parent))
    except OSError:
        temporary = Path(tempfile.mkdtemp(prefix="regard."))
        _write_converted(run, temporary, precision, fingerprint)
        return temporary
    try:
        _write_converted(run, temporary, precision, fingerprint)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{precision}.", dir=folder.parent))
            os.replace(folder, old)
            shutil.rmtree(old, ignore_errors=True)
        os.replace(temporary, folder)
    except OSError:
        if _read_fingerprint(folder) != fingerprint:  # unless another process has converted the same model meanwhile
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _read_fingerprint(folder: Path) -> str:
    try:
        return (folder / FINGERPRINT_FILE).read_text()
    except OSError:
        return ""


def _write_converted(run: RunFolder, folder: Path, precision: str, fingerprint: str) -> None:
    spec = build_spec(run)
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))
    shortlist = run.shortlist()
    if shortlist is not None:
        (folder / "vmap.txt").write_text(_vocabulary_map(run, shortlist), "utf-8")
    (folder / FINGERPRINT_FILE).write_text(fingerprint)


def _vocabulary_map(run: RunFolder, shortlist: Shortlist) -> str:
    """A shortlist in CTranslate2's format: a source subword, a tab, its candidates; first those of all sources."""
    source = text_tokenizer(run.source_processor).pieces(range(len(text_tokenizer(run.source_processor))))
    target = run.target_vocabulary.pieces(range(len(run.target_vocabulary)))
    lines = ["\t" + " ".join(target[token] for token in shortlist.always.tolist())]
    for name, row in zip(source, shortlist.candidates.tolist(), strict=True):
        lines.append(f"{name}\t{' '.join(target[token] for token in row if token >= 0)}")
    return "\n".join(lines) + "\n"


# --- CTranslate2's specification of a model -------------------------------------------------------------------------


def build_spec(run: RunFolder) -> Any:
    """CTranslate2's TransformerSpec of the model."""
    model = run.description.model
    encoder, decoder = _encoder_and_decoder(model)
    arrays = read_arrays(run.folder / "model.safetensors")
    spec = _empty_spec(encoder, decoder)
    source_table = "encoder.embedding.weight"
    target_table = source_table if model.tie == "all" else "decoder.embedding.weight"
    spec.encoder.embeddings[0].weight = _weight(arrays, source_table)
    spec.decoder.embeddings.weight = _weight(arrays, target_table)
    max_positions = run.description.max_tokens + 1
    _fill_component(spec.encoder, encoder, "encoder", arrays, max_positions)
    _fill_component(spec.decoder, decoder, "decoder", arrays, max_positions)
    spec.decoder.projection.weight = _weight(arrays, target_table if model.tie != "none" else "output.weight")
    bias = np.zeros(len(run.target_vocabulary), np.float32)
    if model.tie == "none" or model.output_bias:
        bias += _weight(arrays, "output.bias")
    bias[[PAD, BOS]] = NEVER_PREDICTED
    spec.decoder.projection.bias = bias
    _fill_vocabularies(spec, run)
    spec.config.layer_norm_epsilon = norm_epsilon(encoder.norm)
    return spec


def _empty_spec(encoder: TransformerEncoderSettings, decoder: TransformerDecoderSettings) -> Any:
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

    def empty(spec: Any, settings: Component) -> Any:
        return spec(
            settings.layers,
            settings.heads,
            pre_norm=settings.norm_first,
            activation=activations[settings.activation],
            ffn_glu=settings.activation in GATED_ACTIVATIONS,
            rms_norm=settings.norm == "rms",
        )

    return TransformerSpec(empty(TransformerEncoderSpec, encoder), empty(TransformerDecoderSpec, decoder))


def _fill_vocabularies(spec: Any, run: RunFolder) -> None:
    source, target = (
        side.pieces(range(len(side))) for side in (text_tokenizer(run.source_processor), run.target_vocabulary)
    )
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    config = spec.config
    config.bos_token, config.eos_token, config.unk_token = (target[token] for token in (BOS, EOS, UNK))
    config.decoder_start_token = target[BOS]
    config.add_source_bos = config.add_source_eos = False


def read_arrays(path: Path) -> Arrays:
    """A model's weights by name. Raises RegardError if the file is damaged or has numbers that are not finite."""
    try:
        with safe_open(path, "numpy") as file:
            arrays: Arrays = {present: file.get_tensor(name) for present, name in stored_names(file).items()}
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


def _fill_component(spec: Any, settings: Component, component: str, arrays: Arrays, max_positions: int) -> None:
    """Positions and layers of the encoder or the decoder."""
    spec.scale_embeddings = settings.scale_embedding
    if settings.position == "learned":
        spec.position_encodings.encodings = _weight(arrays, f"{component}.embedding.position.table.weight")
    elif settings.position == "none":
        spec.position_encodings.encodings = np.zeros((max_positions, settings.width), np.float32)
    else:
        spec.position_encodings.encodings = sinusoids(max_positions, settings.width)
    if settings.norm_first:
        _fill_norm(spec.layer_norm, arrays, f"{component}.norm", settings)
    for number, layer in enumerate(spec.layer):
        _fill_layer(layer, arrays, f"{component}.layers.{number}", settings, cross_attention=component == "decoder")


def _fill_layer(layer: Any, arrays: Arrays, name: str, settings: Component, *, cross_attention: bool) -> None:
    attention = layer.self_attention
    _fill_norm(attention.layer_norm, arrays, f"{name}.self_attention_norm", settings)
    _fill_linear(attention.linear[0], arrays, *(f"{name}.self_attention.{each}" for each in ("query", "key", "value")))
    _fill_linear(attention.linear[1], arrays, f"{name}.self_attention.output")
    if cross_attention:
        _fill_norm(layer.attention.layer_norm, arrays, f"{name}.cross_attention_norm", settings)
        _fill_linear(layer.attention.linear[0], arrays, f"{name}.cross_attention.query")
        _fill_linear(layer.attention.linear[1], arrays, f"{name}.cross_attention.key", f"{name}.cross_attention.value")
        _fill_linear(layer.attention.linear[2], arrays, f"{name}.cross_attention.output")
    _fill_norm(layer.ffn.layer_norm, arrays, f"{name}.feedforward_norm", settings)
    inner = f"{name}.feedforward.inner"
    if settings.activation in GATED_ACTIVATIONS:
        weights, biases = (np.split(_weight(arrays, f"{inner}.{each}"), 2) for each in ("weight", "bias"))
        for half, linear in enumerate((layer.ffn.linear_0, layer.ffn.linear_0_noact)):
            linear.weight, linear.bias = weights[half], biases[half]
    else:
        _fill_linear(layer.ffn.linear_0, arrays, inner)
    _fill_linear(layer.ffn.linear_1, arrays, f"{name}.feedforward.outer")


def _fill_linear(linear: Any, arrays: Arrays, *names: str) -> None:
    linear.weight = np.concatenate([_weight(arrays, f"{name}.weight") for name in names])
    linear.bias = np.concatenate([_weight(arrays, f"{name}.bias") for name in names])


def _fill_norm(norm: Any, arrays: Arrays, name: str, settings: Component) -> None:
    norm.gamma = _weight(arrays, f"{name}.weight")
    if settings.norm == "layer":
        norm.beta = _weight(arrays, f"{name}.bias")


def sinusoids(length: int, width: int) -> NDArray[np.float32]:
    """Sinusoidal positions [length, width], equal to those of attention/positions/sinusoidal.py."""
    angles = np.arange(length)[:, None] * 10000.0 ** -(np.arange(0, width, 2) / width)
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, -1)
    return table[:, :width].astype(np.float32)
