"""The layers of table 1 of Vaswani et al. 2017 (arXiv:1706.03762), as regard implements them: functions of [1, n, d].

What is counted. The textbook's n²·d of self-attention is comparing all positions and summing the values, without the
projections before and after, which cost n·d² as a recurrent layer does. So attention is measured twice: as the
textbook counts it, from queries, keys and values that are there; and as a whole layer. The recurrent layer (a GRU)
and the convolutional one (gated) are whole: all they do is of one order.

One sequence, one head, float32. The textbook's r is the number of positions a query looks at, regard's is how far: it
looks at 2 r + 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from regard.attention import Attention, Window, attend
from regard.models.gated_convolution import GatedConvolution
from regard.models.recurrent_layers import Cell

Run = Callable[..., Tensor]


@dataclass(frozen=True)
class Sizes:
    """n positions of width d; a kernel of k positions, a window of radius r."""

    n: int
    d: int
    k: int = 3
    r: int = 32

    def with_size(self, axis: str, size: int) -> Self:
        return replace(self, **{axis: size})


@dataclass(frozen=True)
class Layer:
    """A row of the table. The costs are what the textbook or plain counting says; `name` is its common name."""

    name: str
    build: Callable[[Sizes], nn.Module]
    inputs: int  # how many [1, n, d] it is called with
    time: str
    memory: str  # of forward and backward, the gradients of its weights included
    steps: str  # that must follow one another
    path: str  # the longest between two positions, in applications
    axes: str = "nd"

    @property
    def quadratic(self) -> bool:
        """Whether its time grows with n²."""
        return "n²" in self.time


class Core(nn.Module):
    """Attention without projections: queries, keys and values [1, n, d] -> [1, n, d]."""

    def __init__(self, extent: str | Window = "global", backend: str = "auto") -> None:
        super().__init__()
        self.extent, self.backend = extent, backend

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads = (x[:, None] for x in (query, key, value))  # [1, 1, n, d]
        return attend(*heads, extent=self.extent, backend=self.backend)[:, 0]


class Projected(nn.Module):
    """The whole layer: x [1, n, d] -> [1, n, d]."""

    def __init__(self, sizes: Sizes, extent: str | Window = "global", backend: str = "auto") -> None:
        super().__init__()
        self.attention = Attention(sizes.d, extent=extent, backend=backend)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.attention(x).output
        return output


class Recurrent(nn.Module):
    """A GRU, one direction: x [1, n, d] -> [1, n, d]."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.cell = Cell("gru", sizes.d, sizes.d)

    def forward(self, x: Tensor) -> Tensor:
        return self.cell.sequence(self.cell.inputs(x.transpose(0, 1)), self.cell.zero(x)).transpose(0, 1)

    def step_all(self, x: Tensor, states: Tensor) -> Tensor:
        """One step at all positions at once, each from the state before it: what one application of the cell can do.

        n of them from zeros are `forward`.
        """
        previous = nn.functional.pad(states, (0, 0, 1, 0))[0, :-1]  # [n, d]
        return self.cell.step(self.cell.inputs(x[0]), (previous,))[0][None]


# The window's kernel is requested by name: left alone, the planner takes a masked one where the sequence is short.
LAYERS = [
    Layer("self-attention", lambda s: Core(), 3, "n²·d", "n·d", "1", "1"),
    Layer("self-attention, weights kept", lambda s: Core(backend="dense"), 3, "n²·d", "n² + n·d", "1", "1"),
    Layer("self-attention, whole layer", Projected, 1, "n²·d + n·d²", "n·d + d²", "1", "1"),
    Layer("recurrent", Recurrent, 1, "n·d²", "n·d + d²", "n", "n"),
    Layer(
        "convolutional",
        lambda s: GatedConvolution(s.d, s.k, causal=False, keep_probability=1.0),
        1,
        "k·n·d²",
        "k·n·d + k·d²",
        "1",
        "n/k",
        axes="ndk",
    ),
    Layer("restricted", lambda s: Core(Window(s.r), "window"), 3, "r·n·d", "n·d", "1", "n/r", axes="ndr"),
    Layer(
        "restricted, whole layer",
        lambda s: Projected(s, Window(s.r), "window"),
        1,
        "r·n·d + n·d²",
        "n·d + d²",
        "1",
        "n/r",
    ),
]


def forward(layer: Layer, sizes: Sizes) -> Callable[[], object]:
    """The layer in inference, ready to be called."""
    run, inputs = _build(layer, sizes)

    def run_forward() -> None:
        with torch.no_grad():
            run(*inputs)

    return run_forward


def forward_and_backward(layer: Layer, sizes: Sizes) -> Callable[[], object]:
    """Forward and backward, to the inputs and the weights; the gradients are thrown away."""
    run, inputs = _build(layer, sizes)
    leaves = [*(x.requires_grad_() for x in inputs), *run.parameters()]
    return lambda: torch.autograd.grad(run(*inputs).sum(), leaves)


def _build(layer: Layer, sizes: Sizes) -> tuple[nn.Module, list[Tensor]]:
    torch.manual_seed(0)
    return layer.build(sizes), [torch.randn(1, sizes.n, sizes.d) for _ in range(layer.inputs)]
