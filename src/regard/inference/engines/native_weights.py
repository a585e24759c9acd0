"""A model's tensors and settings, by the names in native/regard.h (`regard_model_description`).

Tensors of model.safetensors are checked for their shapes here, and again in C. Layers that are multiplied with the same
input are joined: queries, keys and values are one layer.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.models.settings import (
    ModelSettings,
    RecurrentDecoderSettings,
    RecurrentEncoderSettings,
    TransformerDecoderSettings,
    TransformerEncoderSettings,
)
from regard.native.abi import Activation, Architecture, Attend, Extent, Score
from regard.runs.ctranslate2_conversion import (
    Arrays,
    not_text_to_text,
    read_arrays,
    sinusoids,
    unsupported_by_ctranslate2,
)
from regard.runs.folder import RunFolder

SCORES = ("additive", "bilinear", "dot", "scaled-dot")
EXTENTS = ("global", "local-m", "local-p")
Array = NDArray[Any]
Value = TypeVar("Value", bound=IntEnum)


def unsupported_reason(model: ModelSettings) -> str:
    """Why the native engine cannot run this model, as a clause; empty if it can."""
    decoder = model.decoder
    if reason := not_text_to_text(model):
        return reason
    if not isinstance(model.encoder, RecurrentEncoderSettings) or not isinstance(decoder, RecurrentDecoderSettings):
        return unsupported_by_ctranslate2(model)
    if decoder.attend != "never" and decoder.score not in SCORES:
        return f"the decoder's score is {decoder.score}"
    if decoder.attend != "never" and decoder.extent not in EXTENTS:
        return f"the decoder's extent is {decoder.extent}"
    if decoder.attend != "never" and decoder.normalize not in ("softmax", "hard"):
        return f"the decoder attends by {decoder.normalize}, not by softmax"
    return "the decoder gates its context" if decoder.gate else ""


class Weights:
    """What a C model is built from: its architecture, tensors and settings."""

    def __init__(self, architecture: Architecture, opened: RunFolder) -> None:
        self.architecture, self._opened = architecture, opened
        self._checkpoint: Arrays = read_arrays(opened.folder / "model.safetensors")
        self.settings: dict[str, float] = {}
        self.tensors: dict[str, NDArray[np.float32]] = {}
        model = opened.description.model
        self.source_embedding = "encoder.embedding.weight"
        self.target_embedding = self.source_embedding if model.tie == "all" else "decoder.embedding.weight"

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        """A tensor of the checkpoint. Raises RegardError if it is missing or has another shape."""
        array = self._checkpoint.get(name)
        if array is None or array.shape != shape:
            found = "missing" if array is None else f"{array.shape}, not {shape}"
            raise RegardError(f"model.safetensors: tensor {name} is {found}.")
        return array

    def put(self, name: str, array: Array) -> None:
        """A tensor for C."""
        assert name not in self.tensors, name
        self.tensors[name] = np.ascontiguousarray(array, np.float32)

    def put_linear(self, name: str, sources: Sequence[str], outputs: int, inputs: int) -> None:
        """Linear layers of the checkpoint, with as many outputs each, joined into one for C."""
        self.put(f"{name}.weight", np.concatenate([self.get(f"{each}.weight", (outputs, inputs)) for each in sources]))
        self.put(f"{name}.bias", np.concatenate([self.get(f"{each}.bias", (outputs,)) for each in sources]))

    def put_output_layer(self, width: int) -> None:
        """The output layer, which may be the target's embedding."""
        V, untied = len(self._opened.target_vocabulary), self._opened.description.model.tie == "none"
        self.put("output.weight", self.get("output.weight" if untied else self.target_embedding, (V, width)))
        if has_bias := untied or "output.bias" in self._checkpoint:
            self.put("output.bias", self.get("output.bias", (V,)))
        self.settings["output_bias"] = has_bias


def _enum(kind: type[Value], name: str) -> Value:
    """The value that a setting is in C: "local-p" is LOCAL_P."""
    return kind[name.upper().replace("-", "_")]


def build_weights(opened: RunFolder) -> Weights:
    """The weights of a supported model."""
    model = opened.description.model
    encoder, decoder = model.encoder, model.decoder
    if isinstance(encoder, RecurrentEncoderSettings) and isinstance(decoder, RecurrentDecoderSettings):
        return _recurrent(Weights(Architecture.RECURRENT, opened), opened, encoder, decoder)
    assert isinstance(encoder, TransformerEncoderSettings)
    assert isinstance(decoder, TransformerDecoderSettings)
    return _transformer(Weights(Architecture.TRANSFORMER, opened), opened, encoder, decoder)


