"""Which brokers a cluster has, asked without writing anything: a list of topics names only those that are up.

`observe` asks, where a cluster seems too small for the replicas that are wanted there.
"""

from __future__ import annotations

from reconciler.model.cluster import Cluster
from reconciler.replicator.wire import ConnectionLost, ErrorCode, Loop, Wire
from reconciler.replicator.wire.membership import registered_brokers

_TIMEOUT = 5.0


def registered_in(cluster: Cluster) -> frozenset[int] | None:
    """Return the ids of all brokers that a cluster has registered; None where it does not tell.

    Raises:
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    loop = Loop()
    declared = cluster.clients.admin
    wire = Wire(loop, cluster, declared.client_id or "anabranch-plan", declared.patience(_TIMEOUT))
    found: list[frozenset[int] | None] = []

    async def ask() -> None:
        await wire.connect()
        found.append(await registered_brokers(wire))

    try:
        loop.run(ask)
    except (ConnectionLost, ErrorCode):
        # What is known without it has to do.
        return None
    finally:
        wire.close()
        loop.close()
    return found[0]
