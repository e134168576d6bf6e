"""Coming back to a cluster after an outage: many ask at once, and one of them looks for a broker."""

from __future__ import annotations

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.wire import ConnectionLost, Loop, Wire


def test_whoever_looks_for_a_broker_is_waited_for_and_not_disturbed() -> None:
    loop = Loop()
    wire = Wire(loop, Cluster("gone", ("127.0.0.1:1",)), "tests", 1.0)
    said: list[str] = []

    async def ask() -> None:
        with pytest.raises(ConnectionLost) as lost:
            await wire.connect()
        said.append(str(lost.value))

    async def all_at_once() -> None:
        jobs = []
        for _ in range(4):
            jobs.append(loop.spawn(ask))
            # Long enough to be waiting for the next attempt.
            await loop.sleep(0.1)
            # What somebody does whose request was lost.
            wire._manager.forget_bootstrap()
        while not all(job.is_done for job in jobs):
            await loop.sleep(0.01)
        for job in jobs:
            job.raise_failure()

    try:
        loop.run(all_at_once)
    finally:
        wire.close()
        loop.close()
    assert len(said) == 4
    assert not any("WakeupNotifier" in text for text in said), said
