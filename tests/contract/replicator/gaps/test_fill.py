"""Filling gaps on a real broker: exactly as many offsets as are missing, whatever gets lost on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.replicator.gaps.fill import TRANSACTIONS_AT_ONCE, Filler, NotFilled
from reconciler.replicator.partition.shares import Place
from reconciler.wire import BrokerError, ConnectionLost, ProducerState
from reconciler.wire.requests import transactions
from reconciler.wire.requests.transactions import Markers, Transactor
from tests.support.clusters.kafka import create
from tests.support.replicator.filling import BEGIN, END, IDENTITY, MARKERS, SETTLE, Desk, desk, place

WAYS = ("markers", "transactions")
OUT_OF_ORDER = 45
CLUSTER_AUTHORIZATION_FAILED = 31


@pytest.fixture
def at(target: Cluster) -> Iterator[Desk]:
    with desk(target) as opened:
        yield opened


@pytest.mark.parametrize(("how", "counts"), [("markers", (1, 2, 1203)), ("transactions", (1, 2, 20)), ("auto", (7,))])
def test_as_many_offsets_as_are_missing_and_nothing_to_be_seen(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, how: str, counts: tuple[int, ...]
) -> None:
    create(target_cluster, topic_name)

    async def work() -> list[int]:
        filler = at.filler(how)
        assert filler.describe() == ("markers" if how == "auto" else how)
        return [await at.fill(filler, topic_name, count) for count in counts]

    assert at.run(work) == list(counts)
    found = at.run(lambda: at.batches(topic_name))
    assert [batch.base_offset for batch in found] == list(range(sum(counts)))
    assert all(batch.is_control for batch in found)


@pytest.mark.parametrize("fate", ["request", "answer"])
@pytest.mark.parametrize("kind", [MARKERS, BEGIN, END, SETTLE])
@pytest.mark.parametrize("times", [1, 3])
def test_what_gets_lost_is_neither_missing_nor_doubled(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, kind: str, fate: str, times: int
) -> None:
    create(target_cluster, topic_name)
    filler = at.filler("markers" if kind == MARKERS else "transactions")

    async def work() -> tuple[int, int]:
        first = await at.fill(filler, topic_name, 2)
        # The transactor of the next fill is there already: what it loses is the request that proves completion.
        at.wire.lose[kind] = deque([fate] * times)
        return first, await at.fill(filler, topic_name, 3)

    assert at.run(work) == (2, 3)
    assert len(at.wire.lose[kind]) < times, "nothing was lost"


def test_where_markers_are_refused_a_stop_waits_for_few_transactions(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_arguments: object) -> None:
        raise BrokerError(CLUSTER_AUTHORIZATION_FAILED)

    monkeypatch.setattr(transactions, "write_markers", refused)
    create(target_cluster, topic_name)
    filler = at.filler("auto")
    assert at.run(lambda: at.fill(filler, topic_name, 120)) == TRANSACTIONS_AT_ONCE
    assert filler.describe() == "transactions"
    assert at.run(lambda: at.fill(filler, topic_name, 70)) == 70


def test_a_cluster_that_never_answers_is_not_asked_for_ever(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str
) -> None:
    create(target_cluster, topic_name)
    filler = at.filler("markers")
    at.wire.lose[MARKERS] = deque(["request"] * 50)
    with pytest.raises(ConnectionLost):
        at.run(lambda: at.fill(filler, topic_name, 3))
    at.wire.lose.clear()
    assert at.run(lambda: at.fill(filler, topic_name, 3)) == 3


def test_a_marker_that_a_coordinator_writes_twice_is_told(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str
) -> None:
    create(target_cluster, topic_name)
    filler = at.filler("transactions")

    async def work() -> tuple[int, int, int]:
        first = await at.fill(filler, topic_name, 1)
        at.wire.doubled, at.wire.lose[END] = topic_name, deque([None, "twice"])
        return first, await at.fill(filler, topic_name, 2), await at.fill(filler, topic_name, 2)

    assert at.run(work) == (1, 3, 2)


@pytest.mark.parametrize("skipped", [1, 50])
def test_a_marker_that_a_coordinator_leaves_out_is_asked_for_again(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, monkeypatch: pytest.MonkeyPatch, skipped: int
) -> None:
    create(target_cluster, topic_name)
    left_out = [0]
    empty_transaction = Filler._empty_transaction

    async def left(filler: Filler, where: Place, transactor: Transactor) -> None:
        left_out[0] += 1
        if left_out[0] > skipped:
            await empty_transaction(filler, where, transactor)

    monkeypatch.setattr(Filler, "_empty_transaction", left)
    if skipped == 1:
        assert at.run(lambda: at.fill(at.filler("transactions"), topic_name, 2)) == 2
    else:
        with pytest.raises(NotFilled, match="still ends at 0 after 6 attempts"):
            at.run(lambda: at.fill(at.filler("transactions"), topic_name, 2))


def test_markers_that_come_late_are_shut_out(target_cluster: EmbeddedCluster, at: Desk, topic_name: str) -> None:
    create(target_cluster, topic_name)
    filler = at.filler("markers")

    async def work() -> None:
        assert await at.fill(filler, topic_name, 2) == 2
        at.wire.lose[MARKERS] = deque(["late"])
        assert await at.fill(filler, topic_name, 5) == 5
        (answer,) = await at.wire.deliver()
        assert {p.error_code for m in answer.markers for t in m.topics for p in t.partitions} == {52}
        assert await at.end(topic_name) == 7

    at.run(work)


@pytest.mark.parametrize("how", WAYS)
def test_data_goes_on_behind_a_gap_with_the_next_sequence(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, how: str
) -> None:
    create(target_cluster, topic_name)
    filler = at.filler(how)

    async def work() -> tuple[list[tuple[int, int]], list[ProducerState]]:
        answers = [await at.write(topic_name, (900, 0, 0), 3)]
        await at.fill(filler, topic_name, 4)
        answers.append(await at.write(topic_name, (900, 0, 7), 2))
        answers.append(await at.write(topic_name, (900, 0, 3), 2))
        await at.fill(filler, topic_name, 1)
        # A repeat is still answered with where the first one stands.
        answers.append(await at.write(topic_name, (900, 0, 3), 2))
        answers.append(await at.write(topic_name, (900, 0, 5), 1))
        node = (await at.topic(topic_name)).partitions[0].node
        return answers, await at.wire.producers(node, topic_name, 0)

    answers, producers = at.run(work)
    assert answers == [(0, 0), (OUT_OF_ORDER, -1), (0, 7), (0, 7), (0, 10)]
    data, fills = sorted(producers, key=lambda state: -state.last_sequence)
    assert (data.producer_id, data.last_sequence, data.coordinator_epoch) == (900, 5, -1)
    assert (fills.last_sequence, fills.open_transaction) == (-1, False)
    assert fills.coordinator_epoch >= 0


def test_eight_partitions_are_filled_side_by_side(target_cluster: EmbeddedCluster, at: Desk, topic_name: str) -> None:
    create(target_cluster, topic_name, 8)
    filler = at.filler("transactions")

    async def one(partition: int) -> None:
        for count in (1, 1, 2, 1, 3, 1, 1):
            assert await at.fill(filler, topic_name, count, partition) == count

    async def work() -> list[int]:
        jobs = [at.loop.spawn(partial(one, partition)) for partition in range(8)]
        while not all(job.is_done for job in jobs):
            await at.loop.sleep(0.01)
        for job in jobs:
            job.raise_failure()
        return [await at.end(topic_name, partition) for partition in range(8)]

    assert at.run(work) == [10] * 8


# --- another owner -------------------------------------------------------------------------------------------------


def test_a_transaction_left_open_is_ended_before_the_end_is_read(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str
) -> None:
    create(target_cluster, topic_name)

    async def work() -> tuple[int, int, int]:
        dead, heir = at.filler("transactions"), at.filler("transactions")
        assert await at.fill(dead, topic_name, 1) == 1
        transactor = dead._transactors[place(topic_name)]
        await transactions.begin(at.wire, transactor, topic_name, 0)
        await heir.settle(place(topic_name))
        settled = await at.end(topic_name)
        filled = await at.fill(heir, topic_name, 2)
        # The dead one's last request was on its way for long.
        with pytest.raises(BrokerError, match=r"FENCED|INVALID_PRODUCER_EPOCH"):
            await transactions.begin(at.wire, transactor, topic_name, 0)
        return settled, filled, await at.end(topic_name)

    assert at.run(work) == (2, 2, 4)


@pytest.mark.parametrize("how", WAYS)
def test_settling_where_nobody_ever_filled_leaves_nothing_behind(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, how: str
) -> None:
    create(target_cluster, topic_name)

    async def work() -> tuple[int, bool]:
        await at.filler(how).settle(place(topic_name))
        return await at.end(topic_name), await transactions.was_used(at.wire, IDENTITY.filling_id(place(topic_name)))

    assert at.run(work) == (0, False)


def test_a_dead_owners_markers_cannot_come_after_its_heirs(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str
) -> None:
    create(target_cluster, topic_name)

    async def work() -> tuple[int, int]:
        dead, heir = at.filler("markers"), at.filler("markers")
        await at.fill(dead, topic_name, 3)
        marking = dead._marking[place(topic_name)]
        await heir.settle(place(topic_name))
        await at.fill(heir, topic_name, 2)
        late = Markers(topic_name, 0, marking.producer_id, marking.epoch, marking.coordinator_epoch, 2)
        leader = (await at.topic(topic_name)).partitions[0]
        with pytest.raises(BrokerError, match="TRANSACTION_COORDINATOR_FENCED"):
            await transactions.write_markers(at.wire, leader.node, late)
        return marking.producer_id, await at.end(topic_name)

    producer_id, end = at.run(work)
    assert (producer_id >= 0, end) == (True, 5)


@pytest.mark.parametrize("first", WAYS)
def test_either_way_can_follow_the_other(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, first: str
) -> None:
    """A coordinator's markers are refused for ever behind ours, if they are of the same producer."""
    create(target_cluster, topic_name)

    async def work() -> list[int]:
        found = []
        for how in (first, *(way for way in WAYS if way != first), first):
            filler = at.filler(how)
            await filler.settle(place(topic_name))
            found.append(await at.fill(filler, topic_name, 2))
        return found

    assert at.run(work) == [2, 2, 2]


@pytest.mark.parametrize("how", WAYS)
def test_records_in_the_gap_and_a_lost_beginning_are_told(
    target_cluster: EmbeddedCluster, at: Desk, topic_name: str, how: str
) -> None:
    create(target_cluster, topic_name)

    async def work(start: int) -> int:
        return await at.filler(how).fill(place(topic_name), await at.topic(topic_name), start, 3)

    with pytest.raises(NotFilled, match="ends at 0, before the gap at 1"):
        at.run(lambda: work(1))
    at.run(lambda: at.write(topic_name, (900, 0, 0)))
    with pytest.raises(NotFilled, match="offset 0 holds records"):
        at.run(lambda: work(0))
    assert at.run(lambda: work(1)) == 4
