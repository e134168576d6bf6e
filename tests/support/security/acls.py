"""Grant a test user exactly what a case needs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.acls.requirements import Acl
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.plan.acls.requirements import needed_acls
from tests.support.clusters.kafka import ANSWER_SECONDS, ANY_ACL, VISIBLE_SECONDS, admin, grant

_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}


def as_user(alias: str, broker: EmbeddedCluster, user: str) -> Cluster:
    """Return a cluster as a user declares it, whose password is in a variable of its name."""
    password = Reference("env", f"{user.upper().replace('-', '_')}_PASSWORD")
    security = Security("SASL_PLAINTEXT", "PLAIN", user, password)
    return Cluster(alias, tuple(broker.bootstrap.split(",")), security=security)


def allow(cluster: EmbeddedCluster, user: str, kind: ResourceType, prefix: str, *operations: AclOperation) -> None:
    """Allow `user` some operations on every resource whose name begins with `prefix`."""
    bindings = [
        AclBinding(kind, prefix, ResourcePatternType.PREFIXED, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        for operation in operations
    ]
    grant(cluster, bindings)


def give(cluster: EmbeddedCluster, user: str, acls: Iterable[Acl]) -> None:
    """Allow `user` exactly what some ACLs say."""
    grant(cluster, list(dict.fromkeys(_binding(user, acl) for acl in acls)))


def take(cluster: EmbeddedCluster, user: str, acl: Acl) -> None:
    """Take one ACL away again, and wait until the broker goes by that."""
    revoke(cluster, _binding(user, acl))


def revoke(cluster: EmbeddedCluster, one: AclBinding) -> None:
    """Take an ACL away, and wait until the broker goes by that."""
    parts = (one.restype, one.name, one.resource_pattern_type, one.principal, one.host, one.operation)
    client = admin(cluster)
    (future,) = client.delete_acls([AclBindingFilter(*parts, one.permission_type)]).values()
    assert len(future.result(ANSWER_SECONDS)) == 1, one
    deadline = time.monotonic() + VISIBLE_SECONDS
    while one in client.describe_acls(ANY_ACL, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS):
        assert time.monotonic() < deadline, "the ACL is still in force"
        time.sleep(0.05)


def _binding(user: str, acl: Acl) -> AclBinding:
    kind = ResourcePatternType.PREFIXED if acl.pattern.prefixed else ResourcePatternType.LITERAL
    operation, allow_it = AclOperation[acl.operation], AclPermissionType.ALLOW
    return AclBinding(_KINDS[acl.kind], acl.pattern.name, kind, f"User:{user}", "*", operation, allow_it)


def needed_by(file: Path, alias: str) -> list[Acl]:
    """Return all that `explain --acls` says is needed on one cluster, less what is optional."""
    topology = load((file,))
    return [acl for acl in needed_acls(topology, topology.flows) if acl.alias == alias and not acl.is_optional]
