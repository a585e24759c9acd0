"""Other projects' models as regard describes them: what each configuration means, and where each tensor belongs.

A configuration that asks for something else than what is described is refused, not guessed.
"""

from collections.abc import Callable

from regard.errors import RegardError
from regard.interop.fairseq import LONG, MANY, WIDE
from regard.interop.fairseq import MODEL_TYPE as FAIRSEQ
from regard.interop.families.common import Config
from regard.interop.families.decoders import gpt2, gpt_neox
from regard.interop.families.encoders import bert, distilbert, esm
from regard.interop.families.translators import fairseq_transformer, marian
from regard.interop.tensor_map import Family

SIZES = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer", "encoder_layers", "decoder_layers"), MANY),
    **dict.fromkeys(("hidden_size", "dim", "n_embd", "d_model", "num_attention_heads", "n_heads", "n_head"), WIDE),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "type_vocab_size"), WIDE),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim"), LONG),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "vocab_size"), LONG),
}


def family_of(config: Config, names: set[str]) -> Family:
    """Of a configuration and the names of its tensors. Raises RegardError for what is not known here."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise RegardError(f"config.json: model_type {kind!r} is not known; known are {', '.join(FAMILIES)}.")
    for name, value in config.items():
        if name in SIZES and not (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= SIZES[name]):
            raise RegardError(
                f"config.json: {name} = {value!r} is not possible; it must lie between 1 and {SIZES[name]:,}."
            )
    return FAMILIES[kind](config, names)


FAMILIES: dict[str, Callable[[Config, set[str]], Family]] = {
    "bert": bert,
    "roberta": bert,
    "distilbert": distilbert,
    "gpt2": gpt2,
    "gpt_neox": gpt_neox,
    "esm": esm,
    "marian": marian,
    "pegasus": marian,
    FAIRSEQ: fairseq_transformer,
}
