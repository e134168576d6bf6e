"""`destroy` on real clusters: it takes away what is ours and nothing else, and every guardrail holds when pushed at."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import state_names
from reconciler.model.recorded.declaration import DESTROYED, digest_into
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.provision.state_removal import StateRemover
from reconciler.state.declarations import Declarations
from reconciler.state.lock import Lock
from reconciler.state.ownership import Ownership
from reconciler.state.status import StatusWriter
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared, delete, names, topic_id
from tests.support.commands.command import COMMAND, LIMIT_SECONDS, anabranch
from tests.support.commands.payments import made, write
from tests.support.replicator.alive import alive

CHANGES, USAGE, REFUSED, LOCKED, UNREACHABLE = 3, 2, 4, 5, 6


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


def in_force(target: EmbeddedCluster, topology: Topology) -> str | None:
    declarations = Declarations(declared("eu-west", target), topology.name)
    entry = declarations.current().in_force
    declarations.close()
    return entry.digest if entry else None


def deletions(value: dict[str, Any]) -> list[str]:
    steps = [step for cluster in value["plan"]["clusters"] for step in cluster["steps"]]
    return [step["topic"] for step in steps if step["action"] == "delete-topic"]


def live(topology: Topology, digest: str, remote: str, flow: str = "us-east-eu-west") -> TaskStatus:
    """The word of a task that runs now."""
    (one,) = (one for one in topology.flows if one.name == flow)
    row = PartitionStatus(remote.removeprefix("us-east."), 0, remote, PartitionState.RUNNING, 0, 0)
    return TaskStatus(one.name, one.source, one.target, f"run-{remote}", 0, 1, time.time(), False, None, 0, 0, 0.0, 0.0,
                      (row,), digest=digest)  # fmt: skip


def test_it_deletes_what_is_ours_and_apply_makes_it_again(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b = made(file, source_cluster, f"{topic_name}-a", f"{topic_name}-b")
    topology = load((file,))
    before = topic_id(target_cluster, a)
    # It has a copy's name, and no apply made it.
    create(target_cluster, f"us-east.{topic_name}-foreign")

    ended = anabranch("destroy", file, "--allow-delete", "topic=2", "--yes", "--format", "json")
    assert (ended.code, ended.stderr) == (0, "")
    value = json.loads(ended.stdout)
    assert deletions(value) == [a, b]
    assert value["plan"]["summary"] == {"add": 0, "own": 0, "change": 0, "delete": 2, "end": 0, "deploy": 0}
    assert value["outcome"]["closed"] == ["eu-west"]
    left = {notice["subject"]: notice["message"] for notice in value["plan"]["clusters"][0]["left_alone"]}
    assert left[f"us-east.{topic_name}-foreign"] == f"no apply of {topology.name} made it"
    assert any(state_names(topology.name).owned in subject for subject in left)
    there = names(target_cluster)
    assert not {a, b} & there
    assert {f"us-east.{topic_name}-foreign", *state_names(topology.name).journals} <= there
    assert {f"{topic_name}-a", f"{topic_name}-b"} <= names(source_cluster)
    assert not {a, b} & Ownership(declared("eu-west", target_cluster), topology.name).read().keys()
    assert in_force(target_cluster, topology) == DESTROYED

    # Whoever has the old file does not bring them back without a word.
    held = anabranch("replicate", file, "--until-caught-up")
    assert (held.code, "[AB411]" in held.stderr) == (REFUSED, True)
    assert "nothing is in force: the copies were destroyed on" in held.stderr
    assert not {a, b} & names(target_cluster)
    again = anabranch("destroy", file, "--yes")
    assert (again.code, "Nothing to do: 0 to add, 0 to change, 0 to delete." in again.stdout) == (0, True)

    assert "nothing is in force" in anabranch("plan", file).stdout
    assert anabranch("apply", file, "--yes").code == 0
    assert in_force(target_cluster, topology) == digest_into(topology, "eu-west")
    assert topic_id(target_cluster, a) != before


def test_without_a_number_nothing_is_deleted_whatever_else_is_said(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    copies = made(file, source_cluster, *(f"{topic_name}-{number}" for number in range(7)))
    topology = load((file,))
    digest = in_force(target_cluster, topology)
    for options in ((), ("--allow-delete", "topic=6"), ("--allow-delete", "topic=0")):
        ended = anabranch("destroy", file, "--yes", *options)
        assert ended.code == REFUSED, ended
        assert "allow it: `--allow-delete topic=7`" in ended.stderr
        assert "[AB420]" in ended.stderr
        assert "7 topics would be deleted, with all records: 7 of the 7 that are ours at eu-west" in ended.stderr
        assert "is the declaration what you mean" not in ended.stderr
        assert "0 to add, 0 to change, 7 to delete." in ended.stdout
    for said in ("topic", "topic=-1", "topic=many", "acls=3", "topic=7=7"):
        assert anabranch("destroy", file, "--yes", "--allow-delete", said).code == USAGE
    assert anabranch("destroy", file, "--allow-delete", "topic=7").code == USAGE
    for answer in ("y\n", "yes\n", "\n", f"{topology.name}-other\n"):
        ended = anabranch("destroy", file, "--allow-delete", "topic=7", answer=answer)
        assert (ended.code, "Nothing was changed." in ended.stderr) == (1, True)
    assert set(copies) <= names(target_cluster)
    assert in_force(target_cluster, topology) == digest
    ended = anabranch("destroy", file, "--allow-delete", "topic=7", answer=f"{topology.name}\n")
    assert ended.code == 0
    assert not set(copies) & names(target_cluster)


def test_what_was_made_again_by_others_stays(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b, c = made(file, source_cluster, *(f"{topic_name}-{end}" for end in "abc"))
    delete(target_cluster, a, b)
    create(target_cluster, a)
    theirs = topic_id(target_cluster, a)

    # While the plan is read somebody makes another one anew: that is not the topic that was shown.
    def meanwhile() -> str:
        delete(target_cluster, c)
        create(target_cluster, c)
        return f"{load((file,)).name}\n"

    moved = anabranch("destroy", file, "--allow-delete", "topic=9", answer=meanwhile)
    assert (moved.code, "[AB407]" in moved.stderr) == (REFUSED, True)
    assert "ours was deleted and made again" in moved.stdout

    ended = anabranch("destroy", file, "--allow-delete", "topic=9", "--yes")
    assert ended.code == 0
    assert "0 to add, 1 to change, 0 to delete." in ended.stdout
    assert f"forget {b}, which is gone" in ended.stdout
    assert topic_id(target_cluster, a) == theirs
    assert c in names(target_cluster)
    assert b not in Ownership(declared("eu-west", target_cluster), load((file,)).name).read()


def test_the_copies_of_another_topology_stay(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    # Another topology with the same aliases and topics: it sees these copies, and owns none of them.
    (tmp_path / "theirs").mkdir()
    file = write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)
    theirs = tmp_path / "theirs" / "payments.yaml"
    theirs.write_text(file.read_text().replace("name: ", "name: x"))
    (copy,) = made(file, source_cluster, topic_name)
    ended = anabranch("destroy", theirs, "--allow-delete", "topic=9", "--yes")
    assert (ended.code, "0 to delete" in ended.stdout) == (0, True)
    assert f"the topology {load((file,)).name} made it" in ended.stdout
    assert copy in names(target_cluster)
    ended = anabranch("destroy", theirs, "--target", copy, "--allow-delete", "topic=9", "--yes")
    assert (ended.code, copy in names(target_cluster)) == (0, True)
    assert in_force(target_cluster, load((file,))) != DESTROYED


def test_it_waits_for_no_run_that_copies_there(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    (copy,) = made(file, source_cluster, topic_name)
    topology = load((file,))
    cluster = declared("eu-west", target_cluster)
    writer, word = StatusWriter(cluster, topology.name), live(topology, "0123456789abcdef", copy)
    with alive(writer, word, ahead=-3600):
        ended = anabranch("destroy", file, "--allow-delete", "topic=1", "--yes")
    assert (ended.code, "[AB421]" in ended.stderr) == (REFUSED, True)
    assert f"run run-{copy} copies flow us-east-eu-west" in ended.stderr
    assert copy in names(target_cluster)
    assert in_force(target_cluster, topology) == digest_into(topology, "eu-west")

    # Somebody begins while the plan is read.
    writer.withdraw(word)
    writer.flush()

    with contextlib.ExitStack() as stack:

        def meanwhile() -> str:
            stack.enter_context(alive(writer, live(topology, "0123456789abcdef", copy)))
            return f"{topology.name}\n"

        ended = anabranch("destroy", file, "--allow-delete", "topic=1", answer=meanwhile)
    assert (ended.code, "[AB421]" in ended.stderr, copy in names(target_cluster)) == (REFUSED, True, True)
    writer.withdraw(word)
    writer.flush()
    assert anabranch("destroy", file, "--allow-delete", "topic=1", "--yes").code == 0


def test_some_topics_alone(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b = made(file, source_cluster, f"{topic_name}-a", f"{topic_name}-b")
    topology = load((file,))
    unknown = anabranch("destroy", file, "--target", f"{a}x", "--allow-delete", "topic=1", "--yes")
    assert (unknown.code, a in unknown.stderr.replace("\n", "")) == (USAGE, True)
    for internal in (state_names(load((file,)).name).owned, "__consumer_offsets"):
        create_if_missing(target_cluster, internal)
        ended = anabranch("destroy", file, "--target", internal, "--allow-delete", "topic=9", "--yes")
        assert (ended.code, "0 to delete" in ended.stdout) == (0, True)
        assert internal in names(target_cluster)
    ended = anabranch("destroy", file, "--target", a, "--allow-delete", "topic=1", "--yes")
    assert (ended.code, a in names(target_cluster), b in names(target_cluster)) == (0, False, True)
    assert "What was in force stays in force: only a part was done." in ended.stdout
    assert "`apply` and `replicate` make it anew" in ended.stdout
    assert in_force(target_cluster, topology) == digest_into(topology, "eu-west")
    assert f"{a}   1 partition" in anabranch("plan", file).stdout


def create_if_missing(broker: EmbeddedCluster, name: str) -> None:
    if name not in names(broker):
        create(broker, name)


def test_a_dead_source_stands_in_nobodys_way_and_a_silent_target_does(
    tmp_path: Path, make_clusters: MakeClusters, topic_name: str
) -> None:
    source, target = make_clusters("source", "target")
    file = write(tmp_path, source.bootstrap, target.bootstrap, topic_name)
    (copy,) = made(file, source, topic_name)
    source.stop_broker()
    ended = anabranch("destroy", file, "--allow-delete", "topic=1", "--yes")
    assert (ended.code, copy in names(target)) == (0, False)
    target.stop_broker()
    ended = anabranch("destroy", file, "--allow-delete", "topic=1", "--yes")
    assert (ended.code, ended.stdout, "[AB310]" in ended.stderr) == (UNREACHABLE, "", True)


def test_its_state_goes_last_and_only_when_nothing_depends_on_it(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    topology = load((file,))
    own = set(state_names(topology.name))
    (copy,) = made(file, source_cluster, topic_name)
    part = anabranch("destroy", file, "--target", copy, "--allow-delete", "topic=1", "--yes", "--state")
    assert (part.code, copy in names(target_cluster)) == (USAGE, True)
    with alive(
        StatusWriter(declared("eu-west", target_cluster), topology.name),
        live(topology, digest_into(topology, "eu-west"), "elsewhere"),
    ):
        kept = anabranch("destroy", file, "--allow-delete", "topic=1", "--yes", "--state")
    # The copy is of a flow that a run copies; so nothing is deleted at all.
    assert (kept.code, own & names(target_cluster) != set()) == (REFUSED, True), kept
    ended = anabranch("destroy", file, "--allow-delete", "topic=1", "--yes", "--state")
    assert (ended.code, copy in names(target_cluster), own & names(target_cluster)) == (0, False, set()), ended
    assert state_names(topology.name).owned in ended.stderr
    again = anabranch("destroy", file, "--allow-delete", "topic=1", "--yes", "--state")
    assert (again.code, own & names(target_cluster)) == (0, set()), again
    made(file, source_cluster)
    assert copy in names(target_cluster), "apply makes all of it again"


def test_state_is_kept_while_others_work_there(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    topology, west = load((file,)), declared("eu-west", target_cluster)
    (copy,) = made(file, source_cluster, topic_name)
    remover = StateRemover(west, topology.name)
    with pytest.raises(Refused, match=r"topics and ACLs are still on record.*\[AB455\]"):
        remover.remove_state()
    assert anabranch("destroy", file, "--allow-delete", "topic=1", "--yes").code == 0
    with Lock(west, topology.name) as held:
        held.take(0.0)
        with pytest.raises(Refused, match=r"an apply or a destroy works there.*\[AB455\]"):
            remover.remove_state()
    with (
        alive(StatusWriter(west, topology.name), live(topology, digest_into(topology, "eu-west"), "elsewhere")),
        pytest.raises(Refused, match=r"of flow us-east-eu-west lives.*\[AB455\]"),
    ):
        remover.remove_state()
    remover.close()
    # Another one listens anew, until it is certain that the run has ended.
    fresh = StateRemover(west, topology.name)
    assert set(fresh.remove_state()) >= set(state_names(topology.name).journals)
    fresh.close()
    assert copy not in names(target_cluster)


def test_it_keeps_the_lock_of_apply(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    (copy,) = made(file, source_cluster, topic_name)
    with Lock(declared("eu-west", target_cluster), load((file,)).name) as held:
        held.take(0.0)
        ended = anabranch("destroy", file, "--allow-delete", "topic=1", "--yes", "--wait", "0.5")
    assert (ended.code, "[AB501]" in ended.stderr, copy in names(target_cluster)) == (LOCKED, True, True)


@pytest.mark.long
def test_one_that_is_killed_is_finished_by_the_next(
    tmp_path: Path, make_clusters: MakeClusters, topic_name: str
) -> None:
    source, target = make_clusters("source", "target")
    file = write(tmp_path, source.bootstrap, target.bootstrap, topic_name)
    copies = set(made(file, source, *(f"{topic_name}-{number:03}" for number in range(230))))
    moments = random.Random(topic_name)
    assert any([killed_once_it_has_begun(file, target, copies, moments.uniform(0, 0.2)) for _ in range(2)])
    ended = anabranch("destroy", file, "--allow-delete", f"topic={len(copies)}", "--yes")
    assert ended.code == 0, ended
    assert not copies & names(target)
    assert Ownership(declared("eu-west", target), load((file,)).name).read() == {}
    assert in_force(target, load((file,))) == DESTROYED


def killed_once_it_has_begun(file: Path, target: EmbeddedCluster, copies: set[str], later: float) -> bool:
    """Kill a destroy some moments after it has deleted its first topic; tell whether it was still alive then."""
    before = names(target) & copies
    command = [*COMMAND, "destroy", str(file), "--allow-delete", "topic=230", "--yes"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and names(target) & copies == before:
            time.sleep(0.01)
        time.sleep(later)
        process.kill()
        return process.wait(LIMIT_SECONDS) < 0
