"""Weight averaging: exponential in training (Polyak and Juditsky 1992), and of the best checkpoints at its end."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from regard.runs.bundle import copy_tensors_into, module_tensors


class MovingAverage:
    """average = decay * average + (1 - decay) * weights after each step; early on the decay is (1 + n) / (10 + n)."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: value.clone() for name, value in module_tensors(module).items()}

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        """After step number `step`."""
        decay = min(self.decay, (1 + step) / (10 + step))
        current = module_tensors(module)
        torch._foreach_lerp_(list(self.tensors.values()), [current[name] for name in self.tensors], 1 - decay)


def mean_weights(checkpoints: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints, summed in float64."""
    return {
        name: torch.stack([each[name].double() for each in checkpoints]).mean(0).to(value.dtype)
        for name, value in checkpoints[0].items()
    }


@contextlib.contextmanager
def temporary_weights(module: nn.Module, tensors: Mapping[str, Tensor] | None) -> Iterator[None]:
    """Replace the module's weights within this context and restore them afterward. None: leave them as they are."""
    if tensors is None:
        yield
        return
    original = {name: value.clone() for name, value in module_tensors(module).items()}
    copy_tensors_into(module, tensors, "average")
    try:
        yield
    finally:
        copy_tensors_into(module, original, "weights")
