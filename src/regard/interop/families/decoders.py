"""Decoders alone: GPT-2 (Radford et al. 2019), and GPT-NeoX (Black et al. 2022), whose places are rotary."""

from regard.errors import RegardError
from regard.interop.families.common import BOTH, Config, activation_of, linear, only
from regard.interop.tensor_map import Family, Place
from regard.models.settings import ModelSettings


def gpt2(config: Config, names: set[str]) -> Family:
    only(config, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    tied = config.get("tie_word_embeddings", True)
    width = config["n_embd"]
    decoder = {
        "kind": "transformer",
        "width": width,
        "layers": config["n_layer"],
        "heads": config["n_head"],
        "feedforward": config.get("n_inner") or 4 * width,
        "activation": activation_of(config.get("activation_function", "gelu_new")),
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
        *linear(f"{at}ln_f", "decoder.norm"),
    ]
    unused = []
    for number in range(config["n_layer"]):
        there, ours = f"{at}h.{number}", f"decoder.layers.{number}"
        three = [f"{ours}.itself.{part}" for part in ("query", "key", "value")]
        places += linear(f"{there}.attn.c_attn", *three, transposed=True)
        places += linear(f"{there}.attn.c_proj", f"{ours}.itself.output", transposed=True)
        places += linear(f"{there}.ln_1", f"{ours}.itself_norm")
        places += linear(f"{there}.mlp.c_fc", f"{ours}.feedforward.inner", transposed=True)
        places += linear(f"{there}.mlp.c_proj", f"{ours}.feedforward.outer", transposed=True)
        places += linear(f"{there}.ln_2", f"{ours}.feedforward_norm")
        unused += [f"{there}.attn.bias", f"{there}.attn.masked_bias"]  # masks, in old files
    model = {
        "source": {"kind": "nothing", "begin": config.get("bos_token_id") != config.get("eos_token_id")},
        "encoder": {"kind": "none", "width": width},
        "decoder": decoder,
        "tie": "target" if tied else "none",
    }
    again = {"lm_head.weight": places[0].theirs} if tied else {}
    if not tied:
        places += [Place("lm_head.weight", ("output.weight",), "words"), Place("", ("output.bias",), "nothing")]
    return Family(ModelSettings.parse(model), places, again=again, unused=unused)


def gpt_neox(config: Config, names: set[str]) -> Family:
    only(config, use_parallel_residual=False, attention_bias=True, tie_word_embeddings=False)
    places_of = config.get("rope_parameters") or {}
    if not isinstance(places_of, dict) or places_of.get("rope_type", "default") != "default":
        raise RegardError(f"config.json: rope_parameters = {places_of!r} are not possible here, only the default type.")
    if places_of.get("partial_rotary_factor", config.get("rotary_pct", 0.25)) != 1:
        raise RegardError("config.json: rotary_pct must be 1 here: all of a head is turned.")
    if places_of.get("rope_theta", config.get("rotary_emb_base", 10000)) != 10000:
        raise RegardError("config.json: rotary_emb_base must be 10000 here.")
    width, heads = config["hidden_size"], config["num_attention_heads"]
    decoder = {
        "kind": "transformer",
        "width": width,
        "layers": config["num_hidden_layers"],
        "heads": heads,
        "feedforward": config["intermediate_size"],
        "activation": activation_of(config.get("hidden_act", "gelu")),
        "position": "rotary",
        "norm_epsilon": config.get("layer_norm_eps", 1e-5),
        "dropout": config.get("hidden_dropout", 0.0),
        "attention_dropout": config.get("attention_dropout", 0.0),
        "scale_embedding": False,
    }
    places = [
        Place("gpt_neox.embed_in.weight", ("decoder.embedding.weight",), "words"),
        Place("embed_out.weight", ("output.weight",), "words"),
        Place("", ("output.bias",), "nothing"),
        *linear("gpt_neox.final_layer_norm", "decoder.norm"),
    ]
    unused = []
    for number in range(config["num_hidden_layers"]):
        there, ours = f"gpt_neox.layers.{number}", f"decoder.layers.{number}"
        three = [f"{ours}.itself.{part}" for part in ("query", "key", "value")]
        for each in BOTH:
            names_here = tuple(f"{name}.{each}" for name in three)
            places.append(Place(f"{there}.attention.query_key_value.{each}", names_here, "by heads", heads=heads))
        places += linear(f"{there}.attention.dense", f"{ours}.itself.output")
        places += linear(f"{there}.input_layernorm", f"{ours}.itself_norm")
        places += linear(f"{there}.mlp.dense_h_to_4h", f"{ours}.feedforward.inner")
        places += linear(f"{there}.mlp.dense_4h_to_h", f"{ours}.feedforward.outer")
        places += linear(f"{there}.post_attention_layernorm", f"{ours}.feedforward_norm")
        unused += [f"{there}.attention.{name}" for name in ("bias", "masked_bias", "rotary_emb.inv_freq")]
    model = {
        "source": {"kind": "nothing", "begin": config.get("bos_token_id") != config.get("eos_token_id")},
        "encoder": {"kind": "none", "width": width},
        "decoder": decoder,
        "tie": "none",
    }
    return Family(ModelSettings.parse(model), places, longest=config["max_position_embeddings"], unused=unused)
