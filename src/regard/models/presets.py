"""Models with a name: settings of the model, and of the training that suits it. Imports no PyTorch.

A preset is only a beginning: any field can be changed with a TOML file or `--set`.
"""

import difflib
from typing import Any

Preset = dict[str, Any]

_RECURRENT_TRAINING: Preset = {
    "learning_rate": 1e-3,
    "warmup": 200,
    "schedule": "cosine",
    "smoothing": 0.1,
    "clip": 1.0,
}
_TRANSFORMER_TRAINING: Preset = {"warmup": 1000, "schedule": "cosine", "smoothing": 0.1, "average": 0.999}


def _recurrent(encoder: Preset, decoder: Preset) -> Preset:
    common = {"kind": "recurrent", "width": 256, "embedding": 256, "dropout": 0.2}
    return {
        "model": {"encoder": {**common, **encoder}, "decoder": {**common, **decoder}, "tie": "target"},
        "training": _RECURRENT_TRAINING,
    }


def _transformer(width: int, heads: int, feedforward: int, encoder: int, decoder: int, dropout: float) -> Preset:
    part = {"kind": "transformer", "width": width, "heads": heads, "feedforward": feedforward, "dropout": dropout}
    return {
        "model": {"encoder": {**part, "layers": encoder}, "decoder": {**part, "layers": decoder}, "tie": "all"},
        "training": {**_TRANSFORMER_TRAINING, "learning_rate": 3e-3 * (128 / width) ** 0.5},
    }


_LUONG: Preset = {"cell": "lstm", "initialisation": "uniform"}
_CONVOLUTIONAL: Preset = {"kind": "convolutional", "width": 256, "embedding": 256, "kernel": 3, "dropout": 0.2}

PRESETS: dict[str, tuple[str, Preset]] = {
    "vanilla-rnn": (
        "one vector for the whole source: LSTM, source reversed, no attention (Sutskever et al. 2014)",
        _recurrent(
            {"cell": "lstm", "layers": 2, "bidirectional": False, "reverse": True, "initialisation": "uniform"},
            {"cell": "lstm", "layers": 2, "attend": "never", "initialisation": "uniform"},
        ),
    ),
    "bahdanau": (
        "bidirectional GRU, additive attention before each step (Bahdanau et al. 2014)",
        _recurrent({}, {"attend": "before", "score": "additive"}),
    ),
    "luong": (
        "LSTM, bilinear attention after each step, input feeding (Luong et al. 2015)",
        _recurrent(_LUONG, {**_LUONG, "attend": "after", "score": "bilinear", "input_feeding": True}),
    ),
    "luong-local": (
        "the same within a window around a predicted place, local-p (Luong et al. 2015)",
        _recurrent(
            _LUONG,
            {**_LUONG, "attend": "after", "score": "bilinear", "extent": "local-p", "input_feeding": True},
        ),
    ),
    "hard": (
        "bahdanau, looking at one place at a time (Xu et al. 2015, straight-through Gumbel)",
        _recurrent({}, {"attend": "before", "score": "additive", "normalise": "hard"}),
    ),
    "conv": (
        "gated convolutions with attention in every block (Gehring et al. 2017)",
        {
            "model": {
                "encoder": {**_CONVOLUTIONAL, "layers": 4},
                "decoder": {**_CONVOLUTIONAL, "layers": 3},
                "tie": "target",
            },
            "training": {**_RECURRENT_TRAINING, "clip": 0.1},
        },
    ),
    "transformer-tiny": ("4 + 4 layers of width 128: small data, minutes", _transformer(128, 4, 256, 4, 4, 0.3)),
    "transformer-small": ("6 + 6 layers of width 256", _transformer(256, 4, 1024, 6, 6, 0.2)),
    "transformer-base": ("6 + 6 layers of width 512 (Vaswani et al. 2017)", _transformer(512, 8, 2048, 6, 6, 0.1)),
    "deep-shallow": (
        "12 encoder layers and one decoder layer of width 256: fast to translate with",
        _transformer(256, 4, 1024, 12, 1, 0.2),
    ),
}


def preset(name: str) -> Preset:
    """Plain data for `Settings.parse`. Raises ValueError for an unknown name, saying which was meant."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name.lower().replace("_", "-"), PRESETS, n=1, cutoff=0.5)
        meant = f"did you mean {near[0]}?" if near else f"the presets are {', '.join(PRESETS)}."
        raise ValueError(f"--preset: there is no {name!r}; {meant}")
    return PRESETS[name][1]
