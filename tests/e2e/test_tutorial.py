"""The tutorial, typed as it stands there: each command on the sandbox, and each output like the one that it shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.shell import Shell
from tests.support.commands.transcripts import Typed, transcript, unlike
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
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
