"""READMEs of rooms are short and name files that exist; decisions have a date, a status and a line in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST_LINES = 60
MAP_LINES = 120
DECISIONS = ROOT / "docs" / "decisions"
# Status, and both dates.
HEAD = re.compile(
    r"# (\d{3})\. .+\n\nStatus: (accepted|withdrawn|superseded by \d{3})"
    r" · decided (20\d\d-\d\d-\d\d) · last changed (20\d\d-\d\d-\d\d)\n\n"
)

READMES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "reconciler").rglob("README.md"))


def known() -> set[str]:
    """Return the names of all modules and folders of the product, and the ends of their paths."""
    found: set[str] = set()
    for path in (*(ROOT / "reconciler").rglob("*"), *(ROOT / "stacks").rglob("*")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found |= {"/".join(parts[start:]) for start in range(len(parts))}
    return found


def test_every_room_has_a_readme() -> None:
    rooms = {path.parent.name for path in (ROOT / "reconciler").glob("*/__init__.py")}
    assert {room for room in rooms if not (ROOT / "reconciler" / room / "README.md").exists()} == set()


def test_the_map_is_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= MAP_LINES


@pytest.mark.parametrize("name", READMES)
def test_a_readme_is_short_and_names_files_that_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {word.strip("/").removesuffix(".py") for row in rows for word in re.findall(r"`([\w/.]+)`", row)}
    room = name.removesuffix("/README.md")
    assert {word for word in named if word not in known() and not (ROOT / room / word).exists()} == set()


@pytest.mark.parametrize("name", [name for name in READMES if (ROOT / name).with_name("__init__.py").exists()])
def test_a_readme_names_every_module_of_its_room(name: str) -> None:
    """A room that is read by its README shall not hide a file; commands are found by their own names."""
    folder, text = (ROOT / name).parent, (ROOT / name).read_text(encoding="utf-8")
    inner = [(ROOT / other).parent for other in READMES if other != name and other.startswith(f"{name[:-9]}")]
    modules = [
        path
        for path in folder.rglob("*.py")
        if not path.name.startswith("_") and not any(path.is_relative_to(room) for room in inner)
    ]
    assert modules or inner
    assert folder.name == "cli" or [path for path in modules if not re.search(rf"\b{path.stem}\b", text)] == []


@pytest.mark.parametrize("path", sorted(DECISIONS.glob("[0-9]*.md")), ids=lambda path: path.stem[:3])
def test_a_decision_has_dates_a_status_and_a_line_in_the_index(path: Path) -> None:
    head = HEAD.match(path.read_text(encoding="utf-8"))
    assert head is not None
    number, status, decided, changed = head.groups()
    assert path.name.startswith(f"{number}-")
    assert decided <= changed
    (line,) = [line for line in index() if f"({path.name})" in line]
    assert line.startswith(f"| {number} |")
    assert line.endswith(f"| {decided} | {changed} | {status} |")


def test_the_index_names_each_decision_once() -> None:
    links = re.findall(r"\((\d{3}-[\w-]+\.md)\)", "\n".join(index()))
    assert links == [path.name for path in sorted(DECISIONS.glob("[0-9]*.md"))]


def index() -> list[str]:
    return (DECISIONS / "README.md").read_text(encoding="utf-8").splitlines()
