"""Settings of the recurrent decoder."""

from typing import TYPE_CHECKING, ClassVar, Literal

from regard.models.settings.components import DECODERS, DecoderSettings, Extent, Initialization, Normalizer, Score, Size

if TYPE_CHECKING:
    from torch import nn


@DECODERS.register("recurrent")
class RecurrentDecoderSettings(DecoderSettings):
    """GRU or LSTM; without attention, or attending before the step (Bahdanau) or after it (Luong)."""

    exports_to_onnx: ClassVar[bool] = False

    autoregressive: ClassVar[bool] = True
    predicts_tokens: ClassVar[bool] = True
    predicts: ClassVar[str] = "tokens"
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
        "copy_mechanism": ("attend", ("before", "after")),
    }

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    attend: Literal["never", "before", "after"] = "before"
    context: Literal["first", "every"] = "first"  # without attention: C is the first state, or fed at every step too
    score: Score = "additive"
    extent: Extent = "global"
    radius: Size = 10  # of local attention
    normalize: Normalizer = "softmax"
    estimator: Literal["reinforce", "gumbel"] = "gumbel"  # of the gradient through hard attention
    attention_width: Size | None = None  # of the additive score's hidden layer; `width` if not given
    input_feeding: bool = False  # attending after the step: the attentional vector is part of the next input
    filters: Size = 16  # of the location score: features of the previous attention weights
    filter_width: Size = 15  # positions that each of them covers
    coverage: bool = False  # the location score sees the sum of all attention weights, not the last (See et al. 2017)
    gate: bool = False  # scales the context by a gate computed from the state (Xu et al. 2015, section 4.2.1)
    copy_mechanism: bool = False  # tokens can be copied from the source (See et al. 2017, arXiv:1704.04368)
    initialization: Initialization = "glorot"

    @property
    def attends(self) -> bool:
        return self.attend != "never"

    @property
    def copies(self) -> bool:
        return self.copy_mechanism

    @property
    def attention_layers(self) -> int:
        return 1

    @property
    def recurrent_width(self) -> int:
        return self.width

    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        from regard.models.decoders.recurrent import RecurrentDecoder

        assert memory_width is not None
        return RecurrentDecoder(self, vocabulary, memory_width)
