import itertools

import numpy as np
import pytest
from bench.complexity_picture import apart
from bench.complexity_table import line
from bench.exponents import Curve, crossing, fitted

SIZES = [64, 128, 256, 512, 1024, 2048]


def curve(values: list[float], sizes: list[int] | None = None) -> Curve:
    return Curve.of("some layer", "n", "both", "d = 1", sizes or SIZES, [values])


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0, -1.0])
def test_the_exponent_of_a_power_is_found(power: float) -> None:
    found = fitted(SIZES, [[3e-6 * size**power for size in SIZES]] * 3)
    assert found.exponent == pytest.approx(power, abs=1e-9)
    assert found.low == pytest.approx(found.high, abs=1e-9)


def test_the_largest_sizes_decide() -> None:
    """A cost that is the same for small sizes and quadratic for large ones is quadratic."""
    assert fitted(SIZES, [[max(256, size) ** 2 for size in SIZES]]).exponent == pytest.approx(2.0)


def test_one_slow_round_changes_nothing() -> None:
    rounds = [[float(size) for size in SIZES] for _ in range(5)]
    rounds[2][-1] *= 10
    assert fitted(SIZES, rounds).exponent == pytest.approx(1.0)


def test_the_interval_holds_the_exponent_and_widens_with_noise() -> None:
    dice = np.random.default_rng(3)

    def width(noise: float) -> float:
        found = fitted(SIZES, [[size * np.exp(noise * dice.normal()) for size in SIZES] for _ in range(9)])
        assert found.low <= found.exponent <= found.high
        return found.high - found.low

    assert 0 < width(0.01) < width(0.2)


def test_where_one_cost_overtakes_another() -> None:
    quadratic, linear = curve([size**2 for size in SIZES]), curve([300 * size for size in SIZES])
    assert crossing(quadratic, linear) == pytest.approx(300)
    assert crossing(linear, quadratic) is None
    assert curve([size**2 for size in SIZES]).between() == pytest.approx([2.0] * 5)


@pytest.mark.parametrize(
    ("values", "formula"),
    [
        ([4, 4, 4], "4"),
        ([704, 1408, 2816], "11 n"),
        ([63, 127, 255], "n − 1"),
        ([2, 4, 8], "n/32"),
        ([131, 259, 515], "2 n + 3"),
        ([1, 2, 9], "9 at n = 256"),
    ],
)
def test_counts_on_a_line_are_told_as_their_formula(values: list[float], formula: str) -> None:
    assert line(curve(values, [64, 128, 256])) == formula


def test_names_are_pushed_apart_and_no_farther() -> None:
    assert apart([0, 100, 200], 10) == [0, 100, 200]
    assert apart([50, 50], 10) == [45, 55]
    moved = apart([0, 1, 2, 12, 300], 10)
    assert all(b - a >= 10 - 1e-9 for a, b in itertools.pairwise(moved))
    assert moved[-1] == 300
    assert sum(moved[:4]) == pytest.approx(15)  # a crowd keeps its middle
