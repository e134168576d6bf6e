"""What `pulumi` says, in our words: exit codes, locks, the last of its words, and events put together."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation
from pulumi.automation import EngineEvent, OpType
from pulumi.automation.errors import create_command_error

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Locked
from stacks.command import Command, check_interpreter, failure, holder_in, plain
from stacks.events import Events, Expected
from stacks.names import ACL_TYPE, TOPIC_TYPE
from tests.support.programs import write_program
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]

COMMAND = """\
#!{python}
import os, signal, sys, time
if sys.argv[1:] == ["version"]:
    print("v3.272.0")
    sys.exit()
heard = []
signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
open("{ready}", "w").close()
while not heard:
    time.sleep(0.01)
time.sleep(1)
open("{ready}.ended", "w").close()
print(len(heard), os.getsid(0) == os.getpid())
"""


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `pulumi` on PATH that waits for Ctrl-C, and says how often it heard it; the file is there when it listens."""
    path, ready = tmp_path / "pulumi", tmp_path / "ready"
    write_program(path, COMMAND.format(python=sys.executable, ready=ready))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return ready


def test_a_command_that_must_end_is_told_once(ready: Path, tmp_path: Path) -> None:
    command = Command()
    asked: list[bool] = []

    def must_end() -> bool:
        asked.append(ready.exists())
        if ready.exists():
            # The next event asks too.
            command.interrupt()
        return ready.exists()

    with command.heeding(must_end):
        assert command.run(["up"], str(tmp_path), {}).stdout == "1 True"
    assert asked.count(True) > 1


def test_whoever_leaves_waits_for_the_command(ready: Path, tmp_path: Path) -> None:
    command = Command()

    def leave() -> bool:
        if ready.exists():
            raise SystemExit(130)
        return False

    with pytest.raises(SystemExit), command.heeding(leave):
        command.run(["up"], str(tmp_path), {})
    ready.unlink()
    with command.heeding(ready.exists):
        assert command.run(["up"], str(tmp_path), {}).stdout == "1 True"


def test_pulumi_ends_with_whoever_started_it(ready: Path, tmp_path: Path) -> None:
    start = "import sys; from stacks.command import Command; Command().run(['up'], sys.argv[1], {})"
    with subprocess.Popen([sys.executable, "-c", start, str(tmp_path)], cwd=ROOT) as process:
        try:
            eventually("pulumi runs", ready.exists)
        finally:
            process.kill()
    eventually("it ended what was under way", ready.with_name("ready.ended").exists)


URN = "urn:pulumi:dc2::anabranch::anabranch:index:Flow$"
TOPIC = f"{URN}{TOPIC_TYPE}::west/east.orders"
ACL = f"{URN}{ACL_TYPE}::west/User:a::b|*|Read|Allow|Topic|east.orders|Literal"
STACK = "urn:pulumi:dc2::anabranch::pulumi:pulumi:Stack::anabranch-dc2"


def said(code: int, stderr: str = "", stdout: str = "", told: str = "") -> AnabranchError:
    result = automation.CommandResult(stdout, stderr, code)
    return failure(create_command_error(result), result, "dc2", told)


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (1, "failed"),
        (2, "does not accept its configuration or arguments"),
        (3, "is not logged in, or not allowed"),
        (4, "failed"),
        (5, "was stopped by a policy"),
        (7, "found other changes than were expected"),
        (8, "was cancelled"),
        (9, "took too long"),
        (255, "failed"),
    ],
)
def test_exit_codes_have_words(code: int, meaning: str) -> None:
    (problem,) = said(code, "warning: old\nerror: it said so\n").problems
    assert (problem.code, problem.where) == ("AB371", "Pulumi stack dc2")
    assert problem.message == f"pulumi {meaning} (exit code {code}): it said so"
    assert problem.remedy


@pytest.mark.parametrize(
    "stderr",
    [
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end",
        "error: [409] Conflict: Another update is currently in progress.",
    ],
)
def test_a_locked_stack(stderr: str) -> None:
    error = said(255, stderr)
    assert isinstance(error, Locked)
    assert (error.exit_code, error.problems[0].code) == (5, "AB503")
    assert error.problems[0].remedy.endswith("pulumi cancel --stack dc2 --cwd .")


def test_who_keeps_a_stack_locked_is_told() -> None:
    line = "  file:///x/dc2/a2ec.json: created by root@vm (pid 16720) at 2026-11-26T09:09:55Z"
    error = said(255, f"error: the stack is currently locked by 1 lock(s). Either wait\n{line}")
    expected = "another update of it is under way: begun 2026-11-26T09:09:55Z by root@vm, process 16720"
    assert error.problems[0].message == expected


