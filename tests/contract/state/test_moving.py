"""Journals that a release before topics per topology wrote go on, and are moved without a step by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.cli.common import TERMINAL
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.acls.binding import Binding, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import state_names
from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.recorded.capabilities import Capabilities
from reconciler.model.recorded.declaration import MOVED, digest_into
from reconciler.model.recorded.failover import FailedOver
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.seal import Seal, new_key
from reconciler.model.tasks.status import TaskStatus
from reconciler.observe.topology import observe
from reconciler.operate.flows.posts import Post
from reconciler.operate.moving import move_journals
from reconciler.operate.watching import Lookout
from reconciler.plan.ahead import build_plan_ahead
from reconciler.provision.direct import DirectProvisioner
from reconciler.state import control, moving
from reconciler.state.copies import Copies
from reconciler.state.declarations import Declarations
from reconciler.state.failovers import Failovers
from reconciler.state.journals import home
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import SHARED, own
from reconciler.state.listener import Listener
from reconciler.state.lock import Lock
from reconciler.state.ownership import Ownership
from reconciler.state.probes import Probes
from reconciler.state.status import StatusWriter
from tests.support.clusters.kafka import create, names
from tests.support.commands.command import Ended, anabranch

SECONDS = 300.0
SHIFTED = CopyRecord("s", "t", runs=Runs((Run(0, 0), Run(5, 2))))
FOUND = Capabilities("a-cluster", 1_800_000_000.0, ())
OVER_SINCE = 1_800_000_000.0
FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, topics: {{include: ["{topic}"]}}}}
  - {{name: over, from: east, to: west, topics: {{include: ["{topic}-over"]}}, policy: {{type: identity}}}}
"""


