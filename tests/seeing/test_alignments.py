"""Alignments as a picture: one panel each, weights and names in their places."""

from pathlib import Path

import numpy as np
import pytest

from regard.seeing.alignments import Alignment, write_picture
from tests.seeing.pictures import figures, is_png

FIRST = Alignment(["▁the", "▁cat"], ["▁le", "▁ch", "at"], [[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]])
SECOND = Alignment(["▁no"], ["▁non"], [[0.4]])


def test_every_alignment_has_a_panel_with_its_weights_and_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = figures(monkeypatch)
    write_picture([FIRST, SECOND], tmp_path / "a.png")
    assert is_png(tmp_path / "a.png")
    panels = drawn[0].axes
    assert len(panels) == 2
    for axes, each in zip(panels, [FIRST, SECOND], strict=True):
        (image,) = axes.get_images()
        assert np.array_equal(np.asarray(image.get_array()), np.array(each.weights))
        assert image.get_clim() == (0, 1)
        assert [label.get_text() for label in axes.get_xticklabels()] == [s.replace("▁", "·") for s in each.source]
        assert [label.get_text() for label in axes.get_yticklabels()] == [t.replace("▁", "·") for t in each.target]


@pytest.mark.parametrize("piece", ["$", "$$", "$a_$", "$\\foo$", "\\frac", "%", "_", "\x1b"])
def test_a_piece_is_not_mathematics(piece: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_picture([Alignment([piece, "a"], [piece], [[0.5, 0.5]])], tmp_path / "a.png")
    assert is_png(tmp_path / "a.png")
