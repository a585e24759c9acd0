"""Small models of every kind, and batches for them."""

from typing import Any

import torch
from torch import Tensor

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.models.shapes import SHAPES, Model
from regard.settings import merge_settings
from regard.special_tokens import BOS, PAD

Component = dict[str, Any]
SOURCE_VOCABULARY, TARGET_VOCABULARY = 11, 13  # entries of the vocabularies

_RECURRENT: Component = {"kind": "recurrent", "width": 12, "embedding": 10, "dropout": 0.0}
_CONVOLUTIONAL: Component = {"kind": "convolutional", "width": 9, "embedding": 10, "layers": 2, "dropout": 0.0}
_TRANSFORMER: Component = {
    "kind": "transformer",
    "width": 32,  # two heads of 16: wide enough for every kernel
    "heads": 2,
    "feedforward": 20,
    "layers": 2,
    "dropout": 0.0,
}
_TRANSFORMERS: dict[str, Component] = {
    "transformer": {},
    "post norm": {"norm_first": False},
    "rms": {"norm": "rms"},
    "gelu": {"activation": "gelu"},
    "gelu-tanh": {"activation": "gelu-tanh"},
    "silu": {"activation": "silu"},
    "norm-embedding": {"norm_embedding": True, "norm_epsilon": 1e-3},
    "swiglu": {"activation": "swiglu"},
    "geglu": {"activation": "geglu"},
    "no position": {"position": "none"},
    "learned": {"position": "learned", "max_positions": 40},
    "rotary": {"position": "rotary"},
    "alibi": {"position": "alibi"},
    "shaw": {"position": "shaw"},
    "t5": {"position": "t5"},
    "share_layers": {"share_layers": True, "layers": 3},
    "window": {"window": 2},
    "narrow embedding": {"embedding": 7, "scale_embedding": False},
    "transformer sparsemax": {"normalize": "sparsemax"},
}
_BEFORE: dict[str, Component] = {
    "bahdanau": {},
    "before lstm": {"cell": "lstm", "layers": 2},
    "before dot": {"score": "dot"},
    "before scaled dot": {"score": "scaled-dot"},
    "before cosine": {"score": "cosine"},
    "before bilinear": {"score": "bilinear"},
    "before narrow": {"attention_width": 5},
    "before local-m": {"extent": "local-m", "radius": 2},
    "before local-p": {"extent": "local-p", "radius": 3},
    "before sparsemax": {"normalize": "sparsemax"},
    "before entmax": {"normalize": "entmax"},
    "before sigmoid": {"normalize": "sigmoid"},
    "before hard gumbel": {"normalize": "hard", "estimator": "gumbel"},
    "before hard reinforce": {"normalize": "hard", "estimator": "reinforce"},
}
_BEFORE |= {
    "location": {"score": "location", "filters": 3, "filter_width": 5},
    "location lstm": {"score": "location", "filters": 2, "filter_width": 3, "cell": "lstm", "layers": 2},
    "coverage": {"score": "location", "filters": 2, "filter_width": 1, "coverage": True},
    "gated": {"gate": True},
    "copying": {"copy_mechanism": True},
    "copying location": {"copy_mechanism": True, "score": "location", "filters": 3, "filter_width": 5, "gate": True},
}
_AFTER: dict[str, Component] = {
    "after location input feeding": {"score": "location", "filters": 3, "filter_width": 5, "input_feeding": True},
    "after location": {"score": "location", "filters": 3, "filter_width": 5},
    "after copying": {"score": "bilinear", "copy_mechanism": True},
    "after copying input feeding": {"score": "dot", "copy_mechanism": True, "input_feeding": True},
    "luong": {"score": "bilinear"},
    "luong input feeding": {"score": "bilinear", "input_feeding": True},
    "after lstm": {"cell": "lstm", "layers": 2, "score": "dot"},
    "after lstm input feeding": {"cell": "lstm", "layers": 2, "score": "additive", "input_feeding": True},
    "after cosine": {"score": "cosine"},
    "after local-m": {"extent": "local-m", "radius": 2},
    "after local-p": {"extent": "local-p", "radius": 3},
    "after local-p input feeding": {"extent": "local-p", "radius": 3, "input_feeding": True},
    "after sparsemax": {"normalize": "sparsemax", "score": "scaled-dot"},
    "after hard gumbel": {"normalize": "hard", "estimator": "gumbel"},
    "after hard reinforce": {"normalize": "hard", "estimator": "reinforce"},
    "after hard reinforce input feeding": {"normalize": "hard", "estimator": "reinforce", "input_feeding": True},
}
_NEVER: dict[str, Component] = {
    "sutskever": {"cell": "lstm", "layers": 2},
    "never gru": {},
    "cho": {"context": "every"},
    "cho lstm": {"context": "every", "cell": "lstm", "layers": 2},
}

