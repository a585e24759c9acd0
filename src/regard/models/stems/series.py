"""The stem of numeric series: patches of steps (Nie et al. 2022, arXiv:2211.14730), or whole columns (Liu et al. 2023,
arXiv:2310.06625), each projected to a vector."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from regard.attention.positions.base import position_embedding
from regard.models.attribution_point import AttributionPoint
from regard.models.dropout import Dropout

if TYPE_CHECKING:
    from regard.models.settings.components import StemOptions
    from regard.models.settings.sources.series import SeriesSource

EPSILON = 1e-5  # added to a variance, so that constant columns stay finite


def instance_statistics(source: Tensor, mask: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """What instance normalization subtracts from each window and divides it by, each [B, 1, C].

    source: [B, T, C], valid where the mask [B, T] is True; a window ends at its last step.
    """
    zero, one = torch.zeros_like(source[:, :1]), torch.ones_like(source[:, :1])
    if mode == "none":
        return zero, one
    if mode == "last":
        return source[:, -1:], one
    weight = mask.to(source.dtype)[..., None]
    count = weight.sum(1, keepdim=True).clamp_min(1)
    mean = (source * weight).sum(1, keepdim=True) / count
    if mode == "mean":
        return mean, one
    variance = (((source - mean) * weight) ** 2).sum(1, keepdim=True) / count
    return mean, (variance + EPSILON).sqrt()


def align_left(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of x [B, P, ...] that are valid at their ends, by the mask [B, P] -> valid at their beginnings."""
    return _shift(x, mask, -1)


def align_right(x: Tensor, mask: Tensor) -> Tensor:
    """The inverse of `align_left`."""
    return _shift(x, mask, 1)[0]


def _shift(x: Tensor, mask: Tensor, direction: int) -> tuple[Tensor, Tensor]:
    """Rotate each row by its number of positions that are not valid."""
    if bool(mask.all()):
        return x, mask
    places = torch.arange(mask.shape[1], device=mask.device)
    missing = mask.shape[1] - mask.sum(1, keepdim=True)
    index = (places - direction * missing) % mask.shape[1]
    rows = torch.arange(len(mask), device=mask.device)[:, None]
    return x[rows, index], mask[rows, index]


class SeriesStem(nn.Module):
    """[B, T, C] -> [B, P, E], or [B C, P, E] where columns are sequences of their own.

    Series end at the last step of the batch; positions begin at the first one, as those of texts do.
    """

    def __init__(self, source: "SeriesSource", options: "StemOptions") -> None:
        super().__init__()
        self.source = source
        inputs = source.history if source.unit == "column" else source.patch_length
        if source.unit == "patch" and not source.is_channel_independent:
            inputs *= source.columns
        self.project = nn.Linear(inputs, options.width)
        self.attribution_point = AttributionPoint()
        position = "none" if source.unit == "column" else options.position  # the order of columns means nothing
        self.position = position_embedding(position, options.width, options.max_positions)
        self.norm = nn.Identity() if options.norm is None else options.norm()
        self.dropout = Dropout(options.dropout)

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """source [B, T, C], steps at the end of the window, and mask [B, T] -> vectors and their mask."""
        mean, scale = instance_statistics(source, mask, self.source.instance_norm)
        x = (source - mean) / scale * mask[..., None]
        x, mask = self._columns(x, mask) if self.source.unit == "column" else self._patches(x, mask)
        x = self.attribution_point(self.project(x))
        if self.position is not None:
            x = self.position(x)
        return self.dropout(self.norm(x)) * mask[..., None], mask

    def _columns(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, C] -> [B, C, history]; missing steps at the beginning are zero."""
        x = pad(x.transpose(1, 2), (self.source.history - x.shape[1], 0))
        return x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)

    def _patches(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, C] -> [B, P, L C], or [B C, P, L]."""
        length, stride = self.source.patch_length, self.source.patch_stride
        B, T, C = x.shape
        count = self.source.patch_count(T)
        missing = (count - 1) * stride + length - T  # below zero: steps at the beginning that no patch has
        x, mask = pad(x, (0, 0, missing, 0)), pad(mask, (missing, 0))
        patches = x.unfold(1, length, stride)  # [B, P, C, L]
        present = mask.unfold(1, length, stride)
        mask = present.all(-1)  # [B, P]: an incomplete patch is left out, as it is where the series is alone
        mask[:, -1] = present[:, -1].any(-1)  # but not that of a series shorter than a patch
        patches, mask = align_left(patches, mask)
        if not self.source.is_channel_independent:
            return patches.flatten(2), mask
        patches = patches.transpose(1, 2).reshape(B * C, count, length)
        return patches, mask.repeat_interleave(C, 0)
