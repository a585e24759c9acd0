"""The gallery: what it shows is true, and the page works in a real browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.attention import catalog
from regard.views.gallery import SOURCE, TARGET, Panel, panels
from regard.views.heat_map import write_html, write_png


@pytest.fixture(scope="module")
def drawn() -> list[Panel]:
    return panels()


def by_title(drawn: list[Panel], start: str) -> Panel:
    (panel,) = [panel for panel in drawn if panel.title.startswith(start)]
    return panel


def test_every_mechanism_is_there(drawn: list[Panel]) -> None:
    formulas = {panel.formula for panel in drawn}
    for entry in catalog.entries():
        if entry.axis != "image":
            assert entry.formula in formulas, entry.name


def test_it_is_the_same_every_time(drawn: list[Panel]) -> None:
    assert panels() == drawn


def test_mechanisms_can_be_told_apart(drawn: list[Panel]) -> None:
    """What each caption promises is in the numbers."""

    def zeros(panel: Panel) -> int:
        return sum(w == 0 for row in panel.weights for w in row)

    soft, sparse, entmax = (by_title(drawn, t) for t in ("softmax", "sparsemax", "entmax"))
    assert zeros(soft) == 0 < zeros(entmax) < zeros(sparse)
    for title in ("hard, drawn", "hard, arg-max"):
        assert all(sorted(row) == [0.0] * (len(SOURCE) - 1) + [1.0] for row in by_title(drawn, title).weights)
    assert by_title(drawn, "hard, drawn").weights != by_title(drawn, "hard, arg-max").weights
    assert any(w < 0 for row in by_title(drawn, "none").weights for w in row)
    assert any(sum(row) > 1.5 for row in by_title(drawn, "sigmoid").weights)
    assert all(sum(row) < 1 for row in by_title(drawn, "local-p").weights)
    causal = by_title(drawn, "causal")
    assert all(w == 0 for i, row in enumerate(causal.weights) for w in row[i + 1 :])
    assert all(len({round(row[0], 3) for row in panel.weights}) > 1 for panel in drawn), (
        "no two rows look the same everywhere"
    )
    for panel in drawn:
        assert len(panel.weights) == len(panel.rows) == len(panel.allowed)
        for weights, allowed in zip(panel.weights, panel.allowed, strict=True):
            assert all(w == 0 for w, seen in zip(weights, allowed, strict=True) if not seen)


def test_soft_scores_find_the_words(drawn: list[Panel]) -> None:
    meant = dict(zip(TARGET, ["she", "not", "did", "not", "read", "the", "old", "book"], strict=True))
    for name in ("dot", "scaled-dot", "cosine", "bilinear", "additive"):
        panel = next(p for p in drawn if p.title == name)
        found = {row: SOURCE[w.index(max(w))] for row, w in zip(panel.rows, panel.weights, strict=True)}
        assert found == meant


def test_words_are_escaped(tmp_path: Path) -> None:
    bad = '<img src=x onerror="alert(1)">'
    panel = Panel("score", bad, bad, bad, [bad], [bad], [[0.5]], [[True]])
    write_html([panel], tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert "<img" not in text
    assert "&lt;img" in text


def test_the_page_loads_nothing_from_anywhere(drawn: list[Panel], tmp_path: Path) -> None:
    write_html(drawn, tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|<script|@import|url\(", text)


def test_the_picture_is_a_picture(drawn: list[Panel], tmp_path: Path) -> None:
    write_png(drawn, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "sys.argv = ['regard', 'attention', 'gallery', '-o', 'x.png']\n"
        "from regard.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == 'regard: pictures need matplotlib; run: pip install "regard[pictures]"\n'


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium, which CI installs")
def test_a_real_browser_shows_every_panel(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regard", "attention", "gallery", "-o", "gallery.html", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    expected = json.loads(done.stdout)["panels"]
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    page = subprocess.run(
        [
            "chromium",
            *flags,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            (tmp_path / "gallery.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "HOME": str(tmp_path)},
        check=True,
    ).stdout
    assert page.count("<figure>") == len(expected)
    squares = sum(sum(map(sum, panel["allowed"])) for panel in expected)
    assert page.count("<rect") == squares
    for panel in expected:
        assert panel["title"].split(",")[0] in page
