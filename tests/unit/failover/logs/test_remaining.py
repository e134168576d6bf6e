"""What counts as not copied: what stands in originals that are there, and are those that were copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import cast

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.logs import remaining
from reconciler.failover.logs.remaining import Originals, SourceView
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.recorded.failover import Crossing
from reconciler.replicator.copy.transaction_holders import TransactionHolder
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.wire import ProducerState

FLOW = Flow("over", "east", "west", Selection((".*",)))
SIGHT = SourceView(Originals(), FLOW)

PRODUCER = ProducerState(7, 3, 0, open_transaction=True, opened_at=5)


class Source:
    """A source whose topics are as large as it is said, each with one partition."""

    cluster = Cluster("east", ("localhost:1",))

    def __init__(
        self,
        ends: Mapping[str, int],
        ids: Mapping[str, str],
        hidden: Collection[str] = (),
        stable: Mapping[str, int] | None = None,
    ) -> None:
        self.partitions, self._stable = dict.fromkeys(ids, 1), stable or ends
        self._ends, self._ids, self._hidden = ends, ids, hidden

    def ids(self, topics: Iterable[str]) -> dict[str, str | None]:
        asked = set(topics)
        if refused := sorted(asked.intersection(self._hidden)):
            raise EnvironmentFault([Problem("AB313", f"topic {name}", "may not DESCRIBE", "") for name in refused])
        return {name: self._ids[name] for name in asked if name in self._ids}

    def bounds(self, logs: Iterable[Log]) -> dict[Log, LogBounds]:
        return {log: LogBounds(0, self._stable[log[0]], self._ends[log[0]]) for log in logs if log[0] in self._ends}


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("about", "uncommitted"):
        monkeypatch.setattr(remaining, name, lambda _, parts: {part: part.end - part.first for part in parts})
    monkeypatch.setattr(
        remaining, "holders", lambda _, logs: {log: TransactionHolder(PRODUCER, "app-1") for log in logs}
    )


def crossing(topic: str, copied: int, source_id: str | None = None, partition: int = 0) -> Crossing:
    return Crossing(
        topic, f"east.{topic}", partition, "identical", copied, copied, note=str(OffsetMetadata(source_id, "copy"))
    )


def counts(source: Source, found: list[Crossing]) -> dict[str, int | None]:
    groups = cast("Groups", source)
    return {
        one.topic: one.waiting
        for one in remaining.counted(groups, found, SourceView(Originals.of(groups, found), FLOW))
    }


def test_of_a_deleted_original_nothing_is_left_to_be_copied() -> None:
    source = Source({"orders": 12}, {"orders": "a"})
    assert counts(source, [crossing("orders", 10, "a"), crossing("gone", 5, "b")]) == {"orders": 2, "gone": 0}


def test_of_an_original_that_was_made_anew_nothing_was_copied() -> None:
    # It is smaller than its copy, which holds records of the former one.
    source = Source({"orders": 7}, {"orders": "new"})
    found = [crossing("orders", 10, "old")]
    assert counts(source, found) == {"orders": 7}
    said = list(Originals.of(cast("Groups", source), found).notices(FLOW))
    assert said == ["topic orders was deleted at east and made again: nothing of it is in its copy"]


def test_an_original_whose_id_stands_with_another_partition_is_known() -> None:
    found = [crossing("orders", 10, "old"), crossing("orders", -1, None, 1)]
    assert Originals.of(cast("Groups", Source({}, {"orders": "new"})), found).anew == {"orders"}


def test_what_is_hidden_is_not_gone() -> None:
    source = Source({}, {"orders": "a"}, hidden=("secret",))
    assert counts(source, [crossing("secret", 10, "a")]) == {"secret": None}


def test_what_stands_behind_an_open_transaction_is_left_too() -> None:
    source = Source({"orders": 15}, {"orders": "a"}, stable={"orders": 5})
    (one,) = remaining.counted(cast("Groups", source), [crossing("orders", 3, "a")], SIGHT)
    assert (one.source_end, one.waiting, one.held, one.left) == (15, 2, 10, 12)
    assert one.held_by == "an open transaction of producer 7, epoch 3, transactional id app-1"
    assert remaining.named([one]) == (
        "12 records are not copied (12 of orders); "
        "10 of orders/0 wait for an open transaction of producer 7, epoch 3, transactional id app-1"
    )
    # All that is committed is copied, and the transaction is open.
    (one,) = remaining.counted(cast("Groups", source), [crossing("orders", 5, "a")], SIGHT)
    assert (one.waiting, one.held, remaining.left([one])) == (0, 10, [one])


def test_a_flow_that_reads_open_transactions_waits_for_none() -> None:
    flow = replace(FLOW, offsets="translated", isolation_level="read_uncommitted")
    source = Source({"orders": 15}, {"orders": "a"}, stable={"orders": 5})
    found = [replace(crossing("orders", copied, "a"), mode="translated") for copied in (12, 15)]
    counted = remaining.counted(cast("Groups", source), found, SourceView(Originals(), flow))
    assert [(one.waiting, one.held) for one in counted] == [(3, 0), (0, 0)]
    # One with identical offsets reads committed records alone, whatever the flow says.
    (one,) = remaining.counted(cast("Groups", source), [crossing("orders", 5, "a")], SourceView(Originals(), flow))
    assert (one.waiting, one.held) == (0, 10)


def test_what_is_left_is_named_with_its_topics() -> None:
    source = Source({"orders": 1_010, "a": 3}, {"orders": "x", "a": "y", "away": "z"})
    found = [crossing("orders", 10), crossing("a", 1), crossing("away", 5)]
    left = remaining.left(remaining.counted(cast("Groups", source), found, SIGHT))
    assert remaining.named(left) == (
        "1,002 records are not copied (1,000 of orders, 2 of a); unknown for away/0: no leader, or not visible"
    )
    many = [crossing(f"t{number}", 0) for number in range(7)]
    large = Source({one.topic: 1 for one in many}, {})
    assert "and 2 topics more)" in remaining.named(remaining.counted(cast("Groups", large), many, SIGHT))
