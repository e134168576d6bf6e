"""A broker that is killed while gaps are filled: the next owner fills what is left, and no more."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.replicator.gaps.fill import Filler
from reconciler.wire import BrokerError, ConnectionLost
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.filling import Desk, desk, place

# A killed broker is back sooner.
QUICK = ClusterOptions(overrides={"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"})
PARTITIONS = 3
# What is filled in one call; a transaction takes as long as many markers.
COUNTS = {"markers": 4_000, "transactions": 100}
SECONDS = 300.0


@pytest.fixture
def mortal() -> Iterator[EmbeddedCluster]:
    with running(EmbeddedCluster("mortal", QUICK)) as (cluster,):
        yield cluster


def test_a_kill_in_the_middle_costs_nothing(mortal: EmbeddedCluster) -> None:
    for how in COUNTS:
        create(mortal, how, PARTITIONS)
    with desk(declared("west", mortal)) as at:
        at.run(lambda: killed(at, mortal))
        found = at.run(lambda: all_filled(at))
    assert found["markers"] == [COUNTS["markers"]] * PARTITIONS
    # A coordinator that comes back may write a marker again; that is seen, and rare.
    assert all(0 <= end - COUNTS["transactions"] <= PARTITIONS for end in found["transactions"])


async def killed(at: Desk, cluster: EmbeddedCluster) -> None:
    """Begin to fill everything, and kill the broker in the middle of it."""
    fillers = {how: at.filler(how) for how in COUNTS}

    async def dies(how: str, partition: int) -> None:
        with contextlib.suppress(ConnectionLost, BrokerError):
            await at.fill(fillers[how], how, COUNTS[how], partition)

    jobs = [at.loop.spawn(partial(dies, how, number)) for how in fillers for number in range(PARTITIONS)]
    while await at.end("markers") == 0 or await at.end("transactions") == 0:
        await at.loop.sleep(0.005)
    cluster.kill_broker()
    cluster.start_broker()
    while not all(job.is_done for job in jobs):
        await at.loop.sleep(0.01)
    for job in jobs:
        job.raise_failure()


async def all_filled(at: Desk) -> dict[str, list[int]]:
    """Fill what is missing, as new owners do, and return where the logs end."""
    fillers = {how: at.filler(how) for how in COUNTS}
    return {how: [await filled(at, fillers[how], how, p) for p in range(PARTITIONS)] for how in fillers}


async def filled(at: Desk, filler: Filler, name: str, partition: int) -> int:
    deadline = time.monotonic() + SECONDS
    while True:
        assert time.monotonic() < deadline
        try:
            await filler.settle(place(name, partition))
            end = await at.end(name, partition)
            missing = COUNTS[name] - end
            if missing <= 0:
                return end
            return await filler.fill(place(name, partition), await at.topic(name), end, missing)
        except (ConnectionLost, BrokerError):
            await at.loop.sleep(0.1)
