"""Settings of the recurrent encoder."""

from typing import TYPE_CHECKING, ClassVar, Literal

from regard.models.settings.components import ENCODERS, EncoderSettings, Initialization

if TYPE_CHECKING:
    from torch import nn

    from regard.models.stems import Stem


@ENCODERS.register("recurrent")
class RecurrentEncoderSettings(EncoderSettings):
    """GRU or LSTM layers, in one direction or both."""

    exports_to_onnx: ClassVar[bool] = False

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    bidirectional: bool = True
    reverse: bool = False  # reverse the source, as Sutskever et al. 2014 did
    pyramid: bool = False  # each layer but the first joins two positions (Chan et al. 2015, arXiv:1508.01211)
    initialization: Initialization = "glorot"

    @property
    def recurrent_width(self) -> int:
        return self.width

    def build(self, stem: "Stem") -> "nn.Module":
        from regard.models.encoders.recurrent import RecurrentEncoder

        return RecurrentEncoder(self, stem)
