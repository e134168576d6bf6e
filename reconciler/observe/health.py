"""Checks of a live cluster for `doctor`: do its brokers answer at their advertised addresses, and which rights exist.

It writes nothing. Rights on resources that do not exist yet are left out.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from reconciler.model.acls.requirements import Acl, ResourceKind, ResourcePattern
from reconciler.model.names.selection import is_reserved
from reconciler.model.planning.health import BrokerSeen, Rights
from reconciler.observe.connection import Connection

_REACH_SECONDS = 3.0
_AT_ONCE = 16


def brokers_of(connection: Connection) -> tuple[BrokerSeen, ...]:
    """Return every broker of a cluster, by id, after a connection to its advertised address."""
    advertised = [(node, broker.host, broker.port) for node, broker in sorted(connection.metadata.brokers.items())]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(lambda one: _reach(*one), advertised))


def rights(connection: Connection, acls: Collection[Acl]) -> Rights:
    """Return what our user may do on the resources that some ACLs of this cluster are about.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """
    there = [name for name in connection.metadata.topics if not is_reserved(name)]
    topics = {acl.pattern for acl in acls if acl.kind == "topic"}
    names = {pattern.name for pattern in topics if not (pattern.prefixed or pattern.is_everything)}
    names |= {name for name in there if any(pattern.covers(ResourcePattern(name)) for pattern in topics)}
    found: dict[tuple[ResourceKind, str], frozenset[str] | None] = {
        ("topic", name): operations for name, operations in connection.topic_operations(sorted(names)).items()
    }
    kinds = dict.fromkeys((acl.kind, acl.pattern.name) for acl in acls)
    found |= {
        ("group", name): operations
        for name, operations in connection.group_operations([name for kind, name in kinds if kind == "group"]).items()
    }
    ids = [f"{name}doctor" for kind, name in kinds if kind == "transactional-id"]
    why_not = connection.why_no_transactions(ids)
    for kind, name in kinds:
        if kind == "transactional-id":
            found[kind, name] = frozenset(() if why_not.get(f"{name}doctor") == "refused" else {"WRITE"})
        elif kind == "cluster":
            found[kind, name] = connection.cluster_operations()
    return Rights(found)


def _reach(node: int, host: str, port: int) -> BrokerSeen:
    address = f"{host}:{port}"
    try:
        socket.create_connection((host, port), _REACH_SECONDS).close()
    except OSError as error:
        return BrokerSeen(node, address, error.strerror or str(error))
    return BrokerSeen(node, address)
