"""How far a cluster's clock is from this machine's, asked without writing anything.

`doctor` calls it. Kafka's protocol returns the active controller's time and no broker's own.
"""

from __future__ import annotations

import time

from reconciler.model.declared.cluster import Cluster
from reconciler.model.planning.health import ClockSeen
from reconciler.replicator.partition.reasons import AUTHORIZATION
from reconciler.wire import BrokerError, ConnectionLost, Loop, Wire
from reconciler.wire.requests.quorum import controller_time

_TIMEOUT = 5.0
_ASKED = 3


def clock_of(cluster: Cluster) -> ClockSeen:
    """Return how far a cluster's clock is ahead; the quickest of a few answers is the most exact."""
    loop = Loop()
    declared = cluster.clients.admin
    wire = Wire(loop, cluster, declared.client_id or "anabranch-doctor", declared.patience(_TIMEOUT))
    seen: list[tuple[float, float]] = []

    async def ask() -> None:
        await wire.connect()
        for _ in range(_ASKED):
            began = time.time()
            told = await controller_time(wire)
            ended = time.time()
            if told > 0:
                # It was read at some moment between the two.
                seen.append(((ended - began) / 2 + 0.001, told / 1000 - (began + ended) / 2))

    try:
        loop.run(ask)
    except BrokerError as error:
        if error.code in AUTHORIZATION:
            return ClockSeen(why_not=f"reading it needs DESCRIBE on the cluster ({error.name})")
        return ClockSeen(why_not=f"the cluster answers {error.name}")
    except ConnectionLost as error:
        return ClockSeen(why_not=str(error))
    finally:
        wire.close()
        loop.close()
    if not seen:
        return ClockSeen(why_not="the cluster is older than Kafka 3.3, and does not return its time")
    within, ahead = min(seen)
    return ClockSeen(ahead, within)
