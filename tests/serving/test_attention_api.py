"""Attention over HTTP and on the live attention page."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route, expect

import regard
from regard.serving import batcher as batcher_module
from regard.serving.batcher import Batcher, DeadlineExceeded, Overloaded
from regard.views.html_page import write_page
from regard.views.storage import from_record
from tests.browser import checked_page, needs_chromium
from tests.serving.conftest import Server
from tests.views.samples import assert_close, random_capture


def test_attention_equals_that_of_the_predictor(server: Server, runs: list[Path]) -> None:
    pair = {"text": "the cat sat", "target": "die Katze", "model": "en-de", "attribution": True}
    answer = server.request("/v1/attend", pair).json()
    expected = regard.load(runs[0]).attend("the cat sat", "die Katze", attribution=True)
    actual = from_record(answer["attention"])
    assert (actual.source, actual.target, actual.kinds) == (expected.source, expected.target, expected.kinds)
    for kind in expected.kinds:
        for layer, expected_layer in zip(actual.weights[kind], expected.weights[kind], strict=True):
            assert_close(layer, expected_layer, atol=2e-5)
    assert_close(actual.attribution["source"], expected.attribution["source"], atol=2e-5)
    translated = server.request("/v1/attend", {"text": "the cat sat", "model": "en-de", "top": 1}).json()
    assert translated["text"] == regard.load(runs[0]).translate("the cat sat").text


@pytest.mark.parametrize(
    ("pair", "status", "message"),
    [
        ({"text": "", "model": "en-de"}, 400, "the source is empty"),
        ({"text": "x", "model": "none"}, 400, "there is no model"),
        ({"text": "x", "target": "", "model": "en-de"}, 400, "the target has 0 subwords"),
        ({"text": "x", "target": "\udc00", "model": "en-de", "attribution": True}, 400, "half a character"),
        ({"text": "x \ud800", "model": "en-de"}, 400, "half a character"),
        ({"text": "cat " * 2000, "model": "en-de"}, 400, "subwords"),
        ({"text": "cat", "target": "cat " * 2000, "model": "en-de"}, 400, "subwords"),
        ({"text": "x" * 30_000, "model": "en-de"}, 413, "characters"),
        ({"text": "x", "model": "en-de", "more": 1}, 400, "more"),
        ({"text": ["x"], "model": "en-de"}, 400, "text"),
        ({"text": "x", "model": "en-de", "top": 0}, 400, "top"),
        ({"text": "x", "target": "a " * 70, "model": "en-de", "attribution": True}, 400, "at most 64 subwords"),
    ],
)
def test_invalid_requests_get_an_error_message(
    server: Server, pair: dict[str, object], status: int, message: str
) -> None:
    answer = server.request("/v1/attend", pair)
    assert answer.status == status
    assert message in answer.json()["error"]


def test_number_of_jobs_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher_module, "MAX_RUNNING_JOBS", 2)

    async def run_jobs() -> None:
        batcher = Batcher(None)  # type: ignore[arg-type]
        release = threading.Event()
        first = asyncio.create_task(batcher.run(lambda: release.wait(20), seconds=20))
        second = asyncio.create_task(batcher.run(lambda: 2, seconds=0.05))
        await asyncio.sleep(0.01)
        with pytest.raises(Overloaded):
            await batcher.run(lambda: 3, seconds=1)
        with pytest.raises(DeadlineExceeded):
            await second
        release.set()
        assert await first
        assert await batcher.run(lambda: 4, seconds=5) == 4
        with pytest.raises(ZeroDivisionError):
            await batcher.run(lambda: 1 // 0, seconds=5)
        assert batcher._running_jobs == 0
        await batcher.stop()

    asyncio.run(run_jobs())


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    with checked_page(browser, server.url, harmless="status of 400") as opened:
        opened.goto(f"{server.url}/see")
        opened.wait_for_selector("#live-model option", state="attached", timeout=60_000)
        yield opened


@needs_chromium
def test_attention_follows_the_source_and_the_edited_target(page: Page, runs: list[Path]) -> None:
    translator = regard.load(runs[0])
    page.fill("#live-source", "the cat sat")
    page.wait_for_selector(".panel canvas", timeout=60_000)
    assert page.input_value("#live-target") == translator.translate("the cat sat").text
    page.fill("#live-target", "die Katze")
    expect(page.locator("#live-status")).to_have_text("of your own words")
    assert not page.is_checked("#words"), "of two words the tokens are shown"
    page.check("#words")
    page.click("[data-view=table]")
    rows = page.locator(".numbers tr").evaluate_all(
        "rows => rows.slice(1).map(row => [...row.cells].slice(1).filter(c => !c.className).map(c => +c.textContent))"
    )
    captured = translator.attend("the cat sat", "die Katze").without_special_tokens().merge_words()
    assert_close(np.array(rows), captured.alignment_weights, atol=6e-4)
    page.click("#live-reset")
    expect(page.locator("#live-status")).to_have_text("of its own words")
    assert page.input_value("#live-target") == translator.translate("the cat sat").text
    page.fill("#live-source", "cat " * 2000)
    page.wait_for_selector("#live-status.error")
    assert "subwords" in page.locator("#live-status").text_content()


@needs_chromium
def test_live_page_and_saved_page_show_the_same(
    browser: Browser, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules served as files and bundled into one script: every view has the same elements and pixels."""
    with page.expect_response("**/v1/attend") as waiting:
        page.fill("#live-source", "the cat sat on the mat")
    record = waiting.value.json()["attention"]
    page.wait_for_selector(".panel canvas")
    monkeypatch.setattr("regard.views.html_page.pack_capture", lambda captured, name: record)
    write_page([("", random_capture(1))], tmp_path / "saved.html")

    def views(shown: Page) -> list[tuple[str, str, str | None]]:
        found = []
        for view in ("matrix", "arcs", "heads", "steps", "beam", "table"):
            shown.click(f"[data-view={view}]")
            pixels = shown.locator("canvas").evaluate_all("all => all.map((canvas) => canvas.toDataURL()).join()")
            found.append((shown.inner_html("#panels"), pixels, shown.text_content("#status")))
        return found

    with checked_page(browser, (tmp_path / "saved.html").as_uri()) as saved:
        assert views(saved) == views(page)


