"""Matrix products in bfloat16: padded with zeros, and only within the context."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.models.bfloat16_matmul import (
    MIN_MULTIPLICATIONS,
    Projection,
    bfloat16_matmul,
    padded_rows,
    to_padded_bfloat16,
    uses_bfloat16,
    weight_gradient,
)


@given(count=st.integers(1, 100_000))
def test_rows_are_padded_by_at_most_an_eighth_or_31(count: int) -> None:
    rows = padded_rows(count)
    assert count <= rows <= max(count + 31, count * 9 / 8)
    assert padded_rows(rows) == rows


def test_few_distinct_padded_sizes() -> None:
    assert len({padded_rows(count) for count in range(1, 4097)}) < 70


@given(count=st.integers(1, 70), width=st.integers(1, 9))
def test_padding_is_zero_even_in_reused_memory(count: int, width: int) -> None:
    dirty = torch.full((padded_rows(count), width), torch.nan, dtype=torch.bfloat16)
    del dirty  # its memory is likely to be allocated next
    x = torch.randn(count, width)
    padded = to_padded_bfloat16(x)
    assert padded.shape == (padded_rows(count), width)
    assert padded[:count].equal(x.bfloat16())
    assert (padded[count:] == 0).all()


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_projection_and_its_gradients(count: int, bfloat16: bool) -> None:
    torch.manual_seed(count)
    x, weight, g = torch.randn(count, 24), torch.randn(40, 24), torch.randn(count, 40)
    projection = Projection(weight, bfloat16)
    for result, exact in (
        (projection(x), x.double() @ weight.double().t()),
        (projection.input_gradient(g), g.double() @ weight.double()),
        (weight_gradient(g, x, bfloat16), g.double().t() @ x.double()),
    ):
        assert result.dtype == torch.float32
        assert result.shape == exact.shape
        error = (result - exact).norm() / exact.norm()
        assert error < (0.01 if bfloat16 else 1e-6)
        assert (error > 1e-4) == bfloat16


def test_only_large_float32_products_are_rounded_within_the_context() -> None:
    x, weight = torch.empty(MIN_MULTIPLICATIONS // 64, 8), torch.empty(8, 8)
    assert not uses_bfloat16(x, weight)
    with bfloat16_matmul():
        assert uses_bfloat16(x, weight)
        assert not uses_bfloat16(x[1:], weight)
        assert not uses_bfloat16(x.double(), weight.double())
        with bfloat16_matmul():
            assert uses_bfloat16(x, weight)
        assert uses_bfloat16(x, weight)
    assert not uses_bfloat16(x, weight)
