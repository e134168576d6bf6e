"""Declared clusters become values of the model, and what they have in common is checked.

The loader calls it. References are taken as they are: nothing is looked up here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from reconciler.declare.checks import clients, security
from reconciler.declare.checks.lookup import lookup
from reconciler.declare.documents import codes
from reconciler.declare.documents.located import Located, SourcePlace, Value
from reconciler.model.connection.references import Reference
from reconciler.model.declared.cluster import DEFAULT_DATACENTER, Cluster, Replicator

_PORTS = range(1, 65536)
_OURS = "anabranch"


def build(alias: str, place: SourcePlace, general: SourcePlace | None = None) -> Cluster:
    """Return the cluster that the mapping at `place` declares; it has passed the schema.

    Args:
        alias: what it is called.
        place: where it is declared.
        general: where settings of clients stand that hold for every cluster.
    """
    fields = cast("dict[str, Value]", place.value)
    return Cluster(
        alias=alias,
        bootstrap=tuple(lookup(where, address) for address, where in _addresses(place)),
        datacenter=str(fields.get("datacenter") or DEFAULT_DATACENTER),
        security=security.build(place / "security"),
        rack=lookup(place / "rack") if "rack" in fields else None,
        cluster_id=lookup(place / "cluster-id") if "cluster-id" in fields else None,
        replicator=_replicator(place / "replicator"),
        clients=clients.build(clients.effective(general, place / "clients")),
        place=(place / "bootstrap").line,
        state_replication_factor=_factor(fields.get("state-replication-factor")),
    )


def _factor(written: Value) -> int | None:
    # 3.0 is a whole number to JSON Schema.
    return None if written is None else int(cast("int", written))


def _replicator(place: SourcePlace) -> Replicator | None:
    fields = cast("dict[str, Any] | None", place.value)
    return None if fields is None else Replicator(**fields | {"principal": lookup(place / "principal")})


def check(place: SourcePlace) -> Iterator[Located]:
    """Yield what is wrong with a cluster that has passed the schema."""
    alias = str(place.path[-1])
    if alias.startswith(_OURS):
        message = f"expected an alias that does not begin with {_OURS}, as our own topics do; found {alias}"
        remedy = "rename it here and where it is used: what is granted on its copies by prefix would cover our topics"
        yield place.problem(codes.OUR_PREFIX, message, remedy, at_key=True)
    for address, where in _addresses(place):
        if isinstance(lookup(where, address), Reference):
            continue
        port = int(address.rpartition(":")[2])
        if port not in _PORTS:
            remedy = "correct the port: Kafka's own default is 9092"
            yield where.problem(codes.WRONG_VALUE, f"expected a port from 1 to 65535; found {port}", remedy)


def warnings(clusters: Mapping[str, SourcePlace], used: Collection[str]) -> Iterator[Located]:
    """Yield what is allowed and yet probably a mistake.

    Args:
        clusters: every declared cluster by alias.
        used: the aliases that flows name.
    """
    first: dict[str, str] = {}
    for alias, place in clusters.items():
        if alias not in used:
            message = f"no flow names cluster {alias}"
            yield place.problem(codes.UNUSED_CLUSTER, message, "add a flow, or remove the cluster", at_key=True)
        yield from security.warnings(place / "security", [address for address, _ in _addresses(place)])
        for address, where in _addresses(place):
            other = first.setdefault(address.lower(), alias)
            if other != alias:
                message = f"clusters {other} and {alias} have the same broker, {address}"
                yield where.problem(codes.SAME_BROKERS, message, "correct one address, or declare one cluster")


def _addresses(place: SourcePlace) -> list[tuple[str, SourcePlace]]:
    """Return the addresses of a cluster, each with the place where it is written."""
    bootstrap = place / "bootstrap"
    if isinstance(bootstrap.value, list):
        return [(str(address), bootstrap / index) for index, address in enumerate(bootstrap.value)]
    return [(address.strip(), bootstrap) for address in str(bootstrap.value).split(",")]
