"""The resources of a stack: one component per flow, and in it one topic per remote topic.

Called by `program` only. Every topic is protected, so whatever happens to the declaration, Pulumi refuses to delete one
that nobody named. No `ignore_changes` is needed: what a topic has beside our settings is declared as it was observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kafka as kafka

from reconciler.model.desired import WholeTopic

FLOW_TYPE = "anabranch:index:Flow"


class Flow(pulumi.ComponentResource):
    """A flow, as a branch of the tree that `pulumi preview` shows.

    Args:
        name: of the flow.
    """

    def __init__(self, name: str) -> None:
        super().__init__(FLOW_TYPE, name)
        self.register_outputs({})


def declare_topics(topics: Sequence[WholeTopic], providers: Mapping[str, kafka.Provider]) -> None:
    """Declare remote topics below the flows that fill them.

    Args:
        topics: complete to the last setting.
        providers: by alias of the target cluster.
    """
    flows = {name: Flow(name) for name in sorted({topic.flow for topic in topics})}
    for topic in topics:
        kafka.Topic(
            f"{topic.cluster}/{topic.name}",
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config=dict(topic.configs),
            opts=pulumi.ResourceOptions(parent=flows[topic.flow], provider=providers[topic.cluster], protect=True),
        )
