"""What a loss term is, and what it is computed from."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from regard.data.batching import Batch
from regard.models.outputs import DecoderOutput, EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.registry import Registry
from regard.training.settings import TrainingSettings


class Loss(NamedTuple):
    """Sums over a batch's target tokens; `total` has the gradient."""

    total: Tensor
    cross_entropy: Tensor  # of the targets, without smoothing or other terms: its mean is the log of the perplexity
    per_token: Tensor | None = None  # [N], of the targets that are no padding


@dataclass(frozen=True)
class ForwardPass:
    """A batch that has passed through a model.

    passes: 2 if all rows were passed twice, with other dropout (R-Drop); encoded and decoded have twice the rows then.
    rounded: matrix products are in bfloat16.
    """

    model: Seq2Seq
    batch: Batch
    encoded: EncoderOutput
    decoded: DecoderOutput
    present: Tensor  # [B, Tt], True where there is a target token
    passes: int = 1
    rounded: bool = False


class MainLoss(ABC):
    """The loss of the targets themselves; every task has one."""

    @classmethod
    @abstractmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> "MainLoss":
        """The loss of such a model."""

    @abstractmethod
    def __call__(self, given: ForwardPass) -> Loss:
        """The summed loss."""


LOSSES: Registry[type[MainLoss]] = Registry("loss", "regard.training.losses", deferred=True)
