"""Cross-entropy over the positions of a source, for the first and for the last position of an answer."""

import torch

from regard.models.settings import ModelSettings
from regard.special_tokens import END
from regard.training.loss import LOSSES, ForwardPass, Loss, MainLoss
from regard.training.settings import TrainingSettings


@LOSSES.register("span")
class SpanCrossEntropy(MainLoss):
    """Labels [B, 2] are the two positions, counted from 1. r_drop: how much two passes must agree."""

    def __init__(self, smoothing: float, r_drop: float = 0.0) -> None:
        self.smoothing, self.r_drop = smoothing, r_drop

    @classmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> MainLoss:
        return cls(settings.smoothing, settings.rdrop_weight)

    def __call__(self, given: ForwardPass) -> Loss:
        labels, mask = given.batch.labels, given.encoded.mask
        logits = given.model.output(given.decoded.features)[..., END + 1 :].float()  # [B, Ts, 2]
        logs = logits.masked_fill(~mask[..., None], -torch.inf).log_softmax(1).transpose(1, 2)  # [B, 2, Ts]
        passes = logs.chunk(given.passes)
        present = mask[: len(labels), None].expand_as(passes[0])
        positions = (labels - 1).clamp_min(0)[..., None]
        loss = torch.stack([-each.gather(2, positions)[..., 0] for each in passes]).mean(0)
        uniform = torch.stack([-torch.where(present, each, 0).sum(2) / present.sum(2) for each in passes]).mean(0)
        total = ((1 - self.smoothing) * loss + self.smoothing * uniform).sum()
        if given.passes == 2:
            p, q = (torch.where(present, each, 0) for each in passes)
            divergence = (torch.where(present, p.exp() - q.exp(), 0) * (p - q)).sum() / 2
            total = total + self.r_drop / 2 * divergence
        return Loss(total, loss.detach().double().sum())
