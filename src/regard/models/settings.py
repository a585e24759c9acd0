"""What a model is made of: any encoder, any decoder, as typed settings. Imports no PyTorch."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from regard.settings import Settings

Size = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Score = Literal["dot", "scaled-dot", "cosine", "bilinear", "additive"]
Normaliser = Literal["softmax", "sparsemax", "entmax", "sigmoid", "hard"]
Position = Literal["none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "t5"]


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
            if getattr(self, other) not in values and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(
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
    """GRU or LSTM, stacked, in one direction or both."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    bidirectional: bool = True
    reverse: bool = False  # read the source backwards, as Sutskever et al. 2014 did
    initialisation: Literal["bahdanau", "uniform", "glorot"] = "glorot"


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
    norm_place: Literal["pre", "post"] = "pre"  # post as published, pre trains more easily
    activation: Literal["relu", "gelu", "swiglu", "geglu"] = "relu"
    position: Position = "sinusoidal"
    positions: Size = 1024  # for learned positions: how many
    window: Size | None = None  # restricted self-attention: the radius; everything if not given
    normalise: Normaliser = "softmax"
    attention_dropout: Share = 0.0
    activation_dropout: Share = 0.0
    scale_embedding: bool = True  # by the square root of the width

    @property
    def most_tokens(self) -> int | None:
        return self.positions if self.position == "learned" else None

    @model_validator(mode="after")
    def _heads_divide(self) -> "_Transformer":
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {self.width}")
        return self


class TransformerEncoder(_Transformer):
    """Self-attention and feed-forward layers, Vaswani et al. 2017."""

    kind: Literal["transformer"] = "transformer"


class RecurrentDecoder(_Part):
    """GRU or LSTM; without attention, or attending before the step (Bahdanau) or after it (Luong)."""

    only_where = {  # noqa: RUF012
        "context": ("attend", ("never",)),
        "input_feeding": ("attend", ("after",)),
        "score": ("attend", ("before", "after")),
        "extent": ("attend", ("before", "after")),
        "normalise": ("attend", ("before", "after")),
        "radius": ("extent", ("local-m", "local-p")),
        "estimator": ("normalise", ("hard",)),
        "attention_width": ("score", ("additive",)),
    }

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    attend: Literal["never", "before", "after"] = "before"
    context: Literal["first", "every"] = "first"  # without attention: C is the first state, or fed at every step too
    score: Score = "additive"
    extent: Literal["global", "local-m", "local-p"] = "global"
    radius: Size = 10  # of local attention
    normalise: Normaliser = "softmax"
    estimator: Literal["reinforce", "gumbel"] = "gumbel"  # how hard attention learns
    attention_width: Size | None = None  # of the additive score's hidden layer; `width` if not given
    input_feeding: bool = False  # attending after the step: show the next step what was attended to
    initialisation: Literal["bahdanau", "uniform", "glorot"] = "glorot"


class ConvolutionalDecoder(_Convolutional):
    """Causal gated convolutions with attention in every block, as in Gehring et al. 2017."""

    kind: Literal["convolutional"] = "convolutional"


class TransformerDecoder(_Transformer):
    """Causal self-attention, cross-attention and feed-forward layers, Vaswani et al. 2017."""

    kind: Literal["transformer"] = "transformer"


Encoder = Annotated[RecurrentEncoder | ConvolutionalEncoder | TransformerEncoder, Field(discriminator="kind")]
Decoder = Annotated[RecurrentDecoder | ConvolutionalDecoder | TransformerDecoder, Field(discriminator="kind")]


class ModelSettings(Settings):
    """An encoder, a decoder, and which embeddings they share."""

    encoder: Encoder = TransformerEncoder()
    decoder: Decoder = TransformerDecoder()
    tie: Literal["none", "target", "all"] = "target"  # target: the target's embedding is the output layer

    @model_validator(mode="after")
    def _can_be_tied(self) -> "ModelSettings":
        if self.tie == "all" and self.encoder.embedding_width != self.decoder.embedding_width:
            raise ValueError(
                f"tie is all, but the encoder's embeddings are {self.encoder.embedding_width} wide and the decoder's "
                f"{self.decoder.embedding_width}; make them equal, or tie the target only"
            )
        return self
