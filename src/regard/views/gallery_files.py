"""The gallery as one self-contained page (no script, no network) or as one image."""

from html import escape
from pathlib import Path

from regard.attention.catalog import AXES
from regard.errors import RegardError
from regard.views.gallery import GalleryPanel

CELL_SIZE = 26
LABEL_SIZE = 52
MARGIN = 18  # the last column's label is slanted and extends beyond it

STYLE = """
:root { color-scheme: light dark; --ink: #1f5fbf; --negative: #c2502e; --line: #0002; --text: #1b1f24; --soft: #5b6470;
  --page: #fbfbfa; --card: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #7db1ff; --negative: #ff9d7a; --line: #fff2; --text: #e8eaed;
  --soft: #a2abb6; --page: #14171a; --card: #1c2024; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 80rem; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.5rem; } h2 { margin: 2rem 0 .6rem; font-size: 1.1rem; } p { margin: .4rem 0; }
.stages { font-family: ui-monospace, monospace; color: var(--soft); overflow-x: auto; white-space: nowrap; }
.grid { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(17.5rem, 1fr)); }
figure { margin: 0; padding: .8rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
figcaption b { display: block; }
.formula { font-family: ui-monospace, monospace; font-size: .78rem; color: var(--soft); }
.caption { font-size: .85rem; margin: .1rem 0 .4rem; }
svg { display: block; width: 100%; height: auto; max-width: 20rem; } text { fill: var(--text); font-size: 11px; }
.cell { stroke: var(--line); stroke-width: 1; fill: var(--ink); } .negative { fill: var(--negative); }
.legend { display: inline-block; width: .9em; height: .9em; vertical-align: -.1em; border: 1px solid var(--line); }
"""


def write_html(panels: list[GalleryPanel], path: Path) -> None:
    """Write a page that works offline, in a light or dark theme."""
    sections = []
    for axis, question in ((axis.axis, axis.question) for axis in AXES.values()):
        cards = [_card(panel) for panel in panels if panel.axis == axis]
        if cards:
            sections.append(f"<h2>{escape(axis)}: {escape(question)}</h2>\n<div class=grid>{''.join(cards)}</div>")
    body = f"""<!doctype html>
<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<meta http-equiv=Content-Security-Policy content="default-src 'none'; style-src 'unsafe-inline'">
<title>The attention family</title><style>{STYLE}</style>
<h1>The attention family</h1>
<p>One small sentence through every mechanism. Each row attends to the columns; the darker a square, the more weight.
Point at a square for its number.</p>
<p class=stages>score(q, k) → restrict (mask, extent) → normalize → sum(weights · v)</p>
<p><span class=legend style="background:var(--ink)"></span> weight &ensp;
<span class=legend style="background:var(--negative)"></span> negative weight &ensp;
<span class=legend></span> exactly zero &ensp; no square: may not be attended to</p>
{"".join(sections)}
</html>
"""
    path.write_text(body, encoding="utf-8")


def _card(panel: GalleryPanel) -> str:
    width, height = LABEL_SIZE + CELL_SIZE * len(panel.columns) + MARGIN, LABEL_SIZE + CELL_SIZE * len(panel.rows)
    elements = []
    for x, word in enumerate(panel.columns):
        center = LABEL_SIZE + CELL_SIZE * x + CELL_SIZE / 2
        elements.append(f'<text transform="translate({center + 4} {LABEL_SIZE - 6}) rotate(-60)">{escape(word)}</text>')
    for y, word in enumerate(panel.rows):
        baseline = LABEL_SIZE + CELL_SIZE * y + CELL_SIZE / 2 + 4
        elements.append(f'<text x="{LABEL_SIZE - 6}" y="{baseline}" text-anchor="end">{escape(word)}</text>')
        for x, weight in enumerate(panel.weights[y]):
            if panel.allowed[y][x]:
                sign = " negative" if weight < 0 else ""
                tooltip = escape(f"{word} → {panel.columns[x]}: {weight:.3f}")
                left, top = LABEL_SIZE + CELL_SIZE * x, LABEL_SIZE + CELL_SIZE * y
                elements.append(
                    f'<rect class="cell{sign}" x="{left}" y="{top}" width="{CELL_SIZE - 2}" height="{CELL_SIZE - 2}" '
                    f'fill-opacity="{min(1.0, abs(weight)):.3f}"><title>{tooltip}</title></rect>'
                )
    label = escape(f"{panel.title}: weights of {len(panel.rows)} words on {len(panel.columns)} words", quote=True)
    return (
        f"<figure><figcaption><b>{escape(panel.title)}</b><div class=formula>{escape(panel.formula)}</div>"
        f"<div class=caption>{escape(panel.look_for)}</div></figcaption>"
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}">{"".join(elements)}</svg></figure>'
    )


def write_png(panels: list[GalleryPanel], path: Path) -> None:
    """Write an image with a row of panels for each axis."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise RegardError('pictures need matplotlib; run: pip install "regard[pictures]"') from error
    mpl.use("Agg")
    import numpy as np
    from matplotlib import pyplot as plt

    by_axis = {axis: [panel for panel in panels if panel.axis == axis] for axis in AXES}
    by_axis = {axis: row for axis, row in by_axis.items() if row}
    columns = max(len(row) for row in by_axis.values())
    figure, grid = plt.subplots(
        len(by_axis), columns, figsize=(2.5 * columns, 3.1 * len(by_axis)), squeeze=False, layout="constrained"
    )
    for axes_row, (axis, row) in zip(grid, by_axis.items(), strict=True):
        for column, axes in enumerate(axes_row):
            if column >= len(row):
                axes.axis("off")
                continue
            panel = row[column]
            matrix: np.ma.MaskedArray = np.ma.array(panel.weights, mask=~np.array(panel.allowed))
            axes.set_facecolor("#dcdcdc")
            signed = bool((matrix < 0).any())
            axes.imshow(matrix, cmap="RdBu" if signed else "Blues", vmin=-1 if signed else 0, vmax=1)
            axes.set_xticks(range(len(panel.columns)), panel.columns, rotation=60, fontsize=7)
            axes.set_yticks(range(len(panel.rows)), panel.rows, fontsize=7)
            axes.tick_params(length=0)
            heading = f"{axis}\n" if column == 0 else "\n"
            axes.set_title(f"{heading}{panel.title}", fontsize=9, loc="left")
            axes.set_xlabel(panel.look_for, fontsize=7)
    figure.suptitle(
        "One sentence through every mechanism: rows attend to columns, gray may not be attended to", fontsize=11
    )
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
