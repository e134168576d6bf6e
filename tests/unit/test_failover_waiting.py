"""What counts as not copied: what stands in originals that are there, and are those that were copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import cast

import pytest

from reconciler.checkpoints.groups import Groups
from reconciler.failover import waiting
from reconciler.failover.waiting import Originals
from reconciler.model.cluster import Cluster
from reconciler.model.committed import Bounds, Log
from reconciler.model.errors import EnvironmentFault, Problem
from reconciler.model.failover import Crossing
from reconciler.model.flow import Flow
from reconciler.model.selection import Selection
from reconciler.replicator.note import Note

FLOW = Flow("over", "east", "west", Selection((".*",)))


class Source:
    """A source whose topics are as large as it is said, each with one partition."""

    cluster = Cluster("east", ("localhost:1",))

    def __init__(self, ends: Mapping[str, int], ids: Mapping[str, str], hidden: Collection[str] = ()) -> None:
        self.partitions = dict.fromkeys(ids, 1)
        self._ends, self._ids, self._hidden = ends, ids, hidden

    def ids(self, topics: Iterable[str]) -> dict[str, str | None]:
        asked = set(topics)
        if refused := sorted(asked.intersection(self._hidden)):
            raise EnvironmentFault([Problem("AB313", f"topic {name}", "may not DESCRIBE", "") for name in refused])
        return {name: self._ids[name] for name in asked if name in self._ids}

    def bounds(self, logs: Iterable[Log]) -> dict[Log, Bounds]:
        return {log: Bounds(0, self._ends[log[0]], self._ends[log[0]]) for log in logs if log[0] in self._ends}


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "about", lambda _, parts: {part: part.end - part.first for part in parts})


def crossing(topic: str, copied: int, source_id: str | None = None, partition: int = 0) -> Crossing:
    return Crossing(topic, f"east.{topic}", partition, "identical", copied, copied, note=str(Note(source_id, "copy")))


def counts(source: Source, found: list[Crossing]) -> dict[str, int | None]:
    groups = cast("Groups", source)
    return {one.topic: one.waiting for one in waiting.counted(groups, found, Originals.of(groups, found))}


def test_of_a_deleted_original_nothing_is_left_to_be_copied() -> None:
    source = Source({"orders": 12}, {"orders": "a"})
    assert counts(source, [crossing("orders", 10, "a"), crossing("gone", 5, "b")]) == {"orders": 2, "gone": 0}


def test_of_an_original_that_was_made_anew_nothing_was_copied() -> None:
    # It is smaller than its copy, which holds records of the former one.
    source = Source({"orders": 7}, {"orders": "new"})
    found = [crossing("orders", 10, "old")]
    assert counts(source, found) == {"orders": 7}
    said = list(Originals.of(cast("Groups", source), found).said(FLOW))
    assert said == ["topic orders was deleted at east and made again: nothing of it is in its copy"]


def test_an_original_whose_id_stands_with_another_partition_is_known() -> None:
    found = [crossing("orders", 10, "old"), crossing("orders", -1, None, 1)]
    assert Originals.of(cast("Groups", Source({}, {"orders": "new"})), found).anew == {"orders"}


def test_what_is_hidden_is_not_gone() -> None:
    source = Source({}, {"orders": "a"}, hidden=("secret",))
    assert counts(source, [crossing("secret", 10, "a")]) == {"secret": None}


def test_what_is_left_is_named_with_its_topics() -> None:
    source = Source({"orders": 1_010, "a": 3}, {"orders": "x", "a": "y", "away": "z"})
    found = [crossing("orders", 10), crossing("a", 1), crossing("away", 5)]
    left = waiting.left(waiting.counted(cast("Groups", source), found, Originals()))
    assert waiting.named(left) == (
        "1,002 records are not copied (1,000 of orders, 2 of a); "
        "of away/0 it is not known: without a leader, or hidden from us"
    )
    many = [crossing(f"t{number}", 0) for number in range(7)]
    large = Source({one.topic: 1 for one in many}, {})
    assert "and 2 topics more)" in waiting.named(waiting.counted(cast("Groups", large), many, Originals()))
