"""Models with a name: settings of the model, and of the training that suits it. Imports no PyTorch.

A preset is only a beginning: any field can be changed with a TOML file or `--set`.
"""

import difflib
from typing import Any

from regard.errors import RegardError

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


def _classifier(encoder: Preset, **source: Any) -> Preset:
    return {
        "model": {
            **({"source": source} if source else {}),
            "encoder": encoder,
            "decoder": {"kind": "pooling", "width": encoder["width"], "dropout": encoder["dropout"]},
            "tie": "none",
        },
        "data": {"whole": True},
        "training": {
            **_RECURRENT_TRAINING,
            "smoothing": 0.05,
            "metric": "exact",
            "average": 0.99,
        },
    }


def _language(width: int, heads: int, feedforward: int, layers: int, dropout: float, **more: Any) -> Preset:
    part = {"kind": "transformer", "width": width, "heads": heads, "feedforward": feedforward, "layers": layers}
    return {
        "model": {
            "source": {"kind": "nothing"},
            "encoder": {"kind": "none", "width": width},
            "decoder": {**part, "dropout": dropout, "activation": "gelu", "position": "rotary", **more},
            "tie": "target",
        },
        "training": {
            **_TRANSFORMER_TRAINING,
            "learning_rate": 3e-3 * (128 / width) ** 0.5,
            "warmup": 300,
            "smoothing": 0.0,
            "metric": "loss",
        },
    }


def _guessing(width: int, heads: int, feedforward: int, layers: int, **more: Any) -> Preset:
    part = {"kind": "transformer", "width": width, "heads": heads, "feedforward": feedforward, "layers": layers}
    return {
        "model": {
            "source": {"kind": "text", "begin": True},
            "encoder": {**part, "dropout": 0.1, "activation": "gelu", "position": "rotary", **more},
            "decoder": {"kind": "places", "width": width},
            "tie": "all",
            "output_bias": True,
        },
        "data": {"longest": 128},
        "training": {
            **_TRANSFORMER_TRAINING,
            "learning_rate": 3e-3 * (128 / width) ** 0.5,
            "tokens": 4096,
            "warmup": 300,
            "smoothing": 0.0,
            "metric": "loss",
        },
    }


_BERT: Preset = {"position": "learned", "positions": 512, "norm_place": "post", "norm_embedding": True}
_CELLS: Preset = {"kind": "images", "size": 64, "cut": {"kind": "residual", "attend": "se"}}
_LOOKING: Preset = {"tokens": 4096, "metric": "chrf", "average": 0.999}
_LUONG: Preset = {"cell": "lstm", "initialization": "uniform"}
_SHOW: Preset = {"kind": "recurrent", "cell": "lstm", "attend": "before", "score": "additive", "gate": True}
_SMALL: Preset = {"kind": "transformer", "width": 128, "heads": 4, "feedforward": 512, "dropout": 0.2}
_LISTEN: Preset = {"kind": "recurrent", "cell": "lstm"}
_CONVOLUTIONAL: Preset = {"kind": "convolutional", "width": 256, "embedding": 256, "kernel": 3, "dropout": 0.2}

