"""A real browser, and a page that complains of everything."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needed = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@contextmanager
def started() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def _is(harmless: str, message: str) -> bool:
    return bool(harmless) and harmless in message


@contextmanager
def watched(browser: Browser, url: str, *, harmless: str = "", **context: object) -> Iterator[Page]:
    """A page at this address. At its end nothing has failed, been refused by its policy, or come from elsewhere."""
    opened = browser.new_context(**context)  # type: ignore[arg-type]
    page = opened.new_page()
    wrong: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" and not _is(harmless, m.text) else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    yield page
    assert not wrong, f"nothing fails, and the policy refuses nothing: {wrong}"
    assert all(each.startswith((url, "data:", "blob:")) for each in asked), "nothing comes from elsewhere"
    opened.close()
