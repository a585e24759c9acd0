"""Linear layers and convolutions in bfloat16 while everything else stays float32, where the processor gains from it.

Micikevicius et al. 2018 (arXiv:1710.03740) for the idea, Kalamkar et al. 2019 (arXiv:1905.12322) for bfloat16: weights
and sums of steps are float32; only operands and results of matrix products are rounded, forward and back. Processors
with bfloat16 instructions multiply two to three times as fast. PyTorch's autocast would keep activations in bfloat16
too, which our C kernels do not take and which loses digits for nothing on a processor.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from regard.models.bfloat16_matmul import bfloat16_products, to_padded_bfloat16, uses_bfloat16


def chosen(wish: str, device: torch.device) -> str:
    """ "float32" or "bfloat16": what is asked for, or for "auto" what this device is faster with."""
    if wish != "auto":
        return wish
    if device.type == "cpu":
        return "bfloat16" if _processor_gains() else "float32"
    return "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"


def _processor_gains() -> bool:
    asks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, ask, lambda: False)() for ask in asks)


def products_in(precision: str) -> contextlib.AbstractContextManager[Any]:
    """Within this context linear layers and recurrent cells multiply in this precision."""
    if precision != "bfloat16":
        return contextlib.nullcontext()
    both = contextlib.ExitStack()
    both.enter_context(bfloat16_products())
    both.enter_context(_Rounded())
    return both


class _Rounded(TorchFunctionMode):
    """Puts our own linear layer in the place of PyTorch's, for float32 products that are large enough."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, arguments: tuple[Any, ...] = (), named: Any = None
    ) -> Any:
        if function is linear and not named:
            x, weight = arguments[0], arguments[1]
            bias = arguments[2] if len(arguments) > 2 else None
            if uses_bfloat16(x, weight):
                return _RoundedLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        if function is torch.conv2d and not named and uses_bfloat16(arguments[0], arguments[1]):
            x, weight, bias, *rest = arguments
            y = function(x.bfloat16(), weight.bfloat16(), None, *rest).float()
            return y if bias is None else y + bias[:, None, None]
        return function(*arguments, **(named or {}))


class _RoundedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        plain = x.reshape(-1, x.shape[-1])
        rows, w = to_padded_bfloat16(plain), weight.bfloat16()
        ctx.save_for_backward(rows, w)
        ctx.biased, ctx.shape = bias is not None, x.shape
        y = torch.mm(rows, w.t())[: len(plain)]
        full = y.float() if bias is None else torch.add(y, bias)
        return full.view(*x.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        rows, w = ctx.saved_tensors
        g = g.reshape(-1, g.shape[-1])
        rounded = to_padded_bfloat16(g)
        dx = torch.mm(rounded, w)[: len(g)].float().view(ctx.shape) if ctx.needs_input_grad[0] else None
        dw = torch.mm(rounded.t(), rows).float() if ctx.needs_input_grad[1] else None
        return dx, dw, g.sum(0) if ctx.biased else None