# --- Transformers ------------------------------------------------------------------------------------------------


def _transformer(
    weights: Weights, opened: RunFolder, encoder: TransformerEncoderSettings, decoder: TransformerDecoderSettings
) -> Weights:
    weights.settings = {
        "width": encoder.width,
        "rms_norm": encoder.norm == "rms",
        "norm_epsilon": 1e-5 if encoder.norm == "layer" else 1e-6,
    }
    max_length = opened.description.max_tokens + 1
    source_size, target_size = len(text_tokenizer(opened.source_processor)), len(opened.target_vocabulary)
    _stack(weights, "encoder", encoder, weights.source_embedding, source_size, max_length)
    _stack(weights, "decoder", decoder, weights.target_embedding, target_size, max_length)
    weights.put_output_layer(encoder.width)
    return weights


def _stack(
    weights: Weights,
    side: str,
    settings: TransformerEncoderSettings | TransformerDecoderSettings,
    embedding: str,
    vocabulary_size: int,
    max_length: int,
) -> None:
    D, inner = settings.width, settings.feedforward
    activation, pre_norm = _enum(Activation, settings.activation), settings.norm_first
    positions = 0
    if settings.position == "learned":
        positions = settings.max_positions
        table = weights.get(f"{side}.embedding.position.table.weight", (positions, D))
        weights.put(f"{side}.position_embedding.weight", table)
    elif settings.position == "sinusoidal":
        positions = max_length
        weights.put(f"{side}.position_embedding.weight", sinusoids(positions, D))
    weights.put(f"{side}.embedding.weight", weights.get(embedding, (vocabulary_size, D)))
    weights.settings |= {
        f"{side}.layers": settings.layers,
        f"{side}.heads": settings.heads,
        f"{side}.feedforward_width": inner,
        f"{side}.activation": activation,
        f"{side}.pre_norm": pre_norm,
        f"{side}.vocabulary_size": vocabulary_size,
        f"{side}.positions": positions,
        f"{side}.embedding_scale": D**0.5 if settings.scale_embedding else 1.0,
    }

    def norm(name: str, source: str) -> None:
        weights.put(f"{name}.weight", weights.get(f"{source}.weight", (D,)))
        if settings.norm != "rms":
            weights.put(f"{name}.bias", weights.get(f"{source}.bias", (D,)))

    def attention(name: str, source: str, *projections: str) -> None:
        weights.put_linear(name, [f"{source}.{projection}" for projection in projections], D, D)

    for number in range(settings.layers):
        layer = f"{side}.layers.{number}"
        norm(f"{layer}.self_attention_norm", f"{layer}.self_attention_norm")
        attention(f"{layer}.self_attention.query_key_value", f"{layer}.self_attention", "query", "key", "value")
        attention(f"{layer}.self_attention.output", f"{layer}.self_attention", "output")
        if side == "decoder":
            norm(f"{layer}.cross_attention_norm", f"{layer}.cross_attention_norm")
            attention(f"{layer}.cross_attention.query", f"{layer}.cross_attention", "query")
            attention(f"{layer}.cross_attention.key_value", f"{layer}.cross_attention", "key", "value")
            attention(f"{layer}.cross_attention.output", f"{layer}.cross_attention", "output")
        norm(f"{layer}.feedforward_norm", f"{layer}.feedforward_norm")
        gated = 2 if activation in (Activation.SWIGLU, Activation.GEGLU) else 1
        weights.put_linear(f"{layer}.feedforward.inner", [f"{layer}.feedforward.inner"], inner * gated, D)
        weights.put_linear(f"{layer}.feedforward.outer", [f"{layer}.feedforward.outer"], D, inner)
    if pre_norm:
        norm(f"{side}.norm", f"{side}.norm")


# --- recurrent models --------------------------------------------------------------------------------------------


