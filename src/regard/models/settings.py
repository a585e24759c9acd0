"""What a model is made of: any encoder, any decoder, as typed settings. Imports no PyTorch."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from regard.attention.extents import EXTENTS
from regard.attention.normalizers import NORMALIZERS
from regard.attention.scores import SCORES
from regard.errors import RegardError
from regard.registry import Registry
from regard.settings import Settings, registered
from regard.sources import Says, Source, Text

Size = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Score = Annotated[str, registered(SCORES)]
PoolingScore = Annotated[str, registered(SCORES, without=("location",))]  # there is one query, and none before it
Extent = Annotated[str, registered(EXTENTS, without=("causal", "window"))]
Normalizer = Annotated[str, registered(NORMALIZERS, without=("none",))]
Activation = Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu", "geglu"]
Position = Literal["none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "t5"]


def _is_plugin(setting: str, value: str) -> bool:
    """Whether a setting names an extension from outside, which may use settings that the built-in ones do not."""
    registries: dict[str, Registry[Any]] = {"score": SCORES, "extent": EXTENTS, "normalize": NORMALIZERS}
    return setting in registries and value not in registries[setting].builtin_names()


class _Part(Settings):
    # Settings that mean something only where another one has one of these values.
    only_where: ClassVar[dict[str, tuple[str, tuple[str, ...]]]] = {}

    width: Size = 256
    embedding: Size | None = None  # the width of the embeddings; `width` if not given
    layers: Size = 1
    dropout: Share = 0.1

    @model_validator(mode="after")
    def _nothing_is_ignored(self) -> Self:
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
    def most_tokens(self) -> int | None:
        """The longest sequence it has places for, or None if any length will do."""
        return None


class RecurrentEncoder(_Part):
    """GRU or LSTM, build_layers, in one direction or both."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    bidirectional: bool = True
    reverse: bool = False  # read the source reverse_sequences, as Sutskever et al. 2014 did
    pyramid: bool = False  # each layer but the first reads two places as one (Chan et al. 2015, arXiv:1508.01211)
    initialization: Literal["bahdanau", "uniform", "glorot"] = "glorot"


class _Convolutional(_Part):
    kernel: Size = 3
    positions: Size = 1024  # places with a learnt vector: the longest sequence

    @property
    def most_tokens(self) -> int | None:
        return self.positions


class ConvolutionalEncoder(_Convolutional):
    """Gated convolutions with residual connections, as in Gehring et al. 2017."""

    kind: Literal["convolutional"] = "convolutional"


class _Transformer(_Part):
    only_where = {"positions": ("position", ("learned",))}  # noqa: RUF012

    heads: Size = 4
    feedforward: Size = 512
    norm: Literal["layer", "rms"] = "layer"
    norm_epsilon: Annotated[float, Field(gt=0, lt=1)] | None = None  # 1e-5, of rms 1e-6, if not given
    norm_embedding: bool = False  # what is read is normalised before the first layer, as BERT and BART do
    norm_place: Literal["pre", "post"] = "pre"  # post as published, pre trains more easily
    activation: Activation = "relu"  # gelu-tanh: GPT-2's approximation of gelu
    position: Position = "sinusoidal"
    positions: Size = 1024  # for learned positions: how many
    window: Size | None = None  # restricted self-attention: the radius; everything if not given
    normalize: Normalizer = "softmax"
    attention_dropout: Share = 0.0
    activation_dropout: Share = 0.0
    scale_embedding: bool = True  # by the square root of the width
    shared: bool = False  # one layer, used `layers` times (the Universal Transformer)

    @property
    def most_tokens(self) -> int | None:
        return self.positions if self.position == "learned" else None

    @model_validator(mode="after")
    def _heads_divide(self) -> "_Transformer":
        if self.width % self.heads:
            raise RegardError(f"{self.heads} heads do not divide the width {self.width}")
        return self


class TransformerEncoder(_Transformer):
    """Self-attention and feed-forward layers, Vaswani et al. 2017."""

    kind: Literal["transformer"] = "transformer"


class NoEncoder(_Part):
    """What was read is attended to as it is: the cells of a picture, as in "Show, attend and tell"."""

    kind: Literal["none"] = "none"


class NoDecoder(_Part):
    """Nothing is said: what was read is a vector, or a beginning for other models."""

    kind: Literal["none"] = "none"


