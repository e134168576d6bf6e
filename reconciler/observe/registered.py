"""What a cluster shows in Kafka's protocol and in no client's interface, asked without writing anything.

Called by `observe`: a metadata response names only brokers that are up, the default that a broker's setting shows may
differ from that of the active controller, and clients do not return which features are in force.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from reconciler.model.acls.hosts import RANGES_SINCE
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import unreachable
from reconciler.wire import BrokerError, ConnectionLost, Loop, Wire
from reconciler.wire.requests.describe_cluster import default_replicas, registered_brokers
from reconciler.wire.requests.features import metadata_version

Answer = TypeVar("Answer")

_TIMEOUT = 5.0


def registered_in(cluster: Cluster) -> frozenset[int] | None:
    """Return the ids of all brokers that a cluster has registered; None where it is not shown.

    Raises:
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    return _asked(cluster, registered_brokers)


def default_in(cluster: Cluster, topic: str) -> int | None:
    """Return how many replicas a cluster gives a topic that is made without a number; None where it is not shown.

    Args:
        cluster: which one.
        topic: a name that no topic has.

    Raises:
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    return _asked(cluster, lambda wire: default_replicas(wire, topic))


def takes_ranges(cluster: Cluster) -> bool:
    """Return whether an ACL may be about a range of addresses in a cluster.

    Raises:
        Unreachable: AB310, it does not show that: whether an ACL about a range denies something must not be guessed.
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    level = _asked(cluster, metadata_version)
    if level is None:
        raise unreachable(cluster, "it shows ACLs about ranges of addresses, and not its metadata.version")
    return level >= RANGES_SINCE


def _asked(cluster: Cluster, question: Callable[[Wire], Awaitable[Answer | None]]) -> Answer | None:
    loop = Loop()
    declared = cluster.clients.admin
    wire = Wire(loop, cluster, declared.client_id or "anabranch-plan", declared.patience(_TIMEOUT))
    found: list[Answer | None] = []

    async def ask() -> None:
        await wire.connect()
        found.append(await question(wire))

    try:
        loop.run(ask)
    except (ConnectionLost, BrokerError):
        # What is known without it has to do.
        return None
    finally:
        wire.close()
        loop.close()
    return found[0]
