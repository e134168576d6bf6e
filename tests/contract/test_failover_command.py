"""`failover` and `failback` on real brokers without Spark: the tasks that copy run in threads of this process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from reconciler.checkpoints.rounds import Rounds
from reconciler.cli import failback as failbacks
from reconciler.cli.main import main
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.failover.returning import Coming
from reconciler.model.failover import FailbackPlan
from reconciler.model.spec import FlowSpec
from reconciler.model.topology import Topology
from reconciler.replicator.drive import new_run
from reconciler.state.failovers import Failovers
from reconciler.state.syncs import ensure
from tests.contract.kafka import create, declared
from tests.support.consumers import leave_behind, member_of, offsets_of
from tests.support.copying import Running, copy, fill, log_end

MODES = ("auto", "translated")
FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - name: over
    from: east
    to: west
    policy: {{type: identity}}
    offsets: {offsets}
    topics: {{include: [{topic}]}}
    groups: {{include: ["{topic}-.*"]}}
"""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


class Pair:
    """A flow with one topic of two partitions that is applied, and what is needed to try it."""

    def __init__(
        self,
        clusters: tuple[EmbeddedCluster, EmbeddedCluster],
        topic: str,
        offsets: str,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.east, self.west = clusters
        self.topic = self.name = topic
        self.file = folder / "topology.yaml"
        self._facts = {"name": topic, "topic": topic, "offsets": offsets, "west": self.west.bootstrap}
        self._capsys = capsys
        self.write(self.east.bootstrap)
        create(self.east, topic, 2)
        fill(self.east, topic, 200, 2)
        assert self.run("apply", "--yes").code == 0
        # Transactions of translated copies write to them; `replicate` has them made.
        for cluster, other in ((declared("west", self.west), "east"), (declared("east", self.east), "west")):
            ensure(cluster, other, 30)
        self.copy()

    @property
    def topology(self) -> Topology:
        return load((self.file,))

    def write(self, east: str) -> None:
        self.file.write_text(FILE.format(**self._facts, east=east))

    def group(self, name: str) -> str:
        return f"{self.topic}-{name}"

    def copy(self) -> None:
        """Copy what the original has now."""
        topology = self.topology
        copy(FlowSpec.compile(topology, topology.flows[0], new_run()))

    def run(self, command: str, *arguments: object) -> Said:
        self._capsys.readouterr()
        code = main([command, str(self.file), *map(str, arguments)])
        said = self._capsys.readouterr()
        return Said(code, said.out, " ".join(said.err.split()))

    def over(self, *arguments: object) -> Said:
        return self.run("failover", "--flow", "over", *arguments)

    def back(self, *arguments: object) -> Said:
        return self.run("failback", "--flow", "over", *arguments)

    @property
    def phase(self) -> str | None:
        failovers = Failovers(declared("west", self.west), self.name)
        try:
            state = failovers.current().get("over")
            return state.phase if state else None
        finally:
            failovers.close()


Make = Callable[[str], Pair]


@pytest.fixture
def make(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Make:
    """Makes a pair whose copies are made and brought back without Spark."""

    def copy_back(_topology: Topology, coming: Coming, plan: FailbackPlan) -> None:
        for spec in coming.specs(plan, new_run()):
            copy(spec)

    monkeypatch.setattr(failbacks, "_copy_back", copy_back)
    topic = topic_name[-60:].strip("-")
    return lambda offsets: Pair((source_cluster, target_cluster), topic, offsets, tmp_path, capsys)


def write(cluster: EmbeddedCluster, topic: str, values: list[str], partition: int = 0) -> None:
    """Write as applications do, in a transaction."""
    producer = Producer(
        cluster.client_config() | {"transactional.id": f"{topic}-{values[0]}", "linger.ms": 5, "log_level": "2"}
    )
    place = declared("any", cluster)
    end = log_end(place, topic, partition)
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value.encode(), partition=partition)
    producer.commit_transaction(60)
    # The marker may come a moment later.
    deadline = time.monotonic() + 60
    while log_end(place, topic, partition) < end + len(values) + 1:
        assert time.monotonic() < deadline, "the transaction does not end"
        time.sleep(0.05)


@pytest.mark.parametrize("offsets", MODES)
def test_groups_go_over_and_come_back_and_the_flow_goes_on(make: Make, offsets: str) -> None:
    pair = make(offsets)
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40, (pair.topic, 1): 100})
    shown = pair.over("--dry-run", "--format", "json")
    assert (shown.code, shown.json["plan"]["recordsNotCopied"], pair.phase) == (0, 0, None)
    assert [(one["group"], one["offset"], one["lag"]) for one in shown.json["plan"]["groups"]] == [
        (group, 40, 60),
        (group, 100, 0),
    ]
    over = pair.over("--yes")
    assert (over.code, pair.phase) == (0, "over"), over
    at_west = offsets_of(pair.west, group)
    assert at_west[log] == 40
    assert at_west[pair.topic, 1] == log_end(declared("west", pair.west), pair.topic, 1)

    # The same again changes nothing: who has read on at west stays where they are.
    leave_behind(pair.west, group, {log: 60})
    again = pair.over("--yes")
    assert (again.code, offsets_of(pair.west, group)[log]) == (0, 60), again

    write(pair.west, pair.topic, [f"new-{number}" for number in range(50)])
    end = log_end(declared("west", pair.west), pair.topic)
    leave_behind(pair.west, group, {log: end - 31})
    back = pair.back("--yes", "--format", "json")
    assert (back.code, pair.phase) == (0, None), back
    assert [one["new"] for one in back.json["plan"]["topics"]] == [50]
    # 30 records and the end of the transaction are behind it at west, and as much, however it is written, at east.
    assert read_from(pair.east, pair.topic, offsets_of(pair.east, group)[log]) == [f"new-{n}" for n in range(20, 50)]
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, end) == ["more"]


