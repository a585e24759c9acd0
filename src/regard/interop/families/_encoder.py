"""Encoder-only models: the mapping of the encoder, and of the heads of BERT and related families."""

from dataclasses import dataclass, field
from typing import Any

from regard.interop.family import Config, labels_of
from regard.interop.tensor_map import PARAMETERS, ModelMapping, TensorMapping, layer, tensor
from regard.interop.transforms import ClassRows, OursOnly, VocabularyRows, Zeros
from regard.models.settings import ModelSettings
from regard.special_tokens import PAD

SEGMENTS = "encoder.embedding.segment"
DEFAULT_EPSILON = 1e-5  # of norms


def post_norm_encoder(**settings: Any) -> dict[str, Any]:
    """The settings of an encoder as in BERT."""
    return {
        "kind": "transformer",
        "norm_first": False,
        "norm_embedding": True,
        "position": "learned",
        "scale_embedding": False,
        **settings,
    }


@dataclass(frozen=True)
class MaskedLMHead:
    """The names of their tensors: a layer, a norm, and the bias of an output layer that is tied to the embedding."""

    dense: str
    norm: str
    output: str
    bias: str
    activation: str
    norm_epsilon: float


@dataclass(frozen=True)
class EncoderMapping:
    """The mapping of an encoder; the methods add a head. The first tensor is the embedding."""

    source: dict[str, Any]
    encoder: dict[str, Any]
    tensors: list[TensorMapping]
    unused: list[str] = field(default_factory=list)

    def without_head(self) -> ModelMapping:
        return self._build_mapping({"kind": "none", "width": self.encoder["width"]}, [])

    def masked_lm(
        self, head: MaskedLMHead, vocabulary: VocabularyRows, *, next_sentence: list[TensorMapping] | None = None
    ) -> ModelMapping:
        """next_sentence: the tensors of a head for next-sentence prediction, if there is one."""
        decoder = {
            "kind": "masked-lm",
            "width": self.encoder["width"],
            "norm_epsilon": head.norm_epsilon,
            "next_sentence": bool(next_sentence),
            "activation": head.activation,
        }
        tensors = [
            *layer(head.dense, "decoder.inner"),
            *layer(head.norm, "decoder.norm"),
            tensor(head.bias, "output.bias", vocabulary),
            *(next_sentence or []),
        ]
        (embedding,) = self.tensors[0].theirs
        duplicates = {f"{head.output}.weight": embedding}
        if head.bias != f"{head.output}.bias":
            duplicates[f"{head.output}.bias"] = head.bias
        return self._build_mapping(decoder, tensors, duplicates=duplicates, tie="all", output_bias=True)

    def token_classifier(self, config: Config) -> ModelMapping:
        decoder = {"kind": "token-classification", "width": self.encoder["width"], "dense": False}
        return self._build_mapping(decoder, class_output("classifier"), labels=labels_of(config))

    def span_classifier(self) -> ModelMapping:
        """Start and end of an answer in a passage: the source has two segments."""
        decoder = {"kind": "span", "width": self.encoder["width"], "dense": False}
        source = {**self.source, "segments": max(2, self.source.get("segments", 1))}
        tensors = class_output("qa_outputs")
        if not any(SEGMENTS in each.ours for each in self.tensors):
            tensors.append(TensorMapping((), (SEGMENTS,), OursOnly(Zeros((2, self.encoder["width"])))))
        return self._build_mapping(decoder, tensors, source=source)

    def sequence_classifier(self, config: Config, dense: str, output: str, activation: str) -> ModelMapping:
        """A class of the whole text, from the state of its first token."""
        decoder = {
            "kind": "pooling",
            "width": self.encoder["width"],
            "pool": "first",
            "encoder_state": False,
            "activation": activation,
            "dropout": self.encoder["dropout"],
        }
        tensors = [*layer(dense, "decoder.inner"), *class_output(output)]
        return self._build_mapping(decoder, tensors, labels=labels_of(config))

    def _build_mapping(
        self,
        decoder: dict[str, Any],
        tensors: list[TensorMapping],
        *,
        source: dict[str, Any] | None = None,
        labels: tuple[str, ...] = (),
        duplicates: dict[str, str] | None = None,
        tie: str = "none",
        output_bias: bool = False,
    ) -> ModelMapping:
        settings = {
            "source": source or self.source,
            "encoder": self.encoder,
            "decoder": decoder,
            "tie": tie,
            "output_bias": output_bias,
        }
        return ModelMapping(
            ModelSettings.parse(settings),
            [*self.tensors, *tensors],
            labels=labels,
            duplicates=duplicates or {},
            unused=self.unused,
        )


def head_difference(model: ModelSettings) -> str:
    """How the settings of a masked LM's head differ from those of the encoder; empty if they do not."""
    encoder: Any = model.encoder
    decoder: Any = model.decoder
    if decoder.activation != encoder.activation:
        return f"its head's activation is {decoder.activation}, not {encoder.activation}"
    epsilons = [component.norm_epsilon or DEFAULT_EPSILON for component in (decoder, encoder)]
    return f"its head's norm_epsilon is {epsilons[0]}, not {epsilons[1]}" if epsilons[0] != epsilons[1] else ""


def encoder_configuration(encoder: Any, vocabulary_size: int) -> Config:
    """The settings of a config.json that BERT and ESM have in common."""
    return {
        "vocab_size": vocabulary_size,
        "hidden_size": encoder.width,
        "num_hidden_layers": encoder.layers,
        "num_attention_heads": encoder.heads,
        "intermediate_size": encoder.feedforward,
        "hidden_dropout_prob": encoder.dropout,
        "attention_probs_dropout_prob": encoder.attention_dropout,
        "layer_norm_eps": encoder.norm_epsilon or DEFAULT_EPSILON,
        "pad_token_id": PAD,
        "dtype": "float32",
    }


def class_output(theirs: str) -> list[TensorMapping]:
    """The output layer of a classifier."""
    return [tensor(f"{theirs}.{parameter}", f"output.{parameter}", ClassRows()) for parameter in PARAMETERS]
