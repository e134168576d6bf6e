"""`--verbose`: debug lines of all rooms or of some, in the format of the log, and never a secret."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler import starting
from reconciler.cli.log import begin_logging, opened, set_levels
from reconciler.cli.main import main
from reconciler.cli.optional_values import with_general_first, with_values

pytestmark = pytest.mark.slow

PASSWORD = "correct-horse-battery"
SECURED = """\
version: 1
name: both
clusters:
  east:
    bootstrap: ["127.0.0.1:9"]
    security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: u, password: env:EAST_PASSWORD}
  west: {bootstrap: ["127.0.0.1:9"]}
flows: [{name: east-west, from: east, to: west}]
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["plan", "a.yaml"], ([], ["plan", "a.yaml"])),
        (["plan", "--verbose", "a.yaml"], (["--verbose=all"], ["plan", "a.yaml"])),
        (["plan", "a.yaml", "--verbose=state,wire.net"], (["--verbose=state,wire.net"], ["plan", "a.yaml"])),
        (["--verbose", "plan"], (["--verbose=all"], ["plan"])),
        (["plan", "--", "--verbose"], ([], ["plan", "--", "--verbose"])),
        (["plan", "--env", "prod", "--verbose"], (["--env", "prod", "--verbose=all"], ["plan"])),
        (["--env=prod", "plan"], (["--env=prod"], ["plan"])),
        (["plan", "--env"], (["--env"], ["plan"])),
    ],
)
def test_it_may_stand_anywhere(given: list[str], expected: tuple[list[str], list[str]]) -> None:
    assert with_general_first(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["pause", "--flow", "a->b"], ["pause", "--flow", "a-b"]),
        (["verify", "--flow=a → b"], ["verify", "--flow=a-b"]),
        (["describe", "flow", "a → b"], ["describe", "flow", "a-b"]),
        (["pause", "-f", "a-b", "x->y.yaml"], ["pause", "-f", "a-b", "x->y.yaml"]),
    ],
)
def test_a_flow_may_be_named_as_it_is_shown(given: list[str], expected: list[str]) -> None:
    assert with_values(given) == expected


def test_levels_are_those_of_the_named_rooms_and_are_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    begin_logging("state,wire.net")
    logging.getLogger("reconciler.state.lock").debug("taken")
    logging.getLogger("reconciler.wire.net.manager").debug("connected")
    logging.getLogger("reconciler.wire.requests").debug("left out")
    logging.getLogger("reconciler.observe").debug("left out")
    begin_logging(None)
    logging.getLogger("reconciler.state.lock").debug("left out")
    logging.getLogger("reconciler.state.lock").warning("old")
    lines = [line.partition(" ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["DEBUG state.lock: taken", "DEBUG wire.net.manager: connected", "WARNING state.lock: old"]


def test_a_log_of_json_has_debug_lines_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    begin_logging("all")
    opened("json")
    logging.getLogger("reconciler.state.lock").debug("taken after %d s", 1)
    line = json.loads(capsys.readouterr().err)
    assert line.pop("time")
    assert line == {"level": "DEBUG", "message": "state.lock: taken after 1 s", "logger": "reconciler.state.lock"}


def test_levels_that_change_meanwhile_leave_the_format(capsys: pytest.CaptureFixture[str]) -> None:
    begin_logging(None)
    opened("json")
    set_levels("state")
    logging.getLogger("reconciler.state.lock").debug("taken")
    assert json.loads(capsys.readouterr().err)["level"] == "DEBUG"


def test_tasks_have_the_levels_of_their_command() -> None:
    begin_logging("replicator")
    assert os.environ[starting.VERBOSE] == "replicator"
    begin_logging(None)
    assert starting.VERBOSE not in os.environ


def test_a_room_that_does_not_exist_is_a_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--verbose=replicators"]) == 2
    assert "no room replicators" in " ".join(capsys.readouterr().err.split())


def test_no_debug_line_holds_a_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EAST_PASSWORD", PASSWORD)
    file = tmp_path / "both.yaml"
    file.write_text(SECURED)
    main(["plan", str(file), "--verbose"])
    error = capsys.readouterr().err
    assert "AB3" in error
    assert PASSWORD not in error


def test_an_import_silences_no_logger() -> None:
    program = "import logging, reconciler.wire; print(logging.getLogger('kafka').level)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "0\n"
