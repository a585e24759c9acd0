"""The device that tensors are on."""

import torch

from regard.errors import RegardError


def resolve_device(name: str) -> torch.device:
    """The device of this name; "auto" is the fastest that is available. Raises RegardError."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError):
        raise RegardError(f"--device: {name!r} is not there; use cpu, or auto for the fastest there is.") from None
