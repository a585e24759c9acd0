"""Runs that were trained here in Hugging Face's format: the architecture there that is the same model.

| trained here | there |
|---|---|
| translates, norms before each part | Pegasus |
| translates, norms after | Marian's architecture, its places written out |
| goes on, rotary places | GPT-NeoX |
| goes on, learned or sinusoidal places | GPT-2 |
| guesses, rotary places, norms before | ESM |
| guesses, learned places, norms after, as BERT has it | BERT |

What is said with an embedding that is scaled when it is read is written as two tables: not every architecture scales.
"""

import json
from typing import Any

import torch
from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError
from regard.interop.families import family_of
from regard.interop.families.common import ACTIVATIONS
from regard.interop.new_run import NEVER
from regard.interop.tensor_map import given
from regard.interop.tokenizer_export import Framing, tokenizer_files
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle, as_bytes, tensors_of
from regard.runs.conversion import waves
from regard.special_tokens import BEGIN, END, MASK, PAD, UNKNOWN

NAMED = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
SPECIAL = {"pad_token_id": PAD, "bos_token_id": BEGIN, "eos_token_id": END}


def published(bundle: Bundle) -> dict[str, bytes]:
    """Files by name. Raises RegardError, saying why, for a model that has no form there."""
    about = bundle.description.model
    words = bundle.target_side
    _check(about)
    if not isinstance(words, SubwordTokenizer) or isinstance(words, ImportedTokenizer):
        raise RegardError("huggingface: this model has the vocabulary of another project.")
    config, framing = _config(bundle)
    tensors = {name: tensor.clone() for name, tensor in tensors_of(bundle.model).items()}
    _adapt(tensors, bundle, config)
    masks = about.guesses
    longest = int(config.get("max_position_embeddings") or config["n_positions"])
    files = tokenizer_files(words, framing, lowercase=bundle.description.lowercase, masks=masks, most=longest)
    special = [PAD, UNKNOWN, BEGIN, END, *([MASK] if masks else [])]
    described = {"kind": "metaspace", "size": len(words), "special": special}
    same = ImportedTokenizer.from_description({**described, "tokenizer": json.loads(files["tokenizer.json"])})
    names = {f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}
    family = family_of(config, {*names, "cls.predictions.bias"})
    theirs = given(family, tensors, _unused(config), (same, same), "huggingface")
    files["config.json"] = json.dumps(config, indent=2).encode()
    files["model.safetensors"] = as_bytes(theirs, {"format": "pt"})
    if about.step_by_step:
        search = {**SPECIAL, "decoder_start_token_id": BEGIN} if framing == "translates" else SPECIAL
        files["generation_config.json"] = json.dumps(search, indent=2).encode()
    return files


def _check(about: ModelSettings) -> None:
    """Raises RegardError, saying why, for what none of the architectures has."""
    parts = [part for part in (about.encoder, about.decoder) if part.kind not in ("none", "places")]
    why = ""
    if about.source.kind not in ("text", "nothing"):
        why = f"it reads {about.source.kind}"
    elif not (about.step_by_step or about.guesses):
        why = {"label": "it tells classes apart", "tags": "it says tags", "span": "it says spans"}.get(
            about.says, "it says nothing"
        )
    elif about.copies:
        why = "it copies words"
    elif getattr(about.source, "segments", 1) > 1:
        why = "its sources have parts"
    elif about.step_by_step and about.source.kind == "text" and about.tie != "all":
        why = "its source and its target have tables of their own"
    for part in parts:
        if part.kind != "transformer":
            why = why or f"it has a {part.kind} part"
            continue
        for name, usual in (("norm", "layer"), ("window", None), ("normalize", "softmax"), ("shared", False)):
            if getattr(part, name) != usual:
                why = why or f"its {name} is {getattr(part, name)}"
        if part.activation not in NAMED:
            why = why or f"its activation is {part.activation}"
        if part.embedding_width != part.width:
            why = why or "its embeddings are not as wide as its layers"
        if part.norm_embedding and not about.guesses:
            why = why or "it normalises its embeddings"
    if why:
        raise RegardError(f"huggingface: no architecture there is this model, since {why}.")


