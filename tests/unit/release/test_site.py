"""The documentation as a site: built without a warning, every page but single decisions in its navigation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from release import site

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def pages(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values():
                yield from pages(inner if isinstance(inner, list) else [inner])


def test_each_page_is_in_the_navigation_once() -> None:
    nav = list(pages(tomllib.loads((ROOT / site.CONFIG).read_text())["project"]["nav"]))
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(nav) == sorted(name for name in there if not re.match(r"decisions/\d", name))


@pytest.mark.parametrize(
    ("link", "kept"),
    [
        ("[a](limits.md#offsets)", "[a](limits.md#offsets)"),
        ("[a](../README.md)", "[a](../README.md)"),
        ("[a](../../ci/install.sh)", "a"),
        ("[a](https://example.com)", "[a](https://example.com)"),
        ("![a](../../x.svg)", "![a](../../x.svg)"),
        ("```\n[a](../../x)\n```", "```\n[a](../../x)\n```"),
    ],
)
def test_links_that_lead_out_become_text(link: str, kept: str) -> None:
    assert site.within(link, "reference/page.md") == kept


class Links(HTMLParser):
    """Collects what a page loads and leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.led_to: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.led_to.append(given.get("href", ""))
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(given["href"])
        elif tag in ("script", "img") and "src" in given:
            self.loaded.append(given["src"])


@pytest.mark.slow
def test_it_is_built_with_working_links_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site.make(tmp_path / "built")
    built = tmp_path / "built" / "site"
    made = sorted(built.rglob("*.html"))
    assert len(made) > 80
    broken, foreign = [], []
    for page in made:
        links = Links()
        links.feed(page.read_text(encoding="utf-8"))
        for link in (*links.loaded, *links.led_to):
            path = link.partition("#")[0].partition("?")[0]
            if re.match(r"[a-z]+:|//", link):
                foreign += [link] * (link in links.loaded)
            elif path and not (page.parent / path).exists() and page.name != "404.html":
                broken.append((page.name, link))
    assert (broken, foreign) == ([], [])
