"""Encoders alone: BERT (Devlin et al. 2018), RoBERTa (Liu et al. 2019), DistilBERT (Sanh et al. 2019)."""

from typing import Any

from regard.interop.families.common import BOTH, Config, activation_of, labels_of, linear, only
from regard.interop.tensor_map import Family, Place
from regard.models.settings import ModelSettings


def _encoder(**more: Any) -> dict[str, Any]:
    return {
        "kind": "transformer",
        "norm_place": "post",
        "norm_embedding": True,
        "position": "learned",
        "scale_embedding": False,
        **more,
    }


def bert(config: Config, names: set[str]) -> Family:
    """BERT, and RoBERTa, which counts its places from 2 on and has other names for what is said."""
    kind = config["model_type"]
    roberta = kind == "roberta"
    only(config, position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    skip = int(config.get("pad_token_id", 1)) + 1 if roberta else 0
    width, epsilon = config["hidden_size"], config.get("layer_norm_eps", 1e-12)
    types = config.get("type_vocab_size", 2)
    encoder = _encoder(
        width=width,
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        feedforward=config["intermediate_size"],
        activation=activation_of(config.get("hidden_act", "gelu")),
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
        *linear(f"{here}.LayerNorm", "encoder.embedding.norm"),
    ]
    for number in range(config["num_hidden_layers"]):
        there, ours = f"{at}encoder.layer.{number}", f"encoder.layers.{number}"
        for part in ("query", "key", "value"):
            places += linear(f"{there}.attention.self.{part}", f"{ours}.itself.{part}")
        places += linear(f"{there}.attention.output.dense", f"{ours}.itself.output")
        places += linear(f"{there}.attention.output.LayerNorm", f"{ours}.itself_norm")
        places += linear(f"{there}.intermediate.dense", f"{ours}.feedforward.inner")
        places += linear(f"{there}.output.dense", f"{ours}.feedforward.outer")
        places += linear(f"{there}.output.LayerNorm", f"{ours}.feedforward_norm")
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
        places += [*linear(head, "decoder.inner"), *linear(norm, "decoder.norm")]
        places.append(Place(bias, ("output.bias",), "words"))
        if follows:
            places += linear(f"{at}pooler.dense", "decoder.whole")
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
        only(config, problem_type=None)
        return _classes(config, reads, encoder, places, dense, out, "tanh", unused=ids)
    model = {"source": reads, "encoder": encoder, "decoder": {"kind": "none", "width": width}, "tie": "none"}
    return Family(ModelSettings.parse(model), places, unused=[*ids, *pooler])


def distilbert(config: Config, names: set[str]) -> Family:
    only(config, sinusoidal_pos_embds=False)
    width = config["dim"]
    encoder = _encoder(
        width=width,
        layers=config["n_layers"],
        heads=config["n_heads"],
        feedforward=config["hidden_dim"],
        activation=activation_of(config.get("activation", "gelu")),
        positions=config["max_position_embeddings"],
        norm_epsilon=1e-12,
        dropout=config.get("dropout", 0.1),
        attention_dropout=config.get("attention_dropout", 0.1),
    )
    at = "distilbert." if any(name.startswith("distilbert.") for name in names) else ""
    places = [
        Place(f"{at}embeddings.word_embeddings.weight", ("encoder.embedding.weight",), "words"),
        Place(f"{at}embeddings.position_embeddings.weight", ("encoder.embedding.place.table.weight",)),
        *linear(f"{at}embeddings.LayerNorm", "encoder.embedding.norm"),
    ]
    for number in range(config["n_layers"]):
        there, ours = f"{at}transformer.layer.{number}", f"encoder.layers.{number}"
        for part in ("query", "key", "value"):
            places += linear(f"{there}.attention.{part[0]}_lin", f"{ours}.itself.{part}")
        places += linear(f"{there}.attention.out_lin", f"{ours}.itself.output")
        places += linear(f"{there}.sa_layer_norm", f"{ours}.itself_norm")
        places += linear(f"{there}.ffn.lin1", f"{ours}.feedforward.inner")
        places += linear(f"{there}.ffn.lin2", f"{ours}.feedforward.outer")
        places += linear(f"{there}.output_layer_norm", f"{ours}.feedforward_norm")
    ids = [f"{at}embeddings.position_ids"]
    reads: dict[str, Any] = {"kind": "text", "begin": True}
    if "vocab_projector.bias" in names:
        places += [*linear("vocab_transform", "decoder.inner"), *linear("vocab_layer_norm", "decoder.norm")]
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
    return Family(ModelSettings.parse(model), places, labels=() if span else labels_of(config), unused=unused)


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
        *linear(dense, "decoder.inner"),
        *(Place(f"{out}.{part}", (f"output.{part}",), "classes") for part in BOTH),
    ]
    return Family(ModelSettings.parse(model), places, labels=labels_of(config), unused=unused)


