"""What diverged, on real brokers: counted over every kind of log, and kept exactly in files and in a topic."""

from __future__ import annotations

import base64
import json
import random
import threading
import time
import uuid
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer

from reconciler.embedded import EmbeddedCluster, running
from reconciler.failover.topics import diverged
from reconciler.failover.topics.diverged import Part, counted, export_files, export_topic
from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.kafka import create, delete_records, names, partitions, topic_configs
from tests.support.replicator.all_kinds import EAGER, KINDS, World
from tests.support.replicator.copying import log_end
from tests.support.replicator.translated import committed

SECONDS = 300.0
NOBODY = Cluster("gone", ("127.0.0.1:1",), "dc1")

Body = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]

BODIES: list[Body] = [
    (b"key", b"value", [], 1_700_000_000_123),
    (None, b"no key", [("trace", b"abc"), ("empty", b""), ("trace", b"again"), ("none", None)], 1),
    (b"no value", None, [], 1_700_000_000_000),
    (None, None, [("ключ", b"\xff\x00\xfe")], 1_600_000_000_000),
    (b"", b"", [("", b"no name")], 1_750_000_000_000),
    (b"\x00\xff\n", b'"\r\n\xe2\x80\xa8', [], 1_700_000_000_001),
    (b"large", bytes(range(256)) * 2_000, [], 1_700_000_000_002),
    (b"no time", b"at all", [], -1),
]


@pytest.fixture(scope="module")
def world(target_cluster: EmbeddedCluster) -> Iterator[World]:
    """Logs of all kinds: plain, with committed and aborted transactions, compacted, and all of it mixed."""
    with running(EmbeddedCluster("eager", EAGER)) as (source,):
        made = World(source, target_cluster)
        made.write()
        made.compact()
        yield made


@pytest.mark.parametrize("kind", KINDS)
def test_any_part_of_any_kind_of_log_is_counted_exactly(world: World, kind: str) -> None:
    cluster, topic = world.spec.source, world.written[kind].topic
    offsets = [message.offset() or 0 for message in committed(cluster, topic)]
    end = log_end(cluster, topic)
    if kind == "transactions":
        # Three times: ten of fifteen records in transactions, and six of nobody's.
        assert len(offsets) == 48
    assert (len(offsets) < end) == (kind != "plain")
    chance = random.Random(kind)
    bounds = [sorted(chance.randrange(end + 1) for _ in range(2)) for _ in range(40)]
    parts = [Part(topic, 0, first, last) for first, last in [(0, end), (0, end + 100), (end, end), *bounds]]
    expected = {part: bisect_left(offsets, part.end) - bisect_left(offsets, part.first) for part in parts}
    assert counted(cluster, parts, SECONDS) == expected
    assert expected[parts[0]] == len(offsets)


