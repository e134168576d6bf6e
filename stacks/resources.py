"""The resources of a stack: a component for each flow, in it its remote topics and the ACLs of these; and processes.

Called by `program` only. Every topic is protected, so whatever happens to the declaration, Pulumi refuses to delete one
that nobody named. No `ignore_changes` is needed: what a topic has beside our settings is declared as it was observed.
ACLs are not protected: what is revoked at the source is revoked here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pulumi
import pulumi_kafka as kafka

from reconciler.model.planning.desired import WholeAcl, WholeTopic
from stacks.names import KINDS, PROCESS_TYPE, name_of, pattern_type, spelled
from stacks.processes import ProcessInputs

FLOW_TYPE = "anabranch:index:Flow"

Providers = Mapping[str, kafka.Provider]
"""By alias of the target cluster."""


class Flow(pulumi.ComponentResource):
    """A flow, as a branch of the tree that `pulumi preview` shows.

    Args:
        name: of the flow.
    """

    def __init__(self, name: str) -> None:
        super().__init__(FLOW_TYPE, name)
        self.register_outputs({})


class DeployedProcess(pulumi.ComponentResource):
    """A process of the data centre. It has no provider: Pulumi compares and records its inputs, and `apply` starts it.

    Args:
        name: of the process.
        inputs: what is recorded.
    """

    def __init__(self, name: str, inputs: ProcessInputs) -> None:
        super().__init__(PROCESS_TYPE, name, dict(inputs))
        self.register_outputs({})


def declare(
    topics: Sequence[WholeTopic], acls: Sequence[WholeAcl], providers: Providers, imported: Collection[str] = ()
) -> None:
    """Declare remote topics, and ACLs of copies, below the flows that fill them.

    Args:
        topics: complete to the last setting.
        acls: all that are ours.
        providers: for every cluster.
        imported: names of those topics that stand already and that the stack does not know yet.
    """
    flows = {name: Flow(name) for name in sorted({topic.flow for topic in topics} | {acl.flow for acl in acls})}
    made: dict[tuple[str, str], list[pulumi.Resource]] = {}
    for topic in topics:
        name = name_of(topic)
        resource = kafka.Topic(
            name,
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config=dict(topic.configs),
            opts=pulumi.ResourceOptions(
                parent=flows[topic.flow],
                provider=providers[topic.cluster],
                protect=True,
                import_=topic.name if name in imported else None,
            ),
        )
        made[topic.cluster, topic.name] = [resource]
    # Nothing is granted before its topic is there, nor what is allowed before what is denied.
    for acl in sorted(acls, key=lambda acl: acl.binding.permission != "DENY"):
        binding = acl.binding
        before = made.setdefault((acl.cluster, binding.pattern.name), [])
        # One that stands already needs no import: making it again changes nothing.
        rule = kafka.Acl(
            name_of(acl),
            acl_resource_type=KINDS[binding.kind],
            acl_resource_name=binding.pattern.name,
            resource_pattern_type_filter=pattern_type(binding),
            acl_principal=binding.principal,
            acl_host=binding.host,
            acl_operation=spelled(binding.operation),
            acl_permission_type=spelled(binding.permission),
            opts=pulumi.ResourceOptions(
                parent=flows[acl.flow], provider=providers[acl.cluster], depends_on=list(before)
            ),
        )
        if binding.permission == "DENY":
            before.append(rule)
