"""The interface of main losses, their registry, and what they are computed from."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from regard.data.batch import Batch
from regard.models.outputs import DecoderOutput, EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.registry import Registry
from regard.training.settings import TrainingSettings


class Loss(NamedTuple):
    """Sums over a batch's target tokens; `total` has the gradient."""

    total: Tensor
    cross_entropy: Tensor  # without label smoothing and loss terms: its mean is the log of the perplexity
    per_token: Tensor | None = None  # [N], without padding


@dataclass(frozen=True)
class ForwardPass:
    """The forward pass of a model over a batch.

    passes: 2 if each row was passed twice with different dropout (R-Drop): encoded and decoded have twice the rows.
    bfloat16: whether matrix products are in bfloat16.
    """

    model: Seq2Seq
    batch: Batch
    encoded: EncoderOutput
    decoded: DecoderOutput
    target_mask: Tensor  # [B, Tt], False at padding
    passes: int = 1
    bfloat16: bool = False


class MainLoss(ABC):
    """The loss of the targets; every task names one. supports_rdrop: it compares two passes, if there are two."""

    supports_rdrop: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> "MainLoss":
        """Create the loss for a model."""

    @abstractmethod
    def __call__(self, forward: ForwardPass) -> Loss:
        """The summed loss."""


LOSSES: Registry[type[MainLoss]] = Registry("loss", "regard.training.losses", deferred=True)
