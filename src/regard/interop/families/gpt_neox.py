"""GPT-NeoX (Black et al. 2022, arXiv:2204.06745), whose positions are rotary; without parallel sublayers."""

from typing import Any

from torch import Tensor

from regard.errors import RegardError
from regard.interop.families._output import SPECIAL_TOKEN_IDS, untie_output
from regard.interop.families.gpt2 import GPT2, decoder_settings, untied_output
from regard.interop.family import (
    FAMILIES,
    THEIR_ACTIVATIONS,
    Config,
    Family,
    activation_of,
    differing_setting,
    require,
)
from regard.interop.tensor_map import PARAMETERS, ModelMapping, TensorMapping, TokenizerPair, layer, tensor
from regard.interop.transforms import Compose, Identity, PerTensor, RotaryRows, SplitHeads, VocabularyRows
from regard.models.settings import ModelSettings

FREQUENCY_BASE = 10000


@FAMILIES.register("gpt_neox")
class GPTNeoX(Family):
    special_tokens = GPT2.special_tokens
    exports = "decoder"

    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        config = self.config
        require(config, use_parallel_residual=False, attention_bias=True, tie_word_embeddings=False)
        _check_rotary(config)
        tensors = [
            tensor("gpt_neox.embed_in.weight", "decoder.embedding.weight", VocabularyRows(tokenizers.target)),
            *untied_output("embed_out.weight", tokenizers),
            *layer("gpt_neox.final_layer_norm", "decoder.norm"),
        ]
        unused = []
        for number in range(config["num_hidden_layers"]):
            theirs = f"gpt_neox.layers.{number}"
            tensors += _layer_mapping(theirs, f"decoder.layers.{number}", config["num_attention_heads"])
            unused += [f"{theirs}.attention.{name}" for name in ("bias", "masked_bias", "rotary_emb.inv_freq")]
        return ModelMapping(
            decoder_settings(config, self._decoder(), tie="none"),
            tensors,
            max_length=config["max_position_embeddings"],
            unused=unused,
        )

    def _decoder(self) -> dict[str, Any]:
        config = self.config
        return {
            "kind": "transformer",
            "width": config["hidden_size"],
            "layers": config["num_hidden_layers"],
            "heads": config["num_attention_heads"],
            "feedforward": config["intermediate_size"],
            "activation": activation_of(config.get("hidden_act", "gelu")),
            "position": "rotary",
            "norm_epsilon": config.get("layer_norm_eps", 1e-5),
            "dropout": config.get("hidden_dropout", 0.0),
            "attention_dropout": config.get("attention_dropout", 0.0),
            "scale_embedding": False,
        }

    @classmethod
    def difference(cls, model: ModelSettings) -> str:
        return differing_setting(model.decoder, position=("rotary",), norm_first=(True,))

    @classmethod
    def configuration(cls, model: ModelSettings, *, max_length: int, vocabulary_size: int) -> Config:
        decoder: Any = model.decoder
        rotary = {"rope_type": "default", "rope_theta": float(FREQUENCY_BASE), "partial_rotary_factor": 1.0}
        return {
            "model_type": "gpt_neox",
            "architectures": ["GPTNeoXForCausalLM"],
            "vocab_size": vocabulary_size,
            "hidden_size": decoder.width,
            "num_hidden_layers": decoder.layers,
            "num_attention_heads": decoder.heads,
            "intermediate_size": decoder.feedforward,
            "hidden_act": THEIR_ACTIVATIONS[decoder.activation],
            "rotary_pct": 1.0,
            "rotary_emb_base": FREQUENCY_BASE,
            "rope_parameters": rotary,
            "max_position_embeddings": max_length,
            "layer_norm_eps": decoder.norm_epsilon or 1e-5,
            "hidden_dropout": decoder.dropout,
            "attention_dropout": decoder.attention_dropout,
            "use_parallel_residual": False,
            "attention_bias": True,
            "tie_word_embeddings": False,
            "dtype": "float32",
            **SPECIAL_TOKEN_IDS,
        }

    def adapt(self, tensors: dict[str, Tensor], model: ModelSettings) -> dict[str, Tensor]:
        untie_output(tensors, "decoder", model.decoder)
        return tensors


def _check_rotary(config: Config) -> None:
    """Raises RegardError for unsupported rotary positions."""
    rotary = config.get("rope_parameters") or {}
    if not isinstance(rotary, dict) or rotary.get("rope_type", "default") != "default":
        raise RegardError(f"config.json: rope_parameters = {rotary!r} are not supported, only the default type.")
    if rotary.get("partial_rotary_factor", config.get("rotary_pct", 0.25)) != 1:
        raise RegardError("config.json: rotary_pct must be 1 here: a head is rotated as a whole.")
    if rotary.get("rope_theta", config.get("rotary_emb_base", FREQUENCY_BASE)) != FREQUENCY_BASE:
        raise RegardError(f"config.json: rotary_emb_base must be {FREQUENCY_BASE} here.")


def _layer_mapping(theirs: str, ours: str, heads: int) -> list[TensorMapping]:
    split = Compose((SplitHeads(heads), PerTensor((RotaryRows(heads), RotaryRows(heads), Identity()))))
    attention = [
        TensorMapping(
            (f"{theirs}.attention.query_key_value.{parameter}",),
            tuple(f"{ours}.self_attention.{name}.{parameter}" for name in ("query", "key", "value")),
            split,
        )
        for parameter in PARAMETERS
    ]
    return [
        *attention,
        *layer(f"{theirs}.attention.dense", f"{ours}.self_attention.output"),
        *layer(f"{theirs}.input_layernorm", f"{ours}.self_attention_norm"),
        *layer(f"{theirs}.mlp.dense_h_to_4h", f"{ours}.feedforward.inner"),
        *layer(f"{theirs}.mlp.dense_4h_to_h", f"{ours}.feedforward.outer"),
        *layer(f"{theirs}.post_attention_layernorm", f"{ours}.feedforward_norm"),
    ]
