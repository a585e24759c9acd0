"""Chromium, and a page that fails the test at any error or request to another host."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
expect.set_options(timeout=60_000)  # a page is as slow as the machine is busy; no test waits for what must not appear
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@contextmanager
def launch_chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def _is_harmless(harmless: str, message: str) -> bool:
    return bool(harmless) and harmless in message


@contextmanager
def checked_page(browser: Browser, url: str, *, harmless: str = "", **context: object) -> Iterator[Page]:
    """A page at this URL. Asserts at the end that there were no errors, no CSP violations, no requests elsewhere."""
    browser_context = browser.new_context(**context)  # type: ignore[arg-type]
    page = browser_context.new_page()
    errors: list[str] = []
    requested_urls: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console", lambda m: errors.append(m.text) if m.type == "error" and not _is_harmless(harmless, m.text) else None
    )
    page.on("request", lambda request: requested_urls.append(request.url))
    page.goto(url)
    yield page
    assert not errors, f"nothing fails, and the policy refuses nothing: {errors}"
    assert all(each.startswith((url, "data:", "blob:")) for each in requested_urls), "nothing comes from elsewhere"
    browser_context.close()
