"""Comparing real logs piece by piece, without Spark: where copies begin, and what retention takes meanwhile."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.offsets.verification import Findings
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.transfer.pace import Quota
from reconciler.state.copies import Copies
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.verify import work
from reconciler.verify.comparison import past
from reconciler.verify.slices import SliceBounds, SliceProgress
from reconciler.verify.survey import Survey, VerifyFilter
from tests.contract.replicator.commit.test_at_least_once import repeating
from tests.contract.replicator.commit.test_translated import into, make, translated
from tests.contract.replicator.gaps.test_gaps import transact
from tests.contract.replicator.task.test_dead_letters import LARGE, flow_spec, send
from tests.support.clusters.kafka import create, delete, delete_records, set_config
from tests.support.commands.failing_over import open_transaction
from tests.support.replicator.copying import REMOTE, copy, fill, spec_of, wait_until_ends_at

MODES = ("identical", "translated")
HOUR_MS = 3_600_000


def looked_at(spec: FlowSpec, wanted: VerifyFilter | None = None) -> list[SliceBounds]:
    """Look at both sides of a flow; everything must be told."""
    warnings: list[Problem] = []
    found = Survey(spec, wanted or VerifyFilter(), warnings.append).look()
    assert (warnings, found.without, found.unreadable) == ([], (), ())
    return list(found.bounds)


def compared(spec: FlowSpec, bounds: SliceBounds) -> tuple[SliceProgress, int]:
    """Compare one partition in the smallest pieces; return how far it came, and in how many."""
    progress, pieces = SliceProgress.begin(bounds), 0
    while not progress.is_done:
        # As it goes to a worker and back.
        told = [json.loads(json.dumps(one.to_json())) for one in (bounds, progress)]
        slices = [(SliceBounds.from_json(told[0]), SliceProgress.from_json(told[1]))]
        (progress,) = work.run(spec, slices, time.monotonic(), Quota(None))
        assert progress.failure is None
        pieces += 1
    return progress, pieces


def verified(spec: FlowSpec, wanted: VerifyFilter | None = None) -> list[Findings]:
    return [compared(spec, bounds)[0].findings for bounds in looked_at(spec, wanted)]


def flow(source: Cluster, target: Cluster, mode: str, topic: str) -> FlowSpec:
    return translated(source, target, topic) if mode == "translated" else spec_of(source, target, topic)


@pytest.mark.parametrize("mode", MODES)
def test_what_the_replicator_copied_is_equal_in_any_pieces(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    mode: str,
) -> None:
    make(source_cluster, target_cluster, [topic_name], 2)
    fill(source_cluster, topic_name, 3_000, 2, codec="lz4")
    transact(source_cluster, topic_name, range(2), 6)
    spec = flow(source, target, mode, f"{topic_name}.*")
    copied = copy(spec)
    # The end of a transaction alone is nothing that would be missing.
    whole = [(one.held, compared(spec, one)[0].findings.counts.behind) for one in looked_at(spec)]
    assert whole == [(0, 0), (0, 0)]
    fill(source_cluster, topic_name, 100, 2)
    bounds = looked_at(spec)
    found = [compared(spec, one) for one in bounds]
    assert [progress.findings.told for progress, _ in found] == [[], []]
    assert sum(progress.findings.counts.records for progress, _ in found) == copied.status.records
    assert all(progress.findings.counts.behind >= 50 for progress, _ in found)
    if mode == "translated":
        # What was committed as copied must be there; a marker may stand behind it.
        told = [(one.copied_to, progress.source) for one, (progress, _) in zip(bounds, found, strict=True)]
        assert all(copied_to is not None and 0 <= copied_to - reached <= 1 for copied_to, reached in told), told
    assert {one.offsets for one in bounds} == {mode}
    with open_transaction(source_cluster, topic_name, 1, 10) as name:
        held = [(one.held, one.held_by) for one in looked_at(spec)]
    assert held[0] == (0, "")
    assert (held[1][0], held[1][1].endswith(f", transactional id {name}")) == (10, True), held


@pytest.mark.parametrize("mode", MODES)
def test_what_either_side_has_deleted_is_left_out(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    mode: str,
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    fill(source_cluster, topic_name, 900)
    spec = flow(source, target, mode, topic_name)
    copy(spec)
    (whole,) = looked_at(spec)
    delete_records(source_cluster, topic_name, 200)
    # Between looking and comparing: it was asked for from 0 on.
    progress, _ = compared(spec, whole)
    assert progress.findings.told == []
    assert (progress.findings.counts.records, progress.findings.counts.expired) == (700, 200)
    delete_records(target_cluster, f"east.{topic_name}", 450)
    progress, _ = compared(spec, whole)
    assert progress.findings.told == []
    assert 440 <= progress.findings.counts.records <= 450
    (found,) = verified(spec)
    assert found.told == []
    assert 440 <= found.counts.records <= 450


def test_a_copy_that_begins_elsewhere_is_found_by_time_or_syncs(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    # More than is looked at for what both begin with.
    fill(source_cluster, topic_name, 6_000, age=HOUR_MS)
    fill(source_cluster, topic_name, 6_000)
    spec = translated(source, target, topic_name)
    copy(spec)
    delete_records(target_cluster, f"east.{topic_name}", 8_000)
    (bounds,) = looked_at(spec)
    (found,) = verified(spec)
    assert found.told == []
    assert 3_900 <= found.counts.records <= 4_000
    # Only from the time of the later ones on.
    since = int(time.time() * 1_000) - HOUR_MS // 2
    (found,) = verified(spec, VerifyFilter(since=since))
    assert found.told == []
    assert 3_900 <= found.counts.records <= 4_000
    (found,) = verified(spec_of(source, target, topic_name), VerifyFilter(since=since + 2 * HOUR_MS))
    assert (found.told, found.counts.records) == ([], 0)
    # Another log under the copy's name, with nothing to tell where it begins.
    lost = replace(
        bounds, sync=None, remote=f"east.{topic_name}-other", target_id=None, target_end=100, has_first=False
    )
    create(target_cluster, lost.remote, 1, REMOTE)
    fill(target_cluster, lost.remote, 100, age=3 * HOUR_MS)
    progress, _ = compared(spec, replace(lost, target_first=0))
    assert [one.kind for one in progress.findings.told] == ["unrelated"]


def write(cluster: EmbeddedCluster, topic: str, numbers: range, values: str | None, keys: int = 2**31) -> None:
    """Produce records as compacted topics have them; their times tell them apart."""
    producer = Producer(cluster.client_config() | {"linger.ms": 10, "log_level": "2"})
    for number in numbers:
        value = None if values is None else f"{values}{number}".encode()
        producer.produce(topic, value, b"key-%d" % (number % keys), 0, timestamp=1_700_000_000_000 + number)
    assert producer.flush(30) == 0


def compacted(source: EmbeddedCluster, target: EmbeddedCluster, topic: str) -> None:
    make(source, target, [topic])
    for cluster, name in ((source, topic), (target, f"east.{topic}")):
        set_config(cluster, name, "cleanup.policy", "compact")


def test_more_superseded_records_than_a_window_may_be_gone_at_the_target(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    compacted(source_cluster, target_cluster, topic_name)
    old, new = range(17_000), range(17_000, 34_000)
    for numbers in (old, new):
        write(source_cluster, topic_name, numbers, "v", keys=17_000)
    for numbers in (range(17_000, 17_500), range(17_501, 34_000)):
        write(target_cluster, f"east.{topic_name}", numbers, "v", keys=17_000)
    spec = translated(source, target, topic_name)
    (bounds,) = looked_at(spec)
    progress, _ = compared(spec, bounds)
    found = progress.findings
    assert [(one.kind, one.source, one.target) for one in found.told] == [("missing", 17_500, 500)]
    assert (found.counts.records, found.counts.compacted_target) == (16_999, 17_000)


def test_what_replaces_a_record_may_be_written_after_the_comparison_began(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    compacted(source_cluster, target_cluster, topic_name)
    remote = f"east.{topic_name}"
    write(source_cluster, topic_name, range(6), "v")
    for numbers in (range(3), range(4, 6)):
        write(target_cluster, remote, numbers, "v")
    spec = translated(source, target, topic_name)
    (bounds,) = looked_at(spec)
    (found,) = verified(spec)
    assert [(one.kind, one.source, one.target) for one in found.told] == [("missing", 3, 3)]
    for cluster, topic in ((source_cluster, topic_name), (target_cluster, remote)):
        write(cluster, topic, range(2, 4), "w")
    found = compared(spec, bounds)[0].findings
    assert (found.told, found.counts.records, found.counts.compacted_target) == ([], 5, 1)


def test_a_tombstone_is_lost_while_the_target_has_what_it_deletes(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    compacted(source_cluster, target_cluster, topic_name)
    remote = f"east.{topic_name}"
    write(source_cluster, topic_name, range(6), "v")
    write(source_cluster, topic_name, range(1, 5), None)
    # What stood at 3 and 4 compaction has taken, and the tombstones of all but one.
    write(target_cluster, remote, range(3), "v")
    write(target_cluster, remote, range(5, 6), "v")
    write(target_cluster, remote, range(2, 3), None)
    (found,) = verified(translated(source, target, topic_name))
    what = "the target does not have it, and still has what this tombstone deletes, at offset 1"
    assert [(one.kind, one.source, one.target, one.what) for one in found.told] == [("missing", 6, 4, what)]
    assert (found.counts.records, found.counts.compacted_target) == (5, 2)


@pytest.mark.parametrize("mode", MODES)
def test_records_put_aside_are_known_from_what_is_recorded(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    mode: str,
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    set_config(source_cluster, topic_name, "max.message.bytes", "8000000")
    create(target_cluster, f"{topic_name}-dead", 1, {"max.message.bytes": "8000000"})
    send(source_cluster, topic_name, b"1", b"2")
    send(source_cluster, topic_name, b"3", LARGE, LARGE + b"!", b"4")
    send(source_cluster, topic_name, b"5")
    spec = flow_spec(source, target, mode, f"{topic_name}-dead", topic_name)  # type: ignore[arg-type]
    copy(spec)
    (found,) = verified(spec)
    assert (found.told, found.counts.records, found.counts.aside) == ([], 5, 2)


def test_repeated_records_of_an_at_least_once_flow_are_counted(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    send(source_cluster, topic_name, b"1", b"2", b"3", b"4")
    for part in ((b"1", b"2", b"3"), (b"2", b"3", b"4")):
        send(target_cluster, f"east.{topic_name}", *part)
    (found,) = verified(repeating(source, target, topic_name))
    assert (found.told, found.counts.records, found.counts.repeated) == ([], 4, 2)
    (found,) = verified(translated(source, target, topic_name))
    assert [(one.kind, one.records) for one in found.told] == [("duplicate", 2)]


def test_repeated_records_may_have_gone_by_long_ago(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(past, "_RECORDS", 100)
    make(source_cluster, target_cluster, [topic_name])
    remote = f"east.{topic_name}"
    write(source_cluster, topic_name, range(30_000), "v")
    for numbers in (range(25_000), range(1_000, 28_000), range(27_990, 28_000), range(40_000, 40_001)):
        write(target_cluster, remote, numbers, "v")
    write(target_cluster, remote, range(20_000, 30_000), "v")
    (found,) = verified(repeating(source, target, topic_name))
    assert [(one.kind, one.source, one.records) for one in found.told] == [("extra", 28_000, 1)]
    assert (found.counts.records, found.counts.repeated) == (30_000, 24_000 + 10 + 8_000)


def test_a_copy_that_several_flows_fill_holds_the_records_of_each(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [])
    originals = [f"{topic_name}-{number}" for number in (1, 2)]
    for topic in originals:
        create(source_cluster, topic)
    create(target_cluster, topic_name, 1, REMOTE)
    specs = [into(translated(source, target, topic), topic_name) for topic in originals]
    for count in (300, 500):
        for number, topic in enumerate(originals):
            fill(source_cluster, topic, count, age=number * HOUR_MS)
            copy(into(translated(source, target, topic), topic_name))
    for spec in specs:
        (found,) = verified(spec)
        assert (found.told, found.counts.records, found.counts.others) == ([], 800, 800)
    send(target_cluster, topic_name, b"foreign")
    (found,) = verified(specs[0])
    assert (found.told, found.counts.others) == ([], 801)


def test_recorded_shifted_runs_are_followed_and_others_told(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    set_config(source_cluster, topic_name, "cleanup.policy", "compact")
    spec, remote = spec_of(source, target, topic_name), f"east.{topic_name}"
    values = [b"%d" % number for number in range(10)]
    send(source_cluster, topic_name, *values)
    send(target_cluster, remote, *values[:5])
    # A record that nobody sees, and its marker.
    producer = Producer(target_cluster.client_config() | {"transactional.id": topic_name, "log_level": "2"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(remote, b"never seen", partition=0)
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    wait_until_ends_at(target, remote, 7)
    send(target_cluster, remote, *values[5:])
    (found,) = verified(spec)
    assert [(one.kind, one.source, one.target) for one in found.told] == [("moved", 5, 7)]
    Journal(target, own(spec.topology).copies).ensure()
    copies = Copies(target, spec.topology)
    copies.put(spec.flow.name, remote, 0, CopyRecord(None, None, runs=Runs((Run(5, 2),))))
    copies.close()
    (bounds,) = looked_at(spec)
    assert (bounds.source_compacts, bounds.target_compacts) == (True, False)
    progress, _ = compared(spec, bounds)
    assert (progress.findings.told, progress.findings.counts.records) == ([], 10)
    # What is recorded of another topic does not count.
    copies = Copies(target, spec.topology)
    copies.put(spec.flow.name, remote, 0, CopyRecord(None, "of another", runs=Runs((Run(5, 2),))))
    copies.close()
    assert [one.kind for one in verified(spec)[0].told] == ["moved"]


def test_a_topic_made_anew_meanwhile_is_not_compared(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    make(source_cluster, target_cluster, [topic_name])
    spec = spec_of(source, target, topic_name)
    send(source_cluster, topic_name, b"1")
    send(target_cluster, f"east.{topic_name}", b"1")
    (bounds,) = looked_at(spec)
    delete(target_cluster, f"east.{topic_name}")
    for said in ("cannot be read", "made anew"):
        (progress,) = work.run(spec, [(bounds, SliceProgress.begin(bounds))], time.monotonic() + 5, Quota(None))
        assert progress.failure is not None
        assert (progress.failure.code, said in progress.failure.message) == ("AB609", True)
        if said == "cannot be read":
            create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    found = Survey(spec, VerifyFilter(remotes=("another",)), print).look()
    assert (found.bounds, found.without) == ((), ())
