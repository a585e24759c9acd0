"""Screenshots for docs/seeing.md and the README, of trained runs in Chromium.

    python docs/screenshots.py RUN "TEXT" [CHINESE-RUN "TEXT"]

Chinese needs a font that has it. Look at the results.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import regard
from regard.inference.attention_outputs import beam_hypotheses
from regard.views.html_page import write_page

FOLDER = Path(__file__).parent
VIEWS = {  # name: view, theme, width, height
    "see": ("matrix", "light", 900, 640),
    "see-arcs": ("arcs", "dark", 900, 520),
    "see-heads": ("heads", "light", 900, 640),
    "see-beam": ("beam", "dark", 1100, 520),
    "see-phone": ("steps", "light", 390, 720),
}


def save_view(browser: Browser, page: Path, name: str, view: str, theme: str, width: int, height: int) -> None:
    size = {"width": width, "height": height}
    tab = browser.new_page(viewport=size, color_scheme=theme)  # type: ignore[arg-type]
    tab.goto(page.as_uri())
    tab.click(f"[data-view={view}]")
    if view == "steps":
        tab.focus(".steps input")
        for _ in range(5):
            tab.keyboard.press("ArrowRight")
    if view == "matrix":
        tab.focus("canvas.matrix")
        for key in ("ArrowDown", *["ArrowDown", "ArrowRight"] * 5):
            tab.keyboard.press(key)
    tab.wait_for_timeout(300)
    tab.screenshot(path=FOLDER / f"{name}.png")


def save_live_page(browser: Browser, run: str, text: str) -> None:
    """The live page of a server, with one word of the translation repeated."""
    command = [sys.executable, "-m", "regard", "serve", run, "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        address = next(match[0] for line in server.stdout if (match := re.search(r"http://[\d.]+:\d+", line)))
        tab = browser.new_page(viewport={"width": 900, "height": 800}, color_scheme="dark")
        tab.goto(f"{address}/see")
        tab.fill("#live-source", text)
        tab.wait_for_selector(".panel canvas")
        words = tab.input_value("#live-target").split()
        tab.fill("#live-target", " ".join([*words[:-1], *words[-2:]]))
        tab.wait_for_timeout(2000)
        tab.screenshot(path=FOLDER / "see-live.png")
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    if len(sys.argv) not in (3, 5):
        raise SystemExit(__doc__)
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for run, text in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
            translator = regard.load(run)
            result = translator.translate(text, beam=6, nbest=6)
            captured = replace(translator.attend(text, result), beam=beam_hypotheses(translator.pipeline, result))
            page = Path(folder) / "page.html"
            write_page([(Path(run).name, captured)], page)
            views = VIEWS if run == sys.argv[1] else {"see-zh": ("matrix", "light", 700, 640)}
            for name, options in views.items():
                save_view(browser, page, name, *options)
        save_live_page(browser, *sys.argv[1:3])
        browser.close()


if __name__ == "__main__":
    main()
