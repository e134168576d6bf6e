"""Lines of a log: one for each event, with time and level; flows when something has changed, and once a minute."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.cli import common
from reconciler.cli.log import FORMAT_VARIABLE, FlowLog, begin_logging, end_logging, opened
from reconciler.cli.main import main
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.report.status.live import Screen
from reconciler.report.text.line import Line
from tests.support.commands.terminal import Drawn, screen_of

pytestmark = pytest.mark.slow

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
FLOW = Flow("east-west", "east", "west", Selection((".*",)))
ONE = PartitionStatus("orders", 0, "east.orders", PartitionState.RUNNING, 5, 9)
PARKED = replace(ONE, state=PartitionState.PARKED, reason=Reason("AB211", "exists with other records"))
DECLARED = """\
version: 1
name: both
clusters: {east: {bootstrap: ["127.0.0.1:9"]}, west: {bootstrap: ["127.0.0.1:9"]}}
flows: [{name: east-west, from: east, to: west}]
"""


def word(*partitions: PartitionStatus) -> list[TaskStatus]:
    return [
        TaskStatus("east-west", "east", "west", "run", 0, 1, time.time(), False, None, 5, 50, 2.0, 20.0, partitions)
    ]


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    said = capsys.readouterr().err.splitlines()
    assert all(re.match(f"{STAMP} ", line) for line in said), said
    return [line.partition(" ")[2] for line in said]


def test_each_event_is_one_line_with_its_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    opened("text")
    common.say("nothing\nto do")
    problem = Problem("AB310", "cluster west (w:1)", "does not answer", "start it")
    common.print_problems([problem])
    common.print_problems([problem], severity="warning")
    common.print_log(["a line\tof a log"])
    assert lines(capsys) == [
        "INFO nothing\\nto do",
        "ERROR cluster west (w:1): does not answer [AB310] → start it",
        "WARNING cluster west (w:1): does not answer [AB310] → start it",
        "INFO a line  of a log",
    ]


def test_json_has_one_object_in_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    FlowLog(opened("json"), [FLOW]).show(word(ONE, PARKED))
    common.print_problems([Problem("AB310", "cluster west (w:1)", "does not\nanswer", "start it")])
    flow, partition, problem = map(json.loads, capsys.readouterr().err.splitlines())
    assert re.fullmatch(STAMP, flow.pop("time"))
    assert flow == {
        "level": "WARNING",
        "flow": "east-west",
        "message": "degraded 2 rec/s 20 B/s lag 4 records parked 1",
        "state": "degraded",
        "recordsPerSecond": 2.0,
        "bytesPerSecond": 20.0,
        "records": 5,
        "lag": 4,
        "lagSeconds": None,
        "p99Ms": None,
        "parked": 1,
        "paused": 0,
    }
    assert (partition["level"], partition["code"], partition["remote"]) == ("WARNING", "AB211", "east.orders")
    assert (problem["level"], problem["code"], problem["remedy"]) == ("ERROR", "AB310", "start it")


def test_a_flow_is_told_when_something_changes_and_once_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    told = FlowLog(opened("text"), [FLOW])
    told.show(word(ONE))
    told.show(word(replace(ONE, position=7, metrics=Metrics(records=2))))
    assert lines(capsys) == ["INFO east-west running 2 rec/s 20 B/s lag 4 records"]
    told.show(word(PARKED))
    told.show(word(PARKED))
    assert lines(capsys) == [
        "WARNING east-west degraded 2 rec/s 20 B/s lag 4 records parked 1",
        "WARNING east-west east.orders/0 parked: exists with other records [AB211]",
    ]
    told.show(word(ONE))
    now[0] += 59
    told.show(word(ONE))
    assert len(lines(capsys)) == 1
    now[0] += 1
    told.show(word(ONE))
    assert len(lines(capsys)) == 1
    told.show()
    assert lines(capsys) == []
    told.show(anew=True)
    assert len(lines(capsys)) == 1


def test_a_crowd_of_parked_partitions_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    FlowLog(opened("text"), [FLOW]).show(word(*[replace(PARKED, partition=number) for number in range(1500)]))
    said = lines(capsys)
    assert len(said) == 22
    assert said[-1].startswith("INFO flow east-west: and 1,480 more partitions")


def test_on_a_terminal_flows_stay_in_place_and_other_words_stand_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", drawn := Drawn())
    with FlowLog(opened("text"), [FLOW]) as told:
        told.show(word(ONE))
        common.say("a topic was made")
        told.show(word(PARKED))
    shown = screen_of(drawn.getvalue().replace("\n", "\r\n"))
    made = next(number for number, line in enumerate(shown) if "INFO a topic was made" in line)
    assert [line.split()[:4] for line in shown[made + 1 :] if line] == [
        ["east", "→", "west", "degraded"],
        ["east.orders/0", "parked", "exists", "with"],
    ]
    assert not any("running" in line for line in shown)


@pytest.mark.parametrize("options", [["--log-format", "json"], []])
@pytest.mark.parametrize("command", ["replicate", "reconcile"])
def test_what_ends_a_command_is_in_its_log(
    command: str,
    options: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It is no terminal that it writes to.
    monkeypatch.delenv(FORMAT_VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "both.yaml"
    file.write_text(DECLARED)
    assert main([command, str(file), *options]) == 6
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {(one["level"], one.get("code")) for one in said if one["level"] == "ERROR"} == {("ERROR", "AB310")}
    # The next command in the same process has none.
    assert main(["validate", str(tmp_path / "none.yaml")]) == 1
    assert not capsys.readouterr().err.startswith("{")


def test_a_log_has_a_format_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replicate", "a.yaml", "--log-format", "xml"]) == 2
    assert "'xml' is not one of" in capsys.readouterr().err


def test_a_problem_stands_above_what_is_watched_and_old_frames_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    # Both are the same terminal.
    monkeypatch.setattr(sys, "stderr", drawn := Drawn())
    monkeypatch.setattr(sys, "stdout", drawn)
    with Screen(common.stdout_console()) as screen:
        for number in range(3):
            screen.show([Line(f"frame {number}"), Line("second line")])
            if number == 1:
                common.print_problems([Problem("AB310", "cluster west", "does not answer", "start it")])
    assert [line for line in screen_of(drawn.getvalue().replace("\n", "\r\n")) if line] == [
        "cluster west: does not answer [AB310]",
        "    → start it",
        "frame 2",
        "second line",
    ]
    assert common.stderr_console() is not common.stderr_console()


def test_a_problem_goes_to_stderr_where_that_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", drawn := Drawn())
    with Screen(common.stdout_console()) as screen:
        screen.show([Line("frame")])
        common.print_problems([Problem("AB310", "cluster west", "does not answer", "start it")])
    assert "AB310" not in drawn.getvalue()
    assert capsys.readouterr().err == "cluster west: does not answer [AB310]\n    → start it\n"


def test_who_waits_in_vain_says_so_and_ends_with_6(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "both.yaml"
    file.write_text(DECLARED)
    assert main(["replicate", str(file), "--wait=0.1s"]) == 6
    said = [line for line in lines(capsys) if "does not answer" in line]
    waited, ended = said[:2], said[2:]
    assert all(line.startswith("WARNING cluster ") and "; waiting for it" in line for line in waited), said
    assert [line.split()[0] for line in ended] == ["ERROR", "ERROR"]


def test_a_signal_switches_debug_lines_of_a_running_command_on_and_off(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("reconciler.state.lock")

    def heard() -> list[str]:
        os.kill(os.getpid(), signal.SIGUSR1)
        logger.debug("a line")
        return [line.removeprefix("INFO ").removeprefix("DEBUG ") for line in lines(capsys)]

    # Tests of other files may have left a level there.
    logging.getLogger("reconciler").setLevel(logging.NOTSET)
    begin_logging(None)
    try:
        opened("text")
        assert heard() == ["debug lines of all rooms from now on", "state.lock: a line"]
        assert heard() == ["debug lines as the command began with"]
        begin_logging("state")
        assert heard() == ["debug lines of all rooms from now on", "state.lock: a line"]
        assert heard() == ["debug lines as the command began with", "state.lock: a line"]
    finally:
        end_logging()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