def esm(config: Config, names: set[str]) -> Family:
    """ESM (Lin et al. 2022): BERT with norms before each part and rotary places."""
    only(config, position_embedding_type="rotary", emb_layer_norm_before=False, token_dropout=False)
    only(config, is_folding_model=False)
    tied = config.get("tie_word_embeddings", True)
    width, heads = config["hidden_size"], config["num_attention_heads"]
    epsilon = config.get("layer_norm_eps", 1e-12)
    encoder = {
        "kind": "transformer",
        "width": width,
        "layers": config["num_hidden_layers"],
        "heads": heads,
        "feedforward": config["intermediate_size"],
        "activation": "gelu",
        "position": "rotary",
        "norm_epsilon": epsilon,
        "dropout": config.get("hidden_dropout_prob", 0.1),
        "attention_dropout": config.get("attention_probs_dropout_prob", 0.1),
        "scale_embedding": False,
    }
    places = [
        Place("esm.embeddings.word_embeddings.weight", ("encoder.embedding.weight",), "words"),
        *linear("esm.encoder.emb_layer_norm_after", "encoder.norm"),
    ]
    unused = [f"esm.contact_head.regression.{each}" for each in BOTH]
    unused += [
        "esm.rotary_embeddings.inv_freq",
        "esm.embeddings.position_ids",
        "esm.embeddings.position_embeddings.weight",
    ]
    for number in range(config["num_hidden_layers"]):
        there, ours = f"esm.encoder.layer.{number}", f"encoder.layers.{number}"
        for part in ("query", "key"):
            for each in BOTH:
                name = f"{there}.attention.self.{part}.{each}"
                places.append(Place(name, (f"{ours}.itself.{part}.{each}",), "turned", heads=heads))
        places += linear(f"{there}.attention.self.value", f"{ours}.itself.value")
        places += linear(f"{there}.attention.output.dense", f"{ours}.itself.output")
        places += linear(f"{there}.attention.LayerNorm", f"{ours}.itself_norm")
        places += linear(f"{there}.intermediate.dense", f"{ours}.feedforward.inner")
        places += linear(f"{there}.output.dense", f"{ours}.feedforward.outer")
        places += linear(f"{there}.LayerNorm", f"{ours}.feedforward_norm")
        unused.append(f"{there}.attention.self.rotary_embeddings.inv_freq")
    places += [*linear("lm_head.dense", "decoder.inner"), *linear("lm_head.layer_norm", "decoder.norm")]
    places.append(Place("lm_head.bias", ("output.bias",), "words"))
    if not tied:
        places.append(Place("lm_head.decoder.weight", ("output.weight",), "words"))
    again = {"lm_head.decoder.weight": places[0].theirs} if tied else {}
    reads = {"kind": "text", "begin": True}
    decoder = {"kind": "places", "width": width, "norm_epsilon": epsilon, "activation": "gelu"}
    model = {"source": reads, "encoder": encoder, "decoder": decoder, "tie": "all" if tied else "none"}
    model["output_bias"] = tied
    longest = config["max_position_embeddings"]
    return Family(ModelSettings.parse(model), places, again=again, longest=longest, unused=unused)
