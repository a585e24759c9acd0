"""Pictures as they are drawn, before they are pixels."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

PNG = b"\x89PNG\r\n\x1a\n"


def figures(patch: pytest.MonkeyPatch) -> list[Figure]:
    """A list that fills with every figure that is saved; they are saved all the same."""
    found: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *arguments: object, **options: object) -> None:
        found.append(figure)
        save(figure, *arguments, **options)  # type: ignore[arg-type]

    patch.setattr(Figure, "savefig", keep)
    return found


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(PNG)