ENCODERS: dict[str, Component] = {
    "recurrent": _RECURRENT,
    "lstm unidirectional": {**_RECURRENT, "cell": "lstm", "bidirectional": False},
    "lstm reversed": {**_RECURRENT, "cell": "lstm", "layers": 2, "bidirectional": False, "reverse": True},
    "gru bidirectional reversed": {**_RECURRENT, "layers": 2, "reverse": True},
    "convolutional": _CONVOLUTIONAL,
    "kernel 5": {**_CONVOLUTIONAL, "kernel": 5},
    **{name: {**_TRANSFORMER, **component} for name, component in _TRANSFORMERS.items()},
}
DECODERS: dict[str, Component] = {
    **{name: {**_RECURRENT, "attend": "never", **component} for name, component in _NEVER.items()},
    **{name: {**_RECURRENT, "attend": "before", **component} for name, component in _BEFORE.items()},
    **{name: {**_RECURRENT, "attend": "after", **component} for name, component in _AFTER.items()},
    "convolutional": _CONVOLUTIONAL,
    "kernel 1": {**_CONVOLUTIONAL, "kernel": 1},
    "kernel 4": {**_CONVOLUTIONAL, "kernel": 4},
    **{name: {**_TRANSFORMER, **component} for name, component in _TRANSFORMERS.items()},
    "transformer copying": {**_TRANSFORMER, "copy_mechanism": True},
}
BASE_DECODERS = ["bahdanau", "convolutional", "transformer"]
BASE_ENCODERS = ["recurrent", "convolutional", "transformer"]
# Every encoder with every decoder of the three kinds; then each variant once.
PAIRS: list[tuple[str, str]] = [
    *((encoder, decoder) for encoder in BASE_ENCODERS for decoder in BASE_DECODERS),
    *(("recurrent", decoder) for decoder in DECODERS if decoder not in BASE_DECODERS),
    *((encoder, "luong") for encoder in ENCODERS if encoder not in BASE_ENCODERS),
]
Pair = tuple[str, str] | str  # an encoder and a decoder, or a preset


def small_preset(name: str) -> Model:
    """The preset with small layers, and no dropout."""
    small: Model = {"width": 32, "embedding": 32, "dropout": 0.0}
    model: Model = SHAPES[name].model
    for component in ("encoder", "decoder"):
        extra = {"feedforward": 20, "heads": 2} if model[component]["kind"] == "transformer" else {}
        layers = min(2, model[component].get("layers", 1))
        model = merge_settings(model, {component: {**small, **extra, "layers": layers}})
    return model


def pair_id(pair: Pair) -> str:
    return pair if isinstance(pair, str) else " + ".join(pair)


def source_kind(name: str) -> str:
    """The kind of a preset's source."""
    kind: str = SHAPES[name].model.get("source", {}).get("kind", "text")
    return kind


def is_classifier(name: str) -> bool:
    return SHAPES[name].model["decoder"]["kind"] == "pooling"


def generates_tokens(name: str) -> bool:
    """Whether a preset generates token by token and attends to tokens, not to sentences."""
    model = SHAPES[name].model
    sentences = model.get("source", {}).get("unit") == "sentence"
    return model["decoder"]["kind"] in ("recurrent", "convolutional", "transformer") and not sentences


TRANSLATION_PRESETS = [name for name in SHAPES if source_kind(name) == "text" and generates_tokens(name)]
ALL_MODELS: list[Pair] = [*PAIRS, *TRANSLATION_PRESETS]
ONE_PER_DECODER: list[Pair] = [pair for pair in ALL_MODELS if isinstance(pair, str) or pair[1] != "luong"] + [
    ("recurrent", "luong")
]


def random_model(pair: Pair, *, seed: int = 0, std: float = 0.25, tie: str = "none", dropout: float = 0.0) -> Seq2Seq:
    """A model in evaluation mode with all parameters drawn at random: initial zeros and ones would hide mistakes."""
    if isinstance(pair, str):
        settings_data = small_preset(pair)
    else:
        settings_data = {"encoder": ENCODERS[pair[0]], "decoder": DECODERS[pair[1]], "tie": tie}
    for component in ("encoder", "decoder"):
        settings_data = merge_settings(settings_data, {component: {"dropout": dropout}})
    settings = ModelSettings.parse(settings_data)
    torch.manual_seed(seed)
    targets = SOURCE_VOCABULARY if settings.tie == "all" else TARGET_VOCABULARY
    model = Seq2Seq(settings, source_vocabulary_size=SOURCE_VOCABULARY, target_vocabulary_size=targets)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, std)
    return model.eval()


def random_batch(
    source_lengths: list[int],
    target_lengths: list[int],
    seed: int = 0,
    *,
    padding: int = 0,
    vocabulary: int = SOURCE_VOCABULARY,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, their mask, and targets that begin with BOS; `padding` more positions of padding on both."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.full((len(source_lengths), max(source_lengths) + padding), PAD)
    targets = torch.full((len(target_lengths), max(target_lengths) + padding), PAD)
    for row, length in enumerate(source_lengths):
        source[row, :length] = torch.randint(4, vocabulary, (length,), generator=generator)
    for row, length in enumerate(target_lengths):
        targets[row, :length] = torch.randint(4, vocabulary, (length,), generator=generator)
    targets[:, 0] = BOS
    return source, source != PAD, targets
