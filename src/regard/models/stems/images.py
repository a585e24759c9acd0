"""Pictures to cells: squares cut out, or residual convolutions (He et al. 2015, arXiv:1512.03385)."""

import torch
from torch import Tensor, nn

from regard.attention.channels import CBAM, ECA, SqueezeExcitation
from regard.models.attribution_point import AttributionPoint
from regard.models.dropout import Dropout
from regard.sources import Images, Patches, Residual

ATTENTION: dict[str, type[SqueezeExcitation | CBAM]] = {"se": SqueezeExcitation, "cbam": CBAM}


class _Grid(nn.Module):
    """Cells row by row, each with a learnt vector for its place."""

    def __init__(self, source: Images, width: int, dropout: float) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.empty(source.grid**2, width))
        self.norm = nn.LayerNorm(width)
        self.attribution_point = AttributionPoint()
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.place, std=0.3)  # a share of what a cell says, from the start: left is not right

    def _placed(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """[B, E, H, W] -> [B, H W, E], and a mask that hides nothing."""
        said = self.attribution_point(self.norm(cells.flatten(2).transpose(1, 2)))
        x: Tensor = self.dropout(said + self.place)
        return x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)


class PatchCells(_Grid):
    """Squares of pixels, each projected (Dosovitskiy et al. 2020, arXiv:2010.11929)."""

    def __init__(self, source: Images, width: int, *, dropout: float) -> None:
        super().__init__(source, width, dropout)
        assert isinstance(source.cut, Patches)
        side = source.cut.patch
        self.project = nn.Conv2d(source.channels, width, side, stride=side)

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """[B, C, S, S] -> [B, T, E]."""
        return self._placed(self.project(source))


class Block(nn.Module):
    """Two convolutions and the way around them; attention over channels and places before the sum."""

    def __init__(self, inside: int, outside: int, stride: int, attend: str) -> None:
        super().__init__()
        self.first = _convolution(inside, outside, stride)
        self.first_norm = _norm(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = _norm(outside)
        self.attention = _attention(attend, outside)
        self.around: nn.Module = nn.Identity()
        if stride > 1 or inside != outside:
            self.around = nn.Conv2d(inside, outside, stride, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first_norm(self.first(x)))
        y = self.attention(self.second_norm(self.second(y)))
        return torch.relu(y + self.around(x))


class Cells(_Grid):
    """Stages of residual blocks; the last stage's places are the cells.

    Groups are normalised instead of batches (Wu and He 2018, arXiv:1803.08494): what one picture gets must not depend
    on its company, in training as in use.
    """

    def __init__(self, source: Images, width: int, *, dropout: float) -> None:
        super().__init__(source, width, dropout)
        cut = source.cut
        assert isinstance(cut, Residual)
        self.first = _convolution(source.channels, cut.widths[0], cut.stride)
        self.first_norm = _norm(cut.widths[0])
        self.blocks = nn.ModuleList()
        inside = cut.widths[0]
        for stage, outside in enumerate(cut.widths):
            for number in range(cut.blocks):
                stride = 2 if stage and not number else 1
                self.blocks.append(Block(inside, outside, stride, cut.attend))
                inside = outside
        self.drop = nn.Dropout2d(cut.dropout)
        self.project = nn.Conv2d(inside, width, 1)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """[B, C, S, S] -> [B, T, E]."""
        x = torch.relu(self.first_norm(self.first(source)))
        for block in self.blocks:
            x = block(x)
        return self._placed(self.project(self.drop(x)))

    def looks(self, source: Tensor) -> list[dict[str, Tensor]]:
        """What each block's attention lets pass: "channels" [B, C] and "places" [B, H, W], where it has them."""
        found: list[dict[str, Tensor]] = []
        handles = []

        def hook(module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
            (x,) = given
            if isinstance(module, CBAM):
                shares = {"channels": module.channel.weights(x), "places": module.spatial.weights(module.channel(x))}
            else:
                assert isinstance(module, SqueezeExcitation | ECA)
                shares = {"channels": module.weights(x)}
            found.append(shares)

        for block in self.blocks:
            attention = block.attention
            if isinstance(attention, SqueezeExcitation | ECA | CBAM):
                handles.append(attention.register_forward_hook(hook))
        try:
            with torch.inference_mode():
                self.read(source, torch.ones(0))
        finally:
            for handle in handles:
                handle.remove()
        return found


def _convolution(inside: int, outside: int, stride: int) -> nn.Conv2d:
    """Over twice as many pixels as it steps: none is passed over, and each cell lies in the middle of what it sees."""
    size, padding = (3, 1) if stride == 1 else (2 * stride, stride // 2)
    return nn.Conv2d(inside, outside, size, stride, padding, bias=False)


def _attention(attend: str, channels: int) -> nn.Module:
    """By name. Narrow layers are squeezed less than the papers' wide ones: some units must stay alive."""
    if attend == "none":
        return nn.Identity()
    reduction = max(1, min(16, channels // 8))
    return ECA(channels) if attend == "eca" else ATTENTION[attend](channels, reduction=reduction)


def _norm(channels: int) -> nn.GroupNorm:
    groups = next(count for count in (8, 4, 2, 1) if channels % count == 0)
    return nn.GroupNorm(groups, channels)
