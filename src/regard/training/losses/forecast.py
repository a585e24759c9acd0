"""The loss of a forecast: squared error, or the quantile (pinball) loss of Koenker and Bassett 1978."""

import torch
from torch import Tensor

from regard.models.heads.forecast import forecast_values
from regard.models.settings import ModelSettings
from regard.training.loss import LOSSES, ForwardPass, Loss, MainLoss
from regard.training.settings import TrainingSettings


@LOSSES.register("forecast")
class ForecastLoss(MainLoss):
    """The mean over the values of a window, missing ones left out; summed over windows."""

    def __init__(self, quantiles: tuple[float, ...]) -> None:
        self.quantiles = quantiles

    @classmethod
    def build(cls, model: ModelSettings, settings: TrainingSettings) -> MainLoss:
        return cls(tuple(getattr(model.decoder, "quantiles", ())))

    def __call__(self, forward: ForwardPass) -> Loss:
        batch = forward.batch
        assert batch.values is not None
        predicted = forecast_values(forward.model, batch.source, batch.mask, forward.decoded.features)
        present = torch.isfinite(batch.values)
        truth = torch.where(present, batch.values, 0)
        errors = self.errors(truth[..., None] - predicted) * present
        total = (errors.sum((1, 2)) / present.sum((1, 2)).clamp_min(1)).sum()
        return Loss(total, total.detach().double())

    def errors(self, difference: Tensor) -> Tensor:
        """Truth minus forecast [B, H, C, Q] -> the loss of each value [B, H, C]."""
        if not self.quantiles:
            return difference.square()[..., 0]
        q = difference.new_tensor(self.quantiles)
        return 2 * torch.maximum(q * difference, (q - 1) * difference).mean(-1)
