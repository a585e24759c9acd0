"""Sparsemax and entmax: rows of weights that are exactly zero where the score is low.

    p_j = [(alpha - 1) s_j - tau]_+ ^ (1 / (alpha - 1)),   tau such that sum p = 1

Martins and Astudillo 2016 (arXiv:1602.02068) is alpha = 2, Peters et al. 2019 (arXiv:1905.05702) any alpha > 1,
Correia et al. 2019 (arXiv:1909.00015) the gradient of alpha. The papers sort; here tau comes from Newton's method
kept between bounds that bisection tightens, to the last bits of the number type. Backward needs only the weights.
"""

from typing import Any

import torch
from torch import Tensor

from regard import native
from regard.attention import reference
from regard.attention.kernels.torch_operators import needs_plain_operators, operator

MAX_STEPS = 100
NEAR_ONE = 1.05


def entmax(scores: Tensor, alpha: Tensor) -> Tensor:
    """scores [..., T] -> weights; alpha > 1 broadcasts over rows ([], or [..., 1]), best in float64."""
    if needs_plain_operators(scores):
        return reference.entmax(scores, torch.ones_like(scores, dtype=torch.bool), alpha.to(scores.dtype))
    # Near 1 the power 1 / (alpha - 1) is so large that it needs more digits than the scores have.
    needs_float64 = scores.dtype != torch.float64 and scores.device.type != "mps" and _near_one(alpha)
    if needs_float64 or scores.dtype in (torch.float16, torch.bfloat16):
        return entmax(scores.double() if needs_float64 else scores.float(), alpha).to(scores.dtype)
    weights: Tensor = _entmax(scores, alpha)
    return weights


def _near_one(alpha: Tensor) -> bool:
    return not torch.compiler.is_compiling() and alpha.numel() > 0 and alpha.detach().min().item() < NEAR_ONE


def uses_native_kernel(scores: Tensor, alpha: float | None) -> bool:
    """Whether rows like these are normalized by a C kernel: alpha fixed at 1.5 or 2, on the processor."""
    supported = scores.device.type in ("cpu", "meta") and scores.dtype != torch.float64 and alpha in (1.5, 2.0)
    return supported and native.library() is not None


def describe_kernel(scores: Tensor, alpha: float | None) -> str:
    """Which code normalizes rows like these, for a plan; alpha: None if it is learned."""
    return "C kernel compiled for this processor" if uses_native_kernel(scores, alpha) else "Newton steps in PyTorch"


def _native_kernel_name(scores: Tensor, alpha: Tensor) -> str | None:
    if alpha.ndim == 0 and scores.numel() and uses_native_kernel(scores, alpha.item()):
        return "regard_entmax15" if alpha.item() == 1.5 else "regard_sparsemax"
    return None


def _threshold(z: Tensor, power: Tensor) -> Tensor:
    """tau with sum [z - tau]_+^power = 1, for rows whose largest entry is 0; it lies in [-1, 0]."""
    low = z.new_full((*z.shape[:-1], 1), -1.0)
    high = torch.zeros_like(low)
    tau = low.clone()
    for _ in range(MAX_STEPS):
        gap = (z - tau).clamp_min_(0)
        slope, mass = _slope_and_mass(gap, power)
        excess = mass - 1
        low, high = torch.where(excess >= 0, tau, low), torch.where(excess < 0, tau, high)
        newton_tau = tau + excess / slope
        next_tau = torch.where((newton_tau > low) & (newton_tau < high), newton_tau, (low + high) / 2)
        # Newton from the left rises to the root and stops by itself; bounds that touch end bisection.
        converged = (newton_tau == tau) | (excess == 0) | (high - low <= torch.finfo(z.dtype).eps * low.abs())
        tau = torch.where(converged, tau, next_tau)
        if bool(converged.all()):
            break
    return tau


