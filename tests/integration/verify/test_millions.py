"""`verify` on ten million records whose copy differs in six places: it names each, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared
from tests.support.commands.command import anabranch
from tests.support.records.batches import LZ4, Content, build
from tests.support.records.longlogs import PER_BATCH, Change, batch, contents, pieces, write
from tests.support.replicator.copying import REMOTE, log_ends

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1_500)]

DIFFERENT = 1
TOPIC = "orders"
RECORDS = 10_000_000
LIMIT_SECONDS = 500

DECLARATION = """\
version: 1
name: tests
clusters:
  east: {{bootstrap: ["{source}"], datacenter: dc1}}
  west: {{bootstrap: ["{target}"], datacenter: dc2}}
flows:
  - {{from: east, to: west, offsets: {offsets}, topics: {{include: ["{name}"]}}}}
"""


class Tampered(NamedTuple):
    """One way to spoil a copy, and what must be said of it."""

    at: int
    change: Callable[[list[Content], int], object]
    kind: str
    code: str
    target: int
    what: str
    # How many of its records are not the same; a record that is there twice is there.
    lost: int = 1


def flip(records: list[Content], at: int) -> None:
    value = bytearray(records[at].value or b"")
    value[20] ^= 1
    records[at] = replace(records[at], value=bytes(value))


def lose(records: list[Content], at: int) -> None:
    del records[at]


def double(records: list[Content], at: int) -> None:
    records.insert(at + 1, records[at])


def swap(records: list[Content], at: int) -> None:
    records[at], records[at + 1] = records[at + 1], records[at]


def late(records: list[Content], at: int) -> None:
    records[at] = replace(records[at], timestamp=records[at].timestamp + 1)


def headless(records: list[Content], at: int) -> None:
    records[at] = replace(records[at], headers=())


EACH = RECORDS // 8
# In the midst of a batch, over the edge of one, at the very beginning and at the very end.
TAMPERED = (
    Tampered(777_123, flip, "changed", "AB600", 777_123, "value differs at byte 20 of 41"),
    Tampered(404_404, lose, "missing", "AB601", 404_404, "does not have it"),
    Tampered(999_999, double, "duplicate", "AB602", 1_000_000, "once more", 0),
    Tampered(624_999, swap, "order", "AB603", 624_999, "changed places", 2),
    Tampered(0, late, "changed", "AB600", 0, "timestamp 1700000000000 became 1700000000001"),
    Tampered(EACH - 1, headless, "changed", "AB600", EACH - 1, "header trace is lost"),
)
WHOLE, FRAMED = range(len(TAMPERED), 8)
"""The partitions without a difference: of the same bytes, and of the same records in other batches, compressed."""


def in_batches(one: Tampered) -> Change:
    """Return a change of the records from the batch on in which it is."""
    return lambda records: one.change(records, one.at % PER_BATCH)


@pytest.fixture
def clusters(make_clusters: MakeClusters) -> tuple[EmbeddedCluster, ...]:
    """Both clusters, with an original and its tampered copy; its own ones, as so much stays on disk."""
    source_cluster, target_cluster = made = make_clusters("east", "west")
    assert batch(3, 5_000) == build(contents(3, 5_000, PER_BATCH)), "both ways to make a batch make the same"
    create(source_cluster, TOPIC, 8)
    create(target_cluster, f"east.{TOPIC}", 8, REMOTE)
    east, west = declared("east", source_cluster), declared("west", target_cluster)
    write(east, TOPIC, [pieces(number, EACH) for number in range(8)])
    copies = [pieces(number, EACH, in_batches(one), one.at) for number, one in enumerate(TAMPERED)]
    copies += [pieces(WHOLE, EACH), pieces(FRAMED, EACH, framed=(2_500, LZ4))]
    write(west, f"east.{TOPIC}", copies)
    assert log_ends(east, TOPIC, 8) == RECORDS
    assert log_ends(west, f"east.{TOPIC}", 8) == RECORDS
    return made


def test_each_difference_in_ten_million_records_is_named_at_its_offset(
    clusters: tuple[EmbeddedCluster, ...], tmp_path: Path
) -> None:
    source, target = (one.bootstrap for one in clusters)
    for offsets in ("identical", "translated"):
        file = tmp_path / f"{offsets}.yaml"
        file.write_text(DECLARATION.format(source=source, target=target, name=TOPIC, offsets=offsets))
        options = ("--state-dir", tmp_path / "state", "--resume", tmp_path / f"{offsets}.json")
        ended = anabranch("verify", file, "--format", "json", *options, limit=LIMIT_SECONDS)
        assert ended.code == DIFFERENT, ended.stderr
        check(json.loads(ended.stdout), offsets)
        # All of it is done, so this only says it in other words.
        said = anabranch("verify", file, *options)
        assert said.code == DIFFERENT
        check_text(said.stdout)


def check(value: dict[str, Any], offsets: str) -> None:
    partitions = value["partitions"]
    assert (value["equal"], value["failures"], [one["partition"] for one in partitions]) == (False, [], [*range(8)])
    assert {(one["topic"], one["remote"], one["offsets"]) for one in partitions} == {(TOPIC, f"east.{TOPIC}", offsets)}
    for one, found in zip(TAMPERED, partitions, strict=False):
        (first,) = found["first"]
        told = first["kind"], first["code"], first["source"], first["target"]
        assert (offsets, *told) == (offsets, one.kind, one.code, one.at, one.target)
        assert one.what in first["what"]
        records = max(1, one.lost)
        assert (found["state"], found["differences"], first["records"]) == ("different", {one.kind: records}, records)
        assert found["counts"]["records"] == EACH - one.lost
    for number in (WHOLE, FRAMED):
        found = partitions[number]
        assert (found["state"], found["first"], found["counts"]["records"]) == ("equal", [], EACH)
        assert found["counts"]["as_bytes"] == (EACH if number == WHOLE else 0)
    for found in partitions:
        assert found["source_range"] == [0, EACH]
        # Where the bytes are the same, nothing but the batches around a difference is decoded.
        if found["partition"] != FRAMED:
            assert found["counts"]["as_bytes"] > EACH - 200 * PER_BATCH


def check_text(said: str) -> None:
    lines = [line.strip() for line in said.splitlines()]
    told = [line for line in lines if " ↔ west " in line]
    assert len(told) == len(TAMPERED), said
    for number, (one, line) in enumerate(zip(TAMPERED, told, strict=True)):
        place = f"east {TOPIC}/{number} offset {one.at} ↔ west east.{TOPIC}/{number} offset {one.target}: "
        assert line.startswith(place)
        assert one.what in line
        assert line.endswith(f"[{one.code}]")
    same = RECORDS - sum(one.lost for one in TAMPERED)
    assert f"≠ {TOPIC} ↔ east.{TOPIC}   8 partitions, {same:,} records the same" in lines
    different = sum(max(1, one.lost) for one in TAMPERED)
    assert any(line.startswith(f"{different} differ in {len(TAMPERED)} partitions; {same:,} records") for line in lines)
