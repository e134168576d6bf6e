"""Plain English, measured: prose that speaks of code as of people, room by room. The numbers here may only fall."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# Words that say of code what people do, and pronouns for persons where no person is meant.
PERSONAL = re.compile(
    r"\b(who|whom|whoever|nobody|nobody's|somebody|somebody's|someone|anybody|anyone|everybody|everybody's|everyone"
    r"|tell|tells|told|telling|say|says|said|saying|hear|hears|heard|speak|speaks|spoke|spoken"
    r"|want|wants|wanted|wishes|knows|asks|believes|thinks|sees|looks|minds|pretends|promises)\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
# Code in prose, and names of Kafka's settings in messages.
CODE = re.compile(r"`[^`]*`")
SETTING = re.compile(r"\b\w+(?:\.\w+){2,}\b")

# How many personal words there may be in 1,000 words of docstrings and comments. Below 3 is the aim everywhere.
MOST_IN_PROSE: dict[str, float] = {
    "checkpoints": 0.5,
    "cli": 0.5,
    "client": 0.0,
    "convert": 0.0,
    "declare": 0.5,
    "demo": 0.0,
    "embedded": 0.5,
    "failover": 0.5,
    "launcher": 0.0,
    "deploy": 0.0,
    "metrics": 0.5,
    "model": 0.5,
    "observe": 1.0,
    "operate": 0.5,
    "plan": 1.0,
    "provision": 0.5,
    "records": 0.0,
    "replicator": 0.5,
    "report": 0.5,
    "service": 0.5,
    "starting": 0.0,
    "state": 0.5,
    "stream": 0.0,
    "verify": 1.0,
    "wire": 1.3,
}


@cache
def texts(room: str) -> tuple[str, str]:
    """Return the prose and the messages of a room's files."""
    prose: list[str] = []
    messages: list[str] = []
    path = ROOT / "reconciler" / room
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
        source = file.read_text(encoding="utf-8")
        documented = set()
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0] if node.body else None
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    documented.add(id(first.value))
                    prose.append(str(first.value.value))
        messages += [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
            if " " in node.value
        ]
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        prose += [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
    return CODE.sub("", "\n".join(prose)), SETTING.sub("", "\n".join(messages))


def rooms() -> list[str]:
    """Return the folders and single files below `reconciler/`."""
    found = {path.stem for path in (ROOT / "reconciler").iterdir() if path.suffix == ".py" or path.is_dir()}
    return sorted(room for room in found if not room.startswith("_"))


def personal(text: str) -> Counter[str]:
    return Counter(found.lower() for found in PERSONAL.findall(text))


def rate(text: str) -> float:
    """Return personal words in 1,000 words."""
    words = len(WORD.findall(text))
    return 1_000 * personal(text).total() / words if words else 0.0


def test_every_room_has_its_numbers() -> None:
    assert sorted(MOST_IN_PROSE) == rooms()


@pytest.mark.parametrize("room", rooms())
def test_prose_speaks_of_code_as_of_code(room: str) -> None:
    prose, _ = texts(room)
    assert rate(prose) <= MOST_IN_PROSE[room], personal(prose)


@pytest.mark.parametrize("room", rooms())
def test_messages_speak_of_things(room: str) -> None:
    _, messages = texts(room)
    assert not personal(messages), personal(messages)


FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# How many personal words there may be in 1,000 words of any document.
MOST_IN_A_DOCUMENT = 3.0


def documents() -> list[str]:
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    found += [path for folder in ("reference", "migrate", "deploy") for path in (ROOT / "docs" / folder).glob("*.md")]
    found += [*ROOT.glob("*/README.md"), *(ROOT / "reconciler").rglob("README.md")]
    # What was written of earlier releases stays as it was.
    return sorted(path.relative_to(ROOT).as_posix() for path in found if path.name != "CHANGELOG.md")


@pytest.mark.parametrize("name", documents())
def test_documents_speak_of_code_as_of_code(name: str) -> None:
    prose = CODE.sub("", FENCE.sub("", (ROOT / name).read_text(encoding="utf-8")))
    assert rate(prose) <= MOST_IN_A_DOCUMENT, personal(prose)
