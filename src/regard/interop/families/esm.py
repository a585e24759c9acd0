"""ESM (Lin et al. 2022): BERT with norms before each sublayer and rotary positions."""

import torch
from torch import Tensor

from regard.interop.families._encoder import encoder_configuration, head_difference
from regard.interop.families._output import untie_output
from regard.interop.family import FAMILIES, Config, Family, differing_setting, require
from regard.interop.tensor_map import PARAMETERS, ModelMapping, TensorMapping, TokenizerPair, layer, tensor
from regard.interop.transforms import RotaryRows, VocabularyRows
from regard.models.settings import ModelSettings
from regard.special_tokens import MASK

CONTACTS = "esm.contact_head.regression"  # which predicts contacts of a folded protein


@FAMILIES.register("esm")
class Esm(Family):
    exports = "encoder"

    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        config = self.config
        require(config, position_embedding_type="rotary", emb_layer_norm_before=False, token_dropout=False)
        require(config, is_folding_model=False)
        vocabulary, embedding = VocabularyRows(tokenizers.source), "esm.embeddings.word_embeddings.weight"
        tied = config.get("tie_word_embeddings", True)
        tensors = [
            tensor(embedding, "encoder.embedding.weight", vocabulary),
            *layer("esm.encoder.emb_layer_norm_after", "encoder.norm"),
            *layer("lm_head.dense", "decoder.inner"),
            *layer("lm_head.layer_norm", "decoder.norm"),
            tensor("lm_head.bias", "output.bias", vocabulary),
        ]
        if not tied:
            tensors.append(tensor("lm_head.decoder.weight", "output.weight", vocabulary))
        unused = [
            *(f"{CONTACTS}.{parameter}" for parameter in PARAMETERS),
            "esm.rotary_embeddings.inv_freq",
            "esm.embeddings.position_ids",
            "esm.embeddings.position_embeddings.weight",
        ]
        for number in range(config["num_hidden_layers"]):
            theirs = f"esm.encoder.layer.{number}"
            tensors += _layer_mapping(theirs, f"encoder.layers.{number}", config["num_attention_heads"])
            unused.append(f"{theirs}.attention.self.rotary_embeddings.inv_freq")
        return ModelMapping(
            self._settings(tied=tied),
            tensors,
            duplicates={"lm_head.decoder.weight": embedding} if tied else {},
            max_length=config["max_position_embeddings"],
            unused=unused,
        )

    def _settings(self, *, tied: bool) -> ModelSettings:
        config = self.config
        width, epsilon = config["hidden_size"], config.get("layer_norm_eps", 1e-12)
        encoder = {
            "kind": "transformer",
            "width": width,
            "layers": config["num_hidden_layers"],
            "heads": config["num_attention_heads"],
            "feedforward": config["intermediate_size"],
            "activation": "gelu",
            "position": "rotary",
            "norm_epsilon": epsilon,
            "dropout": config.get("hidden_dropout_prob", 0.1),
            "attention_dropout": config.get("attention_probs_dropout_prob", 0.1),
            "scale_embedding": False,
        }
        return ModelSettings.parse(
            {
                "source": {"kind": "text", "bos": True},
                "encoder": encoder,
                "decoder": {"kind": "masked-lm", "width": width, "norm_epsilon": epsilon, "activation": "gelu"},
                "tie": "all" if tied else "none",
                "output_bias": tied,
            }
        )

    @classmethod
    def difference(cls, model: ModelSettings) -> str:
        return differing_setting(
            model.encoder,
            position=("rotary",),
            norm_first=(True,),
            norm_embedding=(False,),
            activation=("gelu",),
        ) or head_difference(model)

    @classmethod
    def configuration(cls, model: ModelSettings, *, max_length: int, vocabulary_size: int) -> Config:
        return {
            "model_type": "esm",
            "architectures": ["EsmForMaskedLM"],
            "position_embedding_type": "rotary",
            "emb_layer_norm_before": False,
            "token_dropout": False,
            "is_folding_model": False,
            "tie_word_embeddings": False,
            "mask_token_id": MASK,
            "max_position_embeddings": max_length,
            **encoder_configuration(model.encoder, vocabulary_size),
        }

    def adapt(self, tensors: dict[str, Tensor], model: ModelSettings) -> dict[str, Tensor]:
        untie_output(tensors, "encoder", model.encoder)
        return tensors

    def unused_tensors(self) -> dict[str, Tensor]:
        heads = self.config["num_attention_heads"]
        width = self.config["hidden_size"] // heads
        return {
            f"{CONTACTS}.weight": torch.zeros(1, self.config["num_hidden_layers"] * heads),
            f"{CONTACTS}.bias": torch.zeros(1),
            "esm.rotary_embeddings.inv_freq": 1 / (10000 ** (torch.arange(0, width, 2, dtype=torch.float) / width)),
        }


def _layer_mapping(theirs: str, ours: str, heads: int) -> list[TensorMapping]:
    queries_and_keys = [
        tensor(
            f"{theirs}.attention.self.{name}.{parameter}",
            f"{ours}.self_attention.{name}.{parameter}",
            RotaryRows(heads),
        )
        for name in ("query", "key")
        for parameter in PARAMETERS
    ]
    return [
        *queries_and_keys,
        *layer(f"{theirs}.attention.self.value", f"{ours}.self_attention.value"),
        *layer(f"{theirs}.attention.output.dense", f"{ours}.self_attention.output"),
        *layer(f"{theirs}.attention.LayerNorm", f"{ours}.self_attention_norm"),
        *layer(f"{theirs}.intermediate.dense", f"{ours}.feedforward.inner"),
        *layer(f"{theirs}.output.dense", f"{ours}.feedforward.outer"),
        *layer(f"{theirs}.LayerNorm", f"{ours}.feedforward_norm"),
    ]
