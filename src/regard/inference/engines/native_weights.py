"""A model's weights in the order in which our own C reads them (native/transformer.c, native/recurrent.c)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.models.settings import (
    ModelSettings,
    RecurrentDecoder,
    RecurrentEncoder,
    TransformerDecoder,
    TransformerEncoder,
)
from regard.runs.conversion import Arrays, read_arrays, reads_or_says_more, waves
from regard.runs.conversion import refuses as not_a_usual_transformer
from regard.runs.folder import Opened

ACTIVATIONS = ("relu", "gelu", "gelu-tanh", "silu", "swiglu", "geglu")
ATTENDS = ("never", "before", "after")
EXTENTS = ("global", "local-m", "local-p")
SCORES = ("additive", "bilinear", "dot", "scaled-dot")
Array = NDArray[Any]


def refuses(model: ModelSettings) -> str:
    """Why our own engine cannot run this model, in words; empty if it can."""
    decoder = model.decoder
    if beyond := reads_or_says_more(model):
        return beyond
    if not isinstance(model.encoder, RecurrentEncoder) or not isinstance(decoder, RecurrentDecoder):
        return not_a_usual_transformer(model)
    if decoder.attend != "never" and decoder.score not in SCORES:
        return f"the decoder's score is {decoder.score}"
    if decoder.attend != "never" and decoder.normalize not in ("softmax", "hard"):
        return f"the decoder attends by {decoder.normalize}, not by softmax"
    return "the decoder gates what it looks at" if decoder.gate else ""


class Weights:
    """What a model is made from in C: its kind, sizes, and arrays, None for parts that it lacks."""

    def __init__(self, kind: str, opened: Opened) -> None:
        self.kind, self._opened = kind, opened
        self._from: Arrays = read_arrays(opened.folder / "model.safetensors")
        self.numbers: list[int] = []
        self.scales: list[float] = []
        self.arrays: list[NDArray[np.float32] | None] = []
        model = opened.description.model
        self.source_table = "encoder.embedding.weight"
        self.target_table = self.source_table if model.tie == "all" else "decoder.embedding.weight"

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        """A tensor. Raises RegardError if it is missing, or of another shape: C would read beyond its end."""
        array = self._from.get(name)
        if array is None or array.shape != shape:
            found = "missing" if array is None else f"{array.shape}, not {shape}"
            raise RegardError(f"model.safetensors: tensor {name} is {found}.")
        return array

    def put(self, *arrays: Array | None) -> None:
        """More arrays, as they are."""
        self.arrays += [None if each is None else np.ascontiguousarray(each, np.float32) for each in arrays]

    def linear(self, names: Sequence[str], outputs: int, inputs: int) -> None:
        """Layers with as many outputs each, made one."""
        self.put(
            np.concatenate([self.get(f"{name}.weight", (outputs, inputs)) for name in names]),
            np.concatenate([self.get(f"{name}.bias", (outputs,)) for name in names]),
        )

    def output(self, width: int) -> None:
        """The output layer, which may be the target's embedding."""
        V, own = len(self._opened.target_side), self._opened.description.model.tie == "none"
        self.put(self.get("output.weight" if own else self.target_table, (V, width)))
        self.put(self.get("output.bias", (V,)) if own or "output.bias" in self._from else None)


def weights_of(opened: Opened) -> Weights:
    """The weights of a model that `refuses` has nothing against."""
    model = opened.description.model
    encoder, decoder = model.encoder, model.decoder
    if isinstance(encoder, RecurrentEncoder) and isinstance(decoder, RecurrentDecoder):
        return _recurrent(Weights("recurrent", opened), opened, encoder, decoder)
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    return _transformer(Weights("transformer", opened), opened, encoder, decoder)


# --- Transformers ------------------------------------------------------------------------------------------------


def _transformer(given: Weights, opened: Opened, encoder: TransformerEncoder, decoder: TransformerDecoder) -> Weights:
    given.numbers = [encoder.width]
    longest = opened.description.longest + 1
    _side(given, "encoder", encoder, given.source_table, len(in_text(opened.source_side)), longest)
    _side(given, "decoder", decoder, given.target_table, len(opened.target_side), longest)
    given.scales.append(1e-5 if encoder.norm == "layer" else 1e-6)
    given.output(encoder.width)
    return given