class Former:
    """A topology whose journals are those that a release before topics per topology made, and wrote."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.topology: Topology = load((file,))
        self.name = self.topology.name
        self.west: Cluster = self.topology.clusters["west"]
        self.flow = self.topology.flows[0]
        self.remote = f"east.{self.flow.topics.literals()[0]}"
        self.binding = OwnedBinding(
            Binding("topic", ResourcePattern(self.remote), "User:alice", "READ"), self.name, self.flow.name
        )
        self.live()

    def live(self) -> None:
        """Be that release from now on, in this process."""
        home.hold(self.west, self.name, "shared")

    def apply(self) -> None:
        """Apply as it did, and tell and remember whatever can be."""
        plan = build_plan_ahead(self.topology, observe(self.topology, ["west"]), ["west"])
        assert DirectProvisioner(self.topology).apply(plan).is_complete
        ownership = Ownership(self.west, self.name)
        ownership.write_bindings([self.binding])
        # A copy begun with translated offsets stays so.
        (record,) = (one for one in ownership.read().values() if one.name == self.remote)
        self.pinned = replace(record, offsets="translated")
        ownership.write([self.pinned])
        ownership.write([replace(record, name=f"{self.remote}-theirs", topology=f"x{self.name}", flow="theirs")])
        copies = Copies(self.west, self.name)
        copies.put(self.flow.name, self.remote, 0, SHIFTED)
        copies.put("theirs", f"{self.remote}-theirs", 0, SHIFTED)
        # Records of copies do not say of which topology; this is one of a flow of the same name.
        copies.put(self.flow.name, f"{self.remote}-theirs", 0, SHIFTED)
        copies.close()
        control.pause(self.west, self.name, [PauseScope(self.flow.name, "orders")])
        control.pause(self.west, f"x{self.name}", [PauseScope(self.flow.name, "theirs")])
        # A still older release named no topology.
        said = {"command": "pause", "time": time.time(), "flow": self.flow.name, "topic": "older", "partition": None}
        Journal(self.west, SHARED.control).write(f"pause/{self.flow.name}/older", said)
        failovers = Failovers(self.west, self.name)
        failovers.put(FailedOver("over", "over", OVER_SINCE, "ops@host", {}))
        failovers.close()
        Probes(self.west, self.name).write(FOUND)

    def plan(self) -> Ended:
        return anabranch("plan", self.file, "--detailed-exitcode")

    def has_moved(self) -> bool:
        return home.decide(self.west, self.name).is_own

    def check_moved(self, target: EmbeddedCluster) -> None:
        """Make sure that all of it, and nothing of others, is where it belongs."""
        assert set(state_names(self.name).journals) <= names(target)
        home.forget(self.west, self.name)
        assert home.journals(self.west, self.name) == own(self.name)
        records = Ownership(self.west, self.name).read_all()
        assert records.topics[self.remote] == self.pinned
        assert (set(records.acls), f"{self.remote}-theirs" in records.topics) == ({self.binding}, False)
        copies = Copies(self.west, self.name)
        copies.refresh()
        assert copies.get(self.flow.name, self.remote, 0) == SHIFTED
        assert [copies.get(one, f"{self.remote}-theirs", 0) for one in ("theirs", self.flow.name)] == [None, None]
        copies.close()
        failovers = Failovers(self.west, self.name)
        assert failovers.current()["over"].since == OVER_SINCE
        failovers.close()
        declarations = Declarations(self.west, self.name)
        history = declarations.current()
        declarations.close()
        assert history.in_force is not None
        assert history.in_force.digest == digest_into(self.topology, "west")
        assert MOVED not in {entry.digest for entry in history.entries}
        found = Probes(self.west, self.name).read(FOUND.cluster_id)
        assert found == FOUND
        told = Journal(self.west, own(self.name).owned).read()
        assert not any(key.startswith(("probe/", "lock/")) for key in told)

    def paused(self) -> list[str]:
        ear = Listener(self.west, Seal(self.name, "run", self.flow.name, new_key()))
        found = [one for one in ("orders", "older", "theirs") if ear.pauses.hold(self.flow.name, one, 0)]
        ear.close()
        return found


@pytest.fixture
def former(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> Iterator[Former]:
    topic = topic_name[-40:].strip("-")
    for name in (topic, f"{topic}-over"):
        create(source_cluster, name, 2)
    file = tmp_path / "former.yaml"
    places = {"east": source_cluster.bootstrap, "west": target_cluster.bootstrap}
    file.write_text(FILE.format(name=f"f{topic[-30:].strip('-')}", topic=topic, **places))
    made = Former(file)
    made.apply()
    yield made
    home.forget(made.west, made.name)


def speaking(former: Former, over: threading.Event, age: float) -> threading.Thread:
    """Let a process of the former release say each half second that it copies, by a clock that may be behind."""
    writer = StatusWriter(replace(former.west, alias="west"), former.name)
    word = replace(TaskStatus.of_process(former.flow, "a-run", "digest"), task=0, tasks=1)
    writer.post_last(replace(word, time=time.time() - age))

    def speak() -> None:
        while not over.wait(0.5):
            writer.post_last(replace(word, time=time.time() - age))
        writer.post_last(replace(word, time=time.time() - age, stopped=True))

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    return thread


def test_what_was_written_goes_on_and_is_moved_by_an_apply(former: Former, target_cluster: EmbeddedCluster) -> None:
    shown = former.plan()
    assert (shown.code, "anabranch." in shown.stdout) == (0, False), shown
    assert not former.has_moved()

    over = threading.Event()
    speaker = speaking(former, over, 3_600.0)
    try:
        held = anabranch("apply", former.file, "--yes")
        assert (held.code, "moved" in held.stderr, former.has_moved()) == (0, False, False), held
    finally:
        over.set()
        speaker.join(SECONDS)

    moved = anabranch("apply", former.file, "--yes")
    said = f"journals of {former.name} moved to topics of their own at west"
    assert (moved.code, moved.stderr.count(said)) == (0, 1), moved
    former.check_moved(target_cluster)
    assert former.paused() == ["orders", "older"]
    shown = former.plan()
    assert shown.code == 0, shown
    again = anabranch("apply", former.file, "--yes")
    assert (again.code, "moved" in again.stderr) == (0, False), again
    status = anabranch("status", former.file, "--format", "json")
    assert (status.code, '"failedOver"' in status.stdout) == (0, True), status

    # The other topology has not moved, and its topics are still known as its own.
    seen = observe(former.topology, ["west"])["west"]
    assert seen.owned[f"{former.remote}-theirs"].topology == f"x{former.name}"
    assert not home.decide(former.west, f"x{former.name}").is_own

    # A process of the former release that begins now is held.
    former.live()
    declarations = Declarations(former.west, former.name)
    objection = declarations.current().objection(digest_into(former.topology, "west"), "west")
    declarations.close()
    assert objection is not None
    assert (objection.code, "moved to topics of their own" in objection.message) == ("AB411", True)


def test_a_move_that_was_killed_is_begun_anew(
    former: Former, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed(_cluster: Cluster, _topology: str) -> None:
        raise EnvironmentFault(Problem("AB310", "here", "killed", "none"))

    with monkeypatch.context() as patch:
        patch.setattr(moving, "_put_moved", killed)
        move_journals(former.topology, ["west"], reporter=TERMINAL)
    assert "killed" in capsys.readouterr().err
    there = set(state_names(former.name).journals) & names(target_cluster)
    assert there == set(state_names(former.name).journals) - {state_names(former.name).status}
    assert not former.has_moved()
    # What is told meanwhile is told in the shared ones, and what was copied of it is taken back.
    former.live()
    control.resume(former.west, former.name, [PauseScope(former.flow.name, "orders")])
    assert former.paused() == ["older"]

    # Somebody who applies is not disturbed.
    lock = Lock(former.west, former.name)
    lock.take(0)
    move_journals(former.topology, ["west"], reporter=TERMINAL)
    assert not former.has_moved()
    former.live()
    lock.release()

    move_journals(former.topology, ["west"], reporter=TERMINAL)
    assert "moved to topics of their own at west" in capsys.readouterr().err
    former.check_moved(target_cluster)
    assert former.paused() == ["older"]


def test_what_comes_while_it_is_moved_is_moved_too(
    former: Former, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    say = moving._put_moved

    def late(cluster: Cluster, topology: str) -> None:
        say(cluster, topology)
        former.live()
        copies = Copies(cluster, topology)
        copies.put(former.flow.name, former.remote, 1, SHIFTED)
        copies.close()

    monkeypatch.setattr(moving, "_put_moved", late)
    move_journals(former.topology, ["west"], reporter=TERMINAL)
    former.check_moved(target_cluster)
    copies = Copies(former.west, former.name)
    copies.refresh()
    assert copies.get(former.flow.name, former.remote, 1) == SHIFTED
    copies.close()


def test_a_process_that_had_decided_before_goes_home(former: Former) -> None:
    post = Post(former.west, former.name)
    first = post.history()
    assert not post.has_moved
    move_journals(former.topology, ["west"], reporter=TERMINAL)
    deadline = time.monotonic() + SECONDS
    while not post.has_moved:
        assert time.monotonic() < deadline
        found = post.history()
    assert (found.in_force, set(post.failed_over())) == (first.in_force, {"over"})
    post.close()


def test_whoever_watches_meanwhile_goes_home(former: Former) -> None:
    lookout = Lookout(former.topology, ["west"], with_in_force=True, with_groups=True)
    first = lookout.look()
    assert (set(first.failed_over["west"]), first.failures) == ({"over"}, {})
    move_journals(former.topology, ["west"], reporter=TERMINAL)
    look = lookout.look()
    word = replace(TaskStatus.of_process(former.flow, "a-run", "digest"), task=0, tasks=1)
    deadline = time.monotonic() + SECONDS
    while "a-run" not in {one.run for one in look.statuses} or look.in_force != first.in_force:
        assert time.monotonic() < deadline
        look = lookout.look()
        StatusWriter(former.west, former.name).post_last(replace(word, time=time.time()))
    assert set(look.failed_over["west"]) == {"over"}
    lookout.close()


def test_what_was_claimed_for_a_topic_that_is_gone_is_in_nobodys_way(former: Former) -> None:
    """Of another topology's own journal a record counts for what exists, and for that topology alone."""
    other, west = f"y{former.name}", former.west
    home.hold(west, other, "own")
    Journal(west, own(other).owned).ensure()
    theirs: OwnedTopic = replace(former.pinned, name="nothing-has-this-name", topology=other)
    claimed = replace(former.pinned, topology=other, flow="stolen")
    forged = replace(former.pinned, name=f"{former.remote}-over", flow="forged")
    ownership = Ownership(west, other)
    ownership.write([theirs, claimed, forged])
    seen = observe(former.topology, ["west"])["west"]
    assert seen.owned[former.remote] == former.pinned
    assert not {theirs.name, forged.name} & seen.owned.keys()
    assert former.plan().code == 0