class PlacesDecoder(_Part):
    """Something is said at every place that was read: the word that was hidden there, as BERT does, a tag of the word
    that begins there, or whether a span begins or ends there: the answer to a question about a passage.

    inner: a layer, its activation and a norm before the output, as BERT has them. follows: whether the second of two
    parts follows the first is told at the mark that begins a source (Devlin et al. 2018, arXiv:1810.04805).
    """

    kind: Literal["places"] = "places"
    says: Literal["words", "tags", "span"] = "words"
    inner: bool = True
    activation: Literal["relu", "gelu", "gelu-tanh", "tanh"] = "gelu"
    norm_epsilon: Annotated[float, Field(gt=0, lt=1)] | None = None
    follows: bool = False


class PoolingDecoder(_Part):
    """A class instead of a text: the source in one vector, and a layer on it.

    pool: attention by a learnt query (Yang et al. 2016), or the mean, the largest of each, the first (that of the mark
    that begins a source, as BERT has it), or nothing. state: the encoder's own summary beside it (of a recurrent one
    its last states).
    """

    only_where = {"score": ("pool", ("attention",)), "normalize": ("pool", ("attention",))}  # noqa: RUF012

    kind: Literal["pooling"] = "pooling"
    pool: Literal["attention", "mean", "max", "first", "none"] = "attention"
    score: PoolingScore = "additive"
    normalize: Normalizer = "softmax"
    heads: Size = 1
    state: bool = True
    activation: Literal["relu", "tanh"] = "relu"

    @model_validator(mode="after")
    def _sees_something(self) -> Self:
        if self.pool == "none" and not self.state:
            raise RegardError("with pool = none and state = false nothing of the source would be seen; change one")
        if self.width % self.heads:
            raise RegardError(f"{self.heads} heads do not divide the width {self.width}")
        return self


class RecurrentDecoder(_Part):
    """GRU or LSTM; without attention, or attending before the step (Bahdanau) or after it (Luong)."""

    only_where = {  # noqa: RUF012
        "context": ("attend", ("never",)),
        "input_feeding": ("attend", ("after",)),
        "score": ("attend", ("before", "after")),
        "extent": ("attend", ("before", "after")),
        "normalize": ("attend", ("before", "after")),
        "radius": ("extent", ("local-m", "local-p")),
        "estimator": ("normalize", ("hard",)),
        "attention_width": ("score", ("additive", "location")),
        "filters": ("score", ("location",)),
        "filter_width": ("score", ("location",)),
        "gate": ("attend", ("before",)),
        "coverage": ("score", ("location",)),
        "copy_words": ("attend", ("before", "after")),
    }

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    attend: Literal["never", "before", "after"] = "before"
    context: Literal["first", "every"] = "first"  # without attention: C is the first state, or fed at every step too
    score: Score = "additive"
    extent: Extent = "global"
    radius: Size = 10  # of local attention
    normalize: Normalizer = "softmax"
    estimator: Literal["reinforce", "gumbel"] = "gumbel"  # how hard attention learns
    attention_width: Size | None = None  # of the additive score's hidden layer; `width` if not given
    input_feeding: bool = False  # attending after the step: show the next step what was attended to
    filters: Size = 16  # of the location score: features of where it looked before
    filter_width: Size = 15  # places that each of them sees
    coverage: bool = False  # the location score sees the sum of all looks, not the last one (See et al. 2017)
    gate: bool = False  # how much is taken from where it looks, by the state (Xu et al. 2015, section 4.2.1)
    copy_words: bool = False  # words may be copied from where it looks (See et al. 2017, arXiv:1704.04368)
    initialization: Literal["bahdanau", "uniform", "glorot"] = "glorot"


class ConvolutionalDecoder(_Convolutional):
    """Causal gated convolutions with attention in every block, as in Gehring et al. 2017."""

    kind: Literal["convolutional"] = "convolutional"


class TransformerDecoder(_Transformer):
    """Causal self-attention, cross-attention and feed-forward layers, Vaswani et al. 2017."""

    kind: Literal["transformer"] = "transformer"
    copy_words: bool = False  # words may be copied from where the last layer looks


