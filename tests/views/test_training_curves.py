"""Learning curves show what the log says."""

from pathlib import Path
from typing import Any

import pytest

from regard.views.training_curves import draw_curves
from tests.views.image_diff import figures, is_png

LOG: list[dict[str, Any]] = [
    {"kind": "start", "step": 0},
    {"kind": "step", "step": 10, "loss": 5.0},
    {"kind": "step", "step": 20, "loss": 4.0},
    {"kind": "validation", "step": 20, "loss": 4.5, "measure": "bleu", "value": 3.0},
    {"kind": "step", "step": 30, "loss": 3.0},
    {"kind": "validation", "step": 40, "loss": 3.5, "measure": "bleu", "value": 12.0},
    {"kind": "end", "step": 40},
]


def lines(axes) -> dict[str, tuple[list[float], list[float]]]:
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()}


def test_the_curves_are_the_log_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = figures(monkeypatch)
    draw_curves(LOG, tmp_path / "c.png", "my run")
    assert is_png(tmp_path / "c.png")
    left, right = drawn[0].axes
    assert lines(left) == {"training": ([10, 20, 30], [5, 4, 3]), "validation": ([20, 40], [4.5, 3.5])}
    assert lines(right) == {"bleu": ([20, 40], [3, 12])}
    assert left.get_title() == "my run"
    assert "bleu" in right.get_ylabel()
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["training", "validation", "bleu"]


def test_without_a_measure_there_is_only_the_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = figures(monkeypatch)
    log = [{**line, "measure": "loss"} if line["kind"] == "validation" else line for line in LOG]
    draw_curves(log, tmp_path / "c.png", "x")
    (axes,) = drawn[0].axes
    assert set(lines(axes)) == {"training", "validation"}


@pytest.mark.parametrize("length", [0, 1, 2, 4])
def test_a_run_that_has_just_begun_can_be_drawn(length: int, tmp_path: Path) -> None:
    draw_curves(LOG[:length], tmp_path / "c.png", "x")
    assert is_png(tmp_path / "c.png")


@pytest.mark.parametrize("title", ["$", "a$_$b", "$$", "100 %", "\\frac", "ü"])
def test_a_title_is_not_mathematics(title: str, tmp_path: Path) -> None:
    draw_curves(LOG, tmp_path / "c.png", title)
    assert is_png(tmp_path / "c.png")


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    for name in "ab":
        draw_curves(LOG, tmp_path / f"{name}.png", "x")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
