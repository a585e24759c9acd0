"""Which vocabulary entries a model can produce."""

import torch
from torch import Tensor

from regard.special_tokens import BOS, PAD


def mask_reserved_tokens(logits: Tensor) -> Tensor:
    """Set padding and the beginning-of-sequence token to minus infinity in logits [..., V], in place."""
    logits[..., [PAD, BOS]] = -torch.inf
    return logits