def _slope_and_mass(gap: Tensor, power: Tensor) -> tuple[Tensor, Tensor]:
    """sum power gap^(power - 1) over what is above zero, and sum gap^power, each [..., 1]."""
    if power.ndim == 0 and power.item() == 1:  # sparsemax
        return (gap > 0).sum(-1, keepdim=True).to(gap.dtype), gap.sum(-1, keepdim=True)
    if power.ndim == 0 and power.item() == 2:  # entmax-1.5
        return 2 * gap.sum(-1, keepdim=True), torch.linalg.vector_norm(gap, dim=-1, keepdim=True).square()
    inside = gap > 0
    tail = torch.where(inside, gap, 1).pow_(power - 1).mul_(inside)
    return power * tail.sum(-1, keepdim=True), tail.mul_(gap).sum(-1, keepdim=True)


@operator(
    "entmax_backward(Tensor g, Tensor weights, Tensor alpha, bool need_alpha) -> (Tensor, Tensor)",
    fake=lambda g, weights, alpha, need_alpha: (weights.new_empty(weights.shape), alpha.new_empty(alpha.shape)),
)
def _gradients(g: Tensor, weights: Tensor, alpha: Tensor, need_alpha: bool) -> tuple[Tensor, Tensor]:
    g = g.contiguous()
    if not need_alpha and (name := _native_kernel_name(weights, alpha)):
        grad, size = torch.empty_like(weights), weights.shape[-1]
        shares = {"count": g.numel() // size, "work": g.numel() * 2}
        native.call(f"{name}_backward", [weights, g, grad], [size], **shares)
        return grad, torch.zeros_like(alpha)
    return _plain_gradients(g, weights, alpha, need_alpha)


def _plain_gradients(g: Tensor, weights: Tensor, alpha: Tensor, need_alpha: bool) -> tuple[Tensor, Tensor]:
    inside = weights > 0
    s = torch.where(inside, weights, 1).pow((2 - alpha).to(weights.dtype)) * inside
    q = s / s.sum(-1, keepdim=True)
    grad = s * g - q * (s * g).sum(-1, keepdim=True)
    if not need_alpha:
        return grad, torch.zeros_like(alpha)
    h = torch.where(inside, -weights * torch.where(inside, weights, 1).log(), 0)
    alpha_minus_one = alpha - 1
    slope = ((weights - q) / alpha_minus_one + (h - q * h.sum(-1, keepdim=True))) / alpha_minus_one
    by_row = (g * slope).sum(-1, keepdim=True)
    return grad, (by_row.sum_to_size(alpha.shape) if alpha.ndim else by_row.sum()).to(alpha.dtype)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output, inputs[1])
    ctx.need_alpha = inputs[1].requires_grad


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
    # Gradients of gradients, where they are requested, are those of the plain formula.
    formula = _plain_gradients if torch.is_grad_enabled() else _gradients
    weights, alpha = ctx.saved_tensors
    by_scores, by_alpha = formula(grad, weights, alpha, ctx.need_alpha)
    return by_scores, by_alpha if ctx.need_alpha else None


@operator(
    "entmax(Tensor scores, Tensor alpha) -> Tensor",
    fake=lambda scores, alpha: scores.new_empty(scores.shape),
    save=_save,
    backward=_backward,
)
def _entmax(scores: Tensor, alpha: Tensor) -> Tensor:
    scores = scores.contiguous()
    if name := _native_kernel_name(scores, alpha):
        weights = torch.empty_like(scores)
        size = scores.shape[-1]
        native.call(f"{name}_forward", [scores, weights], [size], count=scores.numel() // size, work=scores.numel() * 8)
        return weights
    if not scores.numel():
        return torch.empty_like(scores)
    alpha_minus_one, power = (alpha - 1).to(scores.dtype), (1 / (alpha - 1)).to(scores.dtype)
    z = (scores - scores.amax(-1, keepdim=True)) * alpha_minus_one
    weights = (z - _threshold(z, power)).clamp_min_(0).pow_(power)
    return weights / weights.sum(-1, keepdim=True)
