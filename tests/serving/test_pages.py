"""The translation page in Chromium: typing, linked words, files, keyboard, no network."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import regard
from tests.browser import checked_page, needs_chromium
from tests.serving.conftest import Server
from tests.views.modules import defined_globals

TRANSLATED = "#target[data-text]:not([data-text=''])"
pytestmark = needs_chromium


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    # The console reports rejected requests, which some tests make; violations of the policy still fail a test.
    harmless, size = "responded with a status of 400", {"width": 1000, "height": 800}
    with checked_page(browser, server.url, harmless=harmless, viewport=size) as opened:
        opened.wait_for_selector("#model:not([disabled])", timeout=60_000)
        yield opened


def test_text_is_translated_when_typing_stops(page: Page, runs: list[Path]) -> None:
    page.fill("#source", "the cat sat\nthe dog ran")
    page.wait_for_selector("#target span")
    translator = regard.load(runs[0])
    expected = [translator.translate(text).text for text in ("the cat sat", "the dog ran")]
    assert page.evaluate("document.getElementById('target').dataset.text") == "\n".join(expected)
    assert page.locator("#alternatives li").count() >= 1
    page.click("#clear")
    page.wait_for_selector("#target:empty", state="attached")


def test_words_are_linked_and_uncertain_words_marked(page: Page) -> None:
    page.fill("#source", "the cat sat on the mat")
    page.wait_for_selector("#target span")
    page.hover("#target span >> nth=0")
    assert page.locator("#aligned-source .highlighted").count() >= 1
    page.hover("h1")
    assert page.locator(".highlighted").count() == 0
    page.focus("#aligned-source span >> nth=0")
    assert page.locator("#aligned-source .highlighted").count() == 1
    assert page.locator(".uncertain, .very-uncertain").count() >= 1, "an untrained model is uncertain"


def test_typed_text_is_never_interpreted_as_html(page: Page) -> None:
    page.evaluate("window.hacked = 0")
    page.fill("#source", "<img src=x onerror='window.hacked=1'> </script><script>window.hacked=1</script> the cat")
    page.wait_for_selector(TRANSLATED)
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") == 0
    assert page.locator("main img:not(#source-image), main script").count() == 0


def test_all_controls_are_reachable_by_keyboard(page: Page, runs: list[Path]) -> None:
    page.keyboard.type("the cat")
    page.wait_for_selector("#target span")
    before = page.evaluate("document.getElementById('target').dataset.text")
    page.keyboard.press("Alt+s")
    page.wait_for_selector(TRANSLATED)
    assert page.input_value("#model") == "1"
    assert page.input_value("#source") == before, "the texts are swapped, too"
    focused = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        focused.add(page.evaluate("document.activeElement.id"))
    assert {"model", "swap", "source", "clear", "document-file", "copy"} <= focused


def test_words_are_a_single_tab_stop(page: Page) -> None:
    page.fill("#source", "the dog ran\na cat")
    expect(page.locator("#target span").nth(1)).to_be_visible()
    assert "\n" in (page.text_content("#aligned-source") or ""), "line breaks are kept"
    page.focus("#clear")
    page.keyboard.press("Shift+Tab")
    focused_index = "[...document.querySelectorAll('#aligned-source span')].indexOf(document.activeElement)"
    assert page.evaluate(focused_index) == 0
    for key, index in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("Home", 0), ("ArrowLeft", 0)]:
        page.keyboard.press(key)
        assert page.evaluate(focused_index) == index
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "source"


def test_alternative_can_be_selected(page: Page) -> None:
    page.fill("#source", "the dog ran")
    alternative = page.locator("#alternatives button").first
    expect(alternative).to_be_visible()
    before, selected = page.text_content("#target"), alternative.text_content()
    assert before != selected
    alternative.click()
    assert (page.text_content("#target"), alternative.text_content()) == (selected, before)
    assert page.get_attribute("#target", "data-text") == selected


def test_text_that_is_too_long_is_reported_below_it(page: Page) -> None:
    page.fill("#source", "the dog ran")
    expect(page.locator("#target span").first).to_be_visible()
    page.fill("#source", "the dog ran " * 2000)
    expect(page.locator("#character-count.error")).to_contain_text("too long")
    expect(page.locator("#target")).to_be_empty()
    assert page.locator("#character-count").evaluate("box => box.getBoundingClientRect().bottom < innerHeight")


def test_document_is_uploaded_and_its_translation_downloaded(page: Page, tmp_path: Path, runs: list[Path]) -> None:
    source = tmp_path / "lines.txt"
    source.write_text("the cat\na dog\n")
    page.set_input_files("#document-file", source)
    page.wait_for_selector("#download:not([hidden])", timeout=60_000)
    assert page.evaluate("document.getElementById('progress').value") == 2
    with page.expect_download() as waiting:
        page.click("#download")
    download = waiting.value
    assert download.suggested_filename == "lines.de.txt"
    translator = regard.load(runs[0])
    lines = Path(download.path()).read_text().split("\n")
    assert lines == [translator.translate("the cat").text, translator.translate("a dog").text, ""]
    invalid = tmp_path / "bad.xlf"
    invalid.write_text("<html/>")
    page.set_input_files("#document-file", invalid)
    page.wait_for_selector("#document-status.error")
    assert "not XLIFF" in page.inner_text("#document-status")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (360, "light"), (1300, "dark")])
def test_layout_fits_small_screens_and_follows_the_color_scheme(
    browser: Browser, server: Server, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 740}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("#model:not([disabled])", timeout=60_000)
    page.fill("#source", "the cat " * 30)
    page.wait_for_selector("#target span")
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "no horizontal overflow"
    paper, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, color[4:-1].split(","))) for color in (paper, ink)]
    assert (brightness[0] < brightness[1]) == (scheme == "dark")
    context.close()


def test_modules_define_no_globals(browser: Browser, server: Server) -> None:
    loaded = {"/": "#model option", "/see": "#live-model option", "/docs": "section"}
    blank = browser.new_page()
    blank.goto(f"{server.url}/health")
    for path, selector in loaded.items():
        with checked_page(browser, server.url) as page:
            page.goto(server.url + path)
            page.wait_for_selector(selector, state="attached", timeout=60_000)
            assert defined_globals(page) == defined_globals(blank), path
    blank.close()


def test_pages_load_modules_as_files_under_a_strict_policy(server: Server) -> None:
    for path in ("/", "/see", "/docs"):
        answer = server.request(path)
        assert "script-src 'self'; style-src 'self';" in answer.headers["content-security-policy"]
        scripts = re.findall(r"<script[^>]*>", answer.body.decode())
        assert len(scripts) == 1
        script = re.fullmatch(r'<script type="module" src="(/static/[^"]+)">', scripts[0])
        assert script is not None
        module = server.request(script[1])
        assert (module.status, module.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    for missing in (
        "/static/",
        "/static/serving/app.py",
        "/static/views/page/../page.py",
        "/static/views/page/attention.html",
    ):
        assert server.request(missing).status == 404


def test_api_documentation_page_needs_no_network(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/docs")
    page.wait_for_selector("section")
    text = page.inner_text("main")
    assert "POST /v1/translate" in text
    assert "glossary" in text


def test_options_of_the_schema_are_a_form(page: Page, server: Server, runs: list[Path]) -> None:
    service = server.request("/v1/models").json()
    page.click("#options summary")
    shown = page.eval_on_selector_all("#option-fields [name]", "controls => controls.map(control => control.name)")
    applicable = set(service["models"][0]["options"])
    assert set(shown) == applicable - {"scores", "alignment", "attention", "nbest", "to"}
    assert page.get_attribute("[name=beam]", "max") == str(service["limits"]["beam"])
    page.fill("#source", "the cat sat")
    page.wait_for_selector(TRANSLATED)
    output = page.evaluate("document.getElementById('target').dataset.text")
    forbidden = output.split()[0]
    page.fill("[name=forbidden]", forbidden)
    page.fill("[name=beam]", "3")
    expected = regard.load(runs[0]).translate("the cat sat", forbidden=[forbidden], beam=3).text
    target = page.locator("#target")
    expect(target).to_have_attribute("data-text", expected)
    page.fill("[name=beam]", "99")
    expect(page.locator("#status.error")).to_contain_text("beam")
    page.click("#reset-options")
    expect(target).to_have_attribute("data-text", output)
