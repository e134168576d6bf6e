"""docs/security.md: each claim in its table names tests, and each of them is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "security.md"
TEST = re.compile(r"(tests/(?:\w+/)+\w+\.py)((?:::\w+)+)")


def rows() -> dict[str, str]:
    """Return what holds each claim of the table."""
    table = PAGE.read_text(encoding="utf-8").partition("## What is claimed, and what holds it")[2]
    cells = (line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| "))
    named = {claim.strip(): held for claim, held in cells}
    return {claim: held for claim, held in named.items() if claim != "claim" and not claim.startswith("**")}


@cache
def known_in(path: str) -> frozenset[str]:
    """Return the tests of a file: `test_name`, or `Class::test_name`."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {
            f"{prefix}{one.name}" for one in inner if isinstance(one, ast.FunctionDef) and one.name[:5] == "test_"
        }
    return frozenset(found)


def test_the_table_is_read() -> None:
    assert len(rows()) >= 25
    assert "test_the_table_is_read" in known_in("tests/unit/house/test_security_page.py")


@pytest.mark.parametrize(("claim", "held"), rows().items(), ids=lambda value: value[:40])
def test_what_holds_a_claim_is_there(claim: str, held: str) -> None:
    named = TEST.findall(held)
    assert named, claim
    assert [f"{path}{name}" for path, name in named if name.removeprefix("::") not in known_in(path)] == []
    # Nothing else stands there, such as a test whose path is misspelt.
    assert TEST.sub("", held).strip("`, ") in ("", *("`, `" * count for count in range(9)))


def test_every_test_that_the_page_names_is_there() -> None:
    named = TEST.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) >= len(rows())
    assert [name for path, name in named if name.removeprefix("::") not in known_in(path)] == []


def test_links_of_the_page_lead_somewhere() -> None:
    for link, heading in re.findall(r"\]\((?!http)([^)#]*)(?:#([\w-]+))?\)", PAGE.read_text(encoding="utf-8")):
        target = PAGE.parent / link if link else PAGE
        assert target.exists(), link
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        known = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}
        assert not heading or heading in known, heading