@pytest.mark.parametrize(
    ("host", "is_alive", "is_dead"), [(None, True, False), (None, False, True), ("elsewhere", False, False)]
)
def test_only_who_ran_here_is_known_to_be_dead(host: str | None, is_alive: bool, is_dead: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    pid = os.getpid() if is_alive else ended.pid
    line = f"x: created by me@{host or socket.gethostname()} (pid {pid}) at now"
    holder = holder_in(automation.CommandResult("", line, 255))
    assert holder is not None
    assert holder.is_dead is is_dead


def test_a_kill_is_called_one() -> None:
    (problem,) = said(-9, "", "+ kafka:index:Topic west/east.orders creating (0s)").problems
    assert (problem.code, problem.message) == ("AB371", "pulumi was killed (SIGKILL)")


def test_an_interpreter_without_pip_is_told_before_pulumi_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    check_interpreter()
    monkeypatch.setattr("stacks.command.find_spec", lambda name: None)
    with pytest.raises(EnvironmentFault, match=r"has none — .* -m ensurepip .*\[AB370\]"):
        check_interpreter()


def test_what_events_said_is_better_than_the_end_of_the_output() -> None:
    assert said(4, "error: update failed", told="the source is gone").problems[0].message.endswith("the source is gone")
    assert said(4, "", "nothing but this").problems[0].message.endswith("nothing but this")
    assert said(4).problems[0].message.endswith("it said nothing")


def test_marks_for_colours_are_taken_out() -> None:
    assert plain("<{%fg 1%}>error:<{%reset%}> \x1b[31mno\n  more\x1b[0m ") == "error: no more"


def heard(*events: dict[str, Any]) -> tuple[Events, list[str]]:
    told: list[str] = []
    made = Events(told.append)
    for event in events:
        made.heard(EngineEvent.from_json(event))
    return made, told


def outputs(op: str, urn: str, planning: bool = False) -> dict[str, Any]:
    return {"resOutputsEvent": {"metadata": {"op": op, "urn": urn}, "planning": planning}}


def error(urn: str, message: str) -> dict[str, Any]:
    return {"diagnosticEvent": {"urn": urn, "message": message, "severity": "error"}}


def test_what_is_done_is_told_at_once() -> None:
    events, told = heard(
        outputs("create", TOPIC),
        outputs("delete", ACL),
        outputs("refresh", f"{TOPIC}-refreshed"),
        outputs("create", f"{TOPIC}-planned", planning=True),
        outputs("create", STACK),
    )
    names = ["west/east.orders", "west/User:a::b|*|Read|Allow|Topic|east.orders|Literal"]
    assert told == names
    assert events.done == set(names)
    assert events.failures == {}


def test_why_something_failed() -> None:
    failed = {"resOpFailedEvent": {"metadata": {"op": "create", "urn": TOPIC}, "status": 1, "steps": 1}}
    events, _ = heard(error(TOPIC, "1 error occurred:\n * no"), failed, error(STACK, "update failed"))
    assert events.failures == {"west/east.orders": "no"}
    assert events.said == "update failed"
    assert heard(failed)[0].failures == {"west/east.orders": "Pulumi did not say why"}
    assert heard(error(TOPIC, "it is protected"))[0].failures == {"west/east.orders": "it is protected"}


def test_an_error_is_told_once_and_without_frames() -> None:
    failed = {"resOpFailedEvent": {"metadata": {"op": "update", "urn": TOPIC}, "status": 1, "steps": 1}}
    nested = f"1 error occurred:\n\t* updating {TOPIC}: 1 error occurred:\n\t* couldn't find resource (21 retries)\n\n"
    bridge = "sdk-v2/provider2.go:572: sdk.helper_schema: couldn't find resource (21 retries): provider=kafka@3.13.3"
    events, _ = heard(error(TOPIC, bridge), error(TOPIC, nested), failed, error(STACK, "update failed"))
    assert events.failures == {"west/east.orders": "couldn't find resource (21 retries)"}
    assert heard(error(TOPIC, bridge), failed)[0].failures == {"west/east.orders": "Pulumi did not say why"}


def test_what_was_begun_is_known_although_nothing_is_done() -> None:
    before = [
        {"resourcePreEvent": {"metadata": {"op": op, "urn": urn}, "planning": planning}}
        for op, urn, planning in (("create", TOPIC, False), ("same", ACL, False), ("create", f"{TOPIC}-x", True))
    ]
    events, _ = heard(*before)
    assert (events.begun, events.done) == ({"west/east.orders"}, set())


def test_what_a_preview_shows() -> None:
    before = {"resourcePreEvent": {"metadata": {"op": "create", "urn": TOPIC}, "planning": True}}
    assert heard(before)[0].planned == {"west/east.orders": OpType.CREATE}


@pytest.mark.parametrize("op", [OpType.DELETE, OpType.REPLACE, OpType.CREATE_REPLACEMENT, OpType.DELETE_REPLACED])
def test_nothing_is_deleted_or_replaced_that_no_step_revokes(op: OpType) -> None:
    expected = Expected(created=["new"], changed=["grown"], acls=["granted"], revoked=["revoked"])
    assert expected.surprises({"topic": op, "granted": op, "new": op}) == {"topic": op, "granted": op, "new": op}
    assert expected.surprises({"revoked": OpType.DELETE}) == {}


def test_what_is_planned_or_harmless_is_no_surprise() -> None:
    expected = Expected(created=["new"], changed=["grown"], acls=["granted"], revoked=["revoked"])
    fine = {"new": OpType.CREATE, "granted": OpType.CREATE, "a": OpType.SAME, "c": OpType.IMPORT}
    assert expected.surprises({**fine, "grown": OpType.UPDATE}) == {}
    for op in (OpType.CREATE, OpType.UPDATE):
        assert expected.surprises({"other": op}) == {"other": op}
    for name in ("new", "granted", "revoked"):
        assert expected.surprises({name: OpType.UPDATE}) == {name: OpType.UPDATE}
    assert expected.surprises({"grown": OpType.CREATE}) == {"grown": OpType.CREATE}
