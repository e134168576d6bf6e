"""What the resources of a stack are called: names that never change as long as the thing is the same.

Used where resources are declared and where the state of a stack is read. An ACL's name holds all of its fields, since
each of them, changed, makes another ACL.
"""

from __future__ import annotations

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import ResourceKind
from reconciler.model.planning.desired import WholeAcl, WholeTopic

TOPIC_TYPE = "kafka:index/topic:Topic"
ACL_TYPE = "kafka:index/acl:Acl"
PROCESS_TYPE = "anabranch:index:Process"

KINDS: dict[ResourceKind, str] = {
    "topic": "Topic",
    "group": "Group",
    "transactional-id": "TransactionalID",
    "cluster": "Cluster",
}
"""Kinds of resources as the provider spells them."""


def topic_name(cluster: str, topic: str) -> str:
    """Return the name of a topic's resource."""
    return f"{cluster}/{topic}"


def acl_name(cluster: str, binding: Binding) -> str:
    """Return the name of an ACL's resource: the cluster, and the provider's own id of it."""
    fields = (
        binding.principal,
        binding.host,
        spelled(binding.operation),
        spelled(binding.permission),
        KINDS[binding.kind],
        binding.pattern.name,
        pattern_type(binding),
    )
    return f"{cluster}/{'|'.join(fields)}"


def name_of(one: WholeTopic | WholeAcl) -> str:
    """Return the name of a resource."""
    if isinstance(one, WholeTopic):
        return topic_name(one.cluster, one.name)
    return acl_name(one.cluster, one.binding)


def spelled(word: str) -> str:
    """Return an operation or a permission as the provider spells it: `DESCRIBE_CONFIGS` is `DescribeConfigs` there."""
    return "".join(part.capitalize() for part in word.split("_"))


def pattern_type(binding: Binding) -> str:
    """Return the type of an ACL's pattern as the provider spells it."""
    return "Prefixed" if binding.pattern.prefixed else "Literal"


def name_in(urn: str) -> str:
    """Return the name that a URN ends with: `urn:pulumi:<stack>::<project>::<types>::<name>`."""
    return urn.split("::", 3)[-1]


def type_in(urn: str) -> str:
    """Return the type of the resource of a URN; before it stand those of its parents."""
    return urn.split("::", 3)[2].rpartition("$")[2]
