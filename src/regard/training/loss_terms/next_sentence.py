"""Next-sentence prediction: whether the second of two segments follows the first (Devlin et al. 2018)."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.heads.per_position import PerPositionHead
from regard.training.loss import ForwardPass, Loss
from regard.training.loss_terms.base import LossTerm


class NextSentence(LossTerm):
    """The mean cross-entropy over pairs of segments, counted once for each target token of the batch."""

    def __call__(self, forward: ForwardPass, loss: Loss) -> Tensor | None:
        labels = forward.batch.next_sentence
        if labels is None:
            return None
        head = forward.model.decoder
        assert isinstance(head, PerPositionHead)
        labels = torch.cat([labels] * forward.passes)
        labeled = labels >= 0
        logits = head.next_sentence_logits(forward.encoded.states[labeled]).float()
        return self.weight * cross_entropy(logits, labels[labeled]) * forward.target_mask.sum()
