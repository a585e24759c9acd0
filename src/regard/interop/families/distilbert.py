"""DistilBERT (Sanh et al. 2019, arXiv:1910.01108): BERT with half the layers and without segments."""

from regard.interop.families._encoder import EncoderMapping, MaskedLMHead, post_norm_encoder
from regard.interop.families.bert import Bert
from regard.interop.family import FAMILIES, Family, activation_of, require
from regard.interop.tensor_map import ModelMapping, TensorMapping, TokenizerPair, layer, tensor
from regard.interop.transforms import VocabularyRows


@FAMILIES.register("distilbert")
class DistilBert(Family):
    special_tokens = Bert.special_tokens
    bos_and_eos = Bert.bos_and_eos

    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        require(self.config, sinusoidal_pos_embds=False)
        vocabulary = VocabularyRows(tokenizers.source)
        encoder = self._encoder_mapping(names, vocabulary)
        if "vocab_projector.bias" in names:
            head = MaskedLMHead(
                dense="vocab_transform",
                norm="vocab_layer_norm",
                output="vocab_projector",
                bias="vocab_projector.bias",
                activation=encoder.encoder["activation"],
                norm_epsilon=1e-12,
            )
            return encoder.masked_lm(head, vocabulary)
        if "qa_outputs.weight" in names:
            return encoder.span_classifier()
        if "classifier.weight" not in names:
            return encoder.without_head()
        if "pre_classifier.weight" in names:
            return encoder.sequence_classifier(self.config, "pre_classifier", "classifier", "relu")
        return encoder.token_classifier(self.config)

    def _encoder_mapping(self, names: set[str], vocabulary: VocabularyRows) -> EncoderMapping:
        config = self.config
        encoder = post_norm_encoder(
            width=config["dim"],
            layers=config["n_layers"],
            heads=config["n_heads"],
            feedforward=config["hidden_dim"],
            activation=activation_of(config.get("activation", "gelu")),
            max_positions=config["max_position_embeddings"],
            norm_epsilon=1e-12,
            dropout=config.get("dropout", 0.1),
            attention_dropout=config.get("attention_dropout", 0.1),
        )
        prefix = "distilbert." if any(name.startswith("distilbert.") for name in names) else ""
        tensors = [
            tensor(f"{prefix}embeddings.word_embeddings.weight", "encoder.embedding.weight", vocabulary),
            tensor(f"{prefix}embeddings.position_embeddings.weight", "encoder.embedding.position.table.weight"),
            *layer(f"{prefix}embeddings.LayerNorm", "encoder.embedding.norm"),
        ]
        for number in range(config["n_layers"]):
            tensors += _layer_mapping(f"{prefix}transformer.layer.{number}", f"encoder.layers.{number}")
        return EncoderMapping({"kind": "text", "bos": True}, encoder, tensors, [f"{prefix}embeddings.position_ids"])


def _layer_mapping(theirs: str, ours: str) -> list[TensorMapping]:
    tensors: list[TensorMapping] = []
    for name in ("query", "key", "value"):
        tensors += layer(f"{theirs}.attention.{name[0]}_lin", f"{ours}.self_attention.{name}")
    return [
        *tensors,
        *layer(f"{theirs}.attention.out_lin", f"{ours}.self_attention.output"),
        *layer(f"{theirs}.sa_layer_norm", f"{ours}.self_attention_norm"),
        *layer(f"{theirs}.ffn.lin1", f"{ours}.feedforward.inner"),
        *layer(f"{theirs}.ffn.lin2", f"{ours}.feedforward.outer"),
        *layer(f"{theirs}.output_layer_norm", f"{ours}.feedforward_norm"),
    ]