Encoder = Annotated[
    RecurrentEncoder | ConvolutionalEncoder | TransformerEncoder | NoEncoder, Field(discriminator="kind")
]
Decoder = Annotated[
    RecurrentDecoder | ConvolutionalDecoder | TransformerDecoder | PoolingDecoder | PlacesDecoder | NoDecoder,
    Field(discriminator="kind"),
]


class ModelSettings(Settings):
    """What is read, an encoder, a decoder, and which embeddings they share."""

    source: Source = Text()
    encoder: Encoder = TransformerEncoder()
    decoder: Decoder = TransformerDecoder()
    tie: Literal["none", "target", "all"] = "target"  # target: the target's embedding is the output layer
    output_bias: bool = False  # of an output layer that is an embedding; one that is not always has one

    @property
    def labels(self) -> bool:
        """Whether it says classes, not texts."""
        return self.decoder.kind == "pooling"

    @property
    def says(self) -> Says:
        """What it says: a text, a class, a class of every word, or a span of what it reads."""
        if self.decoder.kind == "places" and self.decoder.says != "words":
            return self.decoder.says
        return "label" if self.labels else "text"

    @property
    def tags(self) -> bool:
        """Whether it says a class of every word."""
        return self.says == "tags"

    @property
    def spans(self) -> bool:
        """Whether it says where an answer begins and ends in what it reads."""
        return self.says == "span"

    @property
    def aligns(self) -> bool:
        """Whether the words that it says come from words that it reads."""
        return self.step_by_step and isinstance(self.source, Text) and self.source.places == "subwords"

    @property
    def guesses(self) -> bool:
        """Whether it says what was hidden in the text it reads."""
        return self.decoder.kind == "places" and self.decoder.says == "words"

    @property
    def step_by_step(self) -> bool:
        """Whether it says one word after the other, so that there is something to search."""
        return self.decoder.kind in ("recurrent", "convolutional", "transformer")

    @property
    def copies(self) -> bool:
        """Whether it may say words of its source as they are."""
        return bool(getattr(self.decoder, "copy_words", False))

    @model_validator(mode="after")
    def _fits_its_source(self) -> "ModelSettings":
        if self.source.kind == "nothing" and (self.encoder.kind, self.decoder.kind) != ("none", "transformer"):
            raise RegardError("source is nothing: that is for a transformer decoder alone; set encoder.kind to none")
        if self.source.kind != "text":
            if self.copies:
                raise RegardError(f"decoder.copy_words: there are no words to copy in {self.source.kind}")
            if self.tie == "all":
                raise RegardError(f"tie is all, but {self.source.kind} have no embeddings to share; tie the target")
        if (self.says != "text" or self.decoder.kind == "none") and self.tie != "none":
            raise RegardError("tie: only words have embeddings to share; set it to none")
        if (self.tags or self.spans) and (self.source.kind != "text" or self.encoder.kind == "none"):
            raise RegardError("decoder.says: tags and spans are of a text that an encoder reads")
        if self.spans and not (isinstance(self.source, Text) and self.source.begin and self.source.segments > 1):
            raise RegardError("decoder.says: a span is of a passage with a question; set source.begin and segments = 2")
        if self.guesses and (self.source.kind != "text" or self.encoder.kind != "transformer"):
            raise RegardError("decoder.kind: places is for a transformer encoder that reads text")
        if self.guesses and self.tie == "target":
            raise RegardError("tie: words are guessed in the text that is read; set it to all, or to none")
        if isinstance(self.source, Text) and self.source.places == "sentences":
            if self.copies:
                raise RegardError("decoder.copy_words: there are no words to copy where the places are sentences")
            if self.decoder.kind == "places":
                raise RegardError("decoder.kind: places are guessed at word by word; set source.places to subwords")
        if self.output_bias and self.tie == "none":
            raise RegardError("output_bias: an output layer that is no embedding has one anyway; leave it out")
        if getattr(self.encoder, "pyramid", False) and self.source.kind == "text":
            raise RegardError("encoder.pyramid is for speech: it reads several frames as one")
        return self

    @model_validator(mode="after")
    def _can_be_tied(self) -> "ModelSettings":
        if self.tie == "all" and self.encoder.embedding_width != self.decoder.embedding_width:
            raise RegardError(
                f"tie is all, but the encoder's embeddings are {self.encoder.embedding_width} wide and the decoder's "
                f"{self.decoder.embedding_width}; make them equal, or tie the target only"
            )
        return self
