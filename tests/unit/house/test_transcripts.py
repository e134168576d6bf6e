"""How outputs are compared with what pages show: what may differ, and what may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands.pictures import text_of
from tests.support.commands.transcripts import Typed, plain, transcript, unlike

DOCS = Path(__file__).parents[3] / "docs"
PAGE = """\
```console
$ anabranch status
hub → paris   running   401 rec/s   lag 2 records, 0 s
```

```sh
anabranch replicate &
kill %1
```
"""


def test_commands_are_taken_in_their_order() -> None:
    assert transcript(PAGE) == [
        Typed("anabranch status", ("hub → paris   running   401 rec/s   lag 2 records, 0 s",)),
        Typed("anabranch replicate &"),
        Typed("kill %1"),
    ]


@pytest.mark.parametrize(
    ("line", "name"), [("anabranch plan", "terminal-plan"), ("anabranch status", "terminal-status")]
)
def test_pictures_show_what_the_tutorial_does(line: str, name: str) -> None:
    """They are made by `make pictures`; a command that prints something else needs new ones."""
    shown = next(one for one in transcript((DOCS / "tutorial.md").read_text(encoding="utf-8")) if one.line == line)
    drawn = text_of((DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8"))
    # The terminal of the picture is narrower, and breaks lines between words.
    words = plain(" ".join(drawn.split()))
    assert [one for one in shown.printed if one != "..." and plain(one) not in words] == []


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("running 401 rec/s 0.1 MB/s", "running    1,401 rec/s   12.1 MB/s"),
        ("p99 42 s", "p99 46 ms"),
        ("since 2026-11-29 19:14:17 UTC, applied by root@vm", "since 2027-01-02 03:04:05 UTC, applied by me@host.x"),
        ("digest 1393601cd3e63dc3 is", "digest 83cd3e972dc28307 is"),
        ("hub 127.0.0.1:29816", "hub   127.0.0.1:1"),
        ("edit /tmp/try/anabranch.yaml as", "edit /var/x/y/anabranch.yaml as"),
        ("a\n...\nz", "a\nb\nc\nz"),
        ("a\n...", "a"),
        ("...\nz", "z"),
    ],
)
def test_what_is_of_the_moment_may_differ(expected: str, printed: str) -> None:
    assert unlike(tuple(expected.splitlines()), printed) == ""


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("running 401 rec/s", "paused 401 rec/s"),
        ("hub.orders 3", "hub.users 3"),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("a\n...\nz", "a\nb"),
        ("a\n...\nz", "a\nz\nb"),
        ("east-1", "east-2"),
    ],
)
def test_nothing_else_may(expected: str, printed: str) -> None:
    assert unlike(tuple(expected.splitlines()), printed)
