"""Model shapes with a name: settings of source, encoder, decoder or head. Imports no PyTorch.

Each task turns some of them into presets, with the data and training settings that suit it.
"""

from typing import Any, NamedTuple

Model = dict[str, Any]


class Shape(NamedTuple):
    """summary: one line, with its paper. model: plain data for `ModelSettings.parse`."""

    summary: str
    model: Model


def _recurrent(encoder: Model, decoder: Model) -> Model:
    shared = {"kind": "recurrent", "width": 256, "embedding": 256, "dropout": 0.2}
    return {"encoder": {**shared, **encoder}, "decoder": {**shared, **decoder}, "tie": "target"}


def _transformer(width: int, heads: int, feedforward: int, encoder: int, decoder: int, dropout: float) -> Model:
    stack = {"kind": "transformer", "width": width, "heads": heads, "feedforward": feedforward, "dropout": dropout}
    return {"encoder": {**stack, "layers": encoder}, "decoder": {**stack, "layers": decoder}, "tie": "all"}


def _classifier(encoder: Model, **source: Any) -> Model:
    return {
        **({"source": source} if source else {}),
        "encoder": encoder,
        "decoder": {"kind": "pooling", "width": encoder["width"], "dropout": encoder["dropout"]},
        "tie": "none",
    }


def _gpt(width: int, heads: int, feedforward: int, layers: int, dropout: float, **overrides: Any) -> Model:
    stack = {"kind": "transformer", "width": width, "heads": heads, "feedforward": feedforward, "layers": layers}
    return {
        "source": {"kind": "none"},
        "encoder": {"kind": "none", "width": width},
        "decoder": {**stack, "dropout": dropout, "activation": "gelu", "position": "rotary", **overrides},
        "tie": "target",
    }


def _bert(width: int, heads: int, feedforward: int, layers: int, **overrides: Any) -> Model:
    stack = {"kind": "transformer", "width": width, "heads": heads, "feedforward": feedforward, "layers": layers}
    return {
        "source": {"kind": "text", "bos": True},
        "encoder": {**stack, "dropout": 0.1, "activation": "gelu", "position": "rotary", **overrides},
        "decoder": {"kind": "masked-lm", "width": width},
        "tie": "all",
        "output_bias": True,
    }


_BERT: Model = {"position": "learned", "max_positions": 512, "norm_first": False, "norm_embedding": True}
_IMAGE_SOURCE: Model = {"kind": "image", "size": 64, "stem": {"kind": "residual", "channel_attention": "se"}}
_LUONG: Model = {"cell": "lstm", "initialization": "uniform"}
_SHOW_ATTEND_TELL: Model = {"kind": "recurrent", "cell": "lstm", "attend": "before", "score": "additive", "gate": True}
_SMALL_TRANSFORMER: Model = {"kind": "transformer", "width": 128, "heads": 4, "feedforward": 512, "dropout": 0.2}
_LSTM_LAYERS: Model = {"kind": "recurrent", "cell": "lstm"}
_CONVOLUTIONAL: Model = {"kind": "convolutional", "width": 256, "embedding": 256, "kernel": 3, "dropout": 0.2}

_SERIES_TRANSFORMER: Model = {
    "kind": "transformer",
    "width": 32,
    "heads": 4,
    "feedforward": 64,
    "layers": 3,
    "dropout": 0.1,
    "activation": "gelu",
    "position": "learned",
    "scale_embedding": False,
}
_STEPS: Model = {"kind": "series", "patch_length": 1, "patch_stride": 1, "channels": "mixed"}

