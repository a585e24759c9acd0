"""Pictures moved, turned and lit otherwise, recordings with parts hidden: each a pure function of a key."""

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from regard.data.settings import AugmentSettings


def augmented(source: Tensor, mask: Tensor, settings: AugmentSettings, key: int) -> Tensor:
    """A batch of pictures [B, C, S, S] or of frames [B, T, F], varied as `key` says."""
    dice = torch.Generator().manual_seed(key & (2**63 - 1))
    return _moved(source, settings, dice) if source.ndim == 4 else _hidden(source, mask, settings, dice)


def _moved(x: Tensor, how: AugmentSettings, dice: torch.Generator) -> Tensor:
    count = len(x)

    def draw(width: float) -> Tensor:
        return (torch.rand(count, generator=dice) * 2 - 1) * width

    angle, scale = draw(math.radians(how.turn)), torch.exp(-draw(how.zoom))
    across = scale * (1 - 2 * (torch.rand(count, generator=dice) < 0.5).float() * float(how.flip))
    rows = [
        torch.stack([angle.cos() * across, -angle.sin() * scale, draw(2 * how.shift)], 1),
        torch.stack([angle.sin() * across, angle.cos() * scale, draw(2 * how.shift)], 1),
    ]
    if how.turn or how.zoom or how.shift or how.flip:
        grid = affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
        x = grid_sample(x, grid, padding_mode="border", align_corners=False)
    if how.light:
        shape = (count, x.shape[1], 1, 1)
        contrast = torch.exp((torch.rand(shape, generator=dice) * 2 - 1) * how.light)
        x = x * contrast + draw(how.light)[:, None, None, None]
    return x


def _hidden(x: Tensor, mask: Tensor, how: AugmentSettings, dice: torch.Generator) -> Tensor:
    """SpecAugment without the warping of time, which its authors found to matter least."""
    x = x.clone()
    lengths = mask.sum(1).tolist()

    def span(most: int, whole: int) -> slice:
        width = int(torch.randint(0, most + 1, (), generator=dice)) if most else 0
        start = int(torch.randint(0, max(1, whole - width + 1), (), generator=dice))
        return slice(start, start + width)

    for row, length in enumerate(lengths):
        for _ in range(how.time_masks):
            x[row, span(int(how.time_width * length), int(length))] = 0
        for _ in range(how.band_masks):
            x[row, :, span(int(how.band_width * x.shape[2]), x.shape[2])] = 0
    return x
