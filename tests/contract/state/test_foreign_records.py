"""Records of others in every journal, on real brokers: commands and tasks go on with the right answer."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from reconciler import declare
from reconciler.checkpoints.mirrormaker.formats import Checkpoint
from reconciler.checkpoints.service.emit import CheckpointWriter, HeartbeatWriter
from reconciler.checkpoints.service.last_syncs import LastLooks
from reconciler.checkpoints.translation.history import SyncHistory
from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.names.topic_names import HEARTBEATS
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver import preparation
from reconciler.state import control
from reconciler.state.journals import home, strangers
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import Journals, JournalTopic, own
from reconciler.state.ownership import Ownership
from tests.support.clusters.kafka import create, declared
from tests.support.commands.foreign import POISON
from tests.support.commands.payments import write
from tests.support.replicator.copying import SECONDS, Running, at, fill, identical

NAMED = re.compile(r"topic ([\w.-]+), partition 0, offset (\d+): warning: a record is not ours, and is passed over")
FURTHER = "partition 0: warning: further records are not ours"
# Three kilobytes when it is packed.
BOMB = b"x" * (120 << 20)


@pytest.fixture(scope="module")
def strange() -> Iterator[EmbeddedCluster]:
    """A target of its own: what is written there is met by all who read it."""
    with EmbeddedCluster("strange") as cluster:
        yield cluster


@dataclass
class Said:
    code: int
    out: str
    err: str

    def named(self, topic: str) -> list[int]:
        """The offsets that were named of a topic."""
        return [int(offset) for name, offset in NAMED.findall(self.err) if name == topic]


@dataclass
class Scene:
    """A flow that is applied, and who looks at it."""

    file: Path
    topic: str
    source: EmbeddedCluster
    target: EmbeddedCluster
    capsys: pytest.CaptureFixture[str]

    @property
    def spec(self) -> FlowSpec:
        topology = declare.load((self.file,))
        return FlowSpec.compile(topology, topology.flows[0], self.topic, SECONDS)

    @property
    def journals(self) -> Journals:
        return own(self.spec.topology)

    def run(self, *arguments: str) -> Said:
        self.capsys.readouterr()
        code = main([arguments[0], str(self.file), *arguments[1:]])
        said = self.capsys.readouterr()
        return Said(code, said.out, " ".join(said.err.split()))

    def poison(self) -> dict[str, list[int]]:
        """Write all kinds into all journals, each under a key of ours and under one of nobody; return their offsets."""
        spec, remote, ours = self.spec, f"us-east.{self.topic}", self.journals
        keys = {
            ours.owned.name: (f"topic/{remote}", f"declaration/{spec.topology}/eu-west", "lock/x"),
            ours.status.name: (f"{spec.flow.name}/0/{spec.run}", f"{spec.flow.name}/0/{spec.run}/0"),
            ours.control.name: (
                f"shares/{spec.run}/{spec.flow.name}",
                f"stop/{spec.run}/{spec.flow.name}",
                f"pause@{spec.topology}/{spec.flow.name}/{self.topic}/0",
            ),
            ours.copies.name: (f"{spec.flow.name}/{remote}/0", "nothing"),
        }
        producer = Producer(self.target.client_config())
        offsets: dict[str, list[int]] = {journal.name: [] for journal in ours.all}
        for name, of_ours in keys.items():
            for key in (*(key.encode() for key in of_ours), b"\xff\x00"):
                for value in POISON:
                    producer.produce(
                        name,
                        key=key,
                        value=value,
                        on_delivery=lambda _, message: offsets[message.topic()].append(message.offset()),
                    )
        assert producer.flush(30) == 0
        assert all(len(found) >= 2 * len(POISON) for found in offsets.values())
        return offsets


@pytest.fixture
def scene(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    strange: EmbeddedCluster,
    topic_name: str,
    capsys: pytest.CaptureFixture[str],
) -> Scene:
    create(source_cluster, topic_name, 2)
    file = write(tmp_path, source_cluster.bootstrap, strange.bootstrap, topic_name)
    made = Scene(file, topic_name, source_cluster, strange, capsys)
    assert made.run("apply", "--yes").code == 0
    return made


@contextmanager
def heard() -> Iterator[list[Problem]]:
    """Collect what this process says of records that are not ours."""
    found: list[Problem] = []
    strangers.listen(found.append)
    yield found


def test_commands_and_tasks_go_on(scene: Scene) -> None:
    spec, ours = scene.spec, scene.journals
    fill(scene.source, scene.topic, 100, 2)
    # What is remembered of copies is read by the task alone, beside whichever command runs then.
    by_task = ""
    with Running(spec) as running:
        running.wait()
        records = Ownership(spec.target, spec.topology).read()
        offsets = scene.poison()
        # The task has passed over all of it before a command begins to listen: it says in this process what it meets.
        end = control.resume(spec.target, spec.topology, [PauseScope(spec.flow.name)])
        running.wait(lambda status: status.heard >= end)
        # Nothing of it has changed what is ours, under its own keys neither.
        assert Ownership(spec.target, spec.topology).read() == records
        for command, said, journal in (
            (("plan",), "No changes", ours.owned),
            (("apply", "--yes"), "No changes", ours.owned),
            (("drift",), "No drift", ours.owned),
            (("status",), "running", ours.status),
            (("lag",), scene.topic, ours.status),
            (("pause", "--topic", scene.topic), "", ours.control),
            (("resume", "--topic", scene.topic), "", ours.control),
            (("restart", "--topic", scene.topic), "", ours.status),
            (("reconcile", "--once"), "", ours.owned),
        ):
            ended = scene.run(*command)
            assert (ended.code, said.lower() in ended.out.lower()) == (0, True), (command, ended)
            by_task += f" {ended.err}"
            # Each is named once, and only those; a few of each topic.
            for topic, found in offsets.items():
                if topic == ours.copies.name:
                    continue
                named = ended.named(topic)
                # Of words that tasks have replaced since nothing is said.
                first = [one for one in found if one in named] if topic == ours.status.name else found[: len(named)]
                assert named == first, (command, topic)
                assert len(named) in (0, strangers.MOST), (command, topic)
                assert ended.err.count(f"topic {topic}, {FURTHER}") == bool(named), (command, topic)
            assert ended.named(journal.name), (command, ended.err)
        # The task has obeyed all that, opened its partitions anew beside it, and copies what comes.
        fill(scene.source, scene.topic, 100, 2)
        running.wait(lambda status: all(at(status, scene.topic, number).position == 100 for number in (0, 1)))
        running.stop()
    assert identical(spec, scene.topic) == 200
    whole = Said(0, "", f"{by_task} {' '.join(scene.capsys.readouterr().err.split())}")
    times = whole.err.count(f"topic {ours.copies.name}, {FURTHER}")
    assert times > 0, "it has opened partitions anew"
    assert whole.named(ours.copies.name) == offsets[ours.copies.name][: strangers.MOST] * times
    with heard() as problems:
        preparation.prepare(spec.target, spec.topology, [spec.flow], pytest.fail)
    assert {problem.code for problem in problems} == {"AB324"}


def test_the_next_task_takes_over_beside_them(scene: Scene) -> None:
    fill(scene.source, scene.topic, 100, 2)
    with Running(scene.spec) as running:
        running.wait()
        running.stop()
    scene.poison()
    fill(scene.source, scene.topic, 100, 2)
    with heard() as found, Running(replace(scene.spec, run=f"{scene.topic}-2")) as running:
        running.wait()
        running.stop()
    assert identical(scene.spec, scene.topic) == 200
    # What is remembered of the copy is still what we wrote.
    both = {scene.journals.copies.name, scene.journals.control.name}
    assert {name for name in both if any(name in one.where for one in found)} == both


@pytest.fixture
def cluster(strange: EmbeddedCluster) -> Cluster:
    return declared("west", strange)


def packed(broker: EmbeddedCluster, topic: str, count: int) -> None:
    """Write records that a client does not unpack, in one batch."""
    config = {"compression.type": "zstd", "message.max.bytes": 10**9, "batch.size": 10**9, "linger.ms": 500}
    producer = Producer(broker.client_config() | config)
    for number in range(count):
        producer.produce(topic, key=b"bomb-%d" % number, value=BOMB[: len(BOMB) // count])
    assert producer.flush(300) == 0


def test_what_no_client_unpacks_is_passed_over(strange: EmbeddedCluster, cluster: Cluster, topic_name: str) -> None:
    journal = Journal(cluster, JournalTopic(topic_name, {}))
    journal.ensure()
    journal.write("a", {"n": 1})
    packed(strange, topic_name, 1)
    journal.write_all({"b": {"n": 2}, "c": {"n": 3}})
    packed(strange, topic_name, 20)
    journal.write("d", {"n": 4})
    values = {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}, "d": {"n": 4}}
    with heard() as found:
        assert journal.read() == values
        assert journal.read() == values
    # A client may have made several batches of twenty; each was named once.
    offsets = [problem.where.rpartition(" ")[2] for problem in found]
    assert (offsets[:2], len(set(offsets))) == (["1", "4"], len(offsets))
    follower = journal.follow()
    try:
        assert follower.catch_up() == values
        packed(strange, topic_name, 3)
        journal.write("e", {"n": 5})
        deadline = time.monotonic() + SECONDS
        while not (arrived := list(follower.poll(0.1))):
            assert time.monotonic() < deadline
        assert arrived == [("e", {"n": 5})]
    finally:
        follower.close()


def test_what_ends_with_a_marker_is_read_to_its_end(
    strange: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    journal = Journal(cluster, JournalTopic(topic_name, {}))
    journal.ensure()
    journal.write("a", {"n": 1})
    follower = journal.follow()
    producer = Producer(strange.client_config() | {"transactional.id": topic_name})
    producer.init_transactions()
    try:
        assert follower.catch_up() == {"a": {"n": 1}}
        producer.begin_transaction()
        producer.produce(topic_name, key=b"b", value=b"no json")
        producer.commit_transaction()
        assert journal.read() == {"a": {"n": 1}}
        assert list(follower.arrived(SECONDS)) == []
        assert follower.next_offset == 3
    finally:
        follower.close()


def test_what_readers_would_pass_over_is_not_written(cluster: Cluster, topic_name: str) -> None:
    journal = Journal(cluster, JournalTopic(topic_name, {}, largest=100_000))
    journal.ensure()
    journal.write("a", {"text": "x" * 99_000})
    with pytest.raises(EnvironmentFault, match="Message size too large"):
        journal.write("a", {"text": "x" * 200_000})
    assert journal.read() == {"a": {"text": "x" * 99_000}}


class NoText(str):
    """A name of a header that is no text."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return b"\xff\xfe"


