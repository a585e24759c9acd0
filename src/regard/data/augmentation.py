"""Data augmentation: images moved, rotated and lit differently, SpecAugment for recordings; functions of a key."""

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from regard.data.settings import AugmentSettings


def augment_images(x: Tensor, settings: AugmentSettings, key: int) -> Tensor:
    """Images [B, C, S, S], each moved, rotated and lit differently, as a function of `key`."""
    rng, count = _generator(key), len(x)

    def draw(width: float) -> Tensor:
        return (torch.rand(count, generator=rng) * 2 - 1) * width

    angle, scale = draw(math.radians(settings.rotation)), torch.exp(-draw(settings.zoom))
    mirrored_scale = scale * (1 - 2 * (torch.rand(count, generator=rng) < 0.5).float() * float(settings.flip))
    rows = [
        torch.stack([angle.cos() * mirrored_scale, -angle.sin() * scale, draw(2 * settings.shift)], 1),
        torch.stack([angle.sin() * mirrored_scale, angle.cos() * scale, draw(2 * settings.shift)], 1),
    ]
    if settings.rotation or settings.zoom or settings.shift or settings.flip:
        grid = affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
        x = grid_sample(x, grid, padding_mode="border", align_corners=False)
    if settings.brightness:
        shape = (count, x.shape[1], 1, 1)
        contrast = torch.exp((torch.rand(shape, generator=rng) * 2 - 1) * settings.brightness)
        x = x * contrast + draw(settings.brightness)[:, None, None, None]
    return x


def spec_augment(x: Tensor, mask: Tensor, settings: AugmentSettings, key: int) -> Tensor:
    """SpecAugment (Park et al. 2019, arXiv:1904.08779) without time warping, which mattered least there.

    x: spectrograms [B, T, F]. The masks are a function of `key`.
    """
    x, rng = x.clone(), _generator(key)
    lengths = mask.sum(1).tolist()

    def random_span(max_width: int, length: int) -> slice:
        width = int(torch.randint(0, max_width + 1, (), generator=rng)) if max_width else 0
        start = int(torch.randint(0, max(1, length - width + 1), (), generator=rng))
        return slice(start, start + width)

    for row, length in enumerate(lengths):
        for _ in range(settings.time_masks):
            x[row, random_span(int(settings.time_width * length), int(length))] = 0
        for _ in range(settings.frequency_masks):
            x[row, :, random_span(int(settings.frequency_width * x.shape[2]), x.shape[2])] = 0
    return x


def _generator(key: int) -> torch.Generator:
    return torch.Generator().manual_seed(key & (2**63 - 1))
