"""Matplotlib figures before they are rendered, for tests."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

PNG = b"\x89PNG\r\n\x1a\n"


def saved_figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """A list to which every saved figure is added."""
    figures: list[Figure] = []
    savefig = Figure.savefig

    def record(figure: Figure, *arguments: object, **options: object) -> None:
        figures.append(figure)
        savefig(figure, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "savefig", record)
    return figures


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(PNG)
