"""Hard attention (Xu et al. 2015, arXiv:1502.03044)."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from regard.attention import reference
from regard.attention.normalizers import NORMALIZERS
from regard.attention.normalizers.base import Draw, Normalizer, mask_scores, mask_weights
from regard.errors import RegardError


@NORMALIZERS.register("hard")
class Hard(nn.Module, Normalizer):
    """All weight on one position, drawn from the softmax in training mode and the best one in evaluation mode.

    Drawing has no gradient; two ways around it:

    - "reinforce" (Xu et al. 2015): the weights carry no gradient; the draw's log-probability and entropy do, and
      `reinforce.Reinforce` turns them and a reward into a loss with the right expected gradient.
    - "gumbel" (Jang et al. 2016): the largest of score + Gumbel noise is drawn, and gradients pass straight through
      as if the weights were softmax((score + noise) / temperature). Biased, but needs no reward.
    """

    formula = "one key, drawn from the softmax; gradients by REINFORCE or straight-through Gumbel"
    summary = "all weight on one key: drawn in training, the best at evaluation"
    paper = "Xu et al. 2015, arXiv:1502.03044; Jang, Gu, Poole 2016, arXiv:1611.01144"
    use = 'Attention(width, normalize=Hard("reinforce"))  # or Hard("gumbel", temperature=0.5)'
    order = 2

    def __init__(self, estimator: Literal["reinforce", "gumbel"] = "reinforce", *, temperature: float = 1.0) -> None:
        super().__init__()
        if estimator not in ("reinforce", "gumbel"):
            raise RegardError(f"estimator: there is no {estimator!r}; the choices are reinforce, gumbel.")
        if not 0 < temperature < math.inf:
            raise RegardError(f"temperature: {temperature} is not possible; it must be above 0.")
        self.estimator, self.temperature = estimator, temperature

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        if not scores.shape[-1]:  # no position to choose
            nowhere = scores.sum(-1)
            return scores, Draw(nowhere.long(), nowhere, nowhere) if self.training else None
        if scores.dtype in (torch.float16, torch.bfloat16):  # too coarse to draw from: near scores would tie
            w, draw = self.weights(scores.float(), allowed, heads)
            return w.to(scores.dtype), draw
        scores = mask_scores(scores, allowed)
        if not self.training:
            return mask_weights(_one_hot(scores, scores.argmax(-1)), allowed), None
        # The largest of scores with Gumbel noise is a draw from their softmax.
        numbers = torch.finfo(scores.dtype)
        noise = torch.empty_like(scores, memory_format=torch.contiguous_format).exponential_().clamp_min_(numbers.tiny)
        noisy = scores - noise.log_()
        position = noisy.argmax(-1)
        chosen = _one_hot(scores, position)
        if self.estimator == "gumbel":
            soft = torch.softmax((noisy / self.temperature).clamp_min(numbers.min), -1)
            return mask_weights(chosen + (soft - soft.detach()), allowed), None
        logs = mask_weights(torch.log_softmax(scores, -1), allowed)
        log_prob = logs.gather(-1, position[..., None]).squeeze(-1)
        entropy = -(mask_weights(logs.exp(), allowed) * logs).sum(-1)
        return mask_weights(chosen, allowed), Draw(position, log_prob, entropy)

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.hard(scores, allowed)

    def extra_repr(self) -> str:
        return f"{self.estimator!r}, temperature={self.temperature}"

    @property
    def samples(self) -> bool:
        return self.training

    @property
    def draws(self) -> bool:
        return self.training and self.estimator == "reinforce"


def _one_hot(scores: Tensor, position: Tensor) -> Tensor:
    return torch.zeros_like(scores).scatter(-1, position[..., None], 1)
