"""Label-smoothed cross-entropy fused with the output projection, a few rows at a time.

The logits of a batch are its largest tensor by far (4,096 tokens by 10,000 words: 160 MB), and an ordinary loss
walks over them five times. Here some rows are projected, turned into their own gradient while they are in the cache,
and multiplied into the gradients of features and weights at once; the backward pass only scales what is ready.

Label smoothing: Szegedy et al. 2016 (arXiv:1512.00567), spread evenly over all words as in PyTorch's cross_entropy.
R-Drop: Liang et al. 2021 (arXiv:2106.14448): two passes with different dropout must agree.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import kl_div, log_softmax

from regard import native
from regard.errors import RegardError
from regard.models.bfloat16_matmul import to_padded_bfloat16

CHUNK = 1 << 22  # logits held at once: 16 MB, or half of it in bfloat16


class Loss(NamedTuple):
    """What was lost over all tokens. Only `total` has a gradient."""

    total: Tensor  # what is minimised, a sum over tokens
    per_token: Tensor  # [N] -log p(target), for perplexity and rewards; of both passes' mean under R-Drop


def fused_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    smoothing: float = 0.0,
    rounded: bool = False,
) -> Loss:
    """features [N, D], weight [V, D], bias [V] or None, targets [N] -> the loss of logits = features weight' + bias.

    `rounded`: operands and results of the matrix products are rounded to bfloat16.
    """
    _check(features, weight, targets)
    wanted = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (features, weight, bias))
    total, per_token = _FusedCrossEntropy.apply(features, weight, bias, targets, smoothing, rounded, wanted)  # type: ignore[no-untyped-call]
    return Loss(total, per_token)


def fused_rdrop(
    first: Tensor,
    second: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    smoothing: float = 0.0,
    rdrop_weight: float = 1.0,
    rounded: bool = False,
) -> Loss:
    """R-Drop: the mean of the two passes' losses plus `rdrop_weight` times half their symmetric divergence.

    first, second [N, D]: the features of two passes. The result is the sum over tokens of
    (CE(first) + CE(second) + rdrop_weight (KL(p|q) + KL(q|p)) / 2) / 2. It is on the scale of one pass, so that
    learning rates carry over. `rdrop_weight` is the paper's alpha for the same direction of the gradient.
    """
    _check(first, weight, targets)
    if second.shape != first.shape:
        raise RegardError(f"second: {tuple(second.shape)} does not fit the first pass's {tuple(first.shape)}.")
    total, per_token = _FusedRDrop.apply(  # type: ignore[no-untyped-call]
        first, second, weight, bias, targets, smoothing, rdrop_weight, rounded
    )
    return Loss(total, per_token)


def _check(features: Tensor, weight: Tensor, targets: Tensor) -> None:
    if features.ndim != 2 or weight.ndim != 2 or features.shape[1] != weight.shape[1]:
        raise RegardError(f"features: {tuple(features.shape)} do not fit the weights' {tuple(weight.shape)}.")
    if targets.shape != features.shape[:1] or targets.dtype != torch.int64:
        raise RegardError(f"targets: expected {features.shape[0]} whole numbers, got {tuple(targets.shape)}.")
    if targets.numel() and not (int(targets.min()) >= 0 and int(targets.max()) < len(weight)):
        raise RegardError(f"targets: they must lie between 0 and {len(weight) - 1}.")


def _rows(weight: Tensor) -> int:
    return max(16, 1 << (CHUNK // len(weight)).bit_length() - 1)


class _Output:
    """The output layer, chunk by chunk: its logits, and the gradients of its weights as they come in."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rounded: bool, wanted: bool = True) -> None:
        self._weight = weight.bfloat16() if rounded else weight
        self.bias, self._rounded = bias, rounded
        self.weight_slope = torch.zeros_like(weight) if wanted else weight.new_empty(0)
        self.bias_slope = torch.zeros_like(bias) if wanted and bias is not None else None

    def logits(self, features: Tensor) -> Tensor:
        """features [n, D] -> [n, V], without the bias; in bfloat16 where the product is rounded."""
        if self._rounded:
            return torch.mm(to_padded_bfloat16(features), self._weight.t())[: len(features)]
        return torch.mm(features, self._weight.t())

    def take(self, slopes: Tensor, features: Tensor, into: Tensor) -> None:
        """Gradients of logits [n, V] -> those of the features, written into `into` [n, D], and of the weights."""
        if self.bias_slope is not None:
            self.bias_slope += slopes.sum(0, dtype=self.bias_slope.dtype)
        if self._rounded:
            low = to_padded_bfloat16(slopes)
            into.copy_(torch.mm(low, self._weight)[: len(into)])
            self.weight_slope += torch.mm(low.t(), to_padded_bfloat16(features))
        else:
            torch.mm(slopes, self._weight, out=into)
            self.weight_slope.addmm_(slopes.t(), features)


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        rounded: bool,
        wanted: bool,
    ) -> tuple[Tensor, Tensor]:
        rows = _rows(weight)
        per_token, spread = features.new_empty(len(features)), features.new_empty(len(features))
        slopes = torch.empty_like(features) if wanted else None
        output = _Output(weight, bias, rounded, wanted)
        for at in range(0, len(features), rows):
            here = slice(at, at + rows)
            x = features[here]
            logits = output.logits(x)
            _cross_entropy(logits, bias, targets[here], per_token[here], spread[here], smoothing, wanted)
            if slopes is not None:
                output.take(logits, x, slopes[here])
        ctx.mark_non_differentiable(per_token)
        ctx.ready = slopes, output.weight_slope, output.bias_slope
        # Summed in float64: a float32 sum over thousands of tokens would lose the last digits of the report.
        total = (1 - smoothing) * per_token.double().sum() + smoothing * spread.double().sum()
        return total.to(features.dtype), per_token

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*_scaled(ctx.ready, g), None, None, None, None)