def read_from(cluster: EmbeddedCluster, topic: str, offset: int) -> list[str]:
    """Return what readers of committed records find in partition 0 from an offset on."""
    consumer = Consumer(
        cluster.client_config() | {"group.id": "unused", "enable.partition.eof": True, "log_level": "2"}
    )
    found = []
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        while (message := consumer.poll(60)) is not None:
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                break
            found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("offsets", MODES)
def test_what_diverged_is_counted_kept_and_made_anew(make: Make, offsets: str, tmp_path: Path) -> None:
    pair = make(offsets)
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40})
    write(pair.east, pair.topic, [f"lost-{number}" for number in range(7)])
    shown = pair.over("--dry-run", "--format", "json")
    assert shown.json["plan"]["recordsNotCopied"] == 7
    assert pair.over("--yes").code == 0
    # Nothing has come to the copy yet: what never crossed would cross when the flow goes on.
    assert "7" in pair.back("--dry-run").out
    write(pair.west, pair.topic, [f"new-{number}" for number in range(5)])
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "over"), refused
    assert "has 7 records that never crossed" in refused.err
    nowhere = pair.back("--yes", "--rebuild", pair.topic)
    assert (nowhere.code, "[AB708]" in nowhere.err, pair.phase) == (1, True, "over"), nowhere
    before = log_end(declared("east", pair.east), pair.topic)
    assert log_end(declared("east", pair.east), pair.topic) == before

    kept = tmp_path / "kept"
    end = log_end(declared("west", pair.west), pair.topic)
    leave_behind(pair.west, group, {log: 101})
    back = pair.back("--yes", "--rebuild", pair.topic, "--export", kept)
    assert (back.code, pair.phase) == (0, None), back
    lines = [json.loads(line) for line in (kept / f"{pair.topic}.jsonl").read_text().splitlines()]
    assert len(lines) == 7
    assert log_end(declared("east", pair.east), pair.topic) == end
    everything = read_from(pair.west, pair.topic, 0)
    assert read_from(pair.east, pair.topic, 0) == everything
    assert everything[-5:] == [f"new-{number}" for number in range(5)]
    at_east = offsets_of(pair.east, group)[log]
    behind = read_from(pair.west, pair.topic, 101)
    assert read_from(pair.east, pair.topic, at_east) == behind
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, end) == ["more"]
    # And over once more: what was copied back stands at both sides.
    leave_behind(pair.east, group, {log: at_east})
    assert pair.over("--yes").code == 0
    assert read_from(pair.west, pair.topic, offsets_of(pair.west, group)[log]) == [*behind, "more"]


