"""The page of `anabranch serve` in a real browser, as tests open and inspect it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

MILLISECONDS = 300_000


@contextmanager
def launched() -> Iterator[Browser]:
    """Run a browser; the test is skipped where there is none."""
    binary = shutil.which("chromium")
    if binary is None:
        pytest.skip("no chromium on PATH: it is in the Debian package of that name")
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(
            executable_path=binary, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield one
        one.close()


@contextmanager
def opened(browser: Browser, url: str, faults: list[str], **options: Any) -> Iterator[Page]:
    """Open the page; what it logs as an error, and what it asks of other hosts, is in `faults`."""
    context = browser.new_context(**options)
    context.set_default_timeout(MILLISECONDS)
    expect.set_options(timeout=MILLISECONDS)
    page = context.new_page()
    page.on("console", lambda one: faults.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda one: faults.append(str(one)))
    page.on("dialog", lambda one: faults.append(one.message))
    host = urlsplit(url).netloc
    page.on("request", lambda one: faults.append(one.url) if urlsplit(one.url).netloc not in (host, "") else None)
    page.goto(url)
    yield page
    context.close()


def assert_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
