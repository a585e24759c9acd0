"""Mixed precision: linear layers and convolutions in bfloat16, everything else in float32.

Micikevicius et al. 2018 (arXiv:1710.03740) for the idea, Kalamkar et al. 2019 (arXiv:1905.12322) for bfloat16: weights
and optimizer states are float32; only operands and results of matrix products are bfloat16, forward and backward. CPUs
with bfloat16 instructions multiply two to three times as fast. PyTorch's autocast would keep activations in bfloat16
too, which our C kernels do not support and which loses precision without a gain in speed on a CPU.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from regard.models.bfloat16_matmul import bfloat16_matmul, to_padded_bfloat16, uses_bfloat16


def resolve_precision(setting: str, device: torch.device) -> str:
    """ "float32" or "bfloat16": the setting itself, or for "auto" the one that is faster on this device."""
    if setting != "auto":
        return setting
    if device.type == "cpu":
        return "bfloat16" if _cpu_has_bfloat16() else "float32"
    return "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "float32"


def _cpu_has_bfloat16() -> bool:
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, check, lambda: False)() for check in checks)


def matmul_precision(precision: str) -> contextlib.AbstractContextManager[Any]:
    """Within this context linear layers, convolutions and recurrent cells multiply in this precision."""
    if precision != "bfloat16":
        return contextlib.nullcontext()
    contexts = contextlib.ExitStack()
    contexts.enter_context(bfloat16_matmul())
    contexts.enter_context(_Bfloat16Mode())
    return contexts


class _Bfloat16Mode(TorchFunctionMode):
    """Replaces PyTorch's linear layer and convolution for float32 products that are large enough."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, arguments: tuple[Any, ...] = (), keywords: Any = None
    ) -> Any:
        if function is linear and not keywords:
            x, weight = arguments[0], arguments[1]
            bias = arguments[2] if len(arguments) > 2 else None
            if uses_bfloat16(x, weight):
                return _Bfloat16Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        if function is torch.conv2d and not keywords and uses_bfloat16(arguments[0], arguments[1]):
            x, weight, bias, *rest = arguments
            y = function(x.bfloat16(), weight.bfloat16(), None, *rest).float()
            return y if bias is None else y + bias[:, None, None]
        return function(*arguments, **(keywords or {}))


class _Bfloat16Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        rows, w = to_padded_bfloat16(flat), weight.bfloat16()
        ctx.save_for_backward(rows, w)
        ctx.has_bias, ctx.shape = bias is not None, x.shape
        y = torch.mm(rows, w.t())[: len(flat)]
        output = y.float() if bias is None else torch.add(y, bias)
        return output.view(*x.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        rows, w = ctx.saved_tensors
        g = g.reshape(-1, g.shape[-1])
        g_bfloat16 = to_padded_bfloat16(g)
        dx = torch.mm(g_bfloat16, w)[: len(g)].float().view(ctx.shape) if ctx.needs_input_grad[0] else None
        dw = torch.mm(g_bfloat16.t(), rows).float() if ctx.needs_input_grad[1] else None
        return dx, dw, g.sum(0) if ctx.has_bias else None
