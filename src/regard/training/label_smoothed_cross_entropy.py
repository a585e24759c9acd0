"""Label-smoothed cross-entropy fused with the output projection, a few rows at a time.

The logits of a batch are its largest tensor by far (4,096 tokens by a vocabulary of 10,000: 160 MB), and an ordinary
loss reads or writes them five times. Here some rows are projected, replaced by their own gradient while they are in the
cache, and multiplied into the gradients of features and weights at once; the backward pass only scales these.

Label smoothing: Szegedy et al. 2015 (arXiv:1512.00567), uniform over the vocabulary as in PyTorch's cross_entropy.
R-Drop: Liang et al. 2021 (arXiv:2106.14448): a divergence between two passes with different dropout.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import kl_div, log_softmax

from regard import native
from regard.errors import RegardError
from regard.models.bfloat16_matmul import to_padded_bfloat16

MAX_CHUNK_LOGITS = 1 << 22  # logits held at once: 16 MB, or half of it in bfloat16


class Loss(NamedTuple):
    """The loss over all tokens. Only `total` has a gradient."""

    total: Tensor  # minimized, a sum over tokens
    per_token: Tensor  # [N] -log p(target), for perplexity and rewards; of both passes' mean under R-Drop


def fused_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    smoothing: float = 0.0,
    bfloat16: bool = False,
) -> Loss:
    """features [N, D], weight [V, D], bias [V] or None, targets [N] -> the loss of logits = features weight' + bias.

    `bfloat16`: operands and results of the matrix products are rounded to bfloat16.
    """
    _check(features, weight, targets)
    needs_gradient = torch.is_grad_enabled() and any(
        x is not None and x.requires_grad for x in (features, weight, bias)
    )
    total, per_token = _FusedCrossEntropy.apply(features, weight, bias, targets, smoothing, bfloat16, needs_gradient)  # type: ignore[no-untyped-call]
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
    bfloat16: bool = False,
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
        first, second, weight, bias, targets, smoothing, rdrop_weight, bfloat16
    )
    return Loss(total, per_token)


def _check(features: Tensor, weight: Tensor, targets: Tensor) -> None:
    if features.ndim != 2 or weight.ndim != 2 or features.shape[1] != weight.shape[1]:
        raise RegardError(f"features: {tuple(features.shape)} do not fit the weights' {tuple(weight.shape)}.")
    if targets.shape != features.shape[:1] or targets.dtype != torch.int64:
        raise RegardError(f"targets: expected {features.shape[0]} whole numbers, got {tuple(targets.shape)}.")
    if targets.numel() and not (int(targets.min()) >= 0 and int(targets.max()) < len(weight)):
        raise RegardError(f"targets: they must lie between 0 and {len(weight) - 1}.")


def _chunk_rows(weight: Tensor) -> int:
    return max(16, 1 << (MAX_CHUNK_LOGITS // len(weight)).bit_length() - 1)


class _OutputLayer:
    """The output layer, chunk by chunk: its logits, and the gradients of its weights as they come in."""

    def __init__(self, weight: Tensor, bias: Tensor | None, bfloat16: bool, needs_gradient: bool = True) -> None:
        self._weight = weight.bfloat16() if bfloat16 else weight
        self.bias, self._bfloat16 = bias, bfloat16
        self.weight_gradient = torch.zeros_like(weight) if needs_gradient else weight.new_empty(0)
        self.bias_gradient = torch.zeros_like(bias) if needs_gradient and bias is not None else None

    def logits(self, features: Tensor) -> Tensor:
        """features [n, D] -> [n, V], without the bias; in bfloat16 where the product is bfloat16."""
        if self._bfloat16:
            return torch.mm(to_padded_bfloat16(features), self._weight.t())[: len(features)]
        return torch.mm(features, self._weight.t())

    def accumulate_gradients(self, gradients: Tensor, features: Tensor, out: Tensor) -> None:
        """Gradients of logits [n, V] -> those of the features, written to `out` [n, D], and of the weights."""
        if self.bias_gradient is not None:
            self.bias_gradient += gradients.sum(0, dtype=self.bias_gradient.dtype)
        if self._bfloat16:
            rounded_gradients = to_padded_bfloat16(gradients)
            out.copy_(torch.mm(rounded_gradients, self._weight)[: len(out)])
            self.weight_gradient += torch.mm(rounded_gradients.t(), to_padded_bfloat16(features))
        else:
            torch.mm(gradients, self._weight, out=out)
            self.weight_gradient.addmm_(gradients.t(), features)


class _FusedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        bfloat16: bool,
        needs_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        chunk_rows = _chunk_rows(weight)
        per_token, smoothing_loss = features.new_empty(len(features)), features.new_empty(len(features))
        gradients = torch.empty_like(features) if needs_gradient else None
        output = _OutputLayer(weight, bias, bfloat16, needs_gradient)
        for start in range(0, len(features), chunk_rows):
            chunk = slice(start, start + chunk_rows)
            x = features[chunk]
            logits = output.logits(x)
            _cross_entropy(
                logits, bias, targets[chunk], per_token[chunk], smoothing_loss[chunk], smoothing, needs_gradient
            )
            if gradients is not None:
                output.accumulate_gradients(logits, x, gradients[chunk])
        ctx.mark_non_differentiable(per_token)
        ctx.gradients = gradients, output.weight_gradient, output.bias_gradient
        # Summed in float64: a float32 sum over thousands of tokens would lose the last digits of the report.
        total = (1 - smoothing) * per_token.double().sum() + smoothing * smoothing_loss.double().sum()
        return total.to(features.dtype), per_token

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*_scale_gradients(ctx.gradients, g), None, None, None, None)


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
        bfloat16: bool,
    ) -> tuple[Tensor, Tensor]:
        chunk_rows = max(16, _chunk_rows(weight) // 2)
        per_token, smoothing_loss, divergence = (first.new_empty(len(first)) for _ in range(3))
        gradients = torch.empty_like(first), torch.empty_like(second)
        output = _OutputLayer(weight, bias, bfloat16)
        for start in range(0, len(first), chunk_rows):
            chunk = slice(start, start + chunk_rows)
            a, b = output.logits(first[chunk]), output.logits(second[chunk])
            _rdrop(
                a,
                b,
                bias,
                targets[chunk],
                per_token[chunk],
                smoothing_loss[chunk],
                divergence[chunk],
                smoothing,
                rdrop_weight,
            )
            output.accumulate_gradients(a, first[chunk], gradients[0][chunk])
            output.accumulate_gradients(b, second[chunk], gradients[1][chunk])
        per_token /= 2
        ctx.mark_non_differentiable(per_token)
        ctx.gradients = *gradients, output.weight_gradient, output.bias_gradient
        entropy = (1 - smoothing) * per_token.double().sum() + smoothing * smoothing_loss.double().sum() / 2
        return (entropy + rdrop_weight / 2 * divergence.double().sum()).to(first.dtype), per_token

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return (*_scale_gradients(ctx.gradients, g / 2), None, None, None, None)


def _scale_gradients(gradients: tuple[Tensor | None, ...], g: Tensor) -> list[Tensor | None]:
    return [None if gradient is None else gradient * g for gradient in gradients]


def _native_supported(*logits: Tensor) -> bool:
    """Whether the C kernels support these logits."""
    bfloat16 = (
        all(x.dtype == torch.bfloat16 and x.device.type == "cpu" for x in logits) and native.library() is not None
    )
    return bfloat16 or native.is_supported(*logits)


def _cross_entropy(
    logits: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    loss: Tensor,
    smoothing_loss: Tensor,
    smoothing: float,
    gradient: bool,
) -> None:
    """Write loss and smoothing_loss [n]; if `gradient`, `logits` [n, V] are replaced by their gradient."""
    n, V = logits.shape
    if _native_supported(logits):
        tensors = [logits, bias, targets.contiguous(), loss, smoothing_loss]
        numbers = [V, int(logits.dtype == torch.bfloat16), int(gradient), float(smoothing)]
        native.call("regard_cross_entropy_compute", tensors, numbers, count=n, work=3 * n * V)
        return
    logs = _log_softmax(logits, bias)
    loss.copy_(-logs.gather(1, targets[:, None])[:, 0])
    smoothing_loss.copy_(-logs.mean(-1))
    if gradient:
        gradients = torch.exp(logs).sub_(smoothing / V)
        gradients[torch.arange(n, device=logits.device), targets] -= 1 - smoothing
        logits.copy_(gradients)


def _log_softmax(logits: Tensor, bias: Tensor | None) -> Tensor:
    float_logits = logits.float() if logits.dtype == torch.bfloat16 else logits
    return log_softmax(float_logits if bias is None else float_logits + bias, -1)


def _rdrop(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    loss: Tensor,
    smoothing_loss: Tensor,
    divergence: Tensor,
    smoothing: float,
    rdrop_weight: float,
) -> None:
    n, V = a.shape
    if _native_supported(a, b):
        tensors = [a, b, bias, targets.contiguous(), loss, smoothing_loss, divergence]
        numbers = [V, int(a.dtype == torch.bfloat16), float(smoothing), float(rdrop_weight)]
        native.call("regard_rdrop_compute", tensors, numbers, count=n, work=8 * n * V)
        return
    p, q = _log_softmax(a, bias), _log_softmax(b, bias)
    target_index = torch.arange(n, device=a.device), targets
    loss.copy_(-p[target_index] - q[target_index])
    smoothing_loss.copy_(-p.mean(-1) - q.mean(-1))
    kl_pq = kl_div(q, p, log_target=True, reduction="none").sum(-1, keepdim=True)
    kl_qp = kl_div(p, q, log_target=True, reduction="none").sum(-1, keepdim=True)
    divergence.copy_((kl_pq + kl_qp)[:, 0] / 2)
    log_ratio, uniform, half_weight = p - q, smoothing / V, rdrop_weight / 2
    p, q = p.exp(), q.exp()
    grad_a, grad_b = (
        p - uniform + half_weight * (p * (log_ratio - kl_pq) + p - q),
        q - uniform + half_weight * (q - p - q * (log_ratio + kl_qp)),
    )
    for gradients, out in ((grad_a, a), (grad_b, b)):
        gradients[target_index] -= 1 - smoothing
        out.copy_(gradients)
