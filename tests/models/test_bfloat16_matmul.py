"""Rounded products: what is filled up is zeros, and only where the context asks for it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.models.bfloat16_matmul import SMALLEST, Product, in_bfloat16, outer, rounded_products, rounds, rows_for


@given(count=st.integers(1, 100_000))
def test_rows_are_filled_up_by_an_eighth_or_31_at_most(count: int) -> None:
    rows = rows_for(count)
    assert count <= rows <= max(count + 31, count * 9 / 8)
    assert rows_for(rows) == rows


def test_there_are_few_sizes() -> None:
    assert len({rows_for(count) for count in range(1, 4097)}) < 70


@given(count=st.integers(1, 70), width=st.integers(1, 9))
def test_what_is_filled_up_is_zero_even_in_memory_that_was_used(count: int, width: int) -> None:
    dirty = torch.full((rows_for(count), width), torch.nan, dtype=torch.bfloat16)
    del dirty  # its memory is the likeliest to be given out next
    x = torch.randn(count, width)
    low = in_bfloat16(x)
    assert low.shape == (rows_for(count), width)
    assert low[:count].equal(x.bfloat16())
    assert (low[count:] == 0).all()


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_a_product_and_its_ways_back(count: int, rounded: bool) -> None:
    torch.manual_seed(count)
    x, weight, g = torch.randn(count, 24), torch.randn(40, 24), torch.randn(count, 40)
    product = Product(weight, rounded)
    for found, exact in (
        (product(x), x.double() @ weight.double().t()),
        (product.back(g), g.double() @ weight.double()),
        (outer(g, x, rounded), g.double().t() @ x.double()),
    ):
        assert found.dtype == torch.float32
        assert found.shape == exact.shape
        error = (found - exact).norm() / exact.norm()
        assert error < (0.01 if rounded else 1e-6)
        assert (error > 1e-4) == rounded


def test_only_large_products_of_float32_round_and_only_where_it_is_asked() -> None:
    x, weight = torch.empty(SMALLEST // 64, 8), torch.empty(8, 8)
    assert not rounds(x, weight)
    with rounded_products():
        assert rounds(x, weight)
        assert not rounds(x[1:], weight)
        assert not rounds(x.double(), weight.double())
        with rounded_products():
            assert rounds(x, weight)
        assert rounds(x, weight)
    assert not rounds(x, weight)
