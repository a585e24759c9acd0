"""Learning curves have the values of the log."""

from pathlib import Path
from typing import Any

import pytest

from regard.views.training_curves import plot_training_curves
from tests.views.figures import is_png, saved_figures

LOG: list[dict[str, Any]] = [
    {"kind": "start", "step": 0},
    {"kind": "step", "step": 10, "loss": 5.0},
    {"kind": "step", "step": 20, "loss": 4.0},
    {"kind": "validation", "step": 20, "loss": 4.5, "metric": "bleu", "value": 3.0},
    {"kind": "step", "step": 30, "loss": 3.0},
    {"kind": "validation", "step": 40, "loss": 3.5, "metric": "bleu", "value": 12.0},
    {"kind": "end", "step": 40},
]


def curves(axes) -> dict[str, tuple[list[float], list[float]]]:
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()}


def test_curves_have_the_values_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = saved_figures(monkeypatch)
    plot_training_curves(LOG, tmp_path / "c.png", "my run")
    assert is_png(tmp_path / "c.png")
    left, right = figures[0].axes
    assert curves(left) == {"training": ([10, 20, 30], [5, 4, 3]), "validation": ([20, 40], [4.5, 3.5])}
    assert curves(right) == {"bleu": ([20, 40], [3, 12])}
    assert left.get_title() == "my run"
    assert "bleu" in right.get_ylabel()
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["training", "validation", "bleu"]


def test_without_a_validation_metric_only_losses_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = saved_figures(monkeypatch)
    log = [{**line, "metric": "loss"} if line["kind"] == "validation" else line for line in LOG]
    plot_training_curves(log, tmp_path / "c.png", "x")
    (axes,) = figures[0].axes
    assert set(curves(axes)) == {"training", "validation"}


@pytest.mark.parametrize("length", [0, 1, 2, 4])
def test_a_log_of_any_length_is_drawn(length: int, tmp_path: Path) -> None:
    plot_training_curves(LOG[:length], tmp_path / "c.png", "x")
    assert is_png(tmp_path / "c.png")


@pytest.mark.parametrize("title", ["$", "a$_$b", "$$", "100 %", "\\frac", "ü"])
def test_titles_are_not_parsed_as_math(title: str, tmp_path: Path) -> None:
    plot_training_curves(LOG, tmp_path / "c.png", title)
    assert is_png(tmp_path / "c.png")


def test_images_are_reproducible(tmp_path: Path) -> None:
    for name in "ab":
        plot_training_curves(LOG, tmp_path / f"{name}.png", "x")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
