"""What bench/complexity.py found, as tables for people."""

from fractions import Fraction

from bench.exponents import UPPER, Curve, crossing
from bench.layers import LAYERS, Layer, Sizes

COLUMNS = {"forward": "forward", "both": "f. + b.", "both memory": "memory"}

Found = dict[tuple[str, str, str], Curve]  # by layer, axis and quantity


def show(curves: list[Curve], machine: str) -> None:
    """Print everything."""
    found = {(curve.layer, curve.axis, curve.what): curve for curve in curves}
    usual = Sizes(0, 0)
    print(f"Complexity per layer: {machine}")
    print(f"One sequence, one head; k = {usual.k}, r = {usual.r} where nothing else is said.\n")
    print(f"Exponents, fitted over the {UPPER} largest sizes; ± holds nine of ten fits to rounds drawn anew.")
    _exponents(found, "nd", LAYERS, COLUMNS)
    for axis in "kr":
        _exponents(found, axis, [layer for layer in LAYERS if axis in layer.axes], {**COLUMNS, "path": "path"})
    print(f"{'':<28} {'memory':<16}{'sequential steps':<22}longest path, at k = {usual.k}, r = {usual.r}")
    for layer in LAYERS:
        steps, path = (line(found[layer.name, "n", what]) for what in ("steps", "path"))
        print(f"{layer.name:<28} {layer.memory:<16}{f'O({layer.steps})':<8}{steps:<14}{f'O({layer.path})':<8}{path}")
    print()
    for way, told in (("forward", "forward"), ("both", "forward and backward")):
        one, other = found["self-attention", "n", way], found["recurrent", "n", way]
        n = crossing(one, other)
        where = f"up to n = {n:,.0f}" if n else "at one end of what was measured only, or nowhere"
        print(f"Self-attention costs less than the recurrent layer {where} ({told}, {one.at}).")
    bent = found["recurrent", "d", "both"]
    print(f"Recurrent, d, forward and backward, from each size to the next: {_listed(bent.between())} ({bent.at}).")


def _exponents(found: Found, axes: str, layers: list[Layer], columns: dict[str, str]) -> None:
    """Exponents of these layers along these axes."""
    for axis in axes:
        ranges = {what: _fitted([c for c in found.values() if (c.axis, c.what) == (axis, what)]) for what in columns}
        usual = ranges["forward"]
        others = "".join(f"; {columns[what]} {told}" for what, told in ranges.items() if told != usual)
        print(f"{axis}: {usual}{others}")
    print(
        f"\n{'':<28} {'textbook':<13}"
        + "".join(f"{axis}: {name}".rjust(13) for axis in axes for name in columns.values())
    )
    for layer in layers:
        cells = [found[layer.name, axis, what] for axis in axes for what in columns]
        print(f"{layer.name:<28} {layer.time:<13}" + "".join(_told(cell).rjust(13) for cell in cells))
    print()


def _fitted(curves: list[Curve]) -> str:
    """Over which sizes, and what stays as it is."""
    ranges = dict.fromkeys(f"{curve.sizes[-UPPER]} to {curve.sizes[-1]}" for curve in curves)
    return f"{' or '.join(ranges)} at {curves[0].at}"


def _told(curve: Curve) -> str:
    return str(curve.fit) if curve.what in ("forward", "both") else f"{curve.fit.exponent:.2f}"  # measured once


def line(curve: Curve) -> str:
    """A count that lies on a straight line as its formula; any other at its largest size."""
    (first, *_, last), (low, *_, high) = curve.sizes, curve.values
    slope = Fraction(int(high - low), last - first)
    start = int(low) - slope * first
    if any(start + slope * size != value for size, value in zip(curve.sizes, curve.values, strict=True)):
        return f"{high:.0f} at {curve.axis} = {last}"
    if not slope:
        return str(start)
    factor = "" if slope.numerator == 1 else f"{slope.numerator} "
    divided = "" if slope.denominator == 1 else f"/{slope.denominator}"
    added = "" if not start else f" {'+' if start > 0 else '−'} {abs(start)}"
    return f"{factor}{curve.axis}{divided}{added}"


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)