def test_topics_in_mirrormakers_formats_are_read_beside_them(
    strange: EmbeddedCluster, cluster: Cluster, topic_name: str
) -> None:
    alias = topic_name[-8:]
    checkpoints = CheckpointWriter(cluster, alias)
    HeartbeatWriter(cluster, alias, "west", whose=(alias, "first")).beat(1_000, 5)
    written = [Checkpoint("group", "topic", number, 5, 7) for number in (0, 1)]
    checkpoints.emit(written[:1])
    Journal(cluster, JournalTopic(syncs_topic(alias), {})).ensure()
    producer = KafkaProducer(bootstrap_servers=strange.bootstrap)
    for topic in (HEARTBEATS, checkpoints.topic, syncs_topic(alias)):
        for headers in ([], [(NoText("x"), b"1")], [("anabranch-flow", b"\xff"), ("anabranch-groups", b"9" * 5_000)]):
            for key in (b"", b"\xff" * 10, b"\x7f\xff", b"\x00\x01a\x00\x01b\x00\x00\x00\x00"):
                for value in (b"", b"\x00", b"\x00\x00" + b"\x7f" * 30, *POISON[1:3]):
                    producer.send(topic, key=key, value=value, headers=headers)
        producer.flush(SECONDS)
        packed(strange, topic, 5)
    producer.close()
    HeartbeatWriter(cluster, alias, "west", whose=(alias, "second")).beat(2_000, 6)
    # Heartbeats are asked only where journals are shared still.
    home.hold(cluster, alias, "shared")
    looks, history = LastLooks(cluster, alias), SyncHistory(cluster, alias, SECONDS)
    try:
        assert {(flow, look.groups) for flow, look in looks.current().items()} >= {("first", 5), ("second", 6)}
        history.refresh()
        assert not history.is_behind
    finally:
        looks.close()
        history.close()
    checkpoints.emit(written[1:])
    again = CheckpointWriter(cluster, alias)
    assert set(again.refresh().values()) >= set(written)
    checkpoints.close()
    again.close()
