"""What an extent is.

Positional extents (global, causal, window, local-m) are functions of two positions and nothing else, so that one step
with a cache equals the same row of the parallel pass. A predictive one (local-p) depends on the query itself.
Formulas and papers: reference.py.

A new extent is one file in this package, or a plugin:

    @EXTENTS.register("strided")
    class Strided(Extent):
        formula, summary, paper = "(i - j) mod 2 = 0", "every other key", "Child et al. 2019, arXiv:1904.10509"

        def allowed(self, query_positions, key_positions):
            return (query_positions[:, None] - key_positions[None, :]) % 2 == 0
"""

from typing import Any, ClassVar, Self

from torch import Tensor

from regard.attention.axis import required_arguments
from regard.attention.extents import EXTENTS
from regard.errors import RegardError

KeyRange = tuple[int, int]


class Extent:
    """One choice of extent. Positions are counted from 0, the first key's."""

    name: ClassVar[str]  # set by registering; the class's own name otherwise
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    use: ClassVar[str] = ""
    constructor: ClassVar[str] = ""  # how to construct it, where it needs arguments
    order: ClassVar[int]
    # What kernels need to know: "all" keys, "causal", a "band" around the diagonal (`Window`), any other set of
    # "positions", or keys around a position "predicted" from the query.
    form: ClassVar[str] = "positions"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__name__
        if "allowed" in vars(cls) and "form" not in vars(cls):  # the base class's properties no longer hold
            cls.form = "positions"
            for inherited in ("key_ranges", "masks_any"):
                if inherited not in vars(cls):
                    setattr(cls, inherited, vars(Extent)[inherited])

    @classmethod
    def create(cls, *, query_width: int, heads: int, radius: int) -> Self:
        """A new one for a model's settings; radius: ignored by extents without one."""
        return cls()

    def allowed(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """Which keys may be attended to, [Tq, Tk]; None for all."""
        return None

    def key_ranges(self, first: int, last: int, keys: int) -> list[KeyRange]:
        """Ranges [start, stop) that contain all keys that queries at positions first..last may attend to."""
        return [(0, keys)]

    def masks_any(self, first: int, last: int, keys: int) -> bool:
        """Whether any of these keys may be masked for any of these queries."""
        return type(self).allowed is not Extent.allowed

    def centers(self, query: Tensor, length: Tensor) -> Tensor:
        """Predictive extents: query [B, H or 1, Tq, D], number of keys [B or 1, H or 1, Tq or 1] -> [B, H, Tq]."""
        raise NotImplementedError

    def allowed_around(self, centers: Tensor, key_positions: Tensor) -> Tensor:
        """Predictive extents: which keys may be attended to, [B, H, Tq, Tk]."""
        raise NotImplementedError

    def falloff(self, centers: Tensor, key_positions: Tensor) -> Tensor:
        """Predictive extents: what the normalized weights are multiplied by, [B, H, Tq, Tk]."""
        raise NotImplementedError


_WITHOUT_ARGUMENTS: dict[str, Extent] = {}  # by spelling, because `attend` looks it up on every call


def resolve_extent(extent: str | Extent) -> Extent:
    """The extent that a name or an object stands for."""
    if isinstance(extent, str):
        return _WITHOUT_ARGUMENTS.get(extent) or _build_extent(extent)
    if isinstance(extent, Extent):
        return extent
    raise RegardError(f"extent: expected a name or an Extent, not {type(extent).__name__}.")


def _build_extent(spelling: str) -> Extent:
    extent_class = EXTENTS.find_class(spelling)
    if needed := required_arguments(extent_class):
        example = vars(extent_class).get("constructor") or f"{extent_class.__name__}({needed})"
        raise RegardError(f"extent: {extent_class.name!r} needs {needed}; pass {example}.")
    return _WITHOUT_ARGUMENTS.setdefault(spelling, extent_class())
