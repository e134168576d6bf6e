"""Every offset of every kind of log, both ways, against what reading both logs record by record says."""

from __future__ import annotations

import csv
import itertools
import json
import time
import uuid
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from confluent_kafka import Producer

from reconciler.checkpoints.groups.bounds import ClusterLookup, Refusals
from reconciler.checkpoints.translation import history, unsynced
from reconciler.checkpoints.translation.pairing import SeenRecord
from reconciler.checkpoints.translation.translate import Translator
from reconciler.checkpoints.translation.walk import RecordReader, TooManyRecords
from reconciler.cli.offsets.translate import translate
from reconciler.embedded import EmbeddedCluster, running
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.offsets.translation import Translated, Way
from reconciler.replicator.commit import base
from reconciler.replicator.gaps.fill import Filler
from reconciler.replicator.partition.shares import Place
from reconciler.wire import ConnectionLost, TopicInfo
from reconciler.wire.requests import commits
from tests.support.clusters.kafka import create, declared, delete, delete_records, names
from tests.support.replicator.all_kinds import EAGER, KINDS, SECONDS, World, Written, ask, check, first_at, thinned
from tests.support.replicator.copying import REMOTE, Running, all_running, copy, log_end, spec_of
from tests.support.replicator.translated import committed


@pytest.fixture(scope="module")
def world(target_cluster: EmbeddedCluster) -> Iterator[World]:
    """All kinds of logs, copied in small transactions, some of them aborted, by several runs."""
    with running(EmbeddedCluster("eager", EAGER)) as (source,), pytest.MonkeyPatch.context() as patch:
        world = World(source, target_cluster)
        world.write()
        world.compact()
        assert all_running(copy(world.again()).status.partitions)
        whole, calls = commits.end, itertools.count()

        async def lost(wire: object, transactor: object, committed: bool) -> None:
            if next(calls) % 3 == 1:
                message = "cut off"
                raise ConnectionLost(message)
            await whole(wire, transactor, committed)  # type: ignore[arg-type]

        patch.setattr(commits, "end", lost)
        spec = world.again()
        spec = replace(spec, flow=replace(spec.flow, commit_interval=0.05))
        with Running(spec) as copying:
            for _ in range(3):
                world.write()
                copying.settled_again()
        assert next(calls) > 4
        patch.setattr(commits, "end", whole)
        world.write()
        assert all_running(copy(world.again()).status.partitions)
        world.compact()
        assert all_running(copy(world.again()).status.partitions)
        yield world


@pytest.mark.parametrize("kind", KINDS)
def test_every_offset_is_translated_as_reading_both_logs_says(world: World, kind: str) -> None:
    check(world, kind)


def test_holes_inside_batches_were_copied_and_compaction_went_on(world: World) -> None:
    """Or the others would show less than they say."""
    pairs = world.truth("compacted")
    distances = {target - source for source, target in pairs}
    assert len(distances) > 10
    left = committed(world.spec.source, world.written["compacted"].topic)
    assert len(left) < len(pairs)


def test_what_is_past_the_end_is_the_end_and_says_so(world: World) -> None:
    spec, topic = world.spec, world.written["transactions"].topic
    source_end, target_end = log_end(spec.source, topic), log_end(spec.target, world.remote("transactions"))
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        found = translator.downstream(topic, 0, source_end + 1_000)
        assert (found.offset, found.how) == (target_end, "ahead")
        assert "1,000 past" in found.why
        back = translator.upstream(topic, 0, target_end + 1_000)
        assert back.how == "ahead"
        assert back.offset is not None
        assert back.offset <= source_end
        assert translator.downstream(f"{topic}-other", 0, 0).how == "unknown"


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("keep", [(-1,), (0, 4, -1)])
@pytest.mark.parametrize("kind", ["plain", "transactions"])
def test_where_syncs_are_gone_counting_is_as_exact(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str, keep: Sequence[int], *, told: bool
) -> None:
    thinned(world, monkeypatch, keep=keep, told=told)
    check(world, kind)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("kind", ["compacted", "mixed"])
def test_where_syncs_and_records_are_gone_nothing_that_is_left_is_skipped_or_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str, *, told: bool
) -> None:
    thinned(world, monkeypatch, keep=(-1,), told=told)
    spec, topic, pairs = world.spec, world.written[kind].topic, world.truth(kind)
    left = {message.offset() for message in committed(spec.source, topic)}
    source_end = log_end(spec.source, topic)
    for offset, found in enumerate(ask(spec, topic, source_end + 1, "downstream")):
        assert found.offset is not None
        read = {source for source, target in pairs if target >= found.offset}
        assert not {source for source in read if source < offset}
        assert not {source for source, _ in pairs if source >= offset and source in left} - read
    for offset, found in enumerate(ask(spec, topic, log_end(spec.target, world.remote(kind)), "upstream")):
        assert found.offset is not None
        unread = {source for source, target in pairs if target >= offset and source in left}
        assert {one for one in left if one is not None and one >= found.offset and one <= pairs[-1][0]} == unread


