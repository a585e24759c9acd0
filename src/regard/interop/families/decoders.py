"""Decoders alone: GPT-2 (Radford et al. 2019)."""

from regard.interop.families.common import Config, activation_of, linear, only
from regard.interop.places import Family, Place
from regard.models.settings import ModelSettings


def gpt2(config: Config, names: set[str]) -> Family:
    only(config, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    only(config, tie_word_embeddings=True)
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
        "source": {"kind": "nothing", "begin": False},
        "encoder": {"kind": "none", "width": width},
        "decoder": decoder,
        "tie": "target",
    }
    again = {"lm_head.weight": places[0].theirs}
    return Family(ModelSettings.parse(model), places, again=again, unused=unused)
