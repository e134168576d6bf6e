"""What cannot be copied parks its own partition, exactly where it stands, and holds up nobody else.

One flow meets every trouble at once: `Trouble` makes the topics, lets them be copied, spoils them, and runs the task
again. Each test looks at one of them.
"""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import create, declared, delete, delete_records, set_config
from tests.support.replicator.copying import REMOTE, Copied, Running, at, code, copy, fill, identical, log_end, spec_of

# Copied first, then spoiled.
COPIED = ("healthy", "foreign", "foreign-producer", "overtaken", "recreated", "shorter", "forgotten")
# Troubled from the first record on.
TROUBLED = ("large", "missing", "narrow", "taken")
SECONDS = 300.0
LARGE = b"x" * 1_500_000


class Trouble:
    """The topics of one flow, and what a task made of them."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
        self.source, self.target = source, target
        self.prefix = f"trouble-{uuid.uuid4().hex[:8]}"
        self.spec = spec_of(declared("east", source), declared("west", target), f"{self.prefix}-.*")

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def remote(self, name: str) -> str:
        return f"east.{self.prefix}-{name}"

    def make(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        create(self.source, self.topic(name), partitions, configs)
        create(self.target, self.remote(name), partitions, REMOTE)

    def fill(self, name: str, records: int, partitions: int = 1) -> None:
        fill(self.source, self.topic(name), records, partitions)

    def end(self, name: str) -> int:
        return log_end(self.spec.target, self.remote(name))


def write(cluster: EmbeddedCluster, topic: str, *values: bytes, idempotent: bool = False) -> None:
    producer = Producer(
        cluster.client_config() | {"enable.idempotence": idempotent, "message.max.bytes": 4_000_000, "log_level": "2"}
    )
    for value in values:
        producer.produce(topic, value=value, partition=0)
    assert producer.flush(SECONDS) == 0


def begin(trouble: Trouble) -> None:
    """Make all topics and let those be copied that can be."""
    for name in COPIED:
        partitions = 2 if name == "healthy" else 1
        trouble.make(name, partitions)
        trouble.fill(name, 10, partitions)
    trouble.make("large", configs={"max.message.bytes": "4000000"})
    trouble.fill("large", 10)
    create(trouble.source, trouble.topic("missing"))
    trouble.fill("missing", 10)
    create(trouble.source, trouble.topic("narrow"), 2)
    create(trouble.target, trouble.remote("narrow"), 1, REMOTE)
    trouble.fill("narrow", 20, 2)
    trouble.make("taken")
    trouble.fill("taken", 10)

    write(trouble.source, trouble.topic("large"), LARGE)
    write(trouble.target, trouble.remote("taken"), b"foreign")


def spoil(trouble: Trouble) -> None:
    """Do to each copied topic what its name says."""
    source, target = trouble.source, trouble.target
    trouble.fill("healthy", 40, 2)
    write(target, trouble.remote("foreign"), b"foreign")
    trouble.fill("foreign", 5)
    write(target, trouble.remote("foreign-producer"), b"foreign", idempotent=True)
    trouble.fill("foreign-producer", 5)
    trouble.fill("overtaken", 30)
    delete_records(source, trouble.topic("overtaken"), 25)
    for name, records in (("recreated", 15), ("shorter", 5)):
        delete(source, trouble.topic(name))
        create(source, trouble.topic(name))
        write(source, trouble.topic(name), *[b"another-%d" % n for n in range(records)])
    trouble.fill("forgotten", 5)
    delete_records(source, trouble.topic("forgotten"), 10)


@pytest.fixture(scope="module")
def trouble(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster) -> Trouble:
    return Trouble(source_cluster, target_cluster)


@pytest.fixture(scope="module")
def first(trouble: Trouble) -> Copied:
    begin(trouble)
    return copy(trouble.spec)


@pytest.fixture(scope="module")
def second(trouble: Trouble, first: Copied) -> Copied:
    """The run after the topics were spoiled."""
    spoil(trouble)
    again = spec_of(trouble.spec.source, trouble.spec.target, f"{trouble.prefix}-.*")

    def all_said(status: TaskStatus) -> bool:
        healthy = all(at(status, trouble.topic("healthy"), n).position == 25 for n in range(2))
        parked = all(code(at(status, trouble.topic(name))) for name in COPIED if name not in ("healthy", "forgotten"))
        return healthy and parked and at(status, trouble.topic("forgotten")).position == 15

    return copy(again, all_said)


def parked(trouble: Trouble, copied: Copied, name: str, partition: int = 0) -> PartitionStatus:
    """Return what is said of a partition that is parked."""
    status = copied.at(trouble.topic(name), partition)
    assert status.state is PartitionState.PARKED
    return status


@pytest.mark.parametrize("name", COPIED)
def test_what_can_be_copied_is(trouble: Trouble, first: Copied, name: str) -> None:
    status = first.at(trouble.topic(name))
    assert (status.state, status.reason, status.lag) == (PartitionState.RUNNING, None, 0)


def test_a_record_too_large_parks_with_its_size(trouble: Trouble, first: Copied) -> None:
    status = parked(trouble, first, "large")
    assert (code(status), status.position, trouble.end("large")) == ("AB212", 10, 10)
    assert "offset 10 has 1,500,0" in str(status.reason)
    assert trouble.remote("large") in str(status.reason)


def test_a_missing_remote_topic_parks(trouble: Trouble, first: Copied) -> None:
    status = parked(trouble, first, "missing")
    assert (code(status), status.position) == ("AB214", -1)
    assert f"topic {trouble.remote('missing')} does not exist at the target" in str(status.reason)


def test_a_missing_remote_partition_parks_alone(trouble: Trouble, first: Copied) -> None:
    status = parked(trouble, first, "narrow", 1)
    assert code(status) == "AB214"
    assert f"partition 1 of topic {trouble.remote('narrow')} does not exist" in str(status.reason)
    assert first.at(trouble.topic("narrow"), 0).lag == 0
    assert trouble.end("narrow") == 10


def test_foreign_records_in_a_new_remote_topic_park(trouble: Trouble, first: Copied) -> None:
    status = parked(trouble, first, "taken")
    assert (code(status), trouble.end("taken")) == ("AB211", 1)
    assert f"another producer wrote to {trouble.remote('taken')}/0" in str(status.reason)


def test_foreign_records_behind_the_copy_park(trouble: Trouble, second: Copied) -> None:
    status = parked(trouble, second, "foreign")
    assert (code(status), trouble.end("foreign")) == ("AB209", 11)
    assert "its record at offset 10 differs in" in str(status.reason)


def test_a_foreign_idempotent_producer_parks(trouble: Trouble, second: Copied) -> None:
    status = parked(trouble, second, "foreign-producer")
    assert (code(status), trouble.end("foreign-producer")) == ("AB211", 11)
    assert "only the replicator may write to a copy" in str(status.reason)


def test_retention_that_overtook_the_copy_parks_with_the_exact_loss(trouble: Trouble, second: Copied) -> None:
    status = parked(trouble, second, "overtaken")
    assert (code(status), trouble.end("overtaken")) == ("AB208", 10)
    assert str(status.reason).startswith(
        f"15 offsets of {trouble.topic('overtaken')}/0 were deleted at the source before being copied: 10 to 24"
    )


@pytest.mark.parametrize("name", ["recreated", "shorter"])
def test_a_source_made_anew_parks(trouble: Trouble, second: Copied, name: str) -> None:
    status = parked(trouble, second, name)
    assert (code(status), trouble.end(name)) == ("AB218", 10)
    assert f"topic {trouble.topic(name)} was deleted at the source and created again" in str(status.reason)


def test_without_a_common_record_the_source_topics_id_decides(trouble: Trouble, second: Copied) -> None:
    status = second.at(trouble.topic("forgotten"))
    assert (status.state, status.lag, trouble.end("forgotten")) == (PartitionState.RUNNING, 0, 15)


def test_without_a_common_record_and_memory_it_parks(trouble: Trouble, second: Copied) -> None:
    spec = trouble.spec
    Journal(spec.target, own(spec.topology).copies).write(f"{spec.flow.name}/{trouble.remote('forgotten')}/0", None)
    delete_records(trouble.source, trouble.topic("forgotten"), 15)
    copied = copy(spec_of(spec.source, spec.target, trouble.topic("forgotten")))
    assert code(parked(trouble, copied, "forgotten")) == "AB215"


def test_healthy_partitions_go_on_to_their_end(trouble: Trouble, second: Copied) -> None:
    assert [second.at(trouble.topic("healthy"), n).lag for n in range(2)] == [0, 0]
    assert identical(trouble.spec, trouble.topic("healthy")) == 50


def test_who_writes_beside_a_running_copy_parks_it_for_good(trouble: Trouble) -> None:
    """No broker keeps a stranger out: what was under way by then lands behind the foreign record, and nothing more."""
    trouble.make("beside")
    trouble.fill("beside", 10)
    topic, remote = trouble.topic("beside"), trouble.remote("beside")

    def is_parked(status: TaskStatus) -> bool:
        return at(status, topic).state is PartitionState.PARKED

    spec = spec_of(trouble.spec.source, trouble.spec.target, topic)
    with Running(spec) as running:
        running.wait()
        write(trouble.target, remote, b"foreign")
        write(trouble.source, topic, b"under way")
        running.wait(lambda status: at(status, topic).reason is not None)
        # A source that ends before its copy is given half a minute.
        trouble.fill("beside", 5)
        status = running.wait(is_parked)
        assert code(at(status, topic)) == "AB209"
        assert f"{remote}/0" in str(at(status, topic).reason)
        assert trouble.end("beside") == 12
    again = copy(spec_of(spec.source, spec.target, topic), is_parked)
    assert (code(again.at(topic)), again.records, trouble.end("beside")) == ("AB209", 0, 12)


def test_what_was_mended_goes_on_by_itself(trouble: Trouble, second: Copied) -> None:
    again = spec_of(trouble.spec.source, trouble.spec.target, *(trouble.topic(n) for n in ("large", "missing")))
    with Running(again) as running:
        running.wait(lambda status: {code(p) for p in status.partitions} == {"AB212", "AB214"})
        set_config(trouble.target, trouble.remote("large"), "max.message.bytes", "4000000")
        create(trouble.target, trouble.remote("missing"), 1, REMOTE)
        status = running.wait(lambda status: {p.state for p in status.partitions} == {PartitionState.RUNNING})
        assert {p.reason for p in status.partitions} == {None}
        running.wait(lambda status: {p.lag for p in status.partitions} == {0})
    assert identical(again, trouble.topic("large"), trouble.topic("missing")) == 21
