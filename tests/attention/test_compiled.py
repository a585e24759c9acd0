"""torch.compile changes speed, not results."""

from typing import Any

import pytest
import torch

from regard.attention import Attention, Window, attend
from tests.attention.cells import cell

CELLS = [
    ("scaled-dot", "global", "softmax", "no"),
    ("scaled-dot", "causal", "softmax", "padding"),
    ("cosine", "window", "softmax", "no"),
    ("additive", "global", "softmax", "padding"),
    ("additive", "local-p", "entmax-1.5", "no"),
    ("bilinear", "causal", "sparsemax", "padding"),
    ("dot", "global", "entmax learned", "no"),
    ("dot", "local-m", "sigmoid", "rows"),
    ("dot", "global", "none", "added"),
]


@pytest.mark.parametrize(("score", "extent", "normalize", "masked"), CELLS)
def test_compiled_attend_equals_eager(score: str, extent: str, normalize: str, masked: str) -> None:
    torch._dynamo.reset()
    inputs = cell(score, extent, normalize, masked=masked)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attend(q, k, v, **inputs.options)

    eager = run(inputs.query, inputs.key, inputs.value)
    compiled = torch.compile(run, backend="aot_eager")(inputs.query, inputs.key, inputs.value)
    torch.testing.assert_close(compiled, eager, rtol=1e-12, atol=1e-12)
    direction = torch.randn_like(eager)
    for a, b in zip(*(torch.autograd.grad(x, inputs.tensors, direction) for x in (compiled, eager)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"extent": "causal"}, {"extent": Window(4)}, {"score": "additive"}, {"normalize": "sparsemax"}],
    ids=str,
)
def test_compiled_module_has_the_same_gradients(options: dict[str, Any]) -> None:
    """With the real compiler; float32, so sums may be reordered."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    attention = Attention(32, heads=4, **options)
    x = torch.randn(2, 40, 32)
    eager = attention(x).output
    eager.square().sum().backward()
    gradients = [p.grad.clone() for p in attention.parameters() if p.grad is not None]
    attention.zero_grad()
    compiled = torch.compile(attention)(x).output
    compiled.square().sum().backward()
    torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-5)
    for a, b in zip((p.grad for p in attention.parameters() if p.grad is not None), gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_custom_operators_pass_opcheck() -> None:
    """PyTorch's own checks: shapes of the fakes, autograd registration, aliasing."""
    a, b, v = (
        torch.randn(1, 2, 3, 5, requires_grad=True),
        torch.randn(1, 2, 4, 5, requires_grad=True),
        torch.randn(2, 5, requires_grad=True),
    )
    torch.library.opcheck(torch.ops.regard.additive_scores.default, (a, b, v))
    scores = torch.randn(3, 7, requires_grad=True)
    torch.library.opcheck(torch.ops.regard.entmax.default, (scores, torch.tensor(1.5)))
    torch.library.opcheck(torch.ops.regard.entmax.default, (scores, torch.tensor(1.3, requires_grad=True)))
