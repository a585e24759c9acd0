"""What is minimised: label-smoothed cross-entropy over the target's tokens, and what options add to it."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.alignment.alignment_head import AlignmentHead
from regard.attention import Draw, Reinforce
from regard.data.batching import Batch
from regard.models.copy_mechanism import copy_cross_entropy
from regard.models.fused_cross_entropy import fused_cross_entropy, fused_rdrop
from regard.models.heads.per_position import PlacesDecoder
from regard.models.outputs import CopyDistribution, DecoderOutput, EncoderOutput, Packing
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.special_tokens import END, PAD
from regard.training.precision import chosen, products_in
from regard.training.settings import TrainingSettings

SMALLEST = 1e-6  # a weight of zero, as its logarithm is taken


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

    def forward(
        self,
        source: Tensor,
        mask: Tensor,
        before: Tensor,
        after: Tensor,
        guide: Tensor | None = None,
        packing: Packing | None = None,
        follows: Tensor | None = None,
        twice: bool = False,
    ) -> Loss:
        """A batch's tensors -> its loss. `twice`: two passes that must agree (R-Drop)."""
        with products_in(self.precision if self.training else "float32"):
            return self._loss(source, mask, before, after, guide, packing, follows, twice)

    def _loss(
        self,
        source: Tensor,
        mask: Tensor,
        before: Tensor,
        after: Tensor,
        guide: Tensor | None,
        packing: Packing | None,
        follows: Tensor | None,
        twice: bool,
    ) -> Loss:
        rounded = self.training and self.precision == "bfloat16"
        output = self.model.output
        there = after != PAD
        targets = after[there]
        if twice:
            # Both passes in one: dropout differs between the halves because it counts elements.
            source, mask, before = (torch.cat([each] * 2) for each in (source, mask, before))
            guide = None if guide is None else torch.cat([guide / 2] * 2)
            packing = None if packing is None else packing.repeat()
        # Weights of the decoder alone, and only if they are to be taught: without them attention is faster.
        spread = self.training and (self.settings.attend_everywhere > 0 or self.settings.attend_once > 0)
        guesses = self.model.settings.guesses  # what shares rows is read, or else it is said
        memory = self.model.encode(source, mask, packing=packing if guesses else None)
        rows = {} if packing is None or guesses else {"packing": packing}
        decoded = self.model.decoder(before, memory, **rows, need_weights=guide is not None or spread)
        lesson: Tensor | float = self._teach(decoded.cross_attention, guide) if guide is not None else 0.0
        if follows is not None:
            lesson = lesson + self._foreseen(memory, follows) * there.sum()
        if spread and decoded.cross_attention:
            steps = torch.cat([there] * 2) if twice else there
            lesson = lesson + self._spread(decoded.cross_attention[-1].mean(1), memory.mask, steps) / (
                2 if twice else 1
            )
        if self.model.settings.spans:
            return self._between(decoded.features, memory.mask, after, twice=twice)
        if twice:
            first, second = decoded.features.chunk(2)
            loss = fused_rdrop(
                first[there],
                second[there],
                output.weight,
                output.bias,
                targets,
                smoothing=self.settings.smoothing,
                rdrop_weight=self.settings.agreement,
                rounded=rounded,
            )
            return Loss(loss.total + lesson, loss.per_token.double().sum())
        if decoded.copy is not None:
            return self._copying(decoded, there, targets, source, lesson)
        loss = fused_cross_entropy(
            decoded.features[there],
            output.weight,
            output.bias,
            targets,
            smoothing=self.settings.smoothing,
            rounded=rounded,
        )
        total = loss.total + lesson
        if decoded.draws:
            total = total + self._learn_where_to_look(decoded, loss.per_token, there)
        return Loss(total, loss.per_token.double().sum())

    def _between(self, features: Tensor, mask: Tensor, after: Tensor, *, twice: bool) -> Loss:
        """Of spans: cross-entropy over the places of a source, once for the first, once for the last of a span.

        features [B, Ts, E], mask [B, Ts], after [B, 2]: the two places, counted from 1; PAD where a row has none.
        """
        logits = self.model.output(features)[..., END + 1 :].float().masked_fill(~mask[..., None], -torch.inf)
        logs = logits.log_softmax(1).transpose(1, 2)  # [B, 2, Ts]
        both = logs.chunk(2) if twice else (logs,)
        there = mask[: len(after), None].expand_as(both[0])
        places = (after - 1).clamp_min(0)[..., None]
        loss = torch.stack([-each.gather(2, places)[..., 0] for each in both]).mean(0)
        even = torch.stack([-torch.where(there, each, 0).sum(2) / there.sum(2) for each in both]).mean(0)
        smoothing = self.settings.smoothing
        total = ((1 - smoothing) * loss + smoothing * even).sum()
        if twice:
            p, q = (torch.where(there, each, 0) for each in both)
            apart = (torch.where(there, p.exp() - q.exp(), 0) * (p - q)).sum() / 2
            total = total + self.settings.agreement / 2 * apart
        return Loss(total, loss.detach().double().sum())

    def _foreseen(self, memory: EncoderOutput, follows: Tensor) -> Tensor:
        """Next-sentence prediction: the mean cross-entropy over pairs of spans."""
        decoder = self.model.decoder
        assert isinstance(decoder, PlacesDecoder)
        there = follows >= 0
        return cross_entropy(decoder.following(memory.states[there]).float(), follows[there])

    def _copying(
        self, decoded: DecoderOutput, there: Tensor, targets: Tensor, source: Tensor, lesson: Tensor | float
    ) -> Loss:
        """The loss of a decoder that may copy words of its source."""
        assert decoded.copy is not None
        copied = CopyDistribution(decoded.copy.weights[there], decoded.copy.generate[there])
        tokens = source[:, None].expand(*there.shape, -1)[there]
        total, per_token = copy_cross_entropy(
            self.model.logits(decoded.features[there]), copied, tokens, targets, smoothing=self.settings.smoothing
        )
        return Loss(total.sum() + lesson, per_token.detach().double().sum())

    def _spread(self, weights: Tensor, mask: Tensor, there: Tensor) -> Tensor:
        """What looks [B, Tt, Ts] cost that leave places out (doubly stochastic attention, Xu et al. 2015, equation 14)
        or come back to them (the coverage loss, See et al. 2017, equation 12)."""
        weights = weights.float() * there[..., None]
        total = weights.new_zeros(())
        if self.settings.attend_everywhere:
            left = (1 - weights.sum(1)) * mask
            total = total + self.settings.attend_everywhere * left.square().sum()
        if self.settings.attend_once:
            before = weights.cumsum(1) - weights
            total = total + self.settings.attend_once * torch.minimum(weights, before).sum()
        return total

    def _teach(self, cross: list[Tensor], guide: Tensor) -> Tensor:
        """Cross-entropy between where each step should look and where it looks (Chen et al. 2016, arXiv:1607.01628; one
        head of a Transformer: Garg et al. 2019, arXiv:1909.02074)."""
        choice = taught(self.model.settings)
        weights = cross[choice.layer][:, choice.head or 0].float()
        if choice.shifted:
            weights, guide = weights[:, 1:], guide[:, :-1]  # the last row is the end's, which nobody guides
        return -self.settings.guidance * (guide * (weights + SMALLEST).log()).sum()

    def _learn_where_to_look(self, decoded: DecoderOutput, per_token: Tensor, there: Tensor) -> Tensor:
        """REINFORCE with each sentence's mean log-likelihood as the reward; padded steps draw nothing that counts."""
        likelihood = per_token.new_zeros(there.shape).masked_scatter(there, -per_token)
        reward = likelihood.sum(1) / there.sum(1).clamp_min(1)
        draws = []
        step = 0
        for draw in decoded.draws:  # log_prob [B, H, steps]
            steps = draw.log_prob.shape[-1]
            counts = there[:, None, step : step + steps].to(draw.log_prob.dtype)
            draws.append(Draw(draw.position, draw.log_prob * counts, draw.entropy * counts))
            step += steps
        loss: Tensor = self.reinforce(reward, draws) * len(there)
        return loss


def loss_of(objective: nn.Module, batch: Batch, *, twice: bool = False) -> Loss:
    """The loss of one batch."""
    guide = batch.guide if objective.training else None  # a lesson, not a measure
    packing = None if batch.passage is None or batch.place is None else Packing(batch.passage, batch.place)
    tensors = batch.source, batch.mask, batch.before, batch.after, guide, packing, batch.follows
    loss: Loss = objective(*tensors, twice)
    return loss


def taught(settings: ModelSettings) -> AlignmentHead:
    """Where a model learns to look as it is told: in the last layer but one, in the first of its heads.

    A Transformer looks back for a word in the step that has just read it, which knows what to look for (Chen et al.
    2020, arXiv:2004.14837), and leaves it to other heads to look ahead. Other models have one place for both.
    """
    decoder = settings.decoder
    layers = 1 if decoder.kind == "recurrent" else decoder.layers
    transformer = decoder.kind == "transformer"
    return AlignmentHead(max(0, layers - 2), 0 if getattr(decoder, "heads", 1) > 1 else None, shifted=transformer)
