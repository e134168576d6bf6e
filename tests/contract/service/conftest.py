"""A browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    binary = shutil.which("chromium")
    if binary is None:
        pytest.skip("no chromium on PATH: it is in the Debian package of that name")
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(
            executable_path=binary, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield one
        one.close()
