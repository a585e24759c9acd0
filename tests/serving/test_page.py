"""The page in a real browser: typed, linked, copied, filed, with the keyboard alone and without the network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import regard
from tests.browser import needed, watched
from tests.serving.conftest import Server

SAID = "#target[data-text]:not([data-text=''])"
pytestmark = needed


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    # What a test asks for and is refused is told in the console, too; what the policy refuses is not among it.
    refused, size = "responded with a status of 400", {"width": 1000, "height": 800}
    with watched(browser, server.url, harmless=refused, viewport=size) as opened:
        opened.wait_for_selector("#pair:not([disabled])", timeout=60_000)
        yield opened


def test_a_text_is_translated_when_typing_stops(page: Page, runs: list[Path]) -> None:
    page.fill("#source", "the cat sat\nthe dog ran")
    page.wait_for_selector("#target span")
    translator = regard.load(runs[0])
    said = [translator.translate(text).text for text in ("the cat sat", "the dog ran")]
    assert page.evaluate("document.getElementById('target').dataset.text") == "\n".join(said)
    assert page.locator("#others li").count() >= 1
    page.click("#clear")
    page.wait_for_selector("#target:empty", state="attached")


def test_words_are_linked_and_doubts_are_shown(page: Page) -> None:
    page.fill("#source", "the cat sat on the mat")
    page.wait_for_selector("#target span")
    page.hover("#target span >> nth=0")
    assert page.locator("#shown-source .lit").count() >= 1
    page.hover("h1")
    assert page.locator(".lit").count() == 0
    page.focus("#shown-source span >> nth=0")
    assert page.locator("#shown-source .lit").count() == 1
    assert page.locator(".doubt, .much-doubt").count() >= 1, "a model that learnt nothing is not sure"


def test_nothing_that_was_typed_becomes_markup(page: Page) -> None:
    page.evaluate("window.hacked = 0")
    page.fill("#source", "<img src=x onerror='window.hacked=1'> </script><script>window.hacked=1</script> the cat")
    page.wait_for_selector(SAID)
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") == 0
    assert page.locator("main img:not(#seen), main script").count() == 0


def test_everything_is_reached_with_the_keyboard(page: Page, runs: list[Path]) -> None:
    page.keyboard.type("the cat")
    page.wait_for_selector("#target span")
    before = page.evaluate("document.getElementById('target').dataset.text")
    page.keyboard.press("Alt+s")
    page.wait_for_selector(SAID)
    assert page.input_value("#pair") == "1"
    assert page.input_value("#source") == before, "texts change places, too"
    seen = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id"))
    assert {"pair", "swap", "source", "clear", "file", "copy"} <= seen


def test_words_are_one_stop_for_tab(page: Page) -> None:
    page.fill("#source", "the dog ran\na cat")
    expect(page.locator("#target span").nth(1)).to_be_visible()
    assert "\n" in (page.text_content("#shown-source") or ""), "its lines stay lines"
    page.focus("#clear")
    page.keyboard.press("Shift+Tab")
    where = "[...document.querySelectorAll('#shown-source span')].indexOf(document.activeElement)"
    assert page.evaluate(where) == 0
    for key, place in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("Home", 0), ("ArrowLeft", 0)]:
        page.keyboard.press(key)
        assert page.evaluate(where) == place
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "source"


def test_an_alternative_can_be_taken(page: Page) -> None:
    page.fill("#source", "the dog ran")
    other = page.locator("#others button").first
    expect(other).to_be_visible()
    before, wanted = page.text_content("#target"), other.text_content()
    assert before != wanted
    other.click()
    assert (page.text_content("#target"), other.text_content()) == (wanted, before)
    assert page.get_attribute("#target", "data-text") == wanted


def test_a_text_that_is_too_long_is_told_beside_it(page: Page) -> None:
    page.fill("#source", "the dog ran")
    expect(page.locator("#target span").first).to_be_visible()
    page.fill("#source", "the dog ran " * 2000)
    expect(page.locator("#count.bad")).to_contain_text("too long")
    expect(page.locator("#target")).to_be_empty()
    assert page.locator("#count").evaluate("box => box.getBoundingClientRect().bottom < innerHeight")


def test_a_file_goes_up_and_comes_back(page: Page, tmp_path: Path, runs: list[Path]) -> None:
    source = tmp_path / "lines.txt"
    source.write_text("the cat\na dog\n")
    page.set_input_files("#file", source)
    page.wait_for_selector("#download:not([hidden])", timeout=60_000)
    assert page.evaluate("document.getElementById('progress').value") == 2
    with page.expect_download() as waiting:
        page.click("#download")
    download = waiting.value
    assert download.suggested_filename == "lines.de.txt"
    translator = regard.load(runs[0])
    said = Path(download.path()).read_text().split("\n")
    assert said == [translator.translate("the cat").text, translator.translate("a dog").text, ""]
    bad = tmp_path / "bad.xlf"
    bad.write_text("<html/>")
    page.set_input_files("#file", bad)
    page.wait_for_selector("#filing-state.bad")
    assert "not XLIFF" in page.inner_text("#filing-state")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (360, "light"), (1300, "dark")])
def test_it_fits_a_phone_and_the_dark(browser: Browser, server: Server, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 740}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("#pair:not([disabled])", timeout=60_000)
    page.fill("#source", "the cat " * 30)
    page.wait_for_selector("#target span")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out"
    paper, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, colour[4:-1].split(","))) for colour in (paper, ink)]
    assert (brightness[0] < brightness[1]) == (scheme == "dark")
    context.close()


def test_the_api_is_explained_offline(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/docs")
    page.wait_for_selector("section")
    text = page.inner_text("main")
    assert "POST /v1/translate" in text
    assert "glossary" in text
