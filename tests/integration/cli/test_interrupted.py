"""Ctrl-C and SIGTERM in `apply` and `destroy`: what was done is told, the lock is given back, and the next goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.operate.interrupts import Interrupts
from reconciler.provision.work import Work
from reconciler.state.declarations import Declarations
from reconciler.state.lock import Lock
from tests.support.clusters.kafka import create, declared, names
from tests.support.commands.claims import wait_for_claims
from tests.support.commands.command import COMMAND, LIMIT_SECONDS, anabranch
from tests.support.commands.payments import write
from tests.support.waiting import eventually

ALIAS = "eu-west"
ENDED_BY = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def topology(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    create(source_cluster, topic_name)
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Make sure that a command leaves the handlers of signals as they were, and that there are the usual ones.

    A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
    """
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in ENDED_BY}
    yield
    assert {number: signal.getsignal(number) for number in ENDED_BY} == before
    signal.signal(signal.SIGINT, former)


def interrupted_in_the_middle(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """Let a signal come when the topics of our own state are there, and nothing else is begun."""
    begin, heard = Work.begin, []
    change = Interrupts.change

    def listening(interrupts: Interrupts) -> None:
        heard.append(interrupts)
        change(interrupts)

    def begun(work: Work) -> bool:
        is_well = begin(work)
        os.kill(os.getpid(), number)
        eventually("the signal is noticed", lambda: heard[0].problem)
        return is_well

    monkeypatch.setattr(Interrupts, "change", listening)
    monkeypatch.setattr(Work, "begin", begun)


@pytest.mark.parametrize("number", ENDED_BY)
def test_an_apply_that_is_interrupted_begins_nothing_else_and_says_what_was_done(
    topology: Path,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target, name = declared(ALIAS, target_cluster), load((topology,)).name
    with monkeypatch.context() as patched:
        interrupted_in_the_middle(patched, number)
        assert main(["apply", str(topology), "--yes", "--format", "json"]) == ENDED_BY[number]
    said = capsys.readouterr()
    outcome = json.loads(said.out)["outcome"]
    assert "what is under way is finished" in said.err
    assert outcome["stopped"]["code"] == "AB504"
    assert [(one["topic"], one["why"]) for one in outcome["skipped"]] == [
        (f"us-east.{topic_name}", f"was interrupted ({number.name})")
    ]
    assert outcome["in_force"] == []
    assert f"us-east.{topic_name}" not in names(target_cluster)
    declarations = Declarations(target, name)
    assert declarations.current().in_force is None
    declarations.close()
    with Lock(target, name) as lock:
        lock.take(0.0)
    assert anabranch("apply", topology, "--yes").code == 0
    assert f"us-east.{topic_name}" in names(target_cluster)


@pytest.mark.parametrize("number", ENDED_BY)
def test_who_waits_for_the_lock_and_is_interrupted_leaves_the_queue(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, number: signal.Signals
) -> None:
    target, name = declared(ALIAS, target_cluster), load((topology,)).name
    assert anabranch("apply", topology, "--yes").code == 0
    with Lock(target, name) as held:
        held.take(0.0)
        command = [*COMMAND, "apply", str(topology), "--yes"]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            wait_for_claims(target, name, 2)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=LIMIT_SECONDS)
    assert (process.returncode, stdout) == (ENDED_BY[number], "")
    assert "Interrupted: nothing was changed." in stderr
    with Lock(target, name) as lock:
        lock.take(0.0)
