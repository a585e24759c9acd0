"""What counts as a number: Python's and NumPy's alike, but not truth values."""

from numbers import Integral, Real


def is_integer(x: object) -> bool:
    """A whole number."""
    return isinstance(x, Integral) and not isinstance(x, bool)


def is_real(x: object) -> bool:
    """A real number, finite or not."""
    return isinstance(x, Real) and not isinstance(x, bool)
