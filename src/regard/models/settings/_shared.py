"""Settings that an encoder and a decoder of the same kind share."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from regard.attention.positions import POSITIONS
from regard.errors import RegardError
from regard.models.settings.components import Component, Normalizer, Share, Size, StemOptions
from regard.settings import registered

if TYPE_CHECKING:
    from torch import nn

Activation = Literal["relu", "gelu", "gelu-tanh", "silu", "swiglu", "geglu"]
Position = Annotated[str, registered(POSITIONS, also=("none",))]


class ConvolutionalSettings(Component):
    """Gated convolutions (Gehring et al. 2017)."""

    exports_to_onnx: ClassVar[bool] = False

    kernel: Size = 3
    max_positions: Size = 1024  # learned position embeddings: the longest sequence

    @property
    def max_length(self) -> int | None:
        return self.max_positions

    def stem_options(self) -> StemOptions:
        """Embeddings with learned positions."""
        return StemOptions(self.embedding_width, self.dropout, "learned", self.max_positions)


class TransformerSettings(Component):
    """Transformer layers (Vaswani et al. 2017)."""

    only_where = {"max_positions": ("position", ("learned",))}  # noqa: RUF012

    heads: Size = 4
    feedforward: Size = 512
    norm: Literal["layer", "rms"] = "layer"
    norm_epsilon: Annotated[float, Field(gt=0, lt=1)] | None = None  # 1e-5, of rms 1e-6, if not given
    norm_embedding: bool = False  # normalize the embeddings, as BERT and BART do
    norm_first: bool = True  # before each sublayer (pre-norm), which trains more easily; after it as published
    activation: Activation = "relu"  # gelu-tanh: GPT-2's approximation of gelu
    position: Position = "sinusoidal"
    max_positions: Size = 1024  # of learned positions
    window: Size | None = None  # restricted self-attention: the radius; everything if not given
    normalize: Normalizer = "softmax"
    attention_dropout: Share = 0.0
    activation_dropout: Share = 0.0
    scale_embedding: bool = True  # by the square root of the width
    share_layers: bool = False  # one layer, used `layers` times (the Universal Transformer)

    @property
    def max_length(self) -> int | None:
        return self.max_positions if self.position == "learned" else None

    @model_validator(mode="after")
    def _check_heads(self) -> "TransformerSettings":
        if self.width % self.heads:
            raise RegardError(f"{self.heads} heads do not divide the width {self.width}")
        return self

    def build_norm(self, width: int) -> "nn.Module":
        """LayerNorm or RMSNorm over a width."""
        from torch import nn

        norm_class, default_epsilon = (nn.LayerNorm, 1e-5) if self.norm == "layer" else (nn.RMSNorm, 1e-6)
        return norm_class(width, eps=self.norm_epsilon or default_epsilon)

    def stem_options(self) -> StemOptions:
        """Embeddings with the positions, the scale and the normalization of these settings."""
        width = self.embedding_width
        norm = (lambda: self.build_norm(width)) if self.norm_embedding else None
        return StemOptions(width, self.dropout, self.position, self.max_positions, self.scale_embedding, norm)
