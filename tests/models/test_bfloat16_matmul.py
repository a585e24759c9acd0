"""Rounded products: what is filled up is zeros, and only where the context asks for it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.models.bfloat16_matmul import (
    MIN_MULTIPLICATIONS,
    Projection,
    bfloat16_products,
    padded_rows,
    to_padded_bfloat16,
    uses_bfloat16,
    weight_gradient,
)


@given(count=st.integers(1, 100_000))
def test_rows_are_filled_up_by_an_eighth_or_31_at_most(count: int) -> None:
    rows = padded_rows(count)
    assert count <= rows <= max(count + 31, count * 9 / 8)
    assert padded_rows(rows) == rows


def test_there_are_few_sizes() -> None:
    assert len({padded_rows(count) for count in range(1, 4097)}) < 70


@given(count=st.integers(1, 70), width=st.integers(1, 9))
def test_what_is_filled_up_is_zero_even_in_memory_that_was_used(count: int, width: int) -> None:
    dirty = torch.full((padded_rows(count), width), torch.nan, dtype=torch.bfloat16)
    del dirty  # its memory is the likeliest to be given out next
    x = torch.randn(count, width)
    low = to_padded_bfloat16(x)
    assert low.shape == (padded_rows(count), width)
    assert low[:count].equal(x.bfloat16())
    assert (low[count:] == 0).all()


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_a_product_and_its_ways_back(count: int, rounded: bool) -> None:
    torch.manual_seed(count)
    x, weight, g = torch.randn(count, 24), torch.randn(40, 24), torch.randn(count, 40)
    projection = Projection(weight, rounded)
    for found, exact in (
        (projection(x), x.double() @ weight.double().t()),
        (projection.input_gradient(g), g.double() @ weight.double()),
        (weight_gradient(g, x, rounded), g.double().t() @ x.double()),
    ):
        assert found.dtype == torch.float32
        assert found.shape == exact.shape
        error = (found - exact).norm() / exact.norm()
        assert error < (0.01 if rounded else 1e-6)
        assert (error > 1e-4) == rounded


def test_only_large_products_of_float32_round_and_only_where_it_is_asked() -> None:
    x, weight = torch.empty(MIN_MULTIPLICATIONS // 64, 8), torch.empty(8, 8)
    assert not uses_bfloat16(x, weight)
    with bfloat16_products():
        assert uses_bfloat16(x, weight)
        assert not uses_bfloat16(x[1:], weight)
        assert not uses_bfloat16(x.double(), weight.double())
        with bfloat16_products():
            assert uses_bfloat16(x, weight)
        assert uses_bfloat16(x, weight)
    assert not uses_bfloat16(x, weight)
