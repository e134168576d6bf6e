"""Where copies stand: positions that the flow's group has forgotten are told by the last offset sync, or by nobody."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.logs import cuts
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Committed, Log, LogBounds
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.recorded.failover import Crossing, Cut
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.offset_syncs import OffsetSync
from reconciler.wire.requests.commits import CommittedPosition

FLOW = Flow("over", "east", "west", Selection(("orders",)), offsets="translated")
WEST = Cluster("west", ("localhost:1",))
TOPOLOGY = Topology("topology", {"east": Cluster("east", ("localhost:1",)), "west": WEST}, ())
COPY, MADE_ANEW = "copy-id", "another-id"
NOTE = str(OffsetMetadata("source-id", COPY, "producer"))
LOG = ("east.orders", 0)


class Target:
    """The target's groups and logs: one copy of one partition, and nothing committed for it."""

    cluster = WEST

    def __init__(self, committed: int | None = None) -> None:
        self.partitions: dict[str, int] = {}
        self._committed = committed

    def refresh(self) -> None:
        self.partitions = {LOG[0]: 1}

    def bounds(self, logs: Collection[Log]) -> dict[Log, LogBounds]:
        return {log: LogBounds(0, 120, 120) for log in logs}

    def ids(self, names: Collection[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, COPY)

    def committed(self, groups: Sequence[str]) -> list[Committed]:
        return [] if self._committed is None else [Committed(groups[0], *LOG, self._committed, NOTE)]


class Told:
    """What the offset syncs tell."""

    last_one: OffsetSync | None = None
    is_behind = False

    def __init__(self, *_arguments: object) -> None: ...

    def refresh(self) -> None: ...

    def last(self, log: Log) -> OffsetSync | None:
        assert log == ("orders", 0)
        return self.last_one

    def close(self) -> None: ...


class Owned:
    def __init__(self, *_arguments: object) -> None: ...

    def read(self) -> dict[str, OwnedTopic]:
        owned = OwnedTopic(LOG[0], COPY, "topology", "", "over", "east", "orders", "source-id", 1, "translated", {})
        return {LOG[0]: owned}


def crossing(
    monkeypatch: pytest.MonkeyPatch, sync: OffsetSync | None, record: CopyRecord | None, committed: int | None = None
) -> tuple[int, int]:
    """Return how far the copy is, and the end of its log."""
    monkeypatch.setattr(cuts, "Ownership", Owned)
    monkeypatch.setattr(cuts, "SyncHistory", type("Syncs", (Told,), {"last_one": sync}))
    monkeypatch.setattr(cuts, "remembered", lambda *_: {} if record is None else {LOG: record})
    (one,) = cuts.crossings(TOPOLOGY, FLOW, cast("Groups", Target(committed)))
    return one.copied, one.remote_end


def sync_with(note: str, offset: int = 100) -> OffsetSync:
    return OffsetSync("orders", 0, offset - 1, 118, CommittedPosition(offset, note))


BEGUN = CopyRecord("source-id", COPY)


def test_a_position_comes_from_the_group_or_from_the_last_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    assert crossing(monkeypatch, sync_with(NOTE), BEGUN, committed=105) == (105, 120)
    assert crossing(monkeypatch, sync_with(NOTE), BEGUN) == (100, 120)


@pytest.mark.parametrize("record", [None, CopyRecord("source-id", COPY, is_begun=False)])
def test_a_sync_tells_it_also_where_the_word_that_it_has_begun_was_lost(
    monkeypatch: pytest.MonkeyPatch, record: CopyRecord | None
) -> None:
    assert crossing(monkeypatch, sync_with(NOTE), record) == (100, 120)


@pytest.mark.parametrize(
    ("sync", "record"),
    [
        (None, BEGUN),
        (OffsetSync("orders", 0, 99, 118), BEGUN),
        (sync_with(str(OffsetMetadata("source-id", MADE_ANEW, "producer"))), BEGUN),
        (sync_with(str(OffsetMetadata("source-id", MADE_ANEW, "producer"))), None),
    ],
    ids=["no sync", "no position", "of another copy", "of another one, nothing is remembered"],
)
def test_where_nothing_tells_it_nothing_counts_as_copied(
    monkeypatch: pytest.MonkeyPatch, sync: OffsetSync | None, record: CopyRecord | None
) -> None:
    assert crossing(monkeypatch, sync, record) == (-1, 120)


def test_behind_a_cut_nothing_was_copied() -> None:
    cut = Cut("orders", "east.orders", "identical", ((100, 100), (90, 95)))
    found = [Crossing("orders", "east.orders", number, "identical", 110, 110) for number in range(3)]
    assert [cuts.as_cut(one, cut).copied for one in found] == [100, 90, -1]
    assert cuts.as_cut(found[0], None).copied == -1


def test_topics_that_no_copy_has_are_not_begun() -> None:
    flow = replace(FLOW, topics=Selection(("orders.*", "east.orders")))
    found = [Crossing("orders", "east.orders", 0, "translated", 110, 110)]
    originals = {"orders": 3, "orders-new": 2, "invoices": 1, "west.orders": 1, "orders.internal": 1}
    missing = cuts.without_copy(flow, ("east", "west"), found, originals)
    assert missing == [Crossing("orders-new", "east.orders-new", number, "translated", -1, 0) for number in range(2)]
    assert cuts.without_copy(flow, ("east", "west"), found, {"orders": 1}) == []


@pytest.mark.parametrize("original", ["heartbeats", "north.heartbeats", "west.orders", "invoices"])
def test_what_has_no_copy_to_go_on_in_is_not_missing_either(monkeypatch: pytest.MonkeyPatch, original: str) -> None:
    flow = replace(FLOW, topics=Selection((".*",), ("invoices",)))

    class Others(Owned):
        def read(self) -> dict[str, OwnedTopic]:
            (one,) = super().read().values()
            return {one.name: replace(one, source_topic=original)}

    monkeypatch.setattr(cuts, "Ownership", Others)
    monkeypatch.setattr(cuts, "remembered", lambda *_: {})
    assert cuts.crossings(TOPOLOGY, flow, cast("Groups", Target())) == []
    assert cuts.without_copy(flow, ("east", "west", "north"), [], {original: 1}) == []


def test_partitions_that_no_copy_has_are_not_begun() -> None:
    found = [Crossing("orders", "east.orders", number, "identical", 110, 110) for number in range(2)]
    grown = cuts.not_begun(found, {"orders": 4, "invoices": 9})
    assert [(one.topic, one.partition, one.copied, one.remote_end) for one in grown] == [
        ("orders", 2, -1, 0),
        ("orders", 3, -1, 0),
    ]
    assert cuts.not_begun(found, {"orders": 2}) == cuts.not_begun(found, {}) == []
