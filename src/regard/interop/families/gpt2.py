"""GPT-2 (Radford et al. 2019)."""

from typing import Any

from torch import Tensor

from regard.interop.families._output import SPECIAL_TOKEN_IDS, untie_output, write_sinusoids
from regard.interop.family import (
    FAMILIES,
    THEIR_ACTIVATIONS,
    Config,
    Family,
    activation_of,
    differing_setting,
    require,
)
from regard.interop.tensor_map import ModelMapping, TensorMapping, TokenizerPair, layer, tensor
from regard.interop.transforms import OursOnly, VocabularyRows, Zeros
from regard.models.settings import ModelSettings


@FAMILIES.register("gpt2")
class GPT2(Family):
    special_tokens = {  # noqa: RUF012
        "pad_token": None,
        "unk_token": None,
        "bos_token": "<|endoftext|>",
        "eos_token": "<|endoftext|>",
        "mask_token": None,
    }
    exports = "decoder"

    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        config = self.config
        require(config, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
        tied = config.get("tie_word_embeddings", True)
        prefix = "transformer." if any(name.startswith("transformer.") for name in names) else ""
        vocabulary, embedding = VocabularyRows(tokenizers.target), f"{prefix}wte.weight"
        tensors = [
            tensor(embedding, "decoder.embedding.weight", vocabulary),
            tensor(f"{prefix}wpe.weight", "decoder.embedding.position.table.weight"),
            *layer(f"{prefix}ln_f", "decoder.norm"),
        ]
        if not tied:
            tensors += untied_output("lm_head.weight", tokenizers)
        unused = []
        for number in range(config["n_layer"]):
            theirs = f"{prefix}h.{number}"
            tensors += _layer_mapping(theirs, f"decoder.layers.{number}")
            unused += [f"{theirs}.attn.bias", f"{theirs}.attn.masked_bias"]  # masks, in old files
        return ModelMapping(
            decoder_settings(config, self._decoder(), tie="target" if tied else "none"),
            tensors,
            duplicates={"lm_head.weight": embedding} if tied else {},
            unused=unused,
        )

    def _decoder(self) -> dict[str, Any]:
        config = self.config
        return {
            "kind": "transformer",
            "width": config["n_embd"],
            "layers": config["n_layer"],
            "heads": config["n_head"],
            "feedforward": config.get("n_inner") or 4 * config["n_embd"],
            "activation": activation_of(config.get("activation_function", "gelu_new")),
            "position": "learned",
            "max_positions": config["n_positions"],
            "norm_epsilon": config.get("layer_norm_epsilon", 1e-5),
            "dropout": config.get("resid_pdrop", 0.1),
            "attention_dropout": config.get("attn_pdrop", 0.1),
            "scale_embedding": False,
        }

    @classmethod
    def difference(cls, model: ModelSettings) -> str:
        return differing_setting(model.decoder, position=("learned", "sinusoidal"), norm_first=(True,))

    @classmethod
    def configuration(cls, model: ModelSettings, *, max_length: int, vocabulary_size: int) -> Config:
        decoder: Any = model.decoder
        return {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": vocabulary_size,
            "n_embd": decoder.width,
            "n_layer": decoder.layers,
            "n_head": decoder.heads,
            "n_inner": decoder.feedforward,
            "n_positions": decoder.max_positions if decoder.position == "learned" else max_length + 1,
            "activation_function": THEIR_ACTIVATIONS[decoder.activation],
            "layer_norm_epsilon": decoder.norm_epsilon or 1e-5,
            "resid_pdrop": decoder.dropout,
            "embd_pdrop": decoder.dropout,
            "attn_pdrop": decoder.attention_dropout,
            "tie_word_embeddings": not decoder.scale_embedding and model.tie != "none",
            "dtype": "float32",
            **SPECIAL_TOKEN_IDS,
        }

    @property
    def max_positions(self) -> int:
        return int(self.config["n_positions"])

    def adapt(self, tensors: dict[str, Tensor], model: ModelSettings) -> dict[str, Tensor]:
        write_sinusoids(tensors, "decoder", model.decoder, self.max_positions)
        if not self.config["tie_word_embeddings"]:
            untie_output(tensors, "decoder", model.decoder)
        return tensors


def decoder_settings(config: Config, decoder: dict[str, Any], *, tie: str) -> ModelSettings:
    """A decoder-only model; texts begin with BOS if it is a different token than EOS."""
    return ModelSettings.parse(
        {
            "source": {"kind": "none", "bos": config.get("bos_token_id") != config.get("eos_token_id")},
            "encoder": {"kind": "none", "width": decoder["width"]},
            "decoder": decoder,
            "tie": tie,
        }
    )


def untied_output(theirs: str, tokenizers: TokenizerPair) -> list[TensorMapping]:
    """An output layer that is not tied to the embedding, without a bias in theirs."""
    return [
        tensor(theirs, "output.weight", VocabularyRows(tokenizers.target)),
        TensorMapping((), ("output.bias",), OursOnly(Zeros((len(tokenizers.target),)))),
    ]


def _layer_mapping(theirs: str, ours: str) -> list[TensorMapping]:
    attention = [f"{ours}.self_attention.{name}" for name in ("query", "key", "value")]
    return [
        *layer(f"{theirs}.attn.c_attn", *attention, transposed=True),
        *layer(f"{theirs}.attn.c_proj", f"{ours}.self_attention.output", transposed=True),
        *layer(f"{theirs}.ln_1", f"{ours}.self_attention_norm"),
        *layer(f"{theirs}.mlp.c_fc", f"{ours}.feedforward.inner", transposed=True),
        *layer(f"{theirs}.mlp.c_proj", f"{ours}.feedforward.outer", transposed=True),
        *layer(f"{theirs}.ln_2", f"{ours}.feedforward_norm"),
    ]
