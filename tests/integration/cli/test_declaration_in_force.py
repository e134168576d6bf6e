"""Which declaration runs: processes with different files never fight, and each says which one is in force."""

from __future__ import annotations

import getpass
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler.declare import load
from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.tasks.status import TaskStatus
from tests.support.clusters.kafka import create, declared
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import fill
from tests.support.replicator.replicating import Replicator, wait_until_copying, wait_until_running
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

CHANGES, REFUSED = 3, 4
ME = f"{getpass.getuser()}@{socket.gethostname()}"
STOP_SECONDS = 400

FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, tasks: {tasks}, topics: {{include: ["{topic}-.*"], exclude: [{excluded}]}}}}
"""


def flow(file: Path) -> dict[str, Any]:
    answer = anabranch("status", file, "--format", "json")
    assert answer.code == 0, answer.stderr
    (found,) = json.loads(answer.stdout)["flows"]
    assert isinstance(found, dict)
    return found


def heard(running: Replicator) -> str:
    return " ".join(running.said().split())


class Files:
    """Two topology files of one topology, on two machines as it were."""

    def __init__(self, east: EmbeddedCluster, west: EmbeddedCluster, topic: str, folder: Path) -> None:
        self._facts = {
            "name": topic[-40:].strip("-"),
            "east": east.bootstrap,
            "west": west.bootstrap,
            "topic": topic,
        }
        self.west = declared("west", west)
        self.one, self.other = folder / "one.yaml", folder / "other.yaml"

    def write(self, file: Path, tasks: int, excluded: str = "") -> str:
        """Write a file anew; return the digest of what it declares."""
        file.write_text(FILE.format(**self._facts, tasks=tasks, excluded=excluded))
        return digest_into(load((file,)), "west")


def apply(file: Path) -> None:
    applied = anabranch("apply", file, "--yes")
    assert (applied.code, "This declaration is now in force at west." in applied.stdout) == (0, True), applied


def it_goes_on_with_what_is_put_in_force(files: Files, a: Replicator, v1: str) -> TaskStatus:
    """Apply a second version of the file that a process runs with; return what a task of its next run says."""
    assert [run["digest"] for run in flow(files.one)["runs"]] == [v1]
    v2 = files.write(files.one, 2)
    apply(files.one)
    eventually("it reloads", lambda: f"digest {v2} is in force since" in heard(a), detail=a.said)
    eventually(
        "both topics are copied", lambda: [p["lag"] for p in flow(files.one)["partitions"]] == [0] * 4, detail=a.said
    )
    task, *_ = wait_until_copying(files.west, a, time.time())
    assert (task.digest, "AB411" in heard(a)) == (v2, False), "it had the files of now at once"
    return task


def an_older_one_waits(files: Files, b: Replicator, v1: str, running: TaskStatus) -> None:
    """See what a process says that begins with the first version, and what is said of it."""
    v2 = running.digest
    older = f"applied by {ME}; this process has digest {v1}, which was in force before"
    eventually("it waits", lambda: older in heard(b), detail=b.said)
    for text in (f"digest {v2} is in force since", f"run {running.run} copies flow east-west with digest {v2}"):
        assert text in heard(b)
    eventually("status tells", lambda: {run["digest"] for run in flow(files.one)["runs"]} == {v1, v2}, detail=b.said)
    assert f"has digest {v1}; digest {v2} is in force since" in anabranch("status", files.one).stdout
    assert flow(files.one)["state"] == "running"
    refused = anabranch("replicate", files.other, "--until-caught-up")
    assert (refused.code, "[AB411]" in refused.stderr) == (REFUSED, True), refused


def an_unapplied_one_waits_until_apply(files: Files, a: Replicator, b: Replicator) -> str:
    """Have the waiting process find a third version, and apply that; return its digest."""
    v2, v3 = files.write(files.one, 2), files.write(files.other, 1)
    newer = f"this process has digest {v3}, which was never put in force"
    eventually("it waits", lambda: newer in heard(b), detail=b.said)
    assert ("anabranch apply" in heard(b), b.jvm()) == (True, []), "it starts nothing meanwhile"
    plan = anabranch("plan", files.other, "--detailed-exitcode")
    assert (plan.code, f"apply puts this declaration in force, digest {v3}" in plan.stdout) == (CHANGES, True), plan
    apply(files.other)
    eventually(
        "the first one drains and waits", lambda: f"digest {v2}, which was in force before" in heard(a), detail=a.said
    )
    # While the first one drains it still takes what comes.
    wait_until_running(files.west, b)
    assert flow(files.other)["state"] == "running"
    return v3


def test_older_and_unapplied_declarations_wait_while_the_one_in_force_runs(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    first, second = f"{topic_name}-first", f"{topic_name}-second"
    for topic in (first, second):
        create(source_cluster, topic, 2)
        fill(source_cluster, topic, 500, 2)
    files = Files(source_cluster, target_cluster, topic_name, tmp_path)
    v1 = files.write(files.one, 1, excluded=second)
    files.write(files.other, 1, excluded=second)
    apply(files.one)
    started = [Replicator(files.one, tmp_path / "a")]
    try:
        (a,) = started
        wait_until_copying(files.west, a, 0.0)
        running = it_goes_on_with_what_is_put_in_force(files, a, v1)
        started.append(b := Replicator(files.other, tmp_path / "b"))
        an_older_one_waits(files, b, v1, running)
        v3 = an_unapplied_one_waits_until_apply(files, a, b)
        fill(source_cluster, second, 500, 2)
        (task,) = wait_until_copying(files.west, b, time.time())
        assert task.digest == flow(files.other)["inForce"]["digest"] == v3
        for one in (a, b):
            one.terminate()
            assert one.wait(STOP_SECONDS) == 0, one.said()
            assert "Traceback" not in one.said()
        assert not [*tmp_path.glob("*/state/*/*")], "clean ends leave nothing behind"
    finally:
        for one in started:
            one.end()
    for topic, records in ((first, 500), (second, 1_000)):
        found = compare(declared("east", source_cluster), topic, files.west, f"east.{topic}")
        assert (found.is_identical, found.records) == (True, records)
