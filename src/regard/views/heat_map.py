"""Panels of weights as one self-contained page (no script, nothing loaded from anywhere) or as one picture."""

from html import escape
from pathlib import Path

from regard.attention.catalog import AXES
from regard.errors import RegardError
from regard.views.gallery import Panel

CELL = 26
LABELS = 52
MARGIN = 18  # the last column's label leans over the edge

STYLE = """
:root { color-scheme: light dark; --ink: #1f5fbf; --minus: #c2502e; --line: #0002; --text: #1b1f24; --soft: #5b6470;
  --page: #fbfbfa; --card: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #7db1ff; --minus: #ff9d7a; --line: #fff2; --text: #e8eaed;
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
.look { font-size: .85rem; margin: .1rem 0 .4rem; }
svg { display: block; width: 100%; height: auto; max-width: 20rem; } text { fill: var(--text); font-size: 11px; }
.cell { stroke: var(--line); stroke-width: 1; fill: var(--ink); } .minus { fill: var(--minus); }
.key { display: inline-block; width: .9em; height: .9em; vertical-align: -.1em; border: 1px solid var(--line); }
"""


def write_html(panels: list[Panel], path: Path) -> None:
    """A page that works offline, in light and dark."""
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
<p>One small sentence through every mechanism. Each row looks at the columns; the darker a square, the more weight.
Point at a square for its number.</p>
<p class=stages>score(q, k) → restrict (mask, extent) → normalize → sum(weights · v)</p>
<p><span class=key style="background:var(--ink)"></span> weight &ensp;
<span class=key style="background:var(--minus)"></span> negative weight &ensp;
<span class=key></span> exactly zero &ensp; no square: may not be looked at</p>
{"".join(sections)}
</html>
"""
    path.write_text(body, encoding="utf-8")


def _card(panel: Panel) -> str:
    width, height = LABELS + CELL * len(panel.columns) + MARGIN, LABELS + CELL * len(panel.rows)
    parts = []
    for x, word in enumerate(panel.columns):
        at = LABELS + CELL * x + CELL / 2
        parts.append(f'<text transform="translate({at + 4} {LABELS - 6}) rotate(-60)">{escape(word)}</text>')
    for y, word in enumerate(panel.rows):
        middle = LABELS + CELL * y + CELL / 2 + 4
        parts.append(f'<text x="{LABELS - 6}" y="{middle}" text-anchor="end">{escape(word)}</text>')
        for x, weight in enumerate(panel.weights[y]):
            if panel.allowed[y][x]:
                sign = " minus" if weight < 0 else ""
                says = escape(f"{word} → {panel.columns[x]}: {weight:.3f}")
                parts.append(
                    f'<rect class="cell{sign}" x="{LABELS + CELL * x}" y="{LABELS + CELL * y}" width="{CELL - 2}" '
                    f'height="{CELL - 2}" fill-opacity="{min(1.0, abs(weight)):.3f}"><title>{says}</title></rect>'
                )
    label = escape(f"{panel.title}: weights of {len(panel.rows)} words on {len(panel.columns)} words", quote=True)
    return (
        f"<figure><figcaption><b>{escape(panel.title)}</b><div class=formula>{escape(panel.formula)}</div>"
        f"<div class=look>{escape(panel.look_for)}</div></figcaption>"
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}">{"".join(parts)}</svg></figure>'
    )


def write_png(panels: list[Panel], path: Path) -> None:
    """The same as one picture, a row of panels for each axis."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as missing:
        raise RegardError('pictures need matplotlib; run: pip install "regard[pictures]"') from missing
    mpl.use("Agg")
    import numpy as np
    from matplotlib import pyplot as plt

    by_axis = {axis: [panel for panel in panels if panel.axis == axis] for axis in AXES}
    by_axis = {axis: found for axis, found in by_axis.items() if found}
    columns = max(len(found) for found in by_axis.values())
    figure, grid = plt.subplots(
        len(by_axis), columns, figsize=(2.5 * columns, 3.1 * len(by_axis)), squeeze=False, layout="constrained"
    )
    for row, (axis, found) in zip(grid, by_axis.items(), strict=True):
        for place, frame in enumerate(row):
            if place >= len(found):
                frame.axis("off")
                continue
            panel = found[place]
            matrix: np.ma.MaskedArray = np.ma.array(panel.weights, mask=~np.array(panel.allowed))
            frame.set_facecolor("#dcdcdc")
            signed = bool((matrix < 0).any())
            frame.imshow(matrix, cmap="RdBu" if signed else "Blues", vmin=-1 if signed else 0, vmax=1)
            frame.set_xticks(range(len(panel.columns)), panel.columns, rotation=60, fontsize=7)
            frame.set_yticks(range(len(panel.rows)), panel.rows, fontsize=7)
            frame.tick_params(length=0)
            heading = f"{axis}\n" if place == 0 else "\n"
            frame.set_title(f"{heading}{panel.title}", fontsize=9, loc="left")
            frame.set_xlabel(panel.look_for, fontsize=7)
    figure.suptitle(
        "One sentence through every mechanism: rows look at columns, gray may not be looked at", fontsize=11
    )
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
