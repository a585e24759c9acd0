"""Our operators, registered with PyTorch: opaque to `torch.compile`, differentiable by autograd.

Registered with the plain library interface: `torch.library.custom_op` would import the compiler, a second's wait, on
the first call, and cost tens of microseconds on each.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def needs_plain_operators(x: Tensor) -> bool:
    """Whether a transform is active that supports PyTorch's own operators only: forward-mode AD or torch.func."""
    if torch.compiler.is_compiling():
        return False
    return forward_ad._current_level >= 0 or torch._C._functorch.is_functorch_wrapped_tensor(x)


_LIBRARY = torch.library.Library("regard", "DEF")  # type: ignore[no-untyped-call]


def operator(
    schema: str,
    *,
    fake: Callable[..., Any],
    save: Callable[..., None] | None = None,
    backward: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as `torch.ops.regard.<name>`.

    `fake` gives empty results of the right shape. `save` and `backward` are as for `torch.library.register_autograd`.
    """
    name = schema.split("(", maxsplit=1)[0]

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _LIBRARY.define(schema)  # type: ignore[no-untyped-call]
        _LIBRARY.impl(name, function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"regard::{name}", fake, lib=_LIBRARY)
        if backward is not None:
            torch.library.register_autograd(f"regard::{name}", backward, setup_context=save, lib=_LIBRARY)
        called: Callable[..., Any] = getattr(torch.ops.regard, name)
        return called

    return register
