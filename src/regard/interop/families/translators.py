"""Encoders with decoders: Marian (Junczys-Dowmunt et al. 2018), and Pegasus (Zhang et al. 2019), whose norms come
before each part."""

from typing import Any

from regard.interop.families.common import Config, activation_of, linear, only
from regard.interop.tensor_map import Family, How, Place
from regard.models.settings import ModelSettings


def marian(config: Config, names: set[str]) -> Family:
    pre = config["model_type"] == "pegasus"
    only(config, share_encoder_decoder_embeddings=True, tie_word_embeddings=True, is_decoder=False)

    def side(name: str) -> dict[str, Any]:
        return {
            "kind": "transformer",
            "width": config["d_model"],
            "layers": config[f"{name}_layers"],
            "heads": config[f"{name}_attention_heads"],
            "feedforward": config[f"{name}_ffn_dim"],
            "activation": activation_of(config.get("activation_function", "gelu")),
            "norm_place": "pre" if pre else "post",
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
        how: How = "as it is" if f"{at}.embed_positions.weight" in names else "sinusoids"
        again[f"{at}.embed_tokens.weight"] = "model.shared.weight"
        places.append(Place(f"{at}.embed_positions.weight", (f"{name}.embedding.place.table.weight",), how))
        if pre:
            places += linear(f"{at}.layer_norm", f"{name}.norm")
        for number in range(config[f"{name}_layers"]):
            there, ours = f"{at}.layers.{number}", f"{name}.layers.{number}"
            places += _layer(there, ours, attends=name == "decoder")
    return Family(ModelSettings.parse(model), places, again=again)


def fairseq_transformer(config: Config, names: set[str]) -> Family:
    """fairseq's (Ott et al. 2019), once converted."""
    tie = config["tie"]
    places = [Place("encoder.embed_tokens.weight", ("encoder.embedding.weight",), "words")]
    if tie != "all":
        places.append(Place("decoder.embed_tokens.weight", ("decoder.embedding.weight",), "words"))
    if tie == "none":
        places.append(Place("decoder.output_projection.weight", ("output.weight",), "words"))
        places.append(Place("output.bias", ("output.bias",), "words"))
    parts = {}
    for name in ("encoder", "decoder"):
        parts[name] = {"kind": "transformer", "position": "learned", **config[name]}
        places.append(Place(f"{name}.embed_positions.weight", (f"{name}.embedding.place.table.weight",)))
        if config[name]["norm_embedding"]:
            places += linear(f"{name}.layernorm_embedding", f"{name}.embedding.norm")
        if config[name]["norm_place"] == "pre":
            places += linear(f"{name}.layer_norm", f"{name}.norm")
        for number in range(config[name]["layers"]):
            places += _layer(f"{name}.layers.{number}", f"{name}.layers.{number}", attends=name == "decoder")
    return Family(ModelSettings.parse({**parts, "tie": tie}), places)


def _layer(there: str, ours: str, *, attends: bool) -> list[Place]:
    """A layer by the names that fairseq gave its parts, and all who came after kept."""
    places: list[Place] = []
    looks = [("self_attn", "itself")] + ([("encoder_attn", "memory")] if attends else [])
    for theirs, mine in looks:
        for part in ("query", "key", "value"):
            places += linear(f"{there}.{theirs}.{part[0]}_proj", f"{ours}.{mine}.{part}")
        places += linear(f"{there}.{theirs}.out_proj", f"{ours}.{mine}.output")
        places += linear(f"{there}.{theirs}_layer_norm", f"{ours}.{mine}_norm")
    places += linear(f"{there}.fc1", f"{ours}.feedforward.inner")
    places += linear(f"{there}.fc2", f"{ours}.feedforward.outer")
    places += linear(f"{there}.final_layer_norm", f"{ours}.feedforward_norm")
    return places
