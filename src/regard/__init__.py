"""regard: one system for attention and the sequence models built on it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.loading import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`regard.load`, imported when it is first used: `import regard` stays instant."""
    if name == "load":
        from regard.loading import load

        return load
    raise AttributeError(f"module 'regard' has no attribute {name!r}")
