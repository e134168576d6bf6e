"""Converts ACLs between the model's and confluent-kafka's.

`observe` reads with it, `provision` grants and revokes with it.
"""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from reconciler.model.acls.binding import Binding, Permission
from reconciler.model.acls.requirements import ResourceKind, ResourcePattern

_KINDS: dict[ResourceKind, ResourceType] = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_PERMISSIONS: dict[AclPermissionType, Permission] = {
    AclPermissionType.ALLOW: "ALLOW",
    AclPermissionType.DENY: "DENY",
}

EVERY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
"""Matches every ACL."""


def from_kafka(one: AclBinding) -> Binding | None:
    """Return an ACL of the model; None for a resource type or permission that it does not have."""
    kind, permission = _NAMES.get(one.restype), _PERMISSIONS.get(one.permission_type)
    if kind is None or permission is None or one.operation is AclOperation.UNKNOWN:
        return None
    pattern = ResourcePattern(one.name, prefixed=one.resource_pattern_type is ResourcePatternType.PREFIXED)
    return Binding(kind, pattern, one.principal, one.operation.name, permission, one.host)


def to_kafka(one: Binding) -> AclBinding:
    """Return an ACL as the client takes it."""
    return AclBinding(*_parts(one))


def exactly(one: Binding) -> AclBindingFilter:
    """Return the filter that matches this ACL and no other."""
    return AclBindingFilter(*_parts(one))


def _parts(one: Binding) -> tuple[object, ...]:
    """Return what a binding and a filter are made of, in their order."""
    pattern = ResourcePatternType.PREFIXED if one.pattern.prefixed else ResourcePatternType.LITERAL
    return (
        _KINDS[one.kind],
        one.pattern.name,
        pattern,
        one.principal,
        one.host,
        AclOperation[one.operation],
        AclPermissionType[one.permission],
    )
