"""Alignments as an image: one panel each, with weights and labels."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from regard.views.heat_map import LabeledMatrix, write_heat_maps
from tests.views.figures import is_png, saved_figures

FIRST = LabeledMatrix(["▁the", "▁cat"], ["▁le", "▁ch", "at"], [[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]])
SECOND = LabeledMatrix(["▁no"], ["▁non"], [[0.4]])


def test_every_alignment_has_a_panel_with_its_weights_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = saved_figures(monkeypatch)
    write_heat_maps([FIRST, SECOND], tmp_path / "a.png")
    assert is_png(tmp_path / "a.png")
    panels = figures[0].axes
    assert len(panels) == 2
    for axes, each in zip(panels, [FIRST, SECOND], strict=True):
        (image,) = axes.get_images()
        assert np.array_equal(np.asarray(image.get_array()), np.array(each.weights))
        assert image.get_clim() == (0, 1)
        assert [label.get_text() for label in axes.get_xticklabels()] == [s.replace("▁", "·") for s in each.source]
        assert [label.get_text() for label in axes.get_yticklabels()] == [t.replace("▁", "·") for t in each.target]


@pytest.mark.parametrize("token", ["$", "$$", "$a_$", "$\\foo$", "\\frac", "%", "_", "\x1b"])
def test_tokens_are_not_parsed_as_math(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_heat_maps([LabeledMatrix([token, "a"], [token], [[0.5, 0.5]])], tmp_path / "a.png")
    assert is_png(tmp_path / "a.png")


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_vector_formats_are_written(suffix: str, magic: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_heat_maps([FIRST], path)
    assert path.read_bytes().startswith(magic)
    second = tmp_path / f"b{suffix}"
    write_heat_maps([FIRST], second)
    if suffix == ".svg":
        assert path.read_bytes() == second.read_bytes()


def test_svg_keeps_every_script_as_text(tmp_path: Path) -> None:
    words = [
        "我们",
        "السلام",
        "e\u0301te\u0301",
        "</script>",
        "<img onerror=x>",
        '"&',
        "\u202eevil",
        "\ud800",
        "x" * 10_000,
    ]
    write_heat_maps([LabeledMatrix(words, ["ok"], [[0.1] * len(words)])], tmp_path / "a.svg")
    raw = (tmp_path / "a.svg").read_bytes()
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(raw).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text != "ok"] == [*words[:6], "�evil", "�", "x" * 23 + "…"]
    assert b"<script" not in raw
    assert len(raw) < 100_000


def test_characters_without_a_font_are_returned(tmp_path: Path) -> None:
    cuneiform = LabeledMatrix(["a", "\U00012000"], ["é"], [[0.1, 0.2]])
    assert write_heat_maps([cuneiform], tmp_path / "a.png") == ["\U00012000"]
    assert write_heat_maps([cuneiform], tmp_path / "a.svg") == []
    with pytest.raises(ValueError, match=r"written as \.png, \.svg, \.pdf"):
        write_heat_maps([FIRST], tmp_path / "a.gif")