def _config(bundle: Bundle) -> tuple[dict[str, Any], Framing]:
    """Its configuration there, and what stands around a text. Raises RegardError."""
    about, longest = bundle.description.model, bundle.description.longest
    if about.guesses:
        return _guessing(about, longest, len(bundle.target_side)), "reads"
    if about.source.kind == "nothing":
        return _going_on(about, longest, len(bundle.target_side)), "goes on"
    return _translating(about, longest, len(bundle.target_side)), "translates"


def _refuse(what: str, positions: str, place: str) -> ValueError:
    return ValueError(
        f"huggingface: no architecture there is this model: {what} with {positions} places and norms {place}-parts."
    )


def _guessing(about: ModelSettings, longest: int, size: int) -> dict[str, Any]:
    encoder: Any = about.encoder
    common = {
        "vocab_size": size,
        "hidden_size": encoder.width,
        "num_hidden_layers": encoder.layers,
        "num_attention_heads": encoder.heads,
        "intermediate_size": encoder.feedforward,
        "hidden_dropout_prob": encoder.dropout,
        "attention_probs_dropout_prob": encoder.attention_dropout,
        "layer_norm_eps": encoder.norm_epsilon or 1e-5,
        "pad_token_id": PAD,
        "dtype": "float32",
    }
    gelu = encoder.activation == "gelu" and getattr(about.decoder, "activation", "") == "gelu"
    if encoder.position == "rotary" and encoder.norm_place == "pre" and not encoder.norm_embedding and gelu:
        return {
            "model_type": "esm",
            "architectures": ["EsmForMaskedLM"],
            "position_embedding_type": "rotary",
            "emb_layer_norm_before": False,
            "token_dropout": False,
            "is_folding_model": False,
            "tie_word_embeddings": False,
            "mask_token_id": MASK,
            "max_position_embeddings": longest,
            **common,
        }
    if (
        encoder.position == "learned"
        and encoder.norm_place == "post"
        and encoder.norm_embedding
        and not encoder.scale_embedding
    ):
        return {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "hidden_act": NAMED[encoder.activation],
            "type_vocab_size": 2,
            "max_position_embeddings": encoder.positions,
            **common,
        }
    raise _refuse("an encoder", encoder.position, encoder.norm_place)


def _going_on(about: ModelSettings, longest: int, size: int) -> dict[str, Any]:
    decoder: Any = about.decoder
    if decoder.norm_place != "pre" or decoder.position not in ("rotary", "learned", "sinusoidal"):
        raise _refuse("a decoder", decoder.position, decoder.norm_place)
    if decoder.position == "rotary":
        return {
            "model_type": "gpt_neox",
            "architectures": ["GPTNeoXForCausalLM"],
            "vocab_size": size,
            "hidden_size": decoder.width,
            "num_hidden_layers": decoder.layers,
            "num_attention_heads": decoder.heads,
            "intermediate_size": decoder.feedforward,
            "hidden_act": NAMED[decoder.activation],
            "rotary_pct": 1.0,
            "rotary_emb_base": 10000,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
            "max_position_embeddings": longest,
            "layer_norm_eps": decoder.norm_epsilon or 1e-5,
            "hidden_dropout": decoder.dropout,
            "attention_dropout": decoder.attention_dropout,
            "use_parallel_residual": False,
            "attention_bias": True,
            "tie_word_embeddings": False,
            "dtype": "float32",
            **SPECIAL,
        }
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": size,
        "n_embd": decoder.width,
        "n_layer": decoder.layers,
        "n_head": decoder.heads,
        "n_inner": decoder.feedforward,
        "n_positions": decoder.positions if decoder.position == "learned" else longest + 1,
        "activation_function": NAMED[decoder.activation],
        "layer_norm_epsilon": decoder.norm_epsilon or 1e-5,
        "resid_pdrop": decoder.dropout,
        "embd_pdrop": decoder.dropout,
        "attn_pdrop": decoder.attention_dropout,
        "tie_word_embeddings": not decoder.scale_embedding and about.tie != "none",
        "dtype": "float32",
        **SPECIAL,
    }


