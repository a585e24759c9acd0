"""BERT (Devlin et al. 2018, arXiv:1810.04805)."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.interop.families._encoder import (
    SEGMENTS,
    EncoderMapping,
    MaskedLMHead,
    encoder_configuration,
    head_difference,
    post_norm_encoder,
)
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
from regard.interop.transforms import FlipRows, Identity, RepeatRows, SplitFirstRows, VocabularyRows
from regard.models.settings import Architecture, ModelSettings


@FAMILIES.register("bert")
class Bert(Family):
    special_tokens = {  # noqa: RUF012
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "bos_token": "[CLS]",
        "eos_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    bos_and_eos = ("cls_token", "sep_token")
    exports: ClassVar[Architecture | None] = "encoder"

    prefix = "bert."  # of all names, except in a model without a head
    ends_between_segments = 1

    @property
    def first_position(self) -> int:
        """The row of a text's first token among the position embeddings."""
        return 0

    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        require(self.config, position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
        prefix = self.prefix if any(name.startswith(self.prefix) for name in names) else ""
        vocabulary = VocabularyRows(tokenizers.source)
        pooler = [f"{prefix}pooler.dense.{parameter}" for parameter in PARAMETERS]
        if self.has_masked_lm_head(names):
            next_sentence = self.next_sentence_head(prefix) if "cls.seq_relationship.weight" in names else None
            encoder = self.encoder_mapping(prefix, vocabulary, unused=[] if next_sentence else pooler)
            return encoder.masked_lm(self.masked_lm_head(), vocabulary, next_sentence=next_sentence)
        if "qa_outputs.weight" in names:
            return self.encoder_mapping(prefix, vocabulary, unused=pooler).span_classifier()
        if self.has_sequence_classifier(names, prefix):
            require(self.config, problem_type=None)
            dense, output = self.sequence_classifier_head(prefix)
            encoder = self.encoder_mapping(prefix, vocabulary, unused=[])
            return encoder.sequence_classifier(self.config, dense, output, "tanh")
        encoder = self.encoder_mapping(prefix, vocabulary, unused=pooler)
        return encoder.token_classifier(self.config) if "classifier.weight" in names else encoder.without_head()

    def encoder_mapping(self, prefix: str, vocabulary: VocabularyRows, unused: list[str]) -> EncoderMapping:
        """Everything but a head."""
        config, embeddings = self.config, f"{prefix}embeddings"
        types = config.get("type_vocab_size", 2)
        encoder = post_norm_encoder(
            width=config["hidden_size"],
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            feedforward=config["intermediate_size"],
            activation=activation_of(config.get("hidden_act", "gelu")),
            max_positions=config["max_position_embeddings"] - self.first_position,
            norm_epsilon=config.get("layer_norm_eps", 1e-12),
            dropout=config.get("hidden_dropout_prob", 0.1),
            attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
        )
        tensors = [
            tensor(f"{embeddings}.word_embeddings.weight", "encoder.embedding.weight", vocabulary),
            self._position_table(f"{embeddings}.position_embeddings.weight"),
            tensor(f"{embeddings}.token_type_embeddings.weight", SEGMENTS, RepeatRows() if types == 1 else Identity()),
            *layer(f"{embeddings}.LayerNorm", "encoder.embedding.norm"),
        ]
        for number in range(config["num_hidden_layers"]):
            tensors += _layer_mapping(f"{prefix}encoder.layer.{number}", f"encoder.layers.{number}")
        source = {"kind": "text", "bos": True, "segments": max(2, types), "separators": self.ends_between_segments}
        ids = [f"{embeddings}.position_ids", f"{embeddings}.token_type_ids"]
        rows = [f"{embeddings}.position_embeddings.weight"] if self.first_position else []
        return EncoderMapping(source, encoder, tensors, [*ids, *rows, *unused])

    def _position_table(self, name: str) -> TensorMapping:
        ours = "encoder.embedding.position.table.weight"
        if not self.first_position:
            return tensor(name, ours)
        return TensorMapping((name,), (name, ours), SplitFirstRows(self.first_position))  # the first are unused

    def has_masked_lm_head(self, names: set[str]) -> bool:
        return "cls.predictions.bias" in names

    def masked_lm_head(self) -> MaskedLMHead:
        transform = "cls.predictions.transform"
        return MaskedLMHead(
            dense=f"{transform}.dense",
            norm=f"{transform}.LayerNorm",
            output="cls.predictions.decoder",
            bias="cls.predictions.bias",
            activation=activation_of(self.config.get("hidden_act", "gelu")),
            norm_epsilon=self.config.get("layer_norm_eps", 1e-12),
        )

    def next_sentence_head(self, prefix: str) -> list[TensorMapping]:
        """Class 0 in theirs, 1 in ours: the second segment follows the first."""
        return [
            *layer(f"{prefix}pooler.dense", "decoder.pooler"),
            *(
                tensor(f"cls.seq_relationship.{parameter}", f"decoder.next_sentence.{parameter}", FlipRows())
                for parameter in PARAMETERS
            ),
        ]

    def has_sequence_classifier(self, names: set[str], prefix: str) -> bool:
        return {"classifier.weight", f"{prefix}pooler.dense.weight"} <= names

    def sequence_classifier_head(self, prefix: str) -> tuple[str, str]:
        """The names of its inner and its output layer."""
        return f"{prefix}pooler.dense", "classifier"

    @classmethod
    def difference(cls, model: ModelSettings) -> str:
        return differing_setting(
            model.encoder,
            position=("learned",),
            norm_first=(False,),
            norm_embedding=(True,),
            scale_embedding=(False,),
        ) or head_difference(model)

    @classmethod
    def configuration(cls, model: ModelSettings, *, max_length: int, vocabulary_size: int) -> Config:
        encoder: Any = model.encoder
        return {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "hidden_act": THEIR_ACTIVATIONS[encoder.activation],
            "type_vocab_size": 2,
            "max_position_embeddings": encoder.max_positions,
            **encoder_configuration(encoder, vocabulary_size),
        }

    def exported_names(self) -> set[str]:
        return {"cls.predictions.bias"}

    def adapt(self, tensors: dict[str, Tensor], model: ModelSettings) -> dict[str, Tensor]:
        tensors[SEGMENTS] = torch.zeros(2, model.encoder.width)
        return tensors


def _layer_mapping(theirs: str, ours: str) -> list[TensorMapping]:
    tensors: list[TensorMapping] = []
    for name in ("query", "key", "value"):
        tensors += layer(f"{theirs}.attention.self.{name}", f"{ours}.self_attention.{name}")
    return [
        *tensors,
        *layer(f"{theirs}.attention.output.dense", f"{ours}.self_attention.output"),
        *layer(f"{theirs}.attention.output.LayerNorm", f"{ours}.self_attention_norm"),
        *layer(f"{theirs}.intermediate.dense", f"{ours}.feedforward.inner"),
        *layer(f"{theirs}.output.dense", f"{ours}.feedforward.outer"),
        *layer(f"{theirs}.output.LayerNorm", f"{ours}.feedforward_norm"),
    ]
