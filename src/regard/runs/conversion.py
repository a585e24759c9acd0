"""Transformers in CTranslate2's format, made once and kept in the run's folder.

float32 and int8 weights lie side by side, each a folder that CTranslate2 opens. A stamp says which weights they were
made from; they are made again when those have changed. Nothing here imports PyTorch.
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

KINDS = ("float32", "int8")
NEVER = -1e9  # added to the logits of what is never said
Arrays = dict[str, NDArray[Any]]
Part = TransformerEncoder | TransformerDecoder


def reads_or_says_more(model: ModelSettings) -> str:
    """What it reads or says that is not text word by word, in words; empty if nothing."""
    if model.source.kind != "text":
        return f"it reads {model.source.kind}, not text"
    if model.labels:
        return "it tells classes apart"
    if not model.step_by_step:
        return "it says nothing word by word"
    if model.copies:
        return "it copies words of its source"
    if any(getattr(part, "shared", False) for part in (model.encoder, model.decoder)):
        return "its layers are one and the same"
    return "its sources have parts" if model.source.segments > 1 else ""


def refuses(model: ModelSettings) -> str:
    """Why CTranslate2 cannot run this model, in words; empty if it can."""
    if beyond := reads_or_says_more(model):
        return beyond
    for name, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        if not isinstance(part, TransformerEncoder | TransformerDecoder):
            return f"the {name} is {part.kind}, not a Transformer"
        if part.normalize != "softmax":
            return f"the {name} attends by {part.normalize}, not by softmax"
        if part.window is not None:
            return f"the {name}'s self-attention is restricted to a window"
        if part.position not in ("sinusoidal", "learned", "none"):
            return f"the {name}'s positions are {part.position}"
        if part.norm_embedding:
            return f"the {name} normalises its embeddings"
        if part.norm_epsilon not in (None, 1e-5 if part.norm == "layer" else 1e-6):
            return f"the {name}'s norms have an epsilon of their own"
        if part.embedding_width != part.width:
            return f"the {name}'s embeddings are not as wide as its layers"
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    if encoder.width != decoder.width or encoder.norm != decoder.norm:
        return "encoder and decoder are of different kinds"
    return ""


def converted(opened: Opened, kind: str) -> Path:
    """The folder of the converted model: the run's own, or a temporary one where the run may not be written to."""
    stamp = stamp_of(opened.folder)
    kept = opened.folder / "ctranslate2" / kind
    if _stamp_in(kept) == stamp:
        return kept
    try:
        kept.parent.mkdir(exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{kind}.", dir=kept.parent))
    except OSError:
        beside = Path(tempfile.mkdtemp(prefix="regard."))
        _write(opened, beside, kind, stamp)
        return beside
    try:
        _write(opened, beside, kind, stamp)
        if kept.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{kind}.", dir=kept.parent))
            os.replace(kept, old)
            shutil.rmtree(old, ignore_errors=True)
        os.replace(beside, kept)
    except OSError:
        if _stamp_in(kept) != stamp:  # another process was not faster, either
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return kept


def _stamp_in(folder: Path) -> str:
    try:
        return (folder / "made_from").read_text()
    except OSError:
        return ""


def _write(opened: Opened, folder: Path, kind: str, stamp: str) -> None:
    spec = specification(opened)
    spec.validate()
    spec.optimize(quantization=None if kind == "float32" else kind)
    spec.save(str(folder))
    shortlist = opened.shortlist()
    if shortlist is not None:
        (folder / "vmap.txt").write_text(_vocabulary_map(opened, shortlist), "utf-8")
    (folder / "made_from").write_text(stamp)


def _vocabulary_map(opened: Opened, shortlist: Shortlist) -> str:
    """A shortlist as CTranslate2 reads it: a source subword, a tab, its candidates; before all, what is always one."""
    source = in_text(opened.source_side).pieces(range(len(in_text(opened.source_side))))
    target = opened.target_side.pieces(range(len(opened.target_side)))
    lines = ["\t" + " ".join(target[token] for token in shortlist.always.tolist())]
    for name, row in zip(source, shortlist.candidates.tolist(), strict=True):
        lines.append(f"{name}\t{' '.join(target[token] for token in row if token >= 0)}")
    return "\n".join(lines) + "\n"


def specification(opened: Opened) -> Any:
    """The model as CTranslate2 describes one."""
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    model = opened.description.model
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    arrays = read_arrays(opened.folder / "model.safetensors")
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec

    activations = {
        "relu": Activation.RELU,
        "gelu": Activation.GELU,
        "gelu-tanh": Activation.GELUTanh,
        "silu": Activation.SWISH,
        "swiglu": Activation.SWISH,
        "geglu": Activation.GELU,
    }

    def part(kind: Any, settings: Part) -> Any:
        return kind(
            settings.layers,
            settings.heads,
            pre_norm=settings.norm_place == "pre",
            activation=activations[settings.activation],
            ffn_glu=settings.activation in ("swiglu", "geglu"),
            rms_norm=settings.norm == "rms",
        )

    spec = TransformerSpec(part(TransformerEncoderSpec, encoder), part(TransformerDecoderSpec, decoder))
    source_table = "encoder.embedding.weight"
    target_table = source_table if model.tie == "all" else "decoder.embedding.weight"
    spec.encoder.embeddings[0].weight = _of(arrays, source_table)
    spec.decoder.embeddings.weight = _of(arrays, target_table)
    longest = opened.description.longest + 1
    _fill(spec.encoder, encoder, "encoder", arrays, longest)
    _fill(spec.decoder, decoder, "decoder", arrays, longest)
    spec.decoder.projection.weight = _of(arrays, target_table if model.tie != "none" else "output.weight")
    bias = np.zeros(len(opened.target_side), np.float32)
    if model.tie == "none" or model.output_bias:
        bias += _of(arrays, "output.bias")
    bias[[PAD, BEGIN]] = NEVER
    spec.decoder.projection.bias = bias
    names = [subwords.pieces(range(len(subwords))) for subwords in (in_text(opened.source_side), opened.target_side)]
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    config = spec.config
    config.bos_token, config.eos_token, config.unk_token = (names[1][token] for token in (BEGIN, END, UNKNOWN))
    config.decoder_start_token = names[1][BEGIN]
    config.add_source_bos = config.add_source_eos = False
    config.layer_norm_epsilon = 1e-5 if encoder.norm == "layer" else 1e-6
    return spec


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


def _of(arrays: Arrays, name: str) -> NDArray[np.float32]:
    if name not in arrays:
        raise RegardError(f"model.safetensors: tensor {name} is missing.")
    return np.ascontiguousarray(arrays[name], np.float32)


def _fill(spec: Any, settings: Part, name: str, arrays: Arrays, longest: int) -> None:
    """One side's layers."""

    def linear(into: Any, *names: str) -> None:
        into.weight = np.concatenate([_of(arrays, f"{each}.weight") for each in names])
        into.bias = np.concatenate([_of(arrays, f"{each}.bias") for each in names])

    def norm(into: Any, where: str) -> None:
        into.gamma = _of(arrays, f"{where}.weight")
        if settings.norm == "layer":
            into.beta = _of(arrays, f"{where}.bias")

    spec.scale_embeddings = settings.scale_embedding
    if settings.position == "learned":
        spec.position_encodings.encodings = _of(arrays, f"{name}.embedding.place.table.weight")
    elif settings.position == "none":
        spec.position_encodings.encodings = np.zeros((longest, settings.width), np.float32)
    else:
        spec.position_encodings.encodings = waves(longest, settings.width)
    if settings.norm_place == "pre":
        norm(spec.layer_norm, f"{name}.norm")
    for number, layer in enumerate(spec.layer):
        here = f"{name}.layers.{number}"
        norm(layer.self_attention.layer_norm, f"{here}.itself_norm")
        linear(layer.self_attention.linear[0], *(f"{here}.itself.{each}" for each in ("query", "key", "value")))
        linear(layer.self_attention.linear[1], f"{here}.itself.output")
        if name == "decoder":
            norm(layer.attention.layer_norm, f"{here}.memory_norm")
            linear(layer.attention.linear[0], f"{here}.memory.query")
            linear(layer.attention.linear[1], f"{here}.memory.key", f"{here}.memory.value")
            linear(layer.attention.linear[2], f"{here}.memory.output")
        norm(layer.ffn.layer_norm, f"{here}.feedforward_norm")
        inner = f"{here}.feedforward.inner"
        if settings.activation in ("swiglu", "geglu"):
            halves = [np.split(_of(arrays, f"{inner}.{each}"), 2) for each in ("weight", "bias")]
            for half, into in enumerate((layer.ffn.linear_0, layer.ffn.linear_0_noact)):
                into.weight, into.bias = halves[0][half], halves[1][half]
        else:
            linear(layer.ffn.linear_0, inner)
        linear(layer.ffn.linear_1, f"{here}.feedforward.outer")


def waves(length: int, width: int) -> NDArray[np.float32]:
    """Sinusoidal positions, as attention/positions.py has them."""
    angles = np.arange(length)[:, None] * 10000.0 ** -(np.arange(0, width, 2) / width)
    waves = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, -1)
    return waves[:, :width].astype(np.float32)
