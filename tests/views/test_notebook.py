"""Captured attention in a notebook: the page in a frame, inserted into another page as notebooks do it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, FrameLocator, Page

from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import Axis, CapturedAttention
from regard.loading import predictor_from_bundle
from regard.views.notebook import AttentionView, render_frame
from tests.browser import checked_page, needs_chromium
from tests.media import audio_bytes, image_bytes, media_bundle
from tests.views.samples import random_capture
from tests.views.test_html_page import capture_with_markup

# What Chromium says of a frame that may run scripts and nothing else.
HARMLESS = "about:srcdoc"


@pytest.fixture(scope="module")
def captures() -> dict[str, CapturedAttention]:
    """Captures of a text, an image and a recording."""
    image_model: Any = predictor_from_bundle(media_bundle("images"))
    speech_model: Any = predictor_from_bundle(media_bundle("speech"))
    return {
        "text": random_capture(6),
        "image": image_model.attend(image_bytes(), "a red circle", attribution=True),
        "recording": speech_model.attend(audio_bytes(), "one two", attribution=True),
    }


@contextmanager
def open_notebook(
    browser: Browser, folder: Path, captured: CapturedAttention, width: int = 1200
) -> Iterator[tuple[Page, FrameLocator]]:
    """The page of a notebook, and the frame in it."""
    path = folder / "notebook.html"
    path.write_text(
        "<!doctype html><meta charset=utf-8><title>notebook</title><style>body { margin: 0 } .output { overflow: auto }"
        f"</style><div class=output>{AttentionView.from_captured(captured)._repr_html_()}</div>",
        "utf-8",
    )
    with checked_page(browser, path.as_uri(), harmless=HARMLESS, viewport={"width": width, "height": 1000}) as page:
        yield page, page.frame_locator("iframe")


def visible(page: Page, frame: FrameLocator, selector: str) -> bool:
    """Whether an element is visible without scrolling the frame: above the status line."""
    found, line = frame.locator(selector).first.bounding_box(), frame.locator("#status").bounding_box()
    assert found is not None
    assert line is not None
    return found["height"] > 0 and found["y"] + found["height"] <= line["y"]


@needs_chromium
@pytest.mark.parametrize("width", [1200, 850])
def test_an_image_fits_below_its_words(
    browser: Browser, captures: dict[str, CapturedAttention], tmp_path: Path, width: int
) -> None:
    with open_notebook(browser, tmp_path, captures["image"], width) as (page, frame):
        frame.locator("canvas.image").wait_for()
        words = frame.locator("button.word")
        assert words.all_text_contents() == ["a", "red", "circle"]
        assert visible(page, frame, "canvas.image")
        assert visible(page, frame, "button.word")

        def pixels() -> str:
            return str(frame.locator("canvas.image").evaluate("canvas => canvas.toDataURL()"))

        frame.locator("#layer").select_option("attribution")
        first = pixels()
        words.nth(2).click()
        assert "current" in (words.nth(2).get_attribute("class") or "")
        assert pixels() != first
        frame.locator("#layer").select_option("best")
        attended = pixels()
        frame.locator("#layer").select_option("attribution")
        assert pixels() != attended


@needs_chromium
def test_a_recording_can_be_played(browser: Browser, captures: dict[str, CapturedAttention], tmp_path: Path) -> None:
    with open_notebook(browser, tmp_path, captures["recording"]) as (page, frame):
        frame.locator("canvas.spectrogram").wait_for()
        assert visible(page, frame, "audio")
        assert visible(page, frame, "button.word")
        seconds = frame.locator("audio").evaluate(
            """audio => new Promise((resolve, reject) => {
                audio.addEventListener('timeupdate', () => audio.currentTime > 0 && resolve(audio.duration));
                audio.muted = true;
                audio.play().catch(reject);
            })"""
        )
        source_media = captures["recording"].source_media
        assert source_media is not None
        assert abs(seconds - source_media.seconds) < 0.15


def capture_of_length(count: int) -> CapturedAttention:
    """Attention of so many words, and the end token, over five positions."""
    special = (*(False,) * count, True)
    target = Axis((*(f"▁w{number}" for number in range(count)), "</s>"), special)
    source = Axis(tuple(f"▁source{number}" for number in range(5)), (False,) * 5)
    weights = np.full((1, count + 1, 5), 0.2, np.float32)
    return CapturedAttention(
        source, target, target, {"cross": [weights]}, alignment_weights=weights[0], alignment_head=AlignmentHead(0)
    )


@needs_chromium
def test_the_frame_is_as_high_as_the_matrix_needs(browser: Browser, tmp_path: Path) -> None:
    heights = []
    for count in (1, 12, 300):
        with open_notebook(browser, tmp_path, capture_of_length(count)) as (page, frame):
            frame.locator("canvas.matrix").wait_for()
            assert visible(page, frame, "canvas.matrix") or count == 300
            heights.append(page.evaluate("document.querySelector('iframe').clientHeight"))
    assert heights == sorted(set(heights)), "more words have more room"
    assert heights[0] >= 480, "the other views need some, too"
    assert heights[-1] <= 800, "the notebook is still seen around it"


@needs_chromium
def test_every_view_opens_and_can_be_saved(
    browser: Browser, captures: dict[str, CapturedAttention], tmp_path: Path
) -> None:
    with open_notebook(browser, tmp_path, captures["text"]) as (page, frame):
        for view in ("arcs", "heads", "steps", "table", "matrix"):
            frame.locator(f"[data-view={view}]").click()
            assert frame.locator("[aria-selected=true]").get_attribute("data-view") == view
            assert frame.locator(".body > *").count() >= 1
        for name in ("png", "svg", "json"):
            with page.expect_download() as download:
                frame.locator(f"#{name}").click()
            assert download.value.suggested_filename == f"attention.{name}"


@needs_chromium
def test_the_frame_cannot_reach_the_notebook(browser: Browser, tmp_path: Path) -> None:
    with open_notebook(browser, tmp_path, capture_with_markup()) as (page, frame):
        page.on("dialog", lambda dialog: pytest.fail(f"a token ran: {dialog.message}"))
        frame.locator("[data-view=table]").click()
        assert "�evil" in frame.locator(".numbers th").all_text_contents()
        assert page.locator("script").count() == 0
        assert (
            page.frames[1].evaluate("(() => { try { return parent.document.title } catch { return 'no' } })()") == "no"
        )


class Text(HTMLParser):
    """The text of a page without its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_text_representation_is_one_line(captures: dict[str, CapturedAttention]) -> None:
    """A notebook stores it beside the page, and shows it if the notebook is not trusted."""
    for captured in (*captures.values(), capture_with_markup(), capture_with_markup().merge_words()):
        line = repr(captured)
        assert "\n" not in line
        assert len(line) < 250
        assert unescape(Text(render_frame("name", captured)).text).startswith(line)
    assert repr(captures["image"]).startswith(
        "<CapturedAttention 'a red circle' over 64 cells; layers × heads: cross 1 × 1; grad"
    )
    assert len(repr(captures["recording"].source_media)) < 50
    assert "gradient" not in repr(replace(captures["recording"], attribution={}))


def test_results_show_their_attention() -> None:
    speech_model: Any = predictor_from_bundle(media_bundle("speech"))
    result = speech_model.translate(audio_bytes(), attention=True)
    assert result._repr_html_() == result.attention._repr_html_()
    assert np.array_equal(result.attention.weights["cross"][0], speech_model.attend(audio_bytes()).weights["cross"][0])
    assert result.attention.source_media.audio.startswith(b"RIFF"), "it can be played"
    assert speech_model.translate(audio_bytes())._repr_html_() is None
