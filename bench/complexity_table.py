"""What bench/complexity.py found, as tables for people."""

from fractions import Fraction

from bench.layers import LAYERS, Layer, Sizes
from bench.power_law import FITTED_SIZES, Curve, crossover

COLUMNS = {"forward": "forward", "both": "f. + b.", "both memory": "memory"}

CurvesByKey = dict[tuple[str, str, str], Curve]  # by layer, axis and quantity


def show(curves: list[Curve], machine: str) -> None:
    """Print everything."""
    curves_by_key = {(curve.layer, curve.axis, curve.what): curve for curve in curves}
    default_sizes = Sizes(0, 0)
    print(f"Complexity per layer: {machine}")
    print(f"One sequence, one head; k = {default_sizes.k}, r = {default_sizes.r} unless noted otherwise.\n")
    print(f"Exponents, fitted over the {FITTED_SIZES} largest sizes; ± holds nine of ten fits to rounds drawn anew.")
    _exponents(curves_by_key, "nd", LAYERS, COLUMNS)
    for axis in "kr":
        _exponents(curves_by_key, axis, [layer for layer in LAYERS if axis in layer.axes], {**COLUMNS, "path": "path"})
    print(
        f"{'':<28} {'memory':<16}{'sequential steps':<22}longest path, at k = {default_sizes.k}, r = {default_sizes.r}"
    )
    for layer in LAYERS:
        steps, path = (count_formula(curves_by_key[layer.name, "n", what]) for what in ("steps", "path"))
        print(f"{layer.name:<28} {layer.memory:<16}{f'O({layer.steps})':<8}{steps:<14}{f'O({layer.path})':<8}{path}")
    print()
    for direction, label in (("forward", "forward"), ("both", "forward and backward")):
        attention_curve, recurrent_curve = (
            curves_by_key["self-attention", "n", direction],
            curves_by_key["recurrent", "n", direction],
        )
        n = crossover(attention_curve, recurrent_curve)
        crossover_range = f"up to n = {n:,.0f}" if n else "at one end of what was measured only, or nowhere"
        print(f"Self-attention costs less than the recurrent layer {crossover_range} ({label}, {attention_curve.at}).")
    recurrent = curves_by_key["recurrent", "d", "both"]
    exponents = _format_list(recurrent.local_exponents())
    print(f"Recurrent, d, forward and backward, from each size to the next: {exponents} ({recurrent.at}).")


def _exponents(curves_by_key: CurvesByKey, axes: str, layers: list[Layer], columns: dict[str, str]) -> None:
    """Exponents of these layers along these axes."""
    for axis in axes:
        ranges = {
            what: _fitted_ranges([c for c in curves_by_key.values() if (c.axis, c.what) == (axis, what)])
            for what in columns
        }
        default_sizes = ranges["forward"]
        other_ranges = "".join(f"; {columns[what]} {label}" for what, label in ranges.items() if label != default_sizes)
        print(f"{axis}: {default_sizes}{other_ranges}")
    print(
        f"\n{'':<28} {'textbook':<13}"
        + "".join(f"{axis}: {name}".rjust(13) for axis in axes for name in columns.values())
    )
    for layer in layers:
        cells = [curves_by_key[layer.name, axis, what] for axis in axes for what in columns]
        print(f"{layer.name:<28} {layer.time:<13}" + "".join(_format_exponent(cell).rjust(13) for cell in cells))
    print()


def _fitted_ranges(curves: list[Curve]) -> str:
    """Over which sizes, and what stays as it is."""
    ranges = dict.fromkeys(f"{curve.sizes[-FITTED_SIZES]} to {curve.sizes[-1]}" for curve in curves)
    return f"{' or '.join(ranges)} at {curves[0].at}"


def _format_exponent(curve: Curve) -> str:
    return str(curve.fit) if curve.what in ("forward", "both") else f"{curve.fit.exponent:.2f}"  # measured once


def count_formula(curve: Curve) -> str:
    """A count that lies on a straight line as its formula; any other at its largest size."""
    (first, *_, last), (low, *_, high) = curve.sizes, curve.values
    slope = Fraction(int(high - low), last - first)
    start = int(low) - slope * first
    if any(start + slope * size != value for size, value in zip(curve.sizes, curve.values, strict=True)):
        return f"{high:.0f} at {curve.axis} = {last}"
    if not slope:
        return str(start)
    factor = "" if slope.numerator == 1 else f"{slope.numerator} "
    denominator = "" if slope.denominator == 1 else f"/{slope.denominator}"
    constant = "" if not start else f" {'+' if start > 0 else '−'} {abs(start)}"
    return f"{factor}{curve.axis}{denominator}{constant}"


def _format_list(numbers: list[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)
