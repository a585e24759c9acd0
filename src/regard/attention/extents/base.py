"""What an extent is.

Positional extents (global, causal, window, local-m) are functions of two positions and nothing else, so that one step
with a cache equals the same row of the parallel pass. A predictive one (local-p) looks at the query itself.
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

Span = tuple[int, int]


class Extent:
    """One choice of extent. Positions are counted from 0, the first key's."""

    name: ClassVar[str]  # set by registering; the class's own name otherwise
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    use: ClassVar[str] = ""
    constructor: ClassVar[str] = ""  # how it is made, where it needs arguments
    order: ClassVar[int]
    # What kernels know of it: "all" keys, "causal", a "band" around the diagonal (`Window`), any other set of
    # "positions", or keys around a position that the query has "predicted".
    form: ClassVar[str] = "positions"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__name__
        if "allowed" in vars(cls) and "form" not in vars(cls):  # what was known of the base class no longer holds
            cls.form = "positions"
            for inherited in ("spans", "restricts"):
                if inherited not in vars(cls):
                    setattr(cls, inherited, vars(Extent)[inherited])

    @classmethod
    def create(cls, *, query_width: int, heads: int, radius: int) -> Self:
        """A new one for a model's settings, which name it; radius: of what has one."""
        return cls()

    def allowed(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """Which keys may be looked at, [Tq, Tk]; None if positions do not restrict anything."""
        return None

    def spans(self, first: int, last: int, keys: int) -> list[Span]:
        """Ranges [start, stop) of keys that hold all that queries at positions first..last may look at."""
        return [(0, keys)]

    def restricts(self, first: int, last: int, keys: int) -> bool:
        """Whether any of these queries may be kept from any of these keys."""
        return type(self).allowed is not Extent.allowed

    def centers(self, query: Tensor, length: Tensor) -> Tensor:
        """Predictive extents: query [B, H or 1, Tq, D], number of keys [B or 1, H or 1, Tq or 1] -> [B, H, Tq]."""
        raise NotImplementedError

    def allowed_around(self, centers: Tensor, key_positions: Tensor) -> Tensor:
        """Predictive extents: which keys may be looked at, [B, H, Tq, Tk]."""
        raise NotImplementedError

    def falloff(self, centers: Tensor, key_positions: Tensor) -> Tensor:
        """Predictive extents: what the normalized weights are multiplied by, [B, H, Tq, Tk]."""
        raise NotImplementedError


_WITHOUT_ARGUMENTS: dict[str, Extent] = {}  # by spelling: `attend` asks on every call


def resolve_extent(extent: str | Extent) -> Extent:
    """The extent that a name or an object stands for."""
    if isinstance(extent, str):
        return _WITHOUT_ARGUMENTS.get(extent) or _extent_named(extent)
    if isinstance(extent, Extent):
        return extent
    raise RegardError(f"extent: expected a name or an Extent, not {type(extent).__name__}.")


def _extent_named(spelling: str) -> Extent:
    kind = EXTENTS.class_named(spelling)
    if needed := required_arguments(kind):
        example = vars(kind).get("constructor") or f"{kind.__name__}({needed})"
        raise RegardError(f"extent: {kind.name!r} needs {needed}; pass {example}.")
    return _WITHOUT_ARGUMENTS.setdefault(spelling, kind())
