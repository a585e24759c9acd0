"""Sequential operations and maximum path lengths, counted on the layers themselves.

*Sequential steps* are the longest chain of tensor operations in which each needs the result of another. Operations
are intercepted as they run; the depth of each is one more than that of its deepest input. A matrix product counts one,
as in the textbook: its sums can be computed in parallel. Views count nothing.

The *longest path* is how many applications of a mechanism lie between the two ends of a sequence. Gradients show
which positions one application connects; it is applied until the last position depends on the first. A recurrent layer
connects both ends at once, but applies its cell n times; there the cell is applied, at all positions at once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.layers import Layer, Recurrent, Sizes
from regard import native

NARROW = 4  # paths and chains do not depend on the width
# These read a tensor's shape and type, not its values.
FACTORIES = ("empty", "zeros", "ones", "full", "new_", "arange", "scalar_tensor")


class DepthCounter(TorchDispatchMode):
    """Within this context operations are counted; `max_depth` is the longest chain so far.

    Depths belong to storages: an operation that writes into a part of a tensor precedes all later readers of the
    tensor.
    """

    def __init__(self) -> None:
        super().__init__()
        self.max_depth = 0
        self._depths: dict[int, int] = {}
        self._outputs: list[Tensor] = []  # keeps storages alive, so that no id is reused

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        outputs = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        self._outputs += outputs
        if func.__name__.startswith(FACTORIES):
            return result
        depth = 1 + max((self._depths.get(_storage_id(x), 0) for x in inputs), default=-1)
        input_storages = {_storage_id(x) for x in inputs}
        for x in outputs:
            if _storage_id(x) not in input_storages or func._schema.is_mutable:
                self._depths[_storage_id(x)] = max(depth, self._depths.get(_storage_id(x), 0))
                self.max_depth = max(self.max_depth, depth)
        return result


def _storage_id(x: Tensor) -> int:
    return x.untyped_storage()._cdata


def sequential_steps(layer: Layer, sizes: Sizes) -> int:
    """The longest chain of operations of the layer's forward pass, in PyTorch's own operations."""
    run = layer.build(sizes)
    inputs = [torch.randn(1, sizes.n, sizes.d) for _ in range(layer.inputs)]
    with torch.no_grad(), native.disabled(), DepthCounter() as counter:  # C kernels are not visible as operations
        run(*inputs)
    return counter.max_depth


def longest_path(layer: Layer, sizes: Sizes) -> int:
    """Applications until the output at the last position depends on the input at the first."""
    torch.manual_seed(0)
    x = torch.randn(1, sizes.n, sizes.d, dtype=torch.float64, requires_grad=True)
    run = layer.build(sizes).double()
    if isinstance(run, Recurrent):
        states = torch.randn_like(x, requires_grad=True)
        output = run.step_all(x, states)
        first, repeated = dependencies(output, x), dependencies(output, states)
    else:
        first = repeated = dependencies(run(*[x] * layer.inputs), x)
    dependent, applications = first[:, 0], 1  # positions that depend on the first input
    while not dependent[-1]:
        next_dependent = repeated[:, dependent].any(1)
        if applications > sizes.n:
            raise ValueError(f"{layer.name}: one end of {sizes} never hears of the other.")
        dependent, applications = next_dependent, applications + 1
    return applications


def dependencies(output: Tensor, input_: Tensor) -> Tensor:
    """Which outputs [1, n, d] depend on which inputs [1, n, d], by gradients: [n, n], True where row needs column."""
    rows = [torch.autograd.grad(position.sum(), input_, retain_graph=True)[0] for position in output[0]]
    return torch.cat(rows).ne(0).any(-1)