def test_what_is_too_much_to_be_read_is_not_guessed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    thinned(world, monkeypatch, keep=(-1,), told=True)
    spec, topic = world.spec, world.written["plain"].topic
    with Translator(spec.source, spec.target, spec.flow, spec.topology, most=10) as translator:
        found = translator.downstream(topic, 0, 0)
    assert (found.offset, found.how) == (None, "unknown")
    assert "more there than 10 records" in found.why


def test_what_was_read_in_vain_is_not_read_again_in_each_round(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    thinned(world, monkeypatch, keep=(-1,), told=True)
    spec, topic = world.spec, world.written["plain"].topic
    read: list[int] = []

    def slow(_: RecordReader, topic: str, partition: int, first: int, end: int | None, most: int) -> list[SeenRecord]:
        read.append(first)
        time.sleep(0.5)
        raise TooManyRecords

    monkeypatch.setattr(RecordReader, "seen", slow)
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        for _ in range(5):
            translator.refresh()
            assert translator.downstream(topic, 0, 0).how == "unknown"
        assert len(read) == 1
        # Some day it is.
        now = time.monotonic()
        monkeypatch.setattr(unsynced, "time", SimpleNamespace(monotonic=lambda: now + 3600))
        translator.refresh()
        assert translator.downstream(topic, 0, 0).how == "unknown"
    assert len(read) == 2


def test_where_a_copy_has_lost_what_is_told_of_it_is_its_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an election of a replica that was not in sync."""
    spec, topic, remote, pairs = world.spec, world.written["plain"].topic, world.remote("plain"), world.truth("plain")
    whole, kept = ClusterLookup.bounds, pairs[-5][1]

    def less(self: ClusterLookup, logs: Collection[Log], refusals: Refusals | None = None) -> dict[Log, LogBounds]:
        return {
            log: replace(one, stable=min(one.stable, kept), end=min(one.end, kept)) if log[0] == remote else one
            for log, one in whole(self, logs, refusals).items()
        }

    monkeypatch.setattr(ClusterLookup, "bounds", less)
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        assert translator.downstream(topic, 0, pairs[-6][0]) == Translated(pairs[-6][1], "record")
        for source in (pairs[-5][0], pairs[-1][0], pairs[-1][0] + 1):
            found = translator.downstream(topic, 0, source)
            assert (found.offset, found.how) == (kept, "ahead")
            assert f"ends at {kept}, and has lost" in found.why
        monkeypatch.undo()
        translator.refresh()
        assert translator.downstream(topic, 0, pairs[-5][0]) == Translated(kept, "record")


def test_a_command_tells_the_same_as_text_csv_and_json(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, written = world.spec, world.written["compacted"]
    pairs = world.truth("compacted")
    (source, target), (other, behind) = pairs[3], pairs[-2]
    end = log_end(spec.source, written.topic)
    clusters = {
        one.alias: {"bootstrap": list(one.bootstrap), "datacenter": "dc1"} for one in (spec.source, spec.target)
    }
    flow: dict[str, object] = {"from": spec.flow.source, "to": spec.flow.target, "offsets": "translated"}
    flow["topics"] = {"include": [f"{world.prefix}-.*"]}
    files = [tmp_path / "topology.yaml"]
    # JSON is YAML.
    files[0].write_text(json.dumps({"version": 1, "name": "tests", "clusters": clusters, "flows": [flow]}))
    rows = tmp_path / "offsets.csv"
    rows.write_text(
        f"group,topic,partition,offset\nbilling,{written.topic},0,{other}\nbilling,{written.topic},0,{end}\n"
    )
    name = f"{spec.flow.source}-{spec.flow.target}"
    translate(files, flow=name, offset=[f"{written.topic}/0:{source}"], csv_file=rows, output="csv")
    last = log_end(spec.target, world.remote("compacted"))
    assert list(csv.reader(capsys.readouterr().out.splitlines()))[1:] == [
        [written.topic, "0", str(source), str(target), "record", ""],
        [written.topic, "0", str(other), str(behind), "record", ""],
        [written.topic, "0", str(end), str(last), "end", ""],
    ]
    translate(files, flow=name, offset=[f"{written.topic}/0:{target}"], upstream=True, output="json")
    (found,) = json.loads(capsys.readouterr().out)["offsets"]
    assert (found["translated"], found["how"], found["way"]) == (source, "record", "upstream")
    translate(files, flow=name, offset=[f"{written.topic}/0:{source}"], output="text")
    assert capsys.readouterr().out.splitlines()[1].split() == [written.topic, "0", str(source), str(target), "record"]
    with pytest.raises(typer.BadParameter, match="no flow nothing is declared"):
        translate(files, flow="nothing", offset=[f"{written.topic}/0:1"])
    with pytest.raises(typer.BadParameter, match="name offsets"):
        translate(files, flow=name)


def test_without_the_source_all_that_is_told_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a failover. What would have to be read there is not guessed."""
    spec, topic, pairs = world.spec, world.written["transactions"].topic, world.truth("transactions")
    target_end = log_end(spec.target, world.remote("transactions"))
    with Translator(None, spec.target, spec.flow, spec.topology) as translator:
        for offset in range(pairs[0][0], pairs[-1][0] + 1):
            assert translator.downstream(topic, 0, offset) == Translated(first_at(pairs, offset, 0), "record")
        for offset in range(pairs[0][1], pairs[-1][1] + 1):
            assert translator.upstream(topic, 0, offset) == Translated(first_at(pairs, offset, 1), "record")
        position = translator.upstream(topic, 0, target_end).offset
        assert position is not None
        assert translator.downstream(topic, 0, position) == Translated(target_end, "end")
        ahead = translator.downstream(topic, 0, position + 1)
        assert (ahead.offset, ahead.how) == (target_end, "ahead")
        assert "no topic" in translator.downstream(f"{topic}-other", 0, 0).why
    thinned(world, monkeypatch, keep=(-1,), told=True)
    with Translator(None, spec.target, spec.flow, spec.topology) as translator:
        found = translator.downstream(topic, 0, pairs[0][0])
        assert (found.offset, found.how) == (None, "unknown")
        assert found.why.startswith("not known without the source: the offset syncs for it are gone")


def test_an_open_transaction_that_may_tell_more_is_not_passed_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_PATIENCE", 0.1)
    spec, topic, (source, target) = world.spec, world.written["plain"].topic, world.truth("plain")[-1]
    writer = Producer(world.target.client_config() | {"transactional.id": uuid.uuid4().hex, "log_level": "2"})
    writer.init_transactions(SECONDS)
    writer.begin_transaction()
    writer.produce(world.syncs, b"nobody's", b"anything")
    writer.flush(SECONDS)
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        assert translator.downstream(topic, 0, source) == Translated(target, "record")
        behind = translator.downstream(topic, 0, source + 1)
        assert (behind.offset, behind.how) == (None, "unknown")
        assert "not ended yet" in behind.why
        writer.abort_transaction(SECONDS)
        translator.refresh()
        assert translator.downstream(topic, 0, source + 1).how == "end"


def test_a_partition_of_which_nothing_is_copied_yet_and_a_topic_made_anew(world: World) -> None:
    """Also a partition that is not there, on either side."""
    spec, written = world.spec, Written(f"{world.prefix}-none")
    topic, remote = written.topic, spec.flow.remote_topic(written.topic)
    create(world.source, topic)
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        assert f"no topic {remote} at west" in translator.downstream(topic, 0, 0).why
        create(world.target, remote)
        translator.refresh()
        assert translator.downstream(topic, 0, 0) == Translated(0, "end")
        assert translator.upstream(topic, 0, 0) == Translated(0, "end")
        assert translator.downstream(topic, 1, 0).how == "unknown"
        written.produce(world.plain, 5)
        translator.refresh()
        ahead = translator.downstream(topic, 0, 3)
        assert (ahead.offset, ahead.how) == (0, "ahead")
        assert translator.downstream(topic, 0, 0) == Translated(0, "end")
        assert "no offset sync" in translator.upstream(topic, 0, 0).why
        assert all_running(copy(world.again()).status.partitions)
        translator.refresh()
        assert translator.downstream(topic, 0, 3) == Translated(3, "record")
        delete(world.target, remote)
        create(world.target, remote)
        translator.refresh()
        anew = translator.downstream(topic, 0, 3)
        assert (anew.offset, anew.how) == (None, "unknown")
        assert "was recreated" in anew.why
        delete(world.source, topic)
        translator.refresh()
        assert f"no topic {topic} at {spec.flow.source}" in translator.downstream(topic, 0, 3).why


def test_what_is_copied_meanwhile_is_seen_at_the_next_look_and_what_is_deleted_is_reported(world: World) -> None:
    """The last test of the file, as it changes what is there."""
    spec, topic, remote = world.spec, world.written["plain"].topic, world.remote("plain")
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        end = log_end(spec.source, topic)
        at_end = translator.downstream(topic, 0, end)
        assert at_end == Translated(log_end(spec.target, remote), "end")
        world.written["plain"].produce(world.plain, 7)
        assert translator.downstream(topic, 0, end) == at_end
        translator.refresh()
        assert translator.downstream(topic, 0, end) == at_end
        ahead = translator.downstream(topic, 0, end + 3)
        assert (ahead.offset, ahead.how) == (at_end.offset, "ahead")
        assert all_running(copy(world.again()).status.partitions)
        translator.refresh()
        pairs = world.truth("plain")
        # Nothing between the end of then and the first record that came since is a record.
        (following,) = [target for source, target in pairs if source == end]
        assert at_end.offset is not None
        assert not [target for _, target in pairs if at_end.offset <= target < following]
        assert translator.downstream(topic, 0, end) == Translated(following, "record")
        delete_records(world.target, remote, pairs[10][1])
        delete_records(world.source, topic, 20)
        translator.refresh()
        gone = translator.downstream(topic, 0, pairs[9][0])
        assert (gone.offset, gone.how) == (None, "expired")
        assert f"begins at {pairs[10][1]}" in gone.why
        assert translator.downstream(topic, 0, pairs[10][0]) == Translated(pairs[10][1], "record")
        assert translator.upstream(topic, 0, pairs[10][1]).how == "expired"
        assert translator.upstream(topic, 0, pairs[20][1]) == Translated(20, "record")


def test_at_least_once_copies_are_translated_to_the_first_of_what_was_written_again(
    world: World, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"{world.prefix}-plain"
    spec = spec_of(declared("again", world.source), world.spec.target, topic)
    spec = replace(spec, flow=replace(spec.flow, offsets="translated", delivery="at-least-once", commit_interval=0.05))
    create(target_cluster, f"again.{topic}", 1, REMOTE)
    if syncs_topic("again") not in names(target_cluster):
        create(target_cluster, syncs_topic("again"), 1, {"cleanup.policy": "compact"})
    whole, calls = base.Committer._write_syncs, itertools.count()

    async def twice(self: base.Committer, *arguments: object) -> int:
        told = await whole(self, *arguments)  # type: ignore[arg-type]
        if next(calls) % 2 == 0:
            message = "positions are not committed"
            raise ConnectionLost(message)
        return told

    monkeypatch.setattr(base.Committer, "_write_syncs", twice)
    with Running(spec) as copying:
        for _ in range(3):
            copying.settled_again()
            world.written["plain"].produce(world.plain, 20)
            copying.settled_again()
    assert next(calls) > 3
    offsets = world.written["plain"].offsets
    pairs: list[tuple[int, int]] = []
    for one in committed(spec.target, f"again.{topic}"):
        source = offsets[bytes(one.value() or b"")]
        if not pairs or source > pairs[-1][0]:
            pairs.append((source, one.offset() or 0))
    for offset, found in enumerate(ask(spec, topic, pairs[-1][0] + 1, "downstream")):
        assert (offset, found) == (offset, Translated(first_at(pairs, offset, 0), "record"))


def test_identical_offsets_are_the_same_but_in_shifted_runs(
    world: World, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, calls = Filler.fill, itertools.count()

    async def sometimes_too_long(self: Filler, place: Place, info: TopicInfo, start: int, count: int) -> int:
        overrun = 2 if next(calls) % 4 == 1 else 0
        return await whole(self, place, info, start, count + overrun)

    monkeypatch.setattr(Filler, "fill", sometimes_too_long)
    topic = world.written["transactions"].topic
    spec = spec_of(declared("same", world.source), world.spec.target, topic)
    create(target_cluster, f"same.{topic}", 1, REMOTE)
    assert all_running(copy(spec).status.partitions)
    offsets = world.written["transactions"].offsets
    copied = committed(spec.target, f"same.{topic}")
    pairs = [(offsets[bytes(one.value() or b"")], one.offset() or 0) for one in copied]
    assert len({target - source for source, target in pairs}) > 1
    ways: list[tuple[Way, int, int]] = [("downstream", 0, 1), ("upstream", 1, 0)]
    for way, side, other in ways:
        places = [pair[side] for pair in pairs]
        for offset, found in enumerate(ask(spec, topic, places[-1] + 1, way)):
            assert found.how == "record"
            assert found.offset is not None
            # Between two records any place is the same, as nothing stands there.
            at = bisect_left(places, offset)
            before = pairs[at - 1][other] if at else -1
            assert (offset, before < found.offset <= pairs[at][other]) == (offset, True)
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        source_end, target_end = log_end(spec.source, topic), log_end(spec.target, f"same.{topic}")
        assert translator.downstream(topic, 0, source_end) == Translated(target_end, "end")
        assert translator.upstream(topic, 0, target_end) == Translated(source_end, "end")
        past = translator.downstream(topic, 0, source_end + 5)
        assert (past.offset, past.how) == (target_end, "ahead")
