"""What we may do on a target cluster, asked without changing anything.

Called by `topology` for each target. It checks the operations that replication needs beside those on topics. Without an
authorizer everything is allowed, and one flow is checked for all.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.acls.own_access import Access, AccessRefusal
from reconciler.model.declared.flow import Flow
from reconciler.model.names.own_names import lease_group, transactional_prefix
from reconciler.observe.connection import Connection

SINCE_3_8 = "compression.gzip.level"
"""A setting of topics and brokers that came with Kafka 3.8 (KIP-390), as ALTER for markers did (KIP-1037)."""

_EVERYTHING = frozenset({"ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"})


def observe_access(connection: Connection, keys: Collection[str], topology: str, flows: Collection[Flow]) -> Access:
    """Return what we may do on a target.

    Args:
        connection: to the target.
        keys: settings that its brokers know; may be empty.
        topology: name of the topology.
        flows: that end there.
    """
    operations = connection.cluster_operations()
    known = keys or connection.config_keys(None)
    # A user with all operations on the cluster is a super user in most cases, or there is no authorizer.
    refusals, has_transactions = _look(connection, topology, flows, is_open=operations >= _EVERYTHING)
    return Access(
        operations=operations,
        # Without DESCRIBE_CONFIGS the release is unknown: a refused marker shows then which operation it takes.
        marker_operation="CLUSTER_ACTION" if known and SINCE_3_8 not in known else "ALTER",
        refusals=refusals,
        has_transactions=has_transactions,
    )


def _look(
    connection: Connection, topology: str, flows: Collection[Flow], *, is_open: bool
) -> tuple[tuple[AccessRefusal, ...], bool]:
    """Return what is refused, and whether there are transactions; where all is allowed, by one flow alone."""
    asked = list(flows)
    if is_open:
        refused, has_transactions = _of(connection, topology, asked[:1])
        # What is allowed on the cluster allows nothing on groups and transactional ids.
        if not refused:
            return refused, has_transactions
    return _of(connection, topology, asked)


def _of(connection: Connection, topology: str, flows: Collection[Flow]) -> tuple[tuple[AccessRefusal, ...], bool]:
    """Return what is refused to some flows, all asked for at once, and whether there are transactions.

    Also for a flow that does without transactions: a copy that it has begun with identical offsets needs the same.
    """
    groups = {flow.name: lease_group(topology, flow.name) for flow in flows}
    prefixes = {flow.name: transactional_prefix(topology, flow.name) for flow in flows}
    readable = connection.group_operations(list(groups.values()))
    why_not = connection.why_no_transactions([f"{prefix}plan" for prefix in prefixes.values()])
    has_transactions = "unknown" not in why_not.values()
    refused: list[AccessRefusal] = []
    for name, group in groups.items():
        # Unknown counts as allowed.
        if (operations := readable[group]) is not None and "READ" not in operations:
            refused.append(AccessRefusal(name, "READ", f"group {group}"))
        if has_transactions and f"{prefixes[name]}plan" in why_not:
            ids = f"transactional ids {prefixes[name]}* (a prefix)"
            refused.append(AccessRefusal(name, "WRITE", ids, transactional=True))
    return tuple(refused), has_transactions