def test_what_was_deleted_is_not_counted(source_cluster: EmbeddedCluster, source: Cluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    write(source_cluster, topic_name, BODIES * 2)
    delete_records(source_cluster, topic_name, 5)
    parts = [Part(topic_name, 0, 0, 16), Part(topic_name, 0, 2, 4), Part(topic_name, 0, 4, 7)]
    assert counted(source, parts, SECONDS) == dict(zip(parts, (11, 0, 2), strict=True))


def test_an_open_transaction_is_waited_for_and_told(
    source_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    write(source_cluster, topic_name, BODIES)
    settings = {"transactional.id": uuid.uuid4().hex, "log_level": "2"}
    writer = Producer(source_cluster.client_config() | settings)
    writer.init_transactions(SECONDS)
    writer.begin_transaction()
    for _ in range(3):
        writer.produce(topic_name, b"in it")
    assert writer.flush(SECONDS) == 0
    before, whole = Part(topic_name, 0, 0, len(BODIES)), Part(topic_name, 0, 0, len(BODIES) + 4)
    assert counted(source, [before], SECONDS) == {before: len(BODIES)}
    with pytest.raises(EnvironmentFault, match=r"a transaction that began before offset \d+ is open.*\[AB723\]"):
        counted(source, [whole], 1.0)
    ending = threading.Timer(0.5, writer.commit_transaction, (SECONDS,))
    ending.start()
    try:
        assert counted(source, [whole], SECONDS) == {whole: len(BODIES) + 3}
    finally:
        ending.join()


def test_what_is_not_there_is_told(source_cluster: EmbeddedCluster, source: Cluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    with pytest.raises(EnvironmentFault, match=r"partition 1: there is no such partition.*\[AB722\]"):
        counted(source, [Part(topic_name, 0, 0, 5), Part(topic_name, 1, 0, 5)], SECONDS)
    with pytest.raises(EnvironmentFault, match=r"\[AB722\]"):
        counted(source, [Part(f"{topic_name}-other", 0, 0, 5)], SECONDS)
    with pytest.raises(Unreachable, match=r"\[AB310\]"):
        counted(NOBODY, [Part(topic_name, 0, 0, 5)], 1.0)
    assert counted(source, [], SECONDS) == {}


def test_files_hold_everything_of_each_record(
    source_cluster: EmbeddedCluster, source: Cluster, topic_name: str, tmp_path: Path
) -> None:
    other = f"{topic_name}-append"
    create(source_cluster, topic_name, 2)
    create(source_cluster, other, 1, {"message.timestamp.type": "LogAppendTime"})
    for number in range(2):
        write(source_cluster, topic_name, BODIES, number)
    before = int(time.time() * 1000)
    write(source_cluster, other, BODIES)
    parts = [Part(topic_name, 1, 0, 5), Part(topic_name, 0, 2, 8), Part(other, 0, 0, 3), Part(other, 0, 6, 6)]
    folder = tmp_path / "kept" / "here"
    files = export_files(source, parts, folder)
    assert files == {name: folder / f"{name}.jsonl" for name in (topic_name, other)}
    assert sorted(folder.iterdir()) == sorted(files.values())
    expected = [line(topic_name, 1, offset) for offset in range(5)]
    assert lines(files[topic_name]) == expected + [line(topic_name, 0, offset) for offset in range(2, 8)]
    told = lines(files[other])
    for offset, found in enumerate(told):
        assert found["timestamp_type"] == "LogAppendTime"
        stamp = found["timestamp"]
        assert isinstance(stamp, int)
        assert before - 1000 <= stamp <= time.time() * 1000 + 1000
        assert found | {"timestamp": 0} == line(other, 0, offset) | {"timestamp": 0, "timestamp_type": "LogAppendTime"}
    assert len(told) == 3
    # Nothing stands there: a file says so.
    (empty,) = export_files(source, [Part(topic_name, 0, 4, 4)], tmp_path / "empty").values()
    assert empty.read_bytes() == b""


@pytest.mark.parametrize("kind", ["transactions", "mixed"])
def test_files_have_as_many_lines_as_are_counted(world: World, kind: str, tmp_path: Path) -> None:
    cluster, topic = world.spec.source, world.written[kind].topic
    part = Part(topic, 0, 7, log_end(cluster, topic) - 3)
    (file,) = export_files(cluster, [part], tmp_path).values()
    assert len(lines(file)) == counted(cluster, [part])[part]
    assert [one["offset"] for one in lines(file)] == [
        message.offset() for message in committed(cluster, topic) if part.first <= (message.offset() or 0) < part.end
    ]


def test_a_file_that_is_there_is_refused_before_anything_is_read(topic_name: str, tmp_path: Path) -> None:
    there = tmp_path / f"{topic_name}.jsonl"
    there.write_text("somebody's")
    # Reading would raise AB310.
    with pytest.raises(EnvironmentFault, match=r"is there already.*\[AB720\]"):
        export_files(NOBODY, [Part(topic_name, 0, 0, 5), Part("other", 0, 0, 5)], tmp_path)
    assert list(tmp_path.iterdir()) == [there]
    assert there.read_text() == "somebody's"
    with pytest.raises(EnvironmentFault, match=r"cannot be written.*\[AB721\]"):
        export_files(NOBODY, [Part(topic_name, 0, 0, 5)], there)


def test_an_export_that_is_broken_off_leaves_no_file(
    source_cluster: EmbeddedCluster,
    source: Cluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = [topic_name, f"{topic_name}-2"]
    for name in topics:
        create(source_cluster, name)
        write(source_cluster, name, BODIES)
    whole = diverged._Reader.records

    def broken(self: diverged._Reader, part: Part) -> Iterator[Message]:
        yield from whole(self, part)
        if part.topic == topics[1]:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(diverged._Reader, "records", broken)
    parts = [Part(name, 0, 0, 8) for name in topics]
    with pytest.raises(EnvironmentFault, match=r"No space left on device.*\[AB721\]"):
        export_files(source, parts, tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert [len(lines(file)) for file in export_files(source, parts, tmp_path).values()] == [8, 8]


def test_a_topic_is_made_that_keeps_each_record_with_where_it_stood(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
) -> None:
    other, kept = f"{topic_name}-other", f"{topic_name}-kept"
    create(source_cluster, topic_name, 3)
    create(source_cluster, other)
    for number in range(3):
        write(source_cluster, topic_name, BODIES, number)
    write(source_cluster, other, BODIES)
    parts = [Part(topic_name, 2, 3, 8), Part(topic_name, 0, 0, 8), Part(other, 0, 1, 3)]
    assert export_topic(source, parts, target, kept) == 15
    assert partitions(target_cluster, kept) == 3
    assert topic_configs(target_cluster, kept)["retention.ms"] == "-1"
    assert bodies(target, kept, 2) == [moved(topic_name, 2, offset) for offset in range(3, 8)]
    assert bodies(target, kept, 1) == []
    expected = [moved(topic_name, 0, offset) for offset in range(8)]
    assert bodies(target, kept, 0) == expected + [moved(other, 0, offset) for offset in (1, 2)]
    with pytest.raises(EnvironmentFault, match=r"holds records already.*\[AB724\]"):
        export_topic(source, parts, target, kept)
    assert len(bodies(target, kept, 2)) == 5


def test_an_existing_empty_topic_is_taken_with_the_partitions_that_it_has(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
) -> None:
    kept, small = f"{topic_name}-kept", f"{topic_name}-small"
    create(source_cluster, topic_name, 3)
    create(target_cluster, kept, 2)
    create(target_cluster, small, 1, {"max.message.bytes": "1000"})
    for number in range(3):
        write(source_cluster, topic_name, BODIES, number)
    parts = [Part(topic_name, number, 0, 2) for number in range(3)]
    assert export_topic(source, parts, target, kept) == 6
    found = [moved(topic_name, number, offset) for number in (0, 2) for offset in range(2)]
    assert bodies(target, kept, 0) == found
    assert bodies(target, kept, 1) == [moved(topic_name, 1, offset) for offset in range(2)]
    with pytest.raises(EnvironmentFault, match=r"a record was not stored.*\[AB725\]"):
        export_topic(source, [Part(topic_name, 0, 6, 7)], target, small)
    assert export_topic(source, [], target, f"{topic_name}-none") == 0
    assert f"{topic_name}-none" not in names(target_cluster)


def write(broker: EmbeddedCluster, topic: str, records: list[Body], partition: int = 0) -> None:
    producer = Producer(broker.client_config() | {"log_level": "2", "enable.idempotence": True})
    failed: list[object] = []
    for key, value, headers, timestamp in records:
        producer.produce(
            topic,
            key=key,
            value=value,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
            on_delivery=lambda error, _message: failed.append(error) if error is not None else None,
        )
    assert producer.flush(SECONDS) == 0
    assert not failed, failed


def lines(path: Path) -> list[dict[str, object]]:
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(one) for one in text.split("\n")[:-1]]


def line(topic: str, partition: int, offset: int) -> dict[str, object]:
    key, value, headers, timestamp = BODIES[offset]
    has_time = timestamp >= 0
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp if has_time else None,
        "timestamp_type": "CreateTime" if has_time else None,
        "key": encoded(key),
        "value": encoded(value),
        "headers": [[name, encoded(one)] for name, one in headers],
    }


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def moved(topic: str, partition: int, offset: int) -> Body:
    key, value, headers, timestamp = BODIES[offset]
    added = {"topic": topic, "partition": partition, "offset": offset}
    return key, value, [*headers, *((f"anabranch.{name}", str(one).encode()) for name, one in added.items())], timestamp


def bodies(cluster: Cluster, topic: str, partition: int) -> list[Body]:
    return [
        (one.key(), one.value(), list(one.headers() or ()), one.timestamp()[1])
        for one in committed(cluster, topic, partition)
    ]
