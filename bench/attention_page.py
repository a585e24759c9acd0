"""The page of attention over a long input: how large it is, how soon it opens, how smoothly it pans.

    python -m bench.attention_page [LENGTH]      512 places, 6 layers, 8 heads, three kinds; in Chromium

Needs Playwright and a Chromium (see CONTRIBUTING.md). Weights are drawn at random, sharp and wide heads alike.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from bench.measure import Claim, report
from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import Axis, CapturedAttention, Kind, Weights
from regard.views.html_page import write_page

LAYERS, HEADS = 6, 8
PANS = """async () => {
  const box = document.querySelector('canvas.matrix').parentElement, durations = [];
  for (let step = 0; step < 120; step += 1) {
    const start = performance.now();
    box.scrollTop = step * 30; box.scrollLeft = step * 30;
    await new Promise(requestAnimationFrame); // the page draws in the same frame, after this
    await new Promise((resolve) => setTimeout(resolve));
    durations.push(performance.now() - start);
  }
  return durations;
}"""


def random_capture(length: int) -> CapturedAttention:
    generator = np.random.default_rng(1)

    def layers(*, causal: bool = False) -> list[Weights]:
        weights_by_layer = []
        for _ in range(LAYERS):
            raw = generator.gamma(0.05 + 0.4 * generator.random((HEADS, 1, 1)), size=(HEADS, length, length)) + 1e-9
            raw = np.tril(raw) if causal else raw
            weights_by_layer.append((raw / raw.sum(-1, keepdims=True)).astype(np.float32))
        return weights_by_layer

    tokens = tuple(f"▁word{number}" for number in range(length - 1))
    axis = Axis((*tokens, "</s>"), (*[False] * (length - 1), True))
    target_axis = Axis(("<s>", *tokens), (True, *[False] * (length - 1)))
    weights: dict[Kind, list[Weights]] = {"cross": layers(), "encoder": layers(), "decoder": layers(causal=True)}
    alignment_head = AlignmentHead(2, 1)
    return CapturedAttention(
        axis,
        axis,
        target_axis,
        weights,
        alignment_weights=alignment_head.select(weights["cross"]),
        alignment_head=alignment_head,
    )


def main() -> None:
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "long.html"
        write_page([("random", random_capture(length))], path)
        size = path.stat().st_size / 1e6
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        load_seconds = []
        for _ in range(3):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("canvas.matrix[aria-label]")
            load_seconds.append(time.perf_counter() - start)
        frames = sorted(page.evaluate(PANS))
        start = time.perf_counter()
        page.click("[data-view=heads]")
        page.wait_for_selector(".head canvas")
        heads = time.perf_counter() - start
        browser.close()
    typical, slow = frames[len(frames) // 2], frames[int(0.95 * len(frames))]
    print(f"{length} × {length}, {LAYERS} layers × {HEADS} heads, three kinds: {size:.1f} MB")
    print(
        f"opened after {', '.join(f'{each:.2f}' for each in load_seconds)} s; all heads of a kind after {heads:.2f} s"
    )
    print(f"a step of panning takes {typical:.1f} ms, 95 of 100 at most {slow:.1f} ms")
    report(
        [
            Claim("the page's size", "15 MB", size / 15, 1.0, at_most=True),
            Claim("opening it", "3 s", sorted(load_seconds)[1] / 3, 1.0, at_most=True),
            Claim("panning, 95 of 100 steps", "50 ms", slow / 50, 1.0, at_most=True),
        ]
    )


if __name__ == "__main__":
    main()