PRESETS: dict[str, tuple[str, Preset]] = {
    "vanilla-rnn": (
        "one vector for the whole source: LSTM, source reversed, no attention (Sutskever et al. 2014)",
        _recurrent(
            {"cell": "lstm", "layers": 2, "bidirectional": False, "reverse": True, "initialization": "uniform"},
            {"cell": "lstm", "layers": 2, "attend": "never", "initialization": "uniform"},
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
        _recurrent({}, {"attend": "before", "score": "additive", "normalize": "hard"}),
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
    "classifier": (
        "text to class: bidirectional GRU, attention pooling by a learnt query (Yang et al. 2016)",
        _classifier({"kind": "recurrent", "width": 128, "embedding": 128, "dropout": 0.4}),
    ),
    "classifier-conv": (
        "text to class: gated convolutions, attention pooling",
        _classifier({"kind": "convolutional", "width": 128, "embedding": 128, "layers": 2, "dropout": 0.4}),
    ),
    "classifier-transformer": (
        "text to class: two Transformer layers, attention pooling",
        _classifier({"kind": "transformer", "width": 128, "heads": 4, "feedforward": 256, "layers": 2, "dropout": 0.3}),
    ),
    "image-classifier": (
        "picture to class: residual convolutions with squeeze-and-excitation (Hu et al. 2017), attention pooling",
        _classifier({"kind": "none", "width": 128, "dropout": 0.2}, **_CELLS),
    ),
    "speech-classifier": (
        "recording to class: convolutions, bidirectional GRU, attention pooling",
        _classifier({"kind": "recurrent", "width": 128, "embedding": 128, "dropout": 0.2}, kind="speech", subsample=4),
    ),
    "show-attend-tell": (
        "picture to text: residual convolutions, an LSTM that looks before each word (Xu et al. 2015, soft)",
        {
            "model": {
                "source": _CELLS,
                "encoder": {"kind": "none", "width": 256, "dropout": 0.2},
                "decoder": {**_SHOW, "width": 256, "embedding": 256, "dropout": 0.3},
                "tie": "target",
            },
            "training": {**_RECURRENT_TRAINING, **_LOOKING, "doubly_stochastic": 0.01},
        },
    ),
    "show-attend-tell-hard": (
        "the same, looking at one cell at a time (Xu et al. 2015, hard, by REINFORCE)",
        {
            "model": {
                "source": _CELLS,
                "encoder": {"kind": "none", "width": 256, "dropout": 0.2},
                "decoder": {
                    **_SHOW,
                    "width": 256,
                    "embedding": 256,
                    "dropout": 0.3,
                    "normalize": "hard",
                    "estimator": "reinforce",
                },
                "tie": "target",
            },
            "training": {**_RECURRENT_TRAINING, **_LOOKING},
        },
    ),
    "vit-caption": (
        "picture to text: squares of pixels, a Transformer on both sides (Dosovitskiy et al. 2020)",
        {
            "model": {
                "source": {"kind": "images", "size": 64, "cut": {"kind": "patches", "patch": 8}},
                "encoder": {**_SMALL, "layers": 4, "position": "none"},
                "decoder": {**_SMALL, "layers": 3},
                "tie": "target",
            },
            "training": {**_TRANSFORMER_TRAINING, **_LOOKING, "learning_rate": 1.5e-3},
        },
    ),
    "listen-attend-spell": (
        "speech to text: a pyramid of LSTMs, location-aware attention (Chan et al. 2015, Chorowski et al. 2015)",
        {
            "model": {
                "source": {"kind": "speech", "subsample": 2},
                "encoder": {**_LISTEN, "layers": 2, "pyramid": True, "width": 128, "embedding": 128, "dropout": 0.2},
                "decoder": {
                    **_LISTEN,
                    "attend": "before",
                    "score": "location",
                    "width": 256,
                    "embedding": 64,
                    "dropout": 0.2,
                },
                "tie": "target",
            },
            "data": {"subwords": {"kind": "character"}},
            "training": {**_RECURRENT_TRAINING, "tokens": 2048, "metric": "wer", "average": 0.99},
        },
    ),
    "speech-transformer": (
        "speech to text: convolutions and Transformer layers (Dong et al. 2018)",
        {
            "model": {
                "source": {"kind": "speech", "subsample": 4},
                "encoder": {**_SMALL, "layers": 4, "dropout": 0.15},
                "decoder": {**_SMALL, "layers": 2, "dropout": 0.15},
                "tie": "target",
            },
            "data": {"subwords": {"kind": "character"}},
            "training": {**_TRANSFORMER_TRAINING, "tokens": 4096, "metric": "wer", "learning_rate": 2e-3},
        },
    ),
    "pointer-generator": (
        "long text to short: bahdanau that sees where it has looked and may copy words (See et al. 2017)",
        {
            "model": {
                "encoder": {"kind": "recurrent", "cell": "lstm", "width": 192, "embedding": 128, "dropout": 0.2},
                "decoder": {
                    "kind": "recurrent",
                    "cell": "lstm",
                    "width": 256,
                    "embedding": 128,
                    "dropout": 0.2,
                    "score": "additive",
                    "copy_words": True,
                },
                "tie": "all",
            },
            "data": {"whole": True},
            "training": {**_RECURRENT_TRAINING, "metric": "rougeL", "average": 0.999},
        },
    ),
    "answer": (
        "story and question to answer: a Transformer that tells the parts apart and may copy words",
        {
            "model": {
                "source": {"kind": "text", "segments": 2},
                "encoder": {**_SMALL, "layers": 3, "dropout": 0.1, "position": "rotary"},
                "decoder": {**_SMALL, "layers": 2, "dropout": 0.1, "position": "rotary", "copy_words": True},
                "tie": "all",
            },
            "data": {"whole": True, "subwords": {"kind": "word"}},
            "training": {**_TRANSFORMER_TRAINING, "learning_rate": 1.5e-3, "metric": "exact", "smoothing": 0.0},
        },
    ),
    "tagger": (
        "text to a tag of every word: bidirectional LSTM (Huang et al. 2015)",
        {
            "model": {
                "encoder": {"kind": "recurrent", "cell": "lstm", "width": 128, "embedding": 128, "dropout": 0.3},
                "decoder": {"kind": "places", "says": "tags", "width": 128, "activation": "relu"},
                "tie": "none",
            },
            "training": {**_RECURRENT_TRAINING, "smoothing": 0.0, "metric": "entity_f1", "average": 0.99},
        },
    ),
    "span": (
        "passage and question to the part of the passage that answers it (BERT for SQuAD, Devlin et al. 2018)",
        {
            "model": {
                "source": {"kind": "text", "segments": 2, "begin": True},
                "encoder": {**_SMALL, "layers": 4, "dropout": 0.1, "position": "rotary"},
                "decoder": {"kind": "places", "says": "span", "width": _SMALL["width"], "inner": False},
                "tie": "none",
            },
            "data": {"whole": True, "longest": 384, "most_characters": 500_000},
            "training": {**_TRANSFORMER_TRAINING, "tokens": 4096, "smoothing": 0.0, "metric": "span_f1"},
        },
    ),
    "memory": (
        "story and question to answer: sentences are the places, counted back from the question (memory networks, "
        "Sukhbaatar et al. 2015; as places of a Transformer, Dehghani et al. 2018)",
        {
            "model": {
                "source": {"kind": "text", "segments": 64, "sentences": True, "places": "sentences"},
                "encoder": {**_SMALL, "layers": 3, "dropout": 0.1, "position": "none", "activation": "gelu"},
                "decoder": {**_SMALL, "layers": 2, "dropout": 0.1, "activation": "gelu"},
                "tie": "all",
            },
            "data": {"whole": True, "longest": 512, "subwords": {"kind": "word"}},
            "training": {
                **_TRANSFORMER_TRAINING,
                "learning_rate": 1e-3,
                "tokens": 4096,
                "metric": "exact",
                "smoothing": 0.0,
                "clip": 1.0,
            },
        },
    ),
    "gpt-tiny": (
        "plain text: a Transformer decoder alone, 4 layers of width 128 (GPT, Radford et al. 2018)",
        _language(128, 4, 512, 4, 0.1),
    ),
    "gpt-small": ("the same, 6 layers of width 256", _language(256, 4, 1024, 6, 0.1)),
    "gpt2": (
        "the shape of GPT-2 small: 12 layers of width 768, learned positions (Radford et al. 2019)",
        _language(768, 12, 3072, 12, 0.1, position="learned"),
    ),
    "bert-tiny": (
        "plain text with words hidden: a Transformer encoder alone, 4 layers of width 128 (BERT, Devlin et al. 2018)",
        _guessing(128, 4, 512, 4),
    ),
    "bert-small": ("the same, 6 layers of width 256", _guessing(256, 4, 1024, 6)),
    "bert": (
        "BERT's own shape: 12 layers of width 768, learned positions, norms after the sums",
        _guessing(768, 12, 3072, 12, **_BERT, scale_embedding=False),
    ),
    "deep-shallow": (
        "12 encoder layers and one decoder layer of width 256: fast to translate with",
        _transformer(256, 4, 1024, 12, 1, 0.2),
    ),
}


def preset(name: str) -> Preset:
    """Plain data for `Settings.parse`. Raises RegardError for an unknown name, saying which was meant."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name.lower().replace("_", "-"), PRESETS, n=1, cutoff=0.5)
        meant = f"did you mean {near[0]}?" if near else f"the presets are {', '.join(PRESETS)}."
        raise RegardError(f"--preset: there is no {name!r}; {meant}")
    return PRESETS[name][1]
