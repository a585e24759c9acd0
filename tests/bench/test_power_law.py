import itertools

import numpy as np
import pytest
from bench.complexity_plot import spread_labels
from bench.complexity_table import count_formula
from bench.power_law import Curve, crossover, fit_exponent

SIZES = [64, 128, 256, 512, 1024, 2048]


def curve(values: list[float], sizes: list[int] | None = None) -> Curve:
    return Curve.from_rounds("some layer", "n", "both", "d = 1", sizes or SIZES, [values])


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 2.0, -1.0])
def test_exponent_of_a_power_law(power: float) -> None:
    fit = fit_exponent(SIZES, [[3e-6 * size**power for size in SIZES]] * 3)
    assert fit.exponent == pytest.approx(power, abs=1e-9)
    assert fit.low == pytest.approx(fit.high, abs=1e-9)


def test_fit_uses_the_largest_sizes() -> None:
    """A cost that is the same for small sizes and quadratic for large ones is quadratic."""
    assert fit_exponent(SIZES, [[max(256, size) ** 2 for size in SIZES]]).exponent == pytest.approx(2.0)


def test_one_slow_round_has_no_effect() -> None:
    rounds = [[float(size) for size in SIZES] for _ in range(5)]
    rounds[2][-1] *= 10
    assert fit_exponent(SIZES, rounds).exponent == pytest.approx(1.0)


def test_interval_contains_the_exponent_and_widens_with_noise() -> None:
    generator = np.random.default_rng(3)

    def width(noise: float) -> float:
        fit = fit_exponent(SIZES, [[size * np.exp(noise * generator.normal()) for size in SIZES] for _ in range(9)])
        assert fit.low <= fit.exponent <= fit.high
        return fit.high - fit.low

    assert 0 < width(0.01) < width(0.2)


def test_crossover() -> None:
    quadratic, linear = curve([size**2 for size in SIZES]), curve([300 * size for size in SIZES])
    assert crossover(quadratic, linear) == pytest.approx(300)
    assert crossover(linear, quadratic) is None
    assert curve([size**2 for size in SIZES]).local_exponents() == pytest.approx([2.0] * 5)


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
def test_linear_counts_as_formulas(values: list[float], formula: str) -> None:
    assert count_formula(curve(values, [64, 128, 256])) == formula


def test_labels_are_spread_no_more_than_needed() -> None:
    assert spread_labels([0, 100, 200], 10) == [0, 100, 200]
    assert spread_labels([50, 50], 10) == [45, 55]
    spread = spread_labels([0, 1, 2, 12, 300], 10)
    assert all(b - a >= 10 - 1e-9 for a, b in itertools.pairwise(spread))
    assert spread[-1] == 300
    assert sum(spread[:4]) == pytest.approx(15)  # a crowd keeps its middle
