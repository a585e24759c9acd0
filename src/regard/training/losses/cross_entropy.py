"""Label-smoothed cross-entropy over target tokens, fused with the output layer; R-Drop; copy mechanism.

Label smoothing: Szegedy et al. 2015 (arXiv:1512.00567). R-Drop: Liang et al. 2021 (arXiv:2106.14448).
"""

from regard.models.copy_mechanism import copy_cross_entropy
from regard.models.outputs import CopyDistribution
from regard.models.settings import ModelSettings
from regard.training.label_smoothed_cross_entropy import fused_cross_entropy, fused_rdrop
from regard.training.loss import LOSSES, ForwardPass, Loss, MainLoss
from regard.training.settings import TrainingSettings


@LOSSES.register("cross-entropy")
class CrossEntropy(MainLoss):
    """Cross-entropy of target tokens. rdrop_weight: of the divergence between the two passes."""

    supports_rdrop = True

    def __init__(self, smoothing: float, rdrop_weight: float = 0.0) -> None:
        self.smoothing, self.rdrop_weight = smoothing, rdrop_weight

    @classmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> MainLoss:
        if model.decoder.copies:
            return CopyCrossEntropy(settings.label_smoothing)
        return cls(settings.label_smoothing, settings.rdrop_weight)

    def __call__(self, forward: ForwardPass) -> Loss:
        output, mask = forward.model.output, forward.target_mask
        labels = forward.batch.labels[mask]
        if forward.passes == 2:
            first, second = forward.decoded.features.chunk(2)
            loss = fused_rdrop(
                first[mask],
                second[mask],
                output.weight,
                output.bias,
                labels,
                smoothing=self.smoothing,
                rdrop_weight=self.rdrop_weight,
                bfloat16=forward.bfloat16,
            )
        else:
            loss = fused_cross_entropy(
                forward.decoded.features[mask],
                output.weight,
                output.bias,
                labels,
                smoothing=self.smoothing,
                bfloat16=forward.bfloat16,
            )
        return Loss(loss.total, loss.per_token.double().sum(), loss.per_token)


class CopyCrossEntropy(MainLoss):
    """Cross-entropy of a decoder that can copy source tokens (See et al. 2017, arXiv:1704.04368)."""

    def __init__(self, smoothing: float) -> None:
        self.smoothing = smoothing

    @classmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> MainLoss:
        return cls(settings.label_smoothing)

    def __call__(self, forward: ForwardPass) -> Loss:
        copy, mask = forward.decoded.copy, forward.target_mask
        assert copy is not None
        distribution = CopyDistribution(copy.weights[mask], copy.generate[mask])
        tokens = forward.batch.source[:, None].expand(*mask.shape, -1)[mask]
        logits = forward.model.logits(forward.decoded.features[mask])
        total, per_token = copy_cross_entropy(
            logits, distribution, tokens, forward.batch.labels[mask], smoothing=self.smoothing
        )
        return Loss(total.sum(), per_token.detach().double().sum(), per_token.detach())
