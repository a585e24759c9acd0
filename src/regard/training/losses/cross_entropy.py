"""Label-smoothed cross-entropy over target tokens, fused with the output layer; R-Drop; copied tokens.

Label smoothing: Szegedy et al. 2015 (arXiv:1512.00567). R-Drop: Liang et al. 2021 (arXiv:2106.14448).
"""

from regard.models.copy_mechanism import copy_cross_entropy
from regard.models.fused_cross_entropy import fused_cross_entropy, fused_rdrop
from regard.models.outputs import CopyDistribution
from regard.models.settings import ModelSettings
from regard.training.loss import LOSSES, ForwardPass, Loss, MainLoss
from regard.training.settings import TrainingSettings


@LOSSES.register("cross-entropy")
class CrossEntropy(MainLoss):
    """Of every target token. r_drop: how much the distributions of two passes must agree."""

    def __init__(self, smoothing: float, r_drop: float = 0.0) -> None:
        self.smoothing, self.r_drop = smoothing, r_drop

    @classmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> MainLoss:
        if model.decoder.copies:
            return CopyCrossEntropy(settings.smoothing)
        return cls(settings.smoothing, settings.rdrop_weight)

    def __call__(self, given: ForwardPass) -> Loss:
        output, present = given.model.output, given.present
        labels = given.batch.labels[present]
        if given.passes == 2:
            first, second = given.decoded.features.chunk(2)
            loss = fused_rdrop(
                first[present],
                second[present],
                output.weight,
                output.bias,
                labels,
                smoothing=self.smoothing,
                rdrop_weight=self.r_drop,
                rounded=given.rounded,
            )
        else:
            loss = fused_cross_entropy(
                given.decoded.features[present],
                output.weight,
                output.bias,
                labels,
                smoothing=self.smoothing,
                rounded=given.rounded,
            )
        return Loss(loss.total, loss.per_token.double().sum(), loss.per_token)


class CopyCrossEntropy(MainLoss):
    """Of a decoder that may copy tokens of its source (See et al. 2017, arXiv:1704.04368)."""

    def __init__(self, smoothing: float) -> None:
        self.smoothing = smoothing

    @classmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> MainLoss:
        return cls(settings.smoothing)

    def __call__(self, given: ForwardPass) -> Loss:
        copy, present = given.decoded.copy, given.present
        assert copy is not None
        chosen = CopyDistribution(copy.weights[present], copy.generate[present])
        tokens = given.batch.source[:, None].expand(*present.shape, -1)[present]
        logits = given.model.logits(given.decoded.features[present])
        total, per_token = copy_cross_entropy(
            logits, chosen, tokens, given.batch.labels[present], smoothing=self.smoothing
        )
        return Loss(total.sum(), per_token.detach().double().sum(), per_token.detach())
