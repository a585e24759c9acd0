"""No source: no positions at all, for a language model."""

import torch
from torch import Tensor, nn


class EmptyStem(nn.Module):
    """[B, 0] -> [B, 0, E]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """source and mask [B, 0] -> x [B, 0, E] and the mask as it is."""
        return torch.zeros(len(mask), 0, self.width, device=mask.device), mask
