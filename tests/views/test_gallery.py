"""The gallery: its weights match its captions, and the page works in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.attention import catalog
from regard.views.gallery import SOURCE, TARGET, GalleryPanel, gallery_panels
from regard.views.gallery_files import write_html, write_png


@pytest.fixture(scope="module")
def panels() -> list[GalleryPanel]:
    return gallery_panels()


def by_title(panels: list[GalleryPanel], start: str) -> GalleryPanel:
    (panel,) = [panel for panel in panels if panel.title.startswith(start)]
    return panel


def test_every_mechanism_has_a_panel(panels: list[GalleryPanel]) -> None:
    formulas = {panel.formula for panel in panels}
    for entry in catalog.entries():
        if entry.axis != "channel-attention":
            assert entry.formula in formulas, entry.name


def test_the_gallery_is_reproducible(panels: list[GalleryPanel]) -> None:
    assert gallery_panels() == panels


def test_weights_match_the_captions(panels: list[GalleryPanel]) -> None:
    def zeros(panel: GalleryPanel) -> int:
        return sum(w == 0 for row in panel.weights for w in row)

    soft, sparse, entmax = (by_title(panels, t) for t in ("softmax", "sparsemax", "entmax"))
    assert zeros(soft) == 0 < zeros(entmax) < zeros(sparse)
    for title in ("hard, drawn", "hard, arg-max"):
        assert all(sorted(row) == [0.0] * (len(SOURCE) - 1) + [1.0] for row in by_title(panels, title).weights)
    assert by_title(panels, "hard, drawn").weights != by_title(panels, "hard, arg-max").weights
    assert any(w < 0 for row in by_title(panels, "none").weights for w in row)
    assert any(sum(row) > 1.5 for row in by_title(panels, "sigmoid").weights)
    assert all(sum(row) < 1 for row in by_title(panels, "local-p").weights)
    causal = by_title(panels, "causal")
    assert all(w == 0 for i, row in enumerate(causal.weights) for w in row[i + 1 :])
    assert all(len({round(row[0], 3) for row in panel.weights}) > 1 for panel in panels), (
        "no two rows look the same everywhere"
    )
    for panel in panels:
        assert len(panel.weights) == len(panel.rows) == len(panel.allowed)
        for weights, allowed in zip(panel.weights, panel.allowed, strict=True):
            assert all(w == 0 for w, visible in zip(weights, allowed, strict=True) if not visible)


def test_soft_scores_align_the_translations(panels: list[GalleryPanel]) -> None:
    expected = dict(zip(TARGET, ["she", "not", "did", "not", "read", "the", "old", "book"], strict=True))
    for name in ("dot", "scaled-dot", "cosine", "bilinear", "additive"):
        panel = next(p for p in panels if p.title == name)
        found = {row: SOURCE[w.index(max(w))] for row, w in zip(panel.rows, panel.weights, strict=True)}
        assert found == expected


def test_labels_are_escaped(tmp_path: Path) -> None:
    markup = '<img src=x onerror="alert(1)">'
    panel = GalleryPanel("score", markup, markup, markup, [markup], [markup], [[0.5]], [[True]])
    write_html([panel], tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert "<img" not in text
    assert "&lt;img" in text


def test_the_page_needs_no_network(panels: list[GalleryPanel], tmp_path: Path) -> None:
    write_html(panels, tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|<script|@import|url\(", text)


def test_the_image_is_a_png(panels: list[GalleryPanel], tmp_path: Path) -> None:
    write_png(panels, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_error_names_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "sys.argv = ['regard', 'attention', 'gallery', '-o', 'x.png']\n"
        "from regard.cli import main; main()"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert process.returncode == 2
    assert process.stderr == 'regard: pictures need matplotlib; run: pip install "regard[pictures]"\n'


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium, which CI installs")
def test_a_browser_shows_every_panel(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "regard", "attention", "gallery", "-o", "gallery.html", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    expected = json.loads(process.stdout)["panels"]
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
