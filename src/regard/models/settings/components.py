"""What encoders, decoders and sources have in common, and the registries of their settings.

A component is two classes: its settings, which import no PyTorch and state what the component can do, and the
`nn.Module` that their `build` returns. Code outside `models/` uses the properties of settings and never compares names.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from regard.attention.extents import EXTENTS
from regard.attention.normalizers import NORMALIZERS
from regard.attention.scores import SCORES
from regard.errors import RegardError
from regard.registry import Registry
from regard.settings import Settings, registered

if TYPE_CHECKING:
    from torch import nn

    from regard.models.stems import Stem

Size = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Score = Annotated[str, registered(SCORES)]
PoolingScore = Annotated[str, registered(SCORES, without=("location",))]  # there is one query, and none before it
Extent = Annotated[str, registered(EXTENTS, without=("causal", "window"))]
Normalizer = Annotated[str, registered(NORMALIZERS, without=("none",))]


def _is_plugin(setting: str, value: str) -> bool:
    """Whether a setting names an extension from outside, which may use settings that the built-in ones do not."""
    registries: dict[str, Registry[Any]] = {"score": SCORES, "extent": EXTENTS, "normalize": NORMALIZERS}
    return setting in registries and value not in registries[setting].builtin_names()


@dataclass(frozen=True)
class StemOptions:
    """What an encoder requires of the stem below it.

    position: "sinusoidal" or "learned" (for the first `max_positions`), or anything else for none. scale: multiply
    embeddings by the square root of the width. norm: builds the normalization of embeddings, if there is one.
    """

    width: int
    dropout: float
    position: str = "none"
    max_positions: int = 1024
    scale: bool = False
    norm: "Callable[[], nn.Module] | None" = None


class Component(Settings):
    """An encoder's or a decoder's settings. exports_to_onnx: a graph can be traced for inputs of every length."""

    exports_to_onnx: ClassVar[bool] = True
    # Settings that mean something only where another one has one of these values.
    only_where: ClassVar[dict[str, tuple[str, tuple[str, ...]]]] = {}

    kind: str
    width: Size = 256
    embedding: Size | None = None  # the width of the embeddings; `width` if not given
    layers: Size = 1
    dropout: Share = 0.1

    @model_validator(mode="after")
    def _reject_ignored_settings(self) -> Self:
        for name, (other, values) in self.only_where.items():
            if getattr(self, other) in values or _is_plugin(other, getattr(self, other)):
                continue
            if getattr(self, name) != type(self).model_fields[name].default:
                raise RegardError(
                    f"{name} = {getattr(self, name)} does nothing where {other} is {getattr(self, other)}; "
                    f"leave it out, or set {other} to {' or '.join(values)}"
                )
        return self

    @property
    def embedding_width(self) -> int:
        return self.embedding or self.width

    @property
    def max_length(self) -> int | None:
        """The longest sequence it has positions for, or None for no limit."""
        return None

    @property
    def recurrent_width(self) -> int:
        """The width of its recurrent layers; 0 if it has none."""
        return 0


class EncoderSettings(Component):
    """Settings of an encoder.

    is_identity: whether its stem's output is passed on as it is.
    """

    is_identity: ClassVar[bool] = False

    def stem_options(self) -> StemOptions:
        """What it requires of its stem."""
        return StemOptions(self.embedding_width, self.dropout)

    @abstractmethod
    def build(self, stem: "Stem") -> "nn.Module":
        """A module `(source, mask, *, need_weights) -> EncoderOutput` with the width of its output, `memory_width`.

        It applies the stem, `stem.read(source, mask)`, and keeps it as `embedding`.
        """


class DecoderSettings(Component):
    """Settings of a decoder, or of a head in its place.

    autoregressive: one token after the other, so that there is something to search. predicts_tokens: its outputs are
    tokens of a vocabulary; otherwise labels. per_position: it predicts something at every position of the source.
    masked_lm: it predicts tokens of the source itself, so that it shares the source's vocabulary. has_output: there
    is an output layer. predicts_spans: where a span of the source starts and ends. predicts: its outputs, in a word.
    works_without_source: as a language model.
    """

    autoregressive: ClassVar[bool] = False
    predicts_tokens: ClassVar[bool] = False
    per_position: ClassVar[bool] = False
    masked_lm: ClassVar[bool] = False
    predicts_spans: ClassVar[bool] = False
    has_output: ClassVar[bool] = True
    predicts: ClassVar[str] = "labels"
    works_without_source: ClassVar[bool] = False

    @property
    def attends(self) -> bool:
        """Whether it attends to the source at every step."""
        return self.autoregressive

    @property
    def copies(self) -> bool:
        """Whether it can copy tokens of the source."""
        return False

    @property
    def attention_layers(self) -> int:
        """How many layers attend to the source."""
        return self.layers

    @property
    def attends_after_input(self) -> bool:
        """Whether a token is attended to in the step that has just read it, not in the one that predicts it."""
        return False

    @property
    def next_sentence_prediction(self) -> bool:
        """Whether it also predicts if the second segment follows the first."""
        return False

    @abstractmethod
    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        """A module `(targets, memory, *, need_weights) -> DecoderOutput`; if autoregressive, with `start` and `step`.

        memory_width: of the encoder's output; None where there is none to attend to.
        """


class SourceSettings(Settings):
    """What a model reads, and how it becomes a sequence of vectors.

    description: of its data, as in "images". is_text: it is tokens of a vocabulary. is_empty: there is no source.
    """

    description: ClassVar[str]
    is_text: ClassVar[bool] = False
    is_empty: ClassVar[bool] = False

    kind: str

    @property
    def summary(self) -> str:
        """What the model reads, in a few words; empty for text."""
        return ""

    @property
    def reads_sentences(self) -> bool:
        """Whether sentences, not tokens, are the positions to attend to."""
        return False

    @property
    def segments_of_text(self) -> int:
        """How many segments have embeddings of their own; 1 for none."""
        return 1

    @property
    def splits_sentences(self) -> bool:
        """Whether each sentence is a segment."""
        return False

    @property
    def segment_separators(self) -> int:
        """Separator tokens between two segments."""
        return 1

    @property
    def starts_with_bos(self) -> bool:
        """Whether a beginning-of-sequence token precedes every source."""
        return False

    @property
    def convolves(self) -> bool:
        """Whether its stem is a stack of convolutions large enough to use several threads."""
        return False

    @abstractmethod
    def build_stem(self, options: StemOptions, vocabulary: int) -> "Stem":
        """A module with `read(source, mask) -> (vectors [B, T, E], mask [B, T])`. vocabulary: 0 unless it is text."""


ENCODERS: Registry[type[EncoderSettings]] = Registry("encoder", "regard.models.settings.encoders")
DECODERS: Registry[type[DecoderSettings]] = Registry("decoder", "regard.models.settings.decoders")
SOURCES: Registry[type[SourceSettings]] = Registry("source", "regard.models.settings.sources")

Initialization = Literal["bahdanau", "uniform", "glorot"]