class _FusedRDrop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        rdrop_weight: float,
        rounded: bool,
    ) -> tuple[Tensor, Tensor]:
        rows = max(16, _rows(weight) // 2)
        per_token, spread, apart = (first.new_empty(len(first)) for _ in range(3))
        slopes = torch.empty_like(first), torch.empty_like(second)
        output = _Output(weight, bias, rounded)
        for at in range(0, len(first), rows):
            here = slice(at, at + rows)
            a, b = output.logits(first[here]), output.logits(second[here])
            _two_passes(a, b, bias, targets[here], per_token[here], spread[here], apart[here], smoothing, rdrop_weight)
            output.take(a, first[here], slopes[0][here])
            output.take(b, second[here], slopes[1][here])
        per_token /= 2
        ctx.mark_non_differentiable(per_token)
        ctx.ready = *slopes, output.weight_slope, output.bias_slope
        entropy = (1 - smoothing) * per_token.double().sum() + smoothing * spread.double().sum() / 2
        return (entropy + rdrop_weight / 2 * apart.double().sum()).to(first.dtype), per_token

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*_scaled(ctx.ready, g / 2), None, None, None, None)


def _scaled(ready: tuple[Tensor | None, ...], g: Tensor) -> list[Tensor | None]:
    return [None if gradient is None else gradient * g for gradient in ready]


def _serves(*logits: Tensor) -> bool:
    """Whether the C kernels can take these logits."""
    low = all(x.dtype == torch.bfloat16 and x.device.type == "cpu" for x in logits) and native.library() is not None
    return low or native.serves(*logits)


def _cross_entropy(
    logits: Tensor, bias: Tensor | None, targets: Tensor, loss: Tensor, spread: Tensor, smoothing: float, gradient: bool
) -> None:
    """Fill loss and spread [n]; where a gradient is wanted, `logits` [n, V] become it."""
    n, V = logits.shape
    if _serves(logits):
        tensors = [logits, bias, targets.contiguous(), loss, spread]
        numbers = [V, int(logits.dtype == torch.bfloat16), int(gradient), float(smoothing)]
        native.call("regard_cross_entropy_compute", tensors, numbers, count=n, work=3 * n * V)
        return
    logs = _log_softmax(logits, bias)
    loss.copy_(-logs.gather(1, targets[:, None])[:, 0])
    spread.copy_(-logs.mean(-1))
    if gradient:
        slopes = torch.exp(logs).sub_(smoothing / V)
        slopes[torch.arange(n, device=logits.device), targets] -= 1 - smoothing
        logits.copy_(slopes)


def _log_softmax(logits: Tensor, bias: Tensor | None) -> Tensor:
    wide = logits.float() if logits.dtype == torch.bfloat16 else logits
    return log_softmax(wide if bias is None else wide + bias, -1)


def _two_passes(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    loss: Tensor,
    spread: Tensor,
    divergence: Tensor,
    smoothing: float,
    rdrop_weight: float,
) -> None:
    n, V = a.shape
    if _serves(a, b):
        tensors = [a, b, bias, targets.contiguous(), loss, spread, divergence]
        numbers = [V, int(a.dtype == torch.bfloat16), float(smoothing), float(rdrop_weight)]
        native.call("regard_rdrop_compute", tensors, numbers, count=n, work=8 * n * V)
        return
    p, q = _log_softmax(a, bias), _log_softmax(b, bias)
    at = torch.arange(n, device=a.device), targets
    loss.copy_(-p[at] - q[at])
    spread.copy_(-p.mean(-1) - q.mean(-1))
    forth = kl_div(q, p, log_target=True, reduction="none").sum(-1, keepdim=True)
    back = kl_div(p, q, log_target=True, reduction="none").sum(-1, keepdim=True)
    divergence.copy_((forth + back)[:, 0] / 2)
    apart, even, half = p - q, smoothing / V, rdrop_weight / 2
    p, q = p.exp(), q.exp()
    down, up = p - even + half * (p * (apart - forth) + p - q), q - even + half * (q - p - q * (apart + back))
    for slopes, into in ((down, a), (up, b)):
        slopes[at] -= 1 - smoothing
        into.copy_(slopes)
