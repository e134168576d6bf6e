"""A failback of topics that were deleted and made anew, and of positions that nobody moved, on real brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.embedded import EmbeddedCluster
from reconciler.model.names.own_names import lease_group
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionStatus
from reconciler.replicator.driver.driver import new_run
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from tests.support.clusters.kafka import admin, create, declared, delete
from tests.support.commands.failing_over import MOSTLY_TRANSLATED, MakePair, Pair, named, read_from, write
from tests.support.replicator.copying import copy, fill, log_end


def positions(pair: Pair) -> dict[int, tuple[int, str]]:
    """Return where the flow's group stands at west, and what is said with it, by partition."""
    groups = Groups(declared("west", pair.west))
    try:
        found = groups.committed([lease_group(pair.name, "over")])
    finally:
        groups.close()
    return {one.partition: (one.offset, one.metadata) for one in found if one.topic == pair.topic}


def made_anew(cluster: EmbeddedCluster, pair: Pair, records: int) -> None:
    delete(cluster, pair.topic)
    create(cluster, pair.topic, 2)
    if records:
        fill(cluster, pair.topic, records, 2)


def gone_on(pair: Pair) -> PartitionStatus:
    topology = pair.topology
    return copy(FlowSpec.compile(topology, topology.flows[0], new_run())).at(pair.topic)


@pytest.mark.long
def test_positions_stay_where_nothing_came(make: MakePair) -> None:
    pair = make("translated")
    before = positions(pair)
    assert {number: offset for number, (offset, _) in before.items()} == {0: 100, 1: 100}
    assert all(OffsetMetadata.parse(note).epoch is not None for _, note in before.values()), before
    assert (pair.over("--yes").code, pair.back("--yes").code, pair.phase) == (0, 0, None)
    assert positions(pair) == before

    # The cut remembers what the group has lost, as a week after nobody was in it.
    assert pair.over("--yes").code == 0
    client, group = admin(pair.west), lease_group(pair.name, "over")
    client.delete_consumer_groups([group])[group].result(300)
    write(pair.west, pair.topic, named("new", 10))
    assert (positions(pair), pair.back("--yes").code) == ({}, 0)
    after = positions(pair)
    assert (after[1], after[0][0]) == (before[1], log_end(declared("east", pair.east), pair.topic))
    # And of what came back it knows under which leader, for a loss at the source to be noticed.
    assert OffsetMetadata.parse(after[0][1]).epoch is not None
    write(pair.east, pair.topic, ["more"], 1)
    pair.copy()
    assert read_from(pair.west, pair.topic, 0, 1)[-1] == "more"


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_an_original_made_anew_is_not_taken_for_the_old_one(make: MakePair, offsets: str) -> None:
    pair = make(offsets)
    assert pair.over("--yes").code == 0
    made_anew(pair.east, pair, 400)
    before = positions(pair)
    back = pair.back("--yes")
    assert (back.code, pair.phase, positions(pair)) == (0, None, before), back
    assert f"topic {pair.topic} was deleted at east and made again: its records were never copied" in " ".join(
        back.out.split()
    )
    found = gone_on(pair)
    assert found.reason is not None
    assert found.reason.code == "AB218", found


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_an_original_made_anew_gets_nothing_that_came_behind_its_own(
    make: MakePair, offsets: str, tmp_path: Path
) -> None:
    pair = make(offsets)
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))
    # Fewer records than were copied: their ends do not tell.
    made_anew(pair.east, pair, 60)
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "over"), refused
    assert "has 60 records that were never copied" in refused.err
    kept = tmp_path / "kept"
    back = pair.back("--yes", "--rebuild", pair.topic, "--export", kept)
    assert (back.code, pair.phase) == (0, None), back
    assert len((kept / f"{pair.topic}.jsonl").read_text().splitlines()) == 60
    everything = read_from(pair.west, pair.topic, 0)
    assert (read_from(pair.east, pair.topic, 0), everything[100:]) == (everything, named("new", 10))
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, 0) == [*everything, "more"]


def test_a_copy_made_anew_is_named(make: MakePair) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    made_anew(pair.west, pair, 60)
    refused = pair.back("--yes")
    assert (refused.code, "[AB714]" in refused.err, pair.phase) == (1, True, "over"), refused
    assert "which of its 60 records" in refused.err
    made_anew(pair.west, pair, 0)
    back = pair.back("--yes")
    assert (back.code, pair.phase, "holds nothing" in back.out) == (0, None, True), back
