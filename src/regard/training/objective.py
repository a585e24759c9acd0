"""What is minimised: label-smoothed cross-entropy over the target's tokens, and what options add to it."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import Draw, Reinforce
from regard.data.batches import Batch
from regard.models.loss import agreeing_loss, projected_loss
from regard.models.memory import Decoded
from regard.models.seq2seq import Seq2Seq
from regard.tokens import PAD
from regard.training.precision import chosen, products_in
from regard.training.settings import TrainingSettings


class Loss(NamedTuple):
    """Sums over a batch's tokens; `total` has the gradient."""

    total: Tensor
    entropy: Tensor  # of the targets, without smoothing or anything else: its mean is the log of the perplexity


class Objective(nn.Module):
    """A model and its loss as one module: what is trained, in one process or in several."""

    def __init__(self, model: Seq2Seq, settings: TrainingSettings) -> None:
        super().__init__()
        self.model, self.settings = model, settings
        self.precision = chosen(settings.precision, next(model.parameters()).device)
        self.reinforce = Reinforce()

    def forward(self, source: Tensor, mask: Tensor, before: Tensor, after: Tensor, twice: bool = False) -> Loss:
        """A batch's tensors -> its loss. `twice`: two passes that must agree (R-Drop)."""
        with products_in(self.precision if self.training else "float32"):
            return self._loss(source, mask, before, after, twice)

    def _loss(self, source: Tensor, mask: Tensor, before: Tensor, after: Tensor, twice: bool) -> Loss:
        rounded = self.training and self.precision == "bfloat16"
        output = self.model.output
        there = after != PAD
        targets = after[there]
        if twice:
            # Both passes in one: dropout differs between the halves because it counts elements.
            decoded = self.model(torch.cat([source] * 2), torch.cat([mask] * 2), torch.cat([before] * 2))
            first, second = decoded.features.chunk(2)
            loss = agreeing_loss(
                first[there],
                second[there],
                output.weight,
                output.bias,
                targets,
                smoothing=self.settings.smoothing,
                agreement=self.settings.agreement,
                rounded=rounded,
            )
            return Loss(loss.total, loss.per_token.double().sum())
        decoded = self.model(source, mask, before)
        loss = projected_loss(
            decoded.features[there],
            output.weight,
            output.bias,
            targets,
            smoothing=self.settings.smoothing,
            rounded=rounded,
        )
        total = loss.total
        if decoded.draws:
            total = total + self._learn_where_to_look(decoded, loss.per_token, there)
        return Loss(total, loss.per_token.double().sum())

    def _learn_where_to_look(self, decoded: Decoded, per_token: Tensor, there: Tensor) -> Tensor:
        """REINFORCE with each sentence's mean log-likelihood as the reward; padded steps draw nothing that counts."""
        likelihood = per_token.new_zeros(there.shape).masked_scatter(there, -per_token)
        reward = likelihood.sum(1) / there.sum(1).clamp_min(1)
        draws = []
        step = 0
        for draw in decoded.draws:  # log_prob [B, H, steps]
            steps = draw.log_prob.shape[-1]
            counts = there[:, None, step : step + steps].to(draw.log_prob.dtype)
            draws.append(Draw(draw.place, draw.log_prob * counts, draw.entropy * counts))
            step += steps
        loss: Tensor = self.reinforce(reward, draws) * len(there)
        return loss


def loss_of(objective: nn.Module, batch: Batch, *, twice: bool = False) -> Loss:
    """The loss of one batch."""
    loss: Loss = objective(batch.source, batch.mask, batch.before, batch.after, twice)
    return loss
