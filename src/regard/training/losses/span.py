"""Cross-entropy over source positions, for the first and the last position of an answer span."""

import torch

from regard.models.settings import ModelSettings
from regard.special_tokens import EOS
from regard.training.loss import LOSSES, ForwardPass, Loss, MainLoss
from regard.training.settings import TrainingSettings


@LOSSES.register("span")
class SpanCrossEntropy(MainLoss):
    """Labels [B, 2] are the two positions, counted from 1. rdrop_weight: of the divergence between two passes."""

    supports_rdrop = True

    def __init__(self, smoothing: float, rdrop_weight: float = 0.0) -> None:
        self.smoothing, self.rdrop_weight = smoothing, rdrop_weight

    @classmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> MainLoss:
        return cls(settings.label_smoothing, settings.rdrop_weight)

    def __call__(self, forward: ForwardPass) -> Loss:
        labels, mask = forward.batch.labels, forward.encoded.mask
        logits = forward.model.output(forward.decoded.features)[..., EOS + 1 :].float()  # [B, Ts, 2]
        log_probs = logits.masked_fill(~mask[..., None], -torch.inf).log_softmax(1).transpose(1, 2)  # [B, 2, Ts]
        passes = log_probs.chunk(forward.passes)
        valid = mask[: len(labels), None].expand_as(passes[0])
        positions = (labels - 1).clamp_min(0)[..., None]
        loss = torch.stack([-each.gather(2, positions)[..., 0] for each in passes]).mean(0)
        uniform = torch.stack([-torch.where(valid, each, 0).sum(2) / valid.sum(2) for each in passes]).mean(0)
        total = ((1 - self.smoothing) * loss + self.smoothing * uniform).sum()
        if forward.passes == 2:
            p, q = (torch.where(valid, each, 0) for each in passes)
            divergence = (torch.where(valid, p.exp() - q.exp(), 0) * (p - q)).sum() / 2
            total = total + self.rdrop_weight / 2 * divergence
        return Loss(total, loss.detach().double().sum())
