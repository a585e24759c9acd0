"""Small models of every kind, and batches for them."""

from typing import Any

import torch
from torch import Tensor

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.models.shapes import SHAPES, Model
from regard.settings import merged
from regard.special_tokens import BEGIN, PAD

Part = dict[str, Any]
SOURCES, TARGETS = 11, 13  # entries of the vocabularies

_RECURRENT: Part = {"kind": "recurrent", "width": 12, "embedding": 10, "dropout": 0.0}
_CONVOLUTIONAL: Part = {"kind": "convolutional", "width": 9, "embedding": 10, "layers": 2, "dropout": 0.0}
_TRANSFORMER: Part = {
    "kind": "transformer",
    "width": 32,  # two heads of 16: wide enough for every kernel
    "heads": 2,
    "feedforward": 20,
    "layers": 2,
    "dropout": 0.0,
}
_TRANSFORMERS: dict[str, Part] = {
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
_BEFORE: dict[str, Part] = {
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
_AFTER: dict[str, Part] = {
    "after location fed": {"score": "location", "filters": 3, "filter_width": 5, "input_feeding": True},
    "after location": {"score": "location", "filters": 3, "filter_width": 5},
    "after copying": {"score": "bilinear", "copy_mechanism": True},
    "after copying fed": {"score": "dot", "copy_mechanism": True, "input_feeding": True},
    "luong": {"score": "bilinear"},
    "luong fed": {"score": "bilinear", "input_feeding": True},
    "after lstm": {"cell": "lstm", "layers": 2, "score": "dot"},
    "after lstm fed": {"cell": "lstm", "layers": 2, "score": "additive", "input_feeding": True},
    "after cosine": {"score": "cosine"},
    "after local-m": {"extent": "local-m", "radius": 2},
    "after local-p": {"extent": "local-p", "radius": 3},
    "after local-p fed": {"extent": "local-p", "radius": 3, "input_feeding": True},
    "after sparsemax": {"normalize": "sparsemax", "score": "scaled-dot"},
    "after hard gumbel": {"normalize": "hard", "estimator": "gumbel"},
    "after hard reinforce": {"normalize": "hard", "estimator": "reinforce"},
    "after hard reinforce fed": {"normalize": "hard", "estimator": "reinforce", "input_feeding": True},
}
_NEVER: dict[str, Part] = {
    "sutskever": {"cell": "lstm", "layers": 2},
    "never gru": {},
    "cho": {"context": "every"},
    "cho lstm": {"context": "every", "cell": "lstm", "layers": 2},
}

ENCODERS: dict[str, Part] = {
    "recurrent": _RECURRENT,
    "lstm one way": {**_RECURRENT, "cell": "lstm", "bidirectional": False},
    "lstm reversed": {**_RECURRENT, "cell": "lstm", "layers": 2, "bidirectional": False, "reverse": True},
    "gru both ways reversed": {**_RECURRENT, "layers": 2, "reverse": True},
    "convolutional": _CONVOLUTIONAL,
    "kernel 5": {**_CONVOLUTIONAL, "kernel": 5},
    **{name: {**_TRANSFORMER, **part} for name, part in _TRANSFORMERS.items()},
}
DECODERS: dict[str, Part] = {
    **{name: {**_RECURRENT, "attend": "never", **part} for name, part in _NEVER.items()},
    **{name: {**_RECURRENT, "attend": "before", **part} for name, part in _BEFORE.items()},
    **{name: {**_RECURRENT, "attend": "after", **part} for name, part in _AFTER.items()},
    "convolutional": _CONVOLUTIONAL,
    "kernel 1": {**_CONVOLUTIONAL, "kernel": 1},
    "kernel 4": {**_CONVOLUTIONAL, "kernel": 4},
    **{name: {**_TRANSFORMER, **part} for name, part in _TRANSFORMERS.items()},
    "transformer copying": {**_TRANSFORMER, "copy_mechanism": True},
}
FAMILIES = ["bahdanau", "convolutional", "transformer"]
BASES = ["recurrent", "convolutional", "transformer"]
# Every encoder with every decoder of the three kinds; then each variant once.
PAIRS: list[tuple[str, str]] = [
    *((encoder, decoder) for encoder in BASES for decoder in FAMILIES),
    *(("recurrent", decoder) for decoder in DECODERS if decoder not in FAMILIES),
    *((encoder, "luong") for encoder in ENCODERS if encoder not in BASES),
]
Pair = tuple[str, str] | str  # an encoder and a decoder, or a preset


def small_preset(name: str) -> Model:
    """The preset with few numbers to learn, and no dropout."""
    few: Model = {"width": 32, "embedding": 32, "dropout": 0.0}
    model: Model = SHAPES[name].model
    for part in ("encoder", "decoder"):
        own = {"feedforward": 20, "heads": 2} if model[part]["kind"] == "transformer" else {}
        layers = min(2, model[part].get("layers", 1))
        model = merged(model, {part: {**few, **own, "layers": layers}})
    return model


def name_of(pair: Pair) -> str:
    return pair if isinstance(pair, str) else " + ".join(pair)


def kind_of(name: str) -> tuple[str, bool]:
    """What a preset reads, and whether it tells classes apart."""
    model = SHAPES[name].model
    return model.get("source", {}).get("kind", "text"), model["decoder"]["kind"] == "pooling"


def generates_tokens(name: str) -> bool:
    """Whether a preset has a decoder to search, and words to look at."""
    model = SHAPES[name].model
    sentences = model.get("source", {}).get("unit") == "sentence"
    return model["decoder"]["kind"] in ("recurrent", "convolutional", "transformer") and not sentences


TRANSLATING = [name for name in SHAPES if kind_of(name) == ("text", False) and generates_tokens(name)]
EVERYTHING: list[Pair] = [*PAIRS, *TRANSLATING]
EVERY_DECODER: list[Pair] = [pair for pair in EVERYTHING if isinstance(pair, str) or pair[1] != "luong"] + [
    ("recurrent", "luong")
]


def make(pair: Pair, *, seed: int = 0, spread: float = 0.25, tie: str = "none", dropout: float = 0.0) -> Seq2Seq:
    """A model whose every number was drawn, in evaluation mode: zeros and ones as first weights hide mistakes."""
    if isinstance(pair, str):
        given = small_preset(pair)
    else:
        given = {"encoder": ENCODERS[pair[0]], "decoder": DECODERS[pair[1]], "tie": tie}
    for part in ("encoder", "decoder"):
        given = merged(given, {part: {"dropout": dropout}})
    settings = ModelSettings.parse(given)
    torch.manual_seed(seed)
    targets = SOURCES if settings.tie == "all" else TARGETS
    model = Seq2Seq(settings, source_vocabulary=SOURCES, target_vocabulary=targets)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, spread)
    return model.eval()


def batch(
    source_lengths: list[int], target_lengths: list[int], seed: int = 0, *, more: int = 0, most: int = SOURCES
) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, their mask, and targets that begin with BEGIN; `more` places of padding on either side."""
    dice = torch.Generator().manual_seed(seed)
    source = torch.full((len(source_lengths), max(source_lengths) + more), PAD)
    targets = torch.full((len(target_lengths), max(target_lengths) + more), PAD)
    for row, length in enumerate(source_lengths):
        source[row, :length] = torch.randint(4, most, (length,), generator=dice)
    for row, length in enumerate(target_lengths):
        targets[row, :length] = torch.randint(4, most, (length,), generator=dice)
    targets[:, 0] = BEGIN
    return source, source != PAD, targets