def reject_first_requests(page: Page, path: str, status: int, content: dict[str, object]) -> None:
    """The first two requests get this response, later ones that of the server."""
    statuses = iter([status, status])

    def respond(route: Route) -> None:
        if next(statuses, None) is None:
            route.continue_()
        else:
            route.fulfill(status=status, json=content)

    page.route(path, respond)


@needs_chromium
def test_text_typed_before_the_models_are_loaded_is_shown_later(browser: Browser, server: Server) -> None:
    with checked_page(browser, server.url, harmless="status of 503") as opened:
        reject_first_requests(opened, "**/ready", 503, {"ready": False})
        opened.goto(f"{server.url}/see")
        opened.fill("#live-source", "the cat sat")
        expect(opened.locator("#live-status")).to_have_text("loading the models …")
        expect(opened.locator("#live-status")).to_have_text("of its own words", timeout=60_000)
        assert opened.locator("[data-view]").count() == 6


@needs_chromium
def test_requests_are_repeated_while_the_service_is_overloaded(browser: Browser, server: Server) -> None:
    with checked_page(browser, server.url, harmless="status of 429") as opened:
        reject_first_requests(opened, "**/v1/attend", 429, {"error": "too many requests are waiting; try again later."})
        opened.goto(f"{server.url}/see")
        opened.fill("#live-source", "the cat sat")
        expect(opened.locator("#live-status")).to_have_text("many ask at once: trying again …", timeout=60_000)
        expect(opened.locator("#live-status")).to_have_text("of its own words", timeout=60_000)


@needs_chromium
def test_typed_text_is_never_interpreted_as_html(page: Page) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a token ran: {dialog.message}"))
    texts = (("<b>", True), ("\u202e&", True), ("<img src=x onerror=alert(1)>", False), ("x" * 5000, False))
    for text, is_accepted in texts:
        page.fill("#live-source", text)
        page.fill("#live-target", text)
        state = page.locator("#live-status")
        if not is_accepted:
            expect(state).to_have_class("error", timeout=60_000)  # longer than the limit of this small model
            assert page.locator(".panel").count() == 0, "attention of the previous text is removed"
            continue
        expect(state).to_have_text("of your own words", timeout=60_000)
        for view in ("matrix", "arcs", "heads", "steps", "table"):
            page.click(f"[data-view={view}]")
        assert page.locator("img, main script, main b").count() == 0
