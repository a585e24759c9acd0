"""Hugging Face's models as regard describes them: what each configuration means, and where each tensor belongs.

BERT (Devlin et al. 2018), RoBERTa (Liu et al. 2019), DistilBERT (Sanh et al. 2019), GPT-2 (Radford et al. 2019), Marian
(Junczys-Dowmunt et al. 2018). A configuration that asks for something else than this is refused, not guessed.
"""

from collections.abc import Callable
from typing import Any

from regard.interop import fairseq
from regard.interop.places import Family, Place
from regard.models.settings import ModelSettings

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
Config = dict[str, Any]
MANY, WIDE, LONG = 1_000, 1 << 16, 1 << 20  # layers, numbers of a vector, entries of a table: no model has more
SIZES = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer", "encoder_layers", "decoder_layers"), MANY),
    **dict.fromkeys(("hidden_size", "dim", "n_embd", "d_model", "num_attention_heads", "n_heads", "n_head"), WIDE),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "type_vocab_size"), WIDE),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim"), LONG),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "vocab_size"), LONG),
}
BOTH = ("weight", "bias")


def family_of(config: Config, names: set[str]) -> Family:
    """Of a configuration and the names of its tensors. Raises ValueError for what is not known here."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(f"config.json: model_type {kind!r} is not known; known are {', '.join(FAMILIES)}.")
    for name, value in config.items():
        if name in SIZES and not (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= SIZES[name]):
            raise ValueError(
                f"config.json: {name} = {value!r} is not possible; it must lie between 1 and {SIZES[name]:,}."
            )
    return FAMILIES[kind](config, names)


def _only(config: Config, **usual: Any) -> None:
    """Raises ValueError if the configuration differs from the only values that are possible here."""
    for name, value in usual.items():
        if config.get(name, value) != value:
            raise ValueError(f"config.json: {name} = {config[name]!r} is not possible here, only {value!r}.")


def _activation(name: str) -> str:
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ValueError(f"config.json: the activation {name!r} is not known; known are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def _linear(theirs: str, *ours: str, transposed: bool = False) -> list[Place]:
    weight = Place(
        f"{theirs}.weight", tuple(f"{name}.weight" for name in ours), "transposed" if transposed else "as it is"
    )
    return [weight, Place(f"{theirs}.bias", tuple(f"{name}.bias" for name in ours))]


def _labels(config: Config) -> tuple[str, ...]:
    named = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    numbers = isinstance(named, dict) and all(str(at).isdecimal() for at in named)
    if not numbers or not all(isinstance(label, str) and label.isprintable() and label for label in named.values()):
        raise ValueError("config.json: id2label must give each class, by its number, a name of one line.")
    return tuple(named[at] for at in sorted(named, key=int))


# --- encoders alone -----------------------------------------------------------------------------------------


def _encoder(**more: Any) -> dict[str, Any]:
    return {
        "kind": "transformer",
        "norm_place": "post",
        "norm_embedding": True,
        "position": "learned",
        "scale_embedding": False,
        **more,
    }


def _bert(config: Config, names: set[str]) -> Family:
    """BERT, and RoBERTa, which counts its places from 2 on and has other names for what is said."""
    kind = config["model_type"]
    roberta = kind == "roberta"
    _only(config, position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    skip = int(config.get("pad_token_id", 1)) + 1 if roberta else 0
    width, epsilon = config["hidden_size"], config.get("layer_norm_eps", 1e-12)
    types = config.get("type_vocab_size", 2)
    encoder = _encoder(
        width=width,
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        feedforward=config["intermediate_size"],
        activation=_activation(config.get("hidden_act", "gelu")),
        positions=config["max_position_embeddings"] - skip,
        norm_epsilon=epsilon,
        dropout=config.get("hidden_dropout_prob", 0.1),
        attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
    )
    at = f"{kind}." if any(name.startswith(f"{kind}.") for name in names) else ""
    here = f"{at}embeddings"
    places = [
        Place(f"{here}.word_embeddings.weight", ("encoder.embedding.weight",), "words"),
        Place(f"{here}.position_embeddings.weight", ("encoder.embedding.place.table.weight",), skip=skip),
        Place(
            f"{here}.token_type_embeddings.weight",
            ("encoder.embedding.segment",),
            "repeated" if types == 1 else "as it is",
        ),
        *_linear(f"{here}.LayerNorm", "encoder.embedding.norm"),
    ]
    for number in range(config["num_hidden_layers"]):
        there, ours = f"{at}encoder.layer.{number}", f"encoder.layers.{number}"
        for part in ("query", "key", "value"):
            places += _linear(f"{there}.attention.self.{part}", f"{ours}.itself.{part}")
        places += _linear(f"{there}.attention.output.dense", f"{ours}.itself.output")
        places += _linear(f"{there}.attention.output.LayerNorm", f"{ours}.itself_norm")
        places += _linear(f"{there}.intermediate.dense", f"{ours}.feedforward.inner")
        places += _linear(f"{there}.output.dense", f"{ours}.feedforward.outer")
        places += _linear(f"{there}.output.LayerNorm", f"{ours}.feedforward_norm")
    pooler = [f"{at}pooler.dense.{part}" for part in BOTH]
    ids = [f"{here}.position_ids", f"{here}.token_type_ids"]
    reads = {"kind": "text", "begin": True, "segments": max(2, types), "marks": 2 if roberta else 1}
    if f"{'lm_head' if roberta else 'cls.predictions'}.bias" in names:
        if roberta:
            head, norm, table, bias = "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"
        else:
            transform = "cls.predictions.transform"
            head, norm, table = f"{transform}.dense", f"{transform}.LayerNorm", "cls.predictions.decoder"
            bias = "cls.predictions.bias"
        follows = "cls.seq_relationship.weight" in names
        places += [*_linear(head, "decoder.inner"), *_linear(norm, "decoder.norm")]
        places.append(Place(bias, ("output.bias",), "words"))
        if follows:
            places += _linear(f"{at}pooler.dense", "decoder.whole")
            places += [Place(f"cls.seq_relationship.{part}", (f"decoder.follows.{part}",), "flipped") for part in BOTH]
        activation = "gelu" if roberta else encoder["activation"]
        decoder = {
            "kind": "places",
            "width": width,
            "norm_epsilon": epsilon,
            "follows": follows,
            "activation": activation,
        }
        model = {"source": reads, "encoder": encoder, "decoder": decoder, "tie": "all", "output_bias": True}
        again = {f"{table}.weight": places[0].theirs, f"{table}.bias": bias}
        unused = ids if follows else [*ids, *pooler]
        return Family(ModelSettings.parse(model), places, again=again, unused=unused)
    if placed := _at_places(config, reads, encoder, places, f"{at}pooler.dense.weight", names, [*ids, *pooler]):
        return placed
    if "classifier.weight" in names or "classifier.out_proj.weight" in names:
        dense, out = ("classifier.dense", "classifier.out_proj") if roberta else (f"{at}pooler.dense", "classifier")
        _only(config, problem_type=None)
        return _classes(config, reads, encoder, places, dense, out, "tanh", unused=ids)
    model = {"source": reads, "encoder": encoder, "decoder": {"kind": "none", "width": width}, "tie": "none"}
    return Family(ModelSettings.parse(model), places, unused=[*ids, *pooler])


def _distilbert(config: Config, names: set[str]) -> Family:
    _only(config, sinusoidal_pos_embds=False)
    width = config["dim"]
    encoder = _encoder(
        width=width,
        layers=config["n_layers"],
        heads=config["n_heads"],
        feedforward=config["hidden_dim"],
        activation=_activation(config.get("activation", "gelu")),
        positions=config["max_position_embeddings"],
        norm_epsilon=1e-12,
        dropout=config.get("dropout", 0.1),
        attention_dropout=config.get("attention_dropout", 0.1),
    )
    at = "distilbert." if any(name.startswith("distilbert.") for name in names) else ""
    places = [
        Place(f"{at}embeddings.word_embeddings.weight", ("encoder.embedding.weight",), "words"),
        Place(f"{at}embeddings.position_embeddings.weight", ("encoder.embedding.place.table.weight",)),
        *_linear(f"{at}embeddings.LayerNorm", "encoder.embedding.norm"),
    ]
    for number in range(config["n_layers"]):
        there, ours = f"{at}transformer.layer.{number}", f"encoder.layers.{number}"
        for part in ("query", "key", "value"):
            places += _linear(f"{there}.attention.{part[0]}_lin", f"{ours}.itself.{part}")
        places += _linear(f"{there}.attention.out_lin", f"{ours}.itself.output")
        places += _linear(f"{there}.sa_layer_norm", f"{ours}.itself_norm")
        places += _linear(f"{there}.ffn.lin1", f"{ours}.feedforward.inner")
        places += _linear(f"{there}.ffn.lin2", f"{ours}.feedforward.outer")
        places += _linear(f"{there}.output_layer_norm", f"{ours}.feedforward_norm")
    ids = [f"{at}embeddings.position_ids"]
    reads: dict[str, Any] = {"kind": "text", "begin": True}
    if "vocab_projector.bias" in names:
        places += [*_linear("vocab_transform", "decoder.inner"), *_linear("vocab_layer_norm", "decoder.norm")]
        places.append(Place("vocab_projector.bias", ("output.bias",), "words"))
        decoder = {"kind": "places", "width": width, "norm_epsilon": 1e-12, "activation": encoder["activation"]}
        model = {"source": reads, "encoder": encoder, "decoder": decoder, "tie": "all", "output_bias": True}
        again = {"vocab_projector.weight": places[0].theirs}
        return Family(ModelSettings.parse(model), places, again=again, unused=ids)
    if placed := _at_places(config, reads, encoder, places, "pre_classifier.weight", names, ids):
        return placed
    if "classifier.weight" in names:
        return _classes(config, reads, encoder, places, "pre_classifier", "classifier", "relu", unused=ids)
    model = {"source": reads, "encoder": encoder, "decoder": {"kind": "none", "width": width}, "tie": "none"}
    return Family(ModelSettings.parse(model), places, unused=ids)


def _at_places(
    config: Config,
    reads: dict[str, Any],
    encoder: dict[str, Any],
    places: list[Place],
    pooled: str,
    names: set[str],
    unused: list[str],
) -> Family | None:
    """A layer on every place: where an answer begins and ends, or a tag. None where a class is told of the whole, by a
    layer of the name `pooled`."""
    span = "qa_outputs.weight" in names
    if not span and ("classifier.weight" not in names or pooled in names):
        return None
    out = "qa_outputs" if span else "classifier"
    decoder = {"kind": "places", "says": "span" if span else "tags", "width": encoder["width"], "inner": False}
    if span:
        reads = {**reads, "segments": max(2, reads.get("segments", 1))}
        if reads["segments"] > 1 and not any("encoder.embedding.segment" in place.ours for place in places):
            places = [*places, Place("", ("encoder.embedding.segment",), "nothing")]
    model = {"source": reads, "encoder": encoder, "decoder": decoder, "tie": "none"}
    places = [*places, *(Place(f"{out}.{part}", (f"output.{part}",), "classes") for part in BOTH)]
    return Family(ModelSettings.parse(model), places, labels=() if span else _labels(config), unused=unused)


def _classes(
    config: Config,
    reads: dict[str, Any],
    encoder: dict[str, Any],
    places: list[Place],
    dense: str,
    out: str,
    activation: str,
    unused: list[str],
) -> Family:
    """A class, told at the mark that begins a text."""
    width = encoder["width"]
    decoder = {"kind": "pooling", "width": width, "pool": "first", "state": False, "activation": activation}
    decoder["dropout"] = encoder["dropout"]
    model = {"source": reads, "encoder": encoder, "decoder": decoder, "tie": "none"}
    places = [
        *places,
        *_linear(dense, "decoder.inner"),
        *(Place(f"{out}.{part}", (f"output.{part}",), "classes") for part in BOTH),
    ]
    return Family(ModelSettings.parse(model), places, labels=_labels(config), unused=unused)


# --- a decoder alone ----------------------------------------------------------------------------------------


def _gpt2(config: Config, names: set[str]) -> Family:
    _only(config, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    _only(config, tie_word_embeddings=True)
    width = config["n_embd"]
    decoder = {
        "kind": "transformer",
        "width": width,
        "layers": config["n_layer"],
        "heads": config["n_head"],
        "feedforward": config.get("n_inner") or 4 * width,
        "activation": _activation(config.get("activation_function", "gelu_new")),
        "position": "learned",
        "positions": config["n_positions"],
        "norm_epsilon": config.get("layer_norm_epsilon", 1e-5),
        "dropout": config.get("resid_pdrop", 0.1),
        "attention_dropout": config.get("attn_pdrop", 0.1),
        "scale_embedding": False,
    }
    at = "transformer." if any(name.startswith("transformer.") for name in names) else ""
    places = [
        Place(f"{at}wte.weight", ("decoder.embedding.weight",), "words"),
        Place(f"{at}wpe.weight", ("decoder.embedding.place.table.weight",)),
        *_linear(f"{at}ln_f", "decoder.norm"),
    ]
    unused = []
    for number in range(config["n_layer"]):
        there, ours = f"{at}h.{number}", f"decoder.layers.{number}"
        three = [f"{ours}.itself.{part}" for part in ("query", "key", "value")]
        places += _linear(f"{there}.attn.c_attn", *three, transposed=True)
        places += _linear(f"{there}.attn.c_proj", f"{ours}.itself.output", transposed=True)
        places += _linear(f"{there}.ln_1", f"{ours}.itself_norm")
        places += _linear(f"{there}.mlp.c_fc", f"{ours}.feedforward.inner", transposed=True)
        places += _linear(f"{there}.mlp.c_proj", f"{ours}.feedforward.outer", transposed=True)
        places += _linear(f"{there}.ln_2", f"{ours}.feedforward_norm")
        unused += [f"{there}.attn.bias", f"{there}.attn.masked_bias"]  # masks, in old files
    model = {
        "source": {"kind": "nothing", "begin": False},
        "encoder": {"kind": "none", "width": width},
        "decoder": decoder,
        "tie": "target",
    }
    again = {"lm_head.weight": places[0].theirs}
    return Family(ModelSettings.parse(model), places, again=again, unused=unused)


# --- both ---------------------------------------------------------------------------------------------------


def _marian(config: Config, names: set[str]) -> Family:
    _only(config, share_encoder_decoder_embeddings=True, tie_word_embeddings=True, is_decoder=False)

    def side(name: str) -> dict[str, Any]:
        return {
            "kind": "transformer",
            "width": config["d_model"],
            "layers": config[f"{name}_layers"],
            "heads": config[f"{name}_attention_heads"],
            "feedforward": config[f"{name}_ffn_dim"],
            "activation": _activation(config.get("activation_function", "gelu")),
            "norm_place": "post",
            "position": "learned",  # sinusoids there, in an order of their own; here their table
            "positions": config["max_position_embeddings"],
            "dropout": config.get("dropout", 0.1),
            "attention_dropout": config.get("attention_dropout", 0.0),
            "activation_dropout": config.get("activation_dropout", 0.0),
            "scale_embedding": bool(config.get("scale_embedding", False)),
        }

    model = {"encoder": side("encoder"), "decoder": side("decoder"), "tie": "all", "output_bias": True}
    places = [
        Place("model.shared.weight", ("encoder.embedding.weight",), "words"),
        Place("final_logits_bias", ("output.bias",), "row"),
    ]
    again = {"lm_head.weight": "model.shared.weight"}
    for name in ("encoder", "decoder"):
        at = f"model.{name}"
        again[f"{at}.embed_tokens.weight"] = "model.shared.weight"
        places.append(Place(f"{at}.embed_positions.weight", (f"{name}.embedding.place.table.weight",), "sinusoids"))
        for number in range(config[f"{name}_layers"]):
            there, ours = f"{at}.layers.{number}", f"{name}.layers.{number}"
            looks = [("self_attn", "itself")] + ([("encoder_attn", "memory")] if name == "decoder" else [])
            for theirs, mine in looks:
                for part in ("query", "key", "value"):
                    places += _linear(f"{there}.{theirs}.{part[0]}_proj", f"{ours}.{mine}.{part}")
                places += _linear(f"{there}.{theirs}.out_proj", f"{ours}.{mine}.output")
                places += _linear(f"{there}.{theirs}_layer_norm", f"{ours}.{mine}_norm")
            places += _linear(f"{there}.fc1", f"{ours}.feedforward.inner")
            places += _linear(f"{there}.fc2", f"{ours}.feedforward.outer")
            places += _linear(f"{there}.final_layer_norm", f"{ours}.feedforward_norm")
    return Family(ModelSettings.parse(model), places, again=again)


FAMILIES: dict[str, Callable[[Config, set[str]], Family]] = {
    "bert": _bert,
    "roberta": _bert,
    "distilbert": _distilbert,
    "gpt2": _gpt2,
    "marian": _marian,
    fairseq.MODEL_TYPE: fairseq.family,
}