def _side(
    given: Weights,
    name: str,
    settings: TransformerEncoder | TransformerDecoder,
    table: str,
    vocabulary: int,
    longest: int,
) -> None:
    D, inner = settings.width, settings.feedforward
    places: Array | None = None
    if settings.position == "learned":
        longest = settings.positions
        places = given.get(f"{name}.embedding.place.table.weight", (longest, D))
    elif settings.position == "sinusoidal":
        places = waves(longest, D)
    activation = ACTIVATIONS.index(settings.activation)
    pre = settings.norm_place == "pre"
    given.numbers += [settings.layers, settings.heads, inner, activation, int(pre), vocabulary, longest]
    given.scales.append(D**0.5 if settings.scale_embedding else 1.0)
    given.put(given.get(table, (vocabulary, D)), places)

    def norm(where: str) -> None:
        given.put(given.get(f"{where}.weight", (D,)))
        given.put(None if settings.norm == "rms" else given.get(f"{where}.bias", (D,)))

    def joined(where: str, *parts: str) -> None:
        given.linear([f"{where}.{part}" for part in parts], D, D)

    for number in range(settings.layers):
        here = f"{name}.layers.{number}"
        norm(f"{here}.itself_norm")
        joined(f"{here}.itself", "query", "key", "value")
        joined(f"{here}.itself", "output")
        if name == "decoder":
            norm(f"{here}.memory_norm")
            joined(f"{here}.memory", "query")
            joined(f"{here}.memory", "key", "value")
            joined(f"{here}.memory", "output")
        norm(f"{here}.feedforward_norm")
        given.linear([f"{here}.feedforward.inner"], inner * (2 if settings.activation in ("swiglu", "geglu") else 1), D)
        given.linear([f"{here}.feedforward.outer"], D, inner)
    if pre:
        norm(f"{name}.norm")
    else:
        given.put(None, None)


# --- recurrent models --------------------------------------------------------------------------------------------


def _recurrent(given: Weights, opened: Opened, encoder: RecurrentEncoder, decoder: RecurrentDecoder) -> Weights:
    E, D, directions = decoder.embedding_width, decoder.width, 2 if encoder.bidirectional else 1
    M = directions * encoder.width
    every = decoder.attend == "never" and decoder.context == "every"
    feeds = decoder.attend == "after" and decoder.input_feeding
    features = M  # bilinear: queries are taken to the keys
    if decoder.score == "additive":
        features = decoder.attention_width or D
    elif decoder.score != "bilinear":
        features = D
    given.numbers = [
        *(encoder.embedding_width, encoder.width, encoder.layers, int(encoder.cell == "lstm"), directions),
        *(int(encoder.reverse), len(in_text(opened.source_side))),
        *(E, D, decoder.layers, int(decoder.cell == "lstm"), ATTENDS.index(decoder.attend), int(every), int(feeds)),
        *(int(decoder.normalize == "hard"), EXTENTS.index(decoder.extent), features, D, M, len(opened.target_side)),
    ]
    given.scales = [D**-0.5 if decoder.score == "scaled-dot" else 1.0, float(decoder.radius)]

    def cells(name: str, kind: str, widths: Sequence[int], width: int) -> None:
        gates = (4 if kind == "lstm" else 3) * width
        for layer, inputs in enumerate(widths):
            given.linear([f"{name}.{layer}.inputs"], gates, inputs)
            given.linear([f"{name}.{layer}.states"], gates, width)

    given.put(given.get(given.source_table, (len(in_text(opened.source_side)), encoder.embedding_width)))
    widths = [encoder.embedding_width, *[M] * (encoder.layers - 1)]
    cells("encoder.forth", encoder.cell, widths, encoder.width)
    if encoder.bidirectional:
        cells("encoder.back", encoder.cell, widths, encoder.width)
    given.put(given.get(given.target_table, (len(opened.target_side), E)))
    given.linear(["decoder.first"], decoder.layers * D, M)
    at = len(given.arrays)
    cells("decoder.cells", decoder.cell, [E, *[D] * (decoder.layers - 1)], D)
    if beside := M if decoder.attend == "before" or every else D if feeds else 0:
        # The word and what comes beside it are one input.
        first = given.arrays[at]
        assert first is not None
        given.arrays[at] = np.concatenate([first, given.get("decoder.beside.weight", (len(first), beside))], 1)
    _attention(given, decoder, features, M)
    if decoder.attend == "after":
        given.linear(["decoder.combine"], D, M + D)
    else:
        given.put(None, None)
    if decoder.attend == "before" or every:
        # From [output, word, context] to [word, context, output], the order in which they lie in memory.
        readout = given.get("decoder.readout.weight", (2 * E, D + E + M))
        given.put(np.roll(readout, -D, 1), given.get("decoder.readout.bias", (2 * E,)))
    elif D != E:
        given.linear(["decoder.readout"], E, D)
    else:
        given.put(None, None)
    given.output(E)
    return given


def _attention(given: Weights, decoder: RecurrentDecoder, features: int, M: int) -> None:
    """What makes features of queries and of keys, v of the additive score, and what predicts local-p's places."""
    D, score, place = decoder.width, "decoder.attention.score", "decoder.attention.extent"
    if decoder.attend == "never":
        given.put(*[None] * 8)
        return
    if decoder.score == "additive":
        given.put(given.get(f"{score}.weight_query", (1, features, D))[0], given.get(f"{score}.bias", (1, features))[0])
        given.put(given.get(f"{score}.weight_key", (1, features, M))[0], None)
        given.put(given.get(f"{score}.v", (1, features))[0])
    elif decoder.score == "bilinear":
        given.put(given.get(f"{score}.weight", (1, D, M))[0].T, None, None, None, None)
    else:
        given.put(None, None)
        if M == D:
            given.put(None, None)
        else:
            given.linear(["decoder.attention.key"], features, M)
        given.put(None)
    if decoder.extent == "local-p":
        given.put(given.get(f"{place}.weight", (1, D, D))[0], None, given.get(f"{place}.v", (1, D))[0])
    else:
        given.put(None, None, None)