def _translating(about: ModelSettings, longest: int, size: int) -> dict[str, Any]:
    encoder: Any = about.encoder
    decoder: Any = about.decoder
    for name in ("norm_place", "activation", "position", "scale_embedding", "norm_epsilon", "positions", "width"):
        if getattr(encoder, name) != getattr(decoder, name):
            raise RegardError(f"huggingface: encoder and decoder must have the same {name} there.")
    if encoder.position not in ("sinusoidal", "learned") or encoder.norm_epsilon not in (None, 1e-5):
        raise _refuse("a translator", encoder.position, encoder.norm_place)
    pre = encoder.norm_place == "pre"
    sides = {}
    for name, part in (("encoder", encoder), ("decoder", decoder)):
        sides[f"{name}_layers"] = part.layers
        sides[f"{name}_attention_heads"] = part.heads
        sides[f"{name}_ffn_dim"] = part.feedforward
    return {
        "model_type": "pegasus" if pre else "marian",
        "architectures": ["PegasusForConditionalGeneration" if pre else "MarianMTModel"],
        "vocab_size": size,
        "d_model": encoder.width,
        **sides,
        "activation_function": NAMED[encoder.activation],
        "scale_embedding": encoder.scale_embedding,
        "dropout": encoder.dropout,
        "attention_dropout": encoder.attention_dropout,
        "activation_dropout": encoder.activation_dropout,
        "max_position_embeddings": encoder.positions if encoder.position == "learned" else longest + 1,
        "is_encoder_decoder": True,
        "decoder_start_token_id": BEGIN,
        "forced_eos_token_id": None,
        "tie_word_embeddings": True,
        "dtype": "float32",
        **SPECIAL,
    }


@torch.no_grad()
def _adapt(tensors: dict[str, Tensor], bundle: Bundle, config: dict[str, Any]) -> None:
    """Our tensors as those of the same model without what the architecture lacks."""
    about, kind = bundle.description.model, config["model_type"]
    size = len(bundle.target_side)
    for name, side in (("encoder", about.encoder), ("decoder", about.decoder)):
        if getattr(side, "position", "") == "sinusoidal":
            length = int(config.get("max_position_embeddings") or config["n_positions"])
            tensors[f"{name}.embedding.place.table.weight"] = torch.from_numpy(waves(length, side.width))
    if kind == "bert":
        tensors["encoder.embedding.segment"] = torch.zeros(2, about.encoder.width)
    elif kind in ("pegasus", "marian"):
        tensors.setdefault("output.bias", torch.zeros(size))[[PAD, BEGIN]] = NEVER
    elif not config["tie_word_embeddings"]:
        part: Any = about.encoder if about.guesses else about.decoder
        table = tensors[f"{'encoder' if about.guesses else 'decoder'}.embedding.weight"]
        tensors.setdefault("output.weight", table.clone())
        tensors.setdefault("output.bias", torch.zeros(size))
        if part.scale_embedding:
            table *= part.width**0.5


def _unused(config: dict[str, Any]) -> dict[str, Tensor]:
    """What the architecture has, and nothing here needs."""
    if config["model_type"] == "esm":
        looks = config["num_hidden_layers"] * config["num_attention_heads"]
        name = "esm.contact_head.regression"
        width = config["hidden_size"] // config["num_attention_heads"]
        rates = 1 / (10000 ** (torch.arange(0, width, 2, dtype=torch.float) / width))
        found = {f"{name}.weight": torch.zeros(1, looks), f"{name}.bias": torch.zeros(1)}
        return {**found, "esm.rotary_embeddings.inv_freq": rates}
    return {}