SHAPES: dict[str, Shape] = {
    "vanilla-rnn": Shape(
        "one vector for the whole source: LSTM, source reversed, no attention (Sutskever et al. 2014)",
        _recurrent(
            {"cell": "lstm", "layers": 2, "bidirectional": False, "reverse": True, "initialization": "uniform"},
            {"cell": "lstm", "layers": 2, "attend": "never", "initialization": "uniform"},
        ),
    ),
    "bahdanau": Shape(
        "bidirectional GRU, additive attention before each step (Bahdanau et al. 2014)",
        _recurrent({}, {"attend": "before", "score": "additive"}),
    ),
    "luong": Shape(
        "LSTM, bilinear attention after each step, input feeding (Luong et al. 2015)",
        _recurrent(_LUONG, {**_LUONG, "attend": "after", "score": "bilinear", "input_feeding": True}),
    ),
    "luong-local": Shape(
        "the same within a window around a predicted position, local-p (Luong et al. 2015)",
        _recurrent(
            _LUONG,
            {**_LUONG, "attend": "after", "score": "bilinear", "extent": "local-p", "input_feeding": True},
        ),
    ),
    "hard": Shape(
        "bahdanau with hard attention to one position at a time (Xu et al. 2015, straight-through Gumbel)",
        _recurrent({}, {"attend": "before", "score": "additive", "normalize": "hard"}),
    ),
    "conv": Shape(
        "gated convolutions with attention in every block (Gehring et al. 2017)",
        {
            "encoder": {**_CONVOLUTIONAL, "layers": 4},
            "decoder": {**_CONVOLUTIONAL, "layers": 3},
            "tie": "target",
        },
    ),
    "transformer-tiny": Shape("4 + 4 layers of width 128: small data, minutes", _transformer(128, 4, 256, 4, 4, 0.3)),
    "transformer-small": Shape("6 + 6 layers of width 256", _transformer(256, 4, 1024, 6, 6, 0.2)),
    "transformer-base": Shape("6 + 6 layers of width 512 (Vaswani et al. 2017)", _transformer(512, 8, 2048, 6, 6, 0.1)),
    "classifier": Shape(
        "text to class: bidirectional GRU, attention pooling by a learned query (Yang et al. 2016)",
        _classifier({"kind": "recurrent", "width": 128, "embedding": 128, "dropout": 0.4}),
    ),
    "classifier-conv": Shape(
        "text to class: gated convolutions, attention pooling",
        _classifier({"kind": "convolutional", "width": 128, "embedding": 128, "layers": 2, "dropout": 0.4}),
    ),
    "classifier-transformer": Shape(
        "text to class: two Transformer layers, attention pooling",
        _classifier({"kind": "transformer", "width": 128, "heads": 4, "feedforward": 256, "layers": 2, "dropout": 0.3}),
    ),
    "image-classifier": Shape(
        "image to class: residual convolutions with squeeze-and-excitation (Hu et al. 2017), attention pooling",
        _classifier({"kind": "none", "width": 128, "dropout": 0.2}, **_IMAGE_SOURCE),
    ),
    "speech-classifier": Shape(
        "recording to class: convolutions, bidirectional GRU, attention pooling",
        _classifier({"kind": "recurrent", "width": 128, "embedding": 128, "dropout": 0.2}, kind="audio", subsampling=4),
    ),
    "series-classifier": Shape(
        "numeric series to class: a Transformer over patches of all columns, attention pooling",
        _classifier(
            {**_SERIES_TRANSFORMER, "width": 128, "feedforward": 256, "dropout": 0.2},
            **{"kind": "series", "channels": "mixed", "patch_length": 4, "patch_stride": 4, "instance_norm": "none"},
        ),
    ),
    "show-attend-tell": Shape(
        "image to text: residual convolutions, an LSTM that attends before each word (Xu et al. 2015, soft)",
        {
            "source": _IMAGE_SOURCE,
            "encoder": {"kind": "none", "width": 256, "dropout": 0.2},
            "decoder": {**_SHOW_ATTEND_TELL, "width": 256, "embedding": 256, "dropout": 0.3},
            "tie": "target",
        },
    ),
    "show-attend-tell-hard": Shape(
        "the same, attending to one cell at a time (Xu et al. 2015, hard, by REINFORCE)",
        {
            "source": _IMAGE_SOURCE,
            "encoder": {"kind": "none", "width": 256, "dropout": 0.2},
            "decoder": {
                **_SHOW_ATTEND_TELL,
                "width": 256,
                "embedding": 256,
                "dropout": 0.3,
                "normalize": "hard",
                "estimator": "reinforce",
            },
            "tie": "target",
        },
    ),
    "vit-caption": Shape(
        "image to text: patches of pixels, a Transformer on both sides (Dosovitskiy et al. 2020)",
        {
            "source": {"kind": "image", "size": 64, "stem": {"kind": "patches", "patch_size": 8}},
            "encoder": {**_SMALL_TRANSFORMER, "layers": 4, "position": "none"},
            "decoder": {**_SMALL_TRANSFORMER, "layers": 3},
            "tie": "target",
        },
    ),
    "listen-attend-spell": Shape(
        "speech to text: a pyramid of LSTMs, location-aware attention (Chan et al. 2015, Chorowski et al. 2015)",
        {
            "source": {"kind": "audio", "subsampling": 2},
            "encoder": {**_LSTM_LAYERS, "layers": 2, "pyramid": True, "width": 128, "embedding": 128, "dropout": 0.2},
            "decoder": {
                **_LSTM_LAYERS,
                "attend": "before",
                "score": "location",
                "width": 256,
                "embedding": 64,
                "dropout": 0.2,
            },
            "tie": "target",
        },
    ),
    "speech-transformer": Shape(
        "speech to text: convolutions and Transformer layers (Dong et al. 2018)",
        {
            "source": {"kind": "audio", "subsampling": 4},
            "encoder": {**_SMALL_TRANSFORMER, "layers": 4, "dropout": 0.15},
            "decoder": {**_SMALL_TRANSFORMER, "layers": 2, "dropout": 0.15},
            "tie": "target",
        },
    ),
    "pointer-generator": Shape(
        "long text to short: bahdanau with a copy mechanism (See et al. 2017)",
        {
            "encoder": {"kind": "recurrent", "cell": "lstm", "width": 192, "embedding": 128, "dropout": 0.2},
            "decoder": {
                "kind": "recurrent",
                "cell": "lstm",
                "width": 256,
                "embedding": 128,
                "dropout": 0.2,
                "score": "additive",
                "copy_mechanism": True,
            },
            "tie": "all",
        },
    ),
    "story-qa": Shape(
        "story and question to answer: a Transformer with segment embeddings and a copy mechanism",
        {
            "source": {"kind": "text", "segments": 2},
            "encoder": {**_SMALL_TRANSFORMER, "layers": 3, "dropout": 0.1, "position": "rotary"},
            "decoder": {
                **_SMALL_TRANSFORMER,
                "layers": 2,
                "dropout": 0.1,
                "position": "rotary",
                "copy_mechanism": True,
            },
            "tie": "all",
        },
    ),
    "tagger": Shape(
        "a tag of every word of a text: bidirectional LSTM (Huang et al. 2015)",
        {
            "encoder": {"kind": "recurrent", "cell": "lstm", "width": 128, "embedding": 128, "dropout": 0.3},
            "decoder": {"kind": "token-classification", "width": 128, "activation": "relu"},
            "tie": "none",
        },
    ),
    "span-qa": Shape(
        "passage and question to the part of the passage that answers it (BERT for SQuAD, Devlin et al. 2018)",
        {
            "source": {"kind": "text", "segments": 2, "bos": True},
            "encoder": {**_SMALL_TRANSFORMER, "layers": 4, "dropout": 0.1, "position": "rotary"},
            "decoder": {"kind": "span", "width": _SMALL_TRANSFORMER["width"], "dense": False},
            "tie": "none",
        },
    ),
    "memory-network": Shape(
        "story and question to answer: attention over sentences, counted back from the question (memory networks, "
        "Sukhbaatar et al. 2015; as positions of a Transformer, Dehghani et al. 2018)",
        {
            "source": {"kind": "text", "segments": 64, "sentence_segments": True, "unit": "sentence"},
            "encoder": {**_SMALL_TRANSFORMER, "layers": 3, "dropout": 0.1, "position": "none", "activation": "gelu"},
            "decoder": {**_SMALL_TRANSFORMER, "layers": 2, "dropout": 0.1, "activation": "gelu"},
            "tie": "all",
        },
    ),
    "gpt-tiny": Shape(
        "plain text: a Transformer decoder alone, 4 layers of width 128 (GPT, Radford et al. 2018)",
        _gpt(128, 4, 512, 4, 0.1),
    ),
    "gpt-small": Shape("the same, 6 layers of width 256", _gpt(256, 4, 1024, 6, 0.1)),
    "gpt2": Shape(
        "the shape of GPT-2 small: 12 layers of width 768, learned positions (Radford et al. 2019)",
        _gpt(768, 12, 3072, 12, 0.1, position="learned"),
    ),
    "bert-tiny": Shape(
        "plain text with masked tokens: a Transformer encoder alone, 4 layers of width 128 (BERT, Devlin et al. 2018)",
        _bert(128, 4, 512, 4),
    ),
    "bert-small": Shape("the same, 6 layers of width 256", _bert(256, 4, 1024, 6)),
    "bert": Shape(
        "BERT's own shape: 12 layers of width 768, learned positions, post-norm",
        _bert(768, 12, 3072, 12, **_BERT, scale_embedding=False),
    ),
    "deep-shallow": Shape(
        "12 encoder layers and one decoder layer of width 256: fast to translate with",
        _transformer(256, 4, 1024, 12, 1, 0.2),
    ),
    "patch-transformer": Shape(
        "series to their future: a Transformer over patches of each column (PatchTST, Nie et al. 2022)",
        {
            "source": {"kind": "series"},
            "encoder": {**_SERIES_TRANSFORMER, "dropout": 0.2},
            "decoder": {"kind": "forecast", "width": 32, "pool": "flatten"},
            "tie": "none",
        },
    ),
    "column-transformer": Shape(
        "series to their future: a Transformer over columns (iTransformer, Liu et al. 2023)",
        {
            "source": {"kind": "series", "unit": "column"},
            "encoder": {**_SERIES_TRANSFORMER, "width": 128, "feedforward": 128, "layers": 2, "position": "none"},
            "decoder": {"kind": "forecast", "width": 128, "pool": "position"},
            "tie": "none",
        },
    ),
    "step-transformer": Shape(
        "series to their future: a Transformer over steps, with attention from each step ahead",
        {
            "source": {**_STEPS, "instance_norm": "none"},
            "encoder": {**_SERIES_TRANSFORMER, "width": 64, "feedforward": 128, "layers": 2},
            "decoder": {"kind": "forecast", "width": 64, "pool": "attention", "heads": 4},
            "tie": "none",
        },
    ),
    "series-rnn": Shape(
        "series to their future: a GRU over steps, with attention from each step ahead",
        {
            "source": _STEPS,
            "encoder": {"kind": "recurrent", "width": 64, "embedding": 64, "bidirectional": False, "dropout": 0.1},
            "decoder": {"kind": "forecast", "width": 64, "pool": "attention", "score": "additive"},
            "tie": "none",
        },
    ),
    "series-conv": Shape(
        "series to their future: gated convolutions over steps, with attention from each step ahead",
        {
            "source": _STEPS,
            "encoder": {"kind": "convolutional", "width": 64, "embedding": 64, "layers": 4, "kernel": 5},
            "decoder": {"kind": "forecast", "width": 64, "pool": "attention"},
            "tie": "none",
        },
    ),
    "linear-forecast": Shape(
        "series to their future: one linear layer, the same for every column (NLinear, Zeng et al. 2022)",
        {
            "source": {"kind": "series", "unit": "column", "instance_norm": "last"},
            "encoder": {"kind": "none", "width": 256, "dropout": 0.0},
            "decoder": {"kind": "forecast", "width": 256, "pool": "position"},
            "tie": "none",
        },
    ),
}
