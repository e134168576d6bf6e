"""The tutorial, typed as it stands there: each command on the sandbox, and each output like the one that it shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.commands.browsing import launched, opened
from tests.support.commands.pictures import PICTURES, drawn_by, picture
from tests.support.commands.serving import ready, serving
from tests.support.commands.shell import Shell
from tests.support.commands.transcripts import Typed, transcript, unlike
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
PICTURED = {"anabranch plan": "terminal-plan", "anabranch status": "terminal-status"}
COLUMNS = 100
# Until the charts of the page have something to show.
CHARTS_MILLISECONDS = 30_000
# What they show comes about while flows run, and typing them again changes nothing.
READING = re.compile(r"anabranch (status|topics|groups|describe|verify|failover .*--dry-run)\b")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.typed("anabranch sandbox down")


def test_each_command_prints_what_the_page_shows(shell: Shell) -> None:
    typed = transcript(PAGE)
    assert len(typed) > 15
    running: subprocess.Popen[bytes] | None = None
    to_picture = dict(PICTURED) if PICTURES else {}
    try:
        for one in typed:
            if one.line.startswith("anabranch replicate"):
                command = ["bash", "-c", f"exec {one.line.removesuffix('&')}"]
                running = subprocess.Popen(command, cwd=shell.folder, env=shell.env)
            elif one.line == "kill %1":
                assert running is not None
                running.terminate()
                assert running.wait() == 0
            elif one.printed:
                printed_as_shown(shell, one)
                # The first of each: later ones show what was paused and changed.
                if name := to_picture.pop(one.line, ""):
                    keep_pictures(shell, one.line, name)
            else:
                shell.typed(one.line)
    finally:
        if running is not None and running.poll() is None:
            running.terminate()
            running.wait()


def printed_as_shown(shell: Shell, one: Typed) -> None:
    if READING.match(one.line):
        eventually(one.line, lambda: shell.output(one.line), lambda said: not unlike(one.printed, said))
    else:
        said = shell.output(one.line)
        assert not unlike(one.printed, said), (one.line, unlike(one.printed, said), said)


def keep_pictures(shell: Shell, line: str, name: str) -> None:
    """Keep what a command draws on a terminal, and beside `status` the page, all and one flow of it."""
    drawn = drawn_by(shell.folder, line.split()[1:], COLUMNS, **(shell.env | {"COLUMNS": str(COLUMNS)}))
    (Path(PICTURES) / f"{name}.svg").write_text(picture(drawn, line, COLUMNS))
    if line != "anabranch status":
        return
    with serving(shell.folder / "anabranch.yaml") as service, launched() as browser:
        ready(service)
        for scheme, place in (("light", ""), ("dark", "#/flow/hub-paris")):
            options = {"color_scheme": scheme, "viewport": {"width": 1100, "height": 860}}
            with opened(browser, f"{service.url}/{place}", [], **options) as page:
                expect(page.locator("main")).to_contain_text("running")
                page.wait_for_timeout(CHARTS_MILLISECONDS)
                page.screenshot(path=Path(PICTURES) / f"page-{scheme}.png")
