"""`verify` on real clusters: each way in which a copy can differ is named at its place, and equal copies are equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import REMOTE, copy, spec_of

pytestmark = pytest.mark.spark

DIFFERENT, UNREACHABLE = 1, 6
COUNT = 300
START = 1_700_000_000_000

DECLARATION = """\
version: 1
name: tests
clusters:
  east: {{bootstrap: ["{source}"], datacenter: dc1}}
  west: {{bootstrap: ["{target}"], datacenter: dc2}}
flows:
  - {{from: east, to: west, offsets: identical, topics: {{include: ["{name}-i-.*"]}}}}
  - {{from: east, to: west, name: translated, offsets: translated, topics: {{include: ["{name}-t-.*"]}}}}
"""


@dataclass(frozen=True)
class Record:
    timestamp: int
    key: bytes
    value: bytes
    headers: Sequence[tuple[str, bytes]] = field(default=())


RECORDS = [Record(START + n, b"key-%d" % n, b"value-%d" % n, [("trace", b"%d" % n)]) for n in range(COUNT)]
Change = Callable[[list[Record]], object]


def changed(at: int, **changes: object) -> Change:
    def change(records: list[Record]) -> None:
        records[at] = replace(records[at], **changes)  # type: ignore[arg-type]

    return change


def swap(records: list[Record]) -> None:
    records[50], records[51] = records[51], records[50]


# What is done to the copy, and what must be said of it: kind, code, both offsets, and a part of the words.
KINDS: dict[str, tuple[Change, tuple[str, str, int, int, str]]] = {
    "flipped": (changed(120, value=b"value-12\xb0"), ("changed", "AB600", 120, 120, "value differs at byte 8 of 9")),
    "missing": (lambda records: records.pop(200), ("missing", "AB601", 200, 200, "does not have it")),
    "duplicate": (lambda records: records.insert(31, records[30]), ("duplicate", "AB602", 30, 31, "once more")),
    "swapped": (swap, ("order", "AB603", 50, 50, "changed places")),
    "timestamp": (changed(7, timestamp=START), ("changed", "AB600", 7, 7, f"timestamp {START + 7} became {START}")),
    "header": (changed(299, headers=[]), ("changed", "AB600", 299, 299, "header trace is lost")),
}


def write(cluster: EmbeddedCluster, topic: str, records: Sequence[Record], **settings: object) -> None:
    producer = Producer(cluster.client_config() | {"linger.ms": 50, "batch.num.messages": 40} | settings)
    for one in records:
        producer.produce(
            topic, one.value, one.key, partition=0, timestamp=one.timestamp, headers=list(one.headers) or None
        )
    assert producer.flush(30) == 0


def write_in_transactions(cluster: EmbeddedCluster, topic: str, records: Sequence[Record]) -> None:
    """Write records in transactions, between them others in transactions that are aborted."""
    producer = Producer(cluster.client_config() | {"transactional.id": topic, "linger.ms": 5})
    producer.init_transactions(30)
    for begin in range(0, len(records), 100):
        for some, is_committed in (
            ([Record(START, b"never", b"seen")] * 3, False),
            (records[begin : begin + 100], True),
        ):
            producer.begin_transaction()
            for one in some:
                producer.produce(
                    topic, one.value, one.key, partition=0, timestamp=one.timestamp, headers=list(one.headers)
                )
            producer.commit_transaction(30) if is_committed else producer.abort_transaction(30)


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    """A declaration whose flows take the topics that a test makes."""
    path = tmp_path / "topology.yaml"
    path.write_text(
        DECLARATION.format(source=source_cluster.bootstrap, target=target_cluster.bootstrap, name=topic_name)
    )
    return path


def verified(file: Path, *options: object) -> tuple[int, dict[str, Any], str]:
    ended = anabranch("verify", file, "--format", "json", "--state-dir", file.parent / "my state", *options)
    return ended.code, json.loads(ended.stdout), ended.stderr


def of(value: dict[str, Any], topic: str) -> dict[str, Any]:
    (one,) = [one for one in value["partitions"] if one["topic"] == topic]
    return dict(one)


def make(source: EmbeddedCluster, target: EmbeddedCluster, name: str, mode: str) -> None:
    """Make originals, and copies that differ in one way each; equal ones framed otherwise; and one without a copy."""
    copies = {kind: list(RECORDS) for kind in (*KINDS, "framed")}
    for kind, (change, _) in KINDS.items():
        change(copies[kind])
    for kind, records in copies.items():
        topic = f"{name}-{mode}-{kind}"
        create(source, topic)
        create(target, f"east.{topic}", configs=REMOTE)
        write(source, topic, RECORDS)
        other = {"compression.type": "zstd", "batch.num.messages": 77} if kind == "framed" else {}
        write(target, f"east.{topic}", records, **other)
    create(source, f"{name}-{mode}-alone")
    create(source, f"{name}-{mode}-transactions")
    create(target, f"east.{name}-{mode}-transactions", configs=REMOTE)
    write_in_transactions(source, f"{name}-{mode}-transactions", RECORDS)


def check_differences(value: dict[str, Any], name: str, mode: str) -> None:
    for kind, (_, (expected, code, source, target, what)) in KINDS.items():
        one = of(value, f"{name}-{mode}-{kind}")
        (first,) = one["first"]
        found = first["kind"], first["code"], first["source"], first["target"]
        assert (mode, kind, found) == (mode, kind, (expected, code, source, target))
        assert what in first["what"]
        assert one["state"] == "different"
        same = COUNT - {"duplicate": 0, "swapped": 2}.get(kind, 1)
        assert (mode, kind, one["counts"]["records"]) == (mode, kind, same)
    framed = of(value, f"{name}-{mode}-framed")
    assert (framed["state"], framed["counts"]["records"], framed["source_range"]) == ("equal", COUNT, [0, COUNT])
    assert [one["code"] for one in of(value, f"{name}-{mode}-alone")["first"]] == ["AB607"]
    copied = of(value, f"{name}-{mode}-transactions")
    assert (mode, copied["state"], copied["first"], copied["counts"]["records"]) == (mode, "equal", [], COUNT)


def test_each_difference_is_named_at_its_place_and_equal_copies_are_equal(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    for mode in "it":
        make(source_cluster, target_cluster, topic_name, mode)
    # As Anabranch copies it, with what fills the gaps, and by hand, without any.
    copy(spec_of(declared("east", source_cluster), declared("west", target_cluster), f"{topic_name}-i-transactions"))
    write(target_cluster, f"east.{topic_name}-t-transactions", RECORDS)

    kept = file.parent / "progress.json"
    code, value, said = verified(file, "--resume", kept, "--quota", "100MB/s")
    assert (code, value["equal"], value["failures"]) == (DIFFERENT, False, []), said
    for mode in "it":
        check_differences(value, topic_name, mode)
    # The replicator's own copy was compared as it is.
    copied = of(value, f"{topic_name}-i-transactions")
    assert copied["counts"]["as_bytes"] == COUNT
    assert copied["source_range"] == copied["target_range"]

    # All of it is done: nothing is compared again, and the same is said.
    again = verified(file, "--resume", kept)
    assert again[:2] == (code, value)
    other = anabranch("verify", file, "--resume", kept, "--topics", "other")
    assert (other.code, "[AB610]" in other.stderr) == (1, True)
    text = anabranch("verify", file, "--resume", kept).stdout
    assert f"east {topic_name}-i-missing/0 offset 200 ↔ west east.{topic_name}-i-missing/0 offset 200" in text
    assert "[AB601]" in text


def test_a_cluster_that_does_not_answer_is_never_called_equal(file: Path, source_cluster: EmbeddedCluster) -> None:
    file.write_text(file.read_text().replace(source_cluster.bootstrap, "127.0.0.1:9"))
    code, value, said = verified(file)
    assert (code, value["equal"], value["partitions"]) == (UNREACHABLE, None, [])
    assert {problem["code"] for problem in value["failures"]} == {"AB310"}
    assert "[AB310]" in said