def _recurrent(
    weights: Weights, opened: RunFolder, encoder: RecurrentEncoderSettings, decoder: RecurrentDecoderSettings
) -> Weights:
    E, D = decoder.embedding_width, decoder.width
    M = encoder.width * (2 if encoder.bidirectional else 1)
    source_size, target_size = len(text_tokenizer(opened.source_processor)), len(opened.target_vocabulary)
    context_every_step = decoder.attend == "never" and decoder.context == "every"
    input_feeding = decoder.attend == "after" and decoder.input_feeding
    plain = decoder.attend == "never" or decoder.score == "scaled-dot"
    score = Score.DOT if plain else _enum(Score, decoder.score)
    features = {Score.ADDITIVE: decoder.attention_width or D, Score.BILINEAR: M, Score.DOT: D}[score]
    weights.settings = {
        "encoder.embedding_width": encoder.embedding_width,
        "encoder.width": encoder.width,
        "encoder.layers": encoder.layers,
        "encoder.lstm": encoder.cell == "lstm",
        "encoder.bidirectional": encoder.bidirectional,
        "encoder.reverse": encoder.reverse,
        "encoder.vocabulary_size": source_size,
        "decoder.embedding_width": E,
        "decoder.width": D,
        "decoder.layers": decoder.layers,
        "decoder.lstm": decoder.cell == "lstm",
        "decoder.attend": _enum(Attend, decoder.attend),
        "decoder.context_every_step": context_every_step,
        "decoder.input_feeding": input_feeding,
        "decoder.vocabulary_size": target_size,
        "attention.score": score,
        "attention.hard": decoder.normalize == "hard",
        "attention.extent": _enum(Extent, decoder.extent),
        "attention.features": features,
        "attention.scale": D**-0.5 if decoder.score == "scaled-dot" else 1.0,
        "attention.radius": decoder.radius,
    }

    def cells(name: str, source: str, kind: str, widths: Sequence[int], width: int) -> None:
        gates = (4 if kind == "lstm" else 3) * width
        for layer, inputs in enumerate(widths):
            weights.put_linear(f"{name}.{layer}.input", [f"{source}.{layer}.inputs"], gates, inputs)
            weights.put_linear(f"{name}.{layer}.state", [f"{source}.{layer}.states"], gates, width)

    shape = (source_size, encoder.embedding_width)
    weights.put("encoder.embedding.weight", weights.get(weights.source_embedding, shape))
    widths = [encoder.embedding_width, *[M] * (encoder.layers - 1)]
    cells("encoder.forward", "encoder.forward_cells", encoder.cell, widths, encoder.width)
    if encoder.bidirectional:
        cells("encoder.backward", "encoder.backward_cells", encoder.cell, widths, encoder.width)
    weights.put("decoder.embedding.weight", weights.get(weights.target_embedding, (target_size, E)))
    weights.put_linear("decoder.initial_state", ["decoder.initial_state"], decoder.layers * D, M)
    cells("decoder.cells", "decoder.cells", decoder.cell, [E, *[D] * (decoder.layers - 1)], D)
    has_context = decoder.attend == "before" or context_every_step
    if extra_width := M if has_context else D if input_feeding else 0:
        # The embedding and the context or previous state are concatenated into one input.
        first = weights.tensors.pop("decoder.cells.0.input.weight")
        joined = np.concatenate([first, weights.get("decoder.extra_input.weight", (len(first), extra_width))], 1)
        weights.put("decoder.cells.0.input.weight", joined)
    if decoder.attend != "never":
        _attention(weights, decoder, features, M)
    if decoder.attend == "after":
        weights.put_linear("decoder.combine", ["decoder.combine"], D, M + D)
    if has_context:
        # From [output, embedding, context] to [embedding, context, output], the order in which C concatenates them.
        readout = weights.get("decoder.readout.weight", (2 * E, D + E + M))
        weights.put("decoder.readout.weight", np.roll(readout, -D, 1))
        weights.put("decoder.readout.bias", weights.get("decoder.readout.bias", (2 * E,)))
    elif D != E:
        weights.put_linear("decoder.readout", ["decoder.readout"], E, D)
    weights.put_output_layer(E)
    return weights


def _attention(weights: Weights, decoder: RecurrentDecoderSettings, features: int, M: int) -> None:
    """Projections of queries and keys, v of the additive score, and what predicts the center of local-p's window."""
    D, score, extent = decoder.width, "decoder.attention.score", "decoder.attention.extent"
    if decoder.score == "additive":
        weights.put("attention.query.weight", weights.get(f"{score}.weight_query", (1, features, D))[0])
        weights.put("attention.query.bias", weights.get(f"{score}.bias", (1, features))[0])
        weights.put("attention.key.weight", weights.get(f"{score}.weight_key", (1, features, M))[0])
        weights.put("attention.v", weights.get(f"{score}.v", (1, features))[0])
    elif decoder.score == "bilinear":
        weights.put("attention.query.weight", weights.get(f"{score}.weight", (1, D, M))[0].T)
    elif M != D:
        weights.put_linear("attention.key", ["decoder.attention.key"], features, M)
    if decoder.extent == "local-p":
        weights.put("attention.position.weight", weights.get(f"{extent}.weight", (1, D, D))[0])
        weights.put("attention.position.v", weights.get(f"{extent}.v", (1, D))[0])
