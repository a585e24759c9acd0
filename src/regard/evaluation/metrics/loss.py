"""Loss and perplexity of a validation set: what selects checkpoints where nothing is generated."""

import math

from regard.evaluation.metrics import METRICS, LossMetric


@METRICS.register("loss")
class Loss(LossMetric):
    """The mean cross-entropy of a target token, in nats."""

    summary = "the mean loss of a token"
    task = "causal_lm"
    higher_is_better = False

    @classmethod
    def from_loss(cls, loss: float) -> float:
        return loss


@METRICS.register("perplexity")
class Perplexity(LossMetric):
    """exp of the loss; infinite where that is too large for a float."""

    summary = "exp of the mean loss of a token"
    task = "causal_lm"
    higher_is_better = False

    @classmethod
    def from_loss(cls, loss: float) -> float:
        return math.exp(loss) if loss < 700 else math.inf
