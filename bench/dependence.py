"""What must wait for what: sequential steps and longest paths, counted on the layers themselves.

*Sequential steps* are the longest chain of tensor operations in which each needs the result of another. PyTorch shows
every operation as it runs; each stands one above the highest of what it reads. A matrix product counts one, as in the
textbook: its sums can be taken side by side. Views compute nothing and count nothing.

The *longest path* is how many applications of a mechanism lie between the two ends of a sequence. Gradients say which
places one application joins; it is applied until the last place depends on the first. A recurrent layer joins both
ends in one layer, but goes through its cell n times; there the cell is what is applied, at all places at once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.layers import Layer, Recurrent, Sizes
from regard import native

NARROW = 4  # paths and chains do not depend on the width
# These ask a tensor for its shape and type, not for its numbers.
MAKERS = ("empty", "zeros", "ones", "full", "new_", "arange", "scalar_tensor")


class Chain(TorchDispatchMode):
    """Within this context operations are counted; `longest` is the longest chain so far.

    Heights belong to storages: a step that is written into a part of a tensor stands under all who read the tensor
    later.
    """

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0
        self._heights: dict[int, int] = {}
        self._kept: list[Tensor] = []  # no storage is freed, so none is taken for another

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        read = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        made = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        self._kept += made
        if func.__name__.startswith(MAKERS):
            return result
        height = 1 + max((self._heights.get(_place(x), 0) for x in read), default=-1)
        there = {_place(x) for x in read}
        for x in made:
            if _place(x) not in there or func._schema.is_mutable:
                self._heights[_place(x)] = max(height, self._heights.get(_place(x), 0))
                self.longest = max(self.longest, height)
        return result


def _place(x: Tensor) -> int:
    return x.untyped_storage()._cdata


def sequential_steps(layer: Layer, sizes: Sizes) -> int:
    """The longest chain of operations of the layer's forward pass, in PyTorch's own operations."""
    run = layer.make(sizes)
    inputs = [torch.randn(1, sizes.n, sizes.d) for _ in range(layer.inputs)]
    with torch.no_grad(), native.disabled(), Chain() as chain:  # what runs in C shows no operations
        run(*inputs)
    return chain.longest


def longest_path(layer: Layer, sizes: Sizes) -> int:
    """Applications until the output at the last place depends on the input at the first."""
    torch.manual_seed(0)
    x = torch.randn(1, sizes.n, sizes.d, dtype=torch.float64, requires_grad=True)
    run = layer.make(sizes).double()
    if isinstance(run, Recurrent):
        states = torch.randn_like(x, requires_grad=True)
        after = run.hop(x, states)
        first, again = joined(after, x), joined(after, states)
    else:
        first = again = joined(run(*[x] * layer.inputs), x)
    reached, applied = first[:, 0], 1  # places that depend on the first input
    while not reached[-1]:
        further = again[:, reached].any(1)
        if applied > sizes.n:
            raise ValueError(f"{layer.name}: one end of {sizes} never hears of the other.")
        reached, applied = further, applied + 1
    return applied


def joined(after: Tensor, before: Tensor) -> Tensor:
    """Which places [1, n, d] depend on which before [1, n, d], by gradients: [n, n], True where row needs column."""
    rows = [torch.autograd.grad(place.sum(), before, retain_graph=True)[0] for place in after[0]]
    return torch.cat(rows).ne(0).any(-1)
