"""What we may do on a target cluster, asked without changing anything.

Called by `topology` for each target. It looks at what replication needs there beside its topics. Where no ACLs are in
force everything is allowed, and little is asked.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.access import Access, Refusal
from reconciler.model.flow import Flow
from reconciler.model.names import lease_group, transactional_prefix
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
    return Access(
        operations=operations,
        marker_operation="ALTER" if SINCE_3_8 in known else "CLUSTER_ACTION",
        # Whoever may do everything with the cluster is a super user, or there are no ACLs at all.
        refusals=() if operations >= _EVERYTHING else _refusals(connection, topology, flows),
    )


def _refusals(connection: Connection, topology: str, flows: Collection[Flow]) -> tuple[Refusal, ...]:
    refused: list[Refusal] = []
    for flow in flows:
        group, prefix = lease_group(topology, flow.name), transactional_prefix(topology, flow.name)
        if not connection.may_read_group(group):
            refused.append(Refusal(flow.name, "READ", f"group {group}"))
        if not connection.may_write_transactional_id(f"{prefix}plan"):
            refused.append(Refusal(flow.name, "WRITE", f"transactional ids {prefix}* (a prefix)"))
    return tuple(refused)
