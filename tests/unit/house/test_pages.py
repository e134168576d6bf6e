"""What pages for users name is there: links lead to pages and headings, commands and their options exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import command_line

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "reconciler").rglob("README.md"))
    if path.name != "CHANGELOG.md"
)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
CODE = re.compile(r"`(anabranch [^`]+)`")
COMMAND = re.compile(r"^(?:\$ |[A-Z_]+=\S+ |\.venv/bin/)*anabranch .*$", re.MULTILINE)
# What ends a command in a shell.
ENDS = {"|", ">", ">>", "2>", "&&", "||", ";", "&", "#"}


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def headings(path: Path) -> frozenset[str]:
    """Return the anchors of a page, as GitHub makes them of headings."""
    found: set[str] = set()
    for line in FENCE.sub("", path.read_text(encoding="utf-8")).splitlines():
        if line.startswith("#"):
            words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
            found.add(words if words not in found else f"{words}-1")
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return frozenset(found)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_pages_and_headings(name: str) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", text_of(name))):
        file, _, anchor = link.partition("#")
        path = ((ROOT / name).parent / file).resolve() if file else ROOT / name
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in headings(path)):
            broken.append(link)
    assert broken == []


@cache
def top() -> Any:
    return command_line()


def options_of(command: Any) -> set[str]:
    return {word for one in command.params for word in (*one.opts, *one.secondary_opts) if word.startswith("-")}


def commands_in(name: str) -> Iterator[list[str]]:
    """Yield the words of each command of a page, up to what ends it in a shell."""
    text = text_of(name)
    lines = [line for fence in FENCE.findall(text) for line in COMMAND.findall(fence.replace("\\\n", " "))]
    for line in (*lines, *CODE.findall(FENCE.sub("", text).replace("\n", " "))):
        words = shlex.split(line[line.index("anabranch") :], comments=False)[1:]
        yield words[: next((at for at, word in enumerate(words) if word in ENDS), len(words))]


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_their_options_exist(name: str) -> None:
    unknown = []
    for words in commands_in(name):
        command, options = top(), options_of(top()) | {"--help"}
        for at, word in enumerate(words):
            if word.startswith("-") and len(word) > 1:
                # One dash alone is standard input, and digits are numbers.
                if word.partition("=")[0] not in options and not word[1:2].isdigit():
                    unknown.append(" ".join(words))
            elif word in (inner := getattr(command, "commands", {})):
                command = inner[word]
                options |= options_of(command)
            elif inner and word not in ("…", "..."):
                unknown.append(" ".join(words[: at + 1]))
                break
    assert unknown == []


def test_enough_is_looked_at() -> None:
    """Patterns that match nothing would find nothing wrong."""
    assert sum(len(list(commands_in(name))) for name in PAGES) > 150
    assert sum(len(LINK.findall(text_of(name))) for name in PAGES) > 400
