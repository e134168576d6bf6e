"""What a cluster shows in Kafka's protocol and in no client's interface, asked without writing anything.

Called by `observe`: a metadata response names only brokers that are up, the default that a broker's setting shows may
differ from that of the active controller, and clients do not return which features are in force.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Literal, TypeVar

from reconciler.model.acls.hosts import RANGES_SINCE
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import unreachable
from reconciler.wire import COORDINATOR_NOT_READY, BrokerError, ConnectionLost, ErrorCode, Loop, Wire, when_ready
from reconciler.wire.requests.describe_cluster import default_replicas, registered_brokers
from reconciler.wire.requests.features import metadata_version
from reconciler.wire.requests.transactions import check_write

Answer = TypeVar("Answer")

_TIMEOUT = 5.0
# A cluster without transactions so far makes the topic for their state first.
_READY_SECONDS = 10.0


def registered_in(cluster: Cluster) -> frozenset[int] | None:
    """Return the ids of all brokers that a cluster has registered; None where it is not shown.

    Raises:
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    return _asked(cluster, lambda _, wire: registered_brokers(wire))


def default_in(cluster: Cluster, topic: str) -> int | None:
    """Return how many replicas a cluster gives a topic that is made without a number; None where it is not shown.

    Args:
        cluster: which one.
        topic: a name that no topic has.

    Raises:
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    return _asked(cluster, lambda _, wire: default_replicas(wire, topic))


def takes_ranges(cluster: Cluster) -> bool:
    """Return whether an ACL may be about a range of addresses in a cluster.

    Raises:
        Unreachable: AB310, it does not show that: whether an ACL about a range denies something must not be guessed.
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    level = _asked(cluster, lambda _, wire: metadata_version(wire))
    if level is None:
        raise unreachable(cluster, "it shows ACLs about ranges of addresses, and not its metadata.version")
    return level >= RANGES_SINCE


def why_no_transactions(cluster: Cluster, ids: Collection[str]) -> dict[str, Literal["refused", "unknown"]]:
    """Return on which transactional ids WRITE is refused, or unknown to the cluster; no answer counts as allowed.

    Raises:
        EnvironmentFault: what `Wire` raises: a secret cannot be resolved, or the like.
    """
    found: dict[str, Literal["refused", "unknown"]] = {}
    if not ids:
        return found

    async def ask(loop: Loop, wire: Wire) -> None:
        async def ask_one(name: str) -> None:
            try:
                await when_ready(loop, partial(check_write, wire, name), COORDINATOR_NOT_READY, _READY_SECONDS)
            except ConnectionLost:
                return
            except BrokerError as error:
                if error.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                    found[name] = "refused"
                elif error.code == ErrorCode.UNSUPPORTED_VERSION:
                    found[name] = "unknown"

        await loop.together(partial(ask_one, name) for name in ids)

    _asked(cluster, ask)
    return found


def _asked(cluster: Cluster, question: Callable[[Loop, Wire], Awaitable[Answer | None]]) -> Answer | None:
    loop = Loop()
    declared = cluster.clients.admin
    wire = Wire(loop, cluster, declared.client_id or "anabranch-plan", declared.patience(_TIMEOUT))
    found: list[Answer | None] = []

    async def ask() -> None:
        await wire.connect()
        found.append(await question(loop, wire))

    try:
        loop.run(ask)
    except (ConnectionLost, BrokerError):
        # What is known without it has to do.
        return None
    finally:
        wire.close()
        loop.close()
    return found[0]
