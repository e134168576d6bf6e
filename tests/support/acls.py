"""Grant a test user exactly what a case needs."""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from reconciler.embedded import EmbeddedCluster
from tests.contract.kafka import grant


def allow(cluster: EmbeddedCluster, user: str, kind: ResourceType, prefix: str, *operations: AclOperation) -> None:
    """Allow `user` some operations on every resource whose name begins with `prefix`."""
    bindings = [
        AclBinding(kind, prefix, ResourcePatternType.PREFIXED, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
        for operation in operations
    ]
    grant(cluster, bindings)
