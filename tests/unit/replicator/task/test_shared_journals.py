"""Who shares the journals of a target, and when they are closed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.replicator.task import shared_journals
from reconciler.replicator.task.shared_journals import SharedJournals

WEST, SOUTH = Cluster("west", ("w:9092",)), Cluster("south", ("s:9092",))


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[SharedJournals]:
    """The journals whose clients were closed."""
    found: list[SharedJournals] = []
    close = SharedJournals._close

    def note(self: SharedJournals) -> None:
        found.append(self)
        close(self)

    monkeypatch.setattr(SharedJournals, "_close", note)
    return found


def test_tasks_of_a_process_share_the_journals_of_a_target_until_the_last_of_them_ends(
    closed: list[SharedJournals],
) -> None:
    first, second = (SharedJournals.hold(WEST, "shop", "d") for _ in range(2))
    assert first is second
    first.release()
    assert not closed
    third = SharedJournals.hold(WEST, "shop", "d")
    assert third is first
    second.release()
    third.release()
    assert closed == [first]
    later = SharedJournals.hold(WEST, "shop", "d")
    assert later is not first
    later.release()
    assert not shared_journals._held


@pytest.mark.parametrize("other", [(SOUTH, "shop", "d"), (WEST, "audit", "d"), (WEST, "shop", "e")])
def test_those_of_another_target_topology_or_declaration_are_others(
    closed: list[SharedJournals], other: tuple[Cluster, str, str]
) -> None:
    mine, theirs = SharedJournals.hold(WEST, "shop", "d"), SharedJournals.hold(*other)
    assert mine is not theirs
    theirs.release()
    assert closed == [theirs]
    mine.release()


def test_tasks_that_begin_and_end_at_the_same_time_leave_nothing_open(closed: list[SharedJournals]) -> None:
    made: list[SharedJournals] = []

    def hold(_: int) -> None:
        held = SharedJournals.hold(WEST, "shop", "d")
        made.append(held)
        held.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(hold, range(500)))
    assert not shared_journals._held
    assert {id(one) for one in closed} == {id(one) for one in made}
    assert len(closed) == len({id(one) for one in closed}), "each once"