def test_without_the_source_the_last_checkpoints_tell(make: Make) -> None:
    pair = make("auto")
    group = pair.group("a")
    leave_behind(pair.east, group, {(pair.topic, 0): 40, (pair.topic, 1): 77})
    topology = pair.topology
    flow = topology.flows[0]
    rounds = Rounds(topology.clusters["east"], topology.clusters["west"], flow, topology.aliases)
    rounds.begin()
    rounds.round()
    rounds.close()
    pair.write("127.0.0.1:1")
    unreachable = pair.over("--yes")
    assert (unreachable.code, "--source-lost" in unreachable.err, pair.phase) == (6, True, None), unreachable
    lost = pair.over("--yes", "--source-lost", "--format", "json")
    assert (lost.code, lost.json["committed"], lost.json["plan"]["recordsNotCopied"]) == (0, 2, None), lost
    assert offsets_of(pair.west, group) == {(pair.topic, 0): 40, (pair.topic, 1): 77}
    assert pair.phase == "over"


def test_a_group_that_has_members_there_is_left_and_told(make: Make) -> None:
    pair = make("auto")
    busy, idle = pair.group("busy"), pair.group("idle")
    for group in (busy, idle):
        leave_behind(pair.east, group, {(pair.topic, 0): 40})
    with member_of(pair.west, busy, [pair.topic]):
        over = pair.over("--yes")
    assert (over.code, "[AB626]" in over.err, pair.phase) == (1, True, "over"), over
    assert offsets_of(pair.west, idle) == {(pair.topic, 0): 40}
    assert offsets_of(pair.west, busy) == {}
    again = pair.over("--yes", "--group", busy)
    assert (again.code, offsets_of(pair.west, busy)) == (0, {(pair.topic, 0): 40}), again


def test_what_cannot_be_done_is_refused_and_changes_nothing(make: Make, tmp_path: Path) -> None:
    pair = make("auto")
    for said, code, words in (
        (pair.back("--yes"), 4, "[AB703]"),
        (pair.run("failover", "--flow", "other", "--yes"), 2, "no flow other is declared"),
        (pair.over(), 2, "--dry-run shows what would be done"),
        (pair.over("--yes", "--until-caught-up", "--source-lost"), 2, "never caught up"),
        (pair.over("--yes", "--group", "nobody"), 1, "[AB625]"),
        (pair.back("--yes", "--export", tmp_path, "--export-topic", "x"), 2, "files or to a topic"),
    ):
        assert (said.code, words in said.err, pair.phase) == (code, True, None), said
    assert pair.over("--yes").code == 0
    for name in (pair.topic, "other"):
        said = pair.back("--yes", "--rebuild", name)
        assert (said.code, "[AB704]" in said.err, pair.phase) == (1, True, "over"), said
    # One that has copied nothing has nobody to move.
    facts = pair.file.read_text().replace("name: over", "name: fresh")
    pair.file.write_text(facts)
    fresh = pair.run("failover", "--flow", "fresh", "--yes")
    assert (fresh.code, "[AB700]" in fresh.err) == (1, True), fresh


def test_a_failover_that_has_moved_nobody_is_called_off(make: Make) -> None:
    pair = make("auto")
    group = pair.group("a")
    leave_behind(pair.east, group, {(pair.topic, 0): 40})
    topology = pair.topology
    with Running(FlowSpec.compile(topology, topology.flows[0], new_run())) as running:
        running.wait()
        # A task hears of its process, which here is none that looks for failovers.
        late = pair.over("--yes", "--patience", 2)
        assert (late.code, "[AB702]" in late.err, pair.phase) == (1, True, "ending"), late
    assert offsets_of(pair.west, group) == {}
    back = pair.back("--yes")
    assert (back.code, "called off" in back.err, pair.phase) == (0, True, None), back


def test_records_that_wait_are_waited_for(make: Make) -> None:
    pair = make("auto")
    write(pair.east, pair.topic, ["late"])
    said = pair.over("--yes", "--until-caught-up", "--patience", 1)
    assert (said.code, "[AB707]" in said.err, pair.phase) == (1, True, None), said
    pair.copy()
    assert pair.over("--yes", "--until-caught-up").code == 0
