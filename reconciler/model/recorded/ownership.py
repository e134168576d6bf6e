"""Which topics on a target are ours: the ownership record, as a value.

`state` keeps the records, `observe` returns them, `plan` trusts nothing else when it decides whether a topic may be
touched, and `provision` writes them.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.base.shape import (
    ID,
    MODE,
    MOST_PARTITIONS,
    MOST_REPLICAS,
    TEXT,
    WORD,
    fields,
    mapped,
    maybe,
    topic_name,
    whole,
)
from reconciler.model.declared.flow import Flow
from reconciler.model.names.topic_names import is_heartbeats

_FIELDS = {
    "name": topic_name,
    "topic_id": maybe(ID),
    "topology": WORD,
    "digest": ID,
    "flow": WORD,
    "source": WORD,
    "source_topic": topic_name,
    "source_topic_id": ID,
    "partitions": whole(1, MOST_PARTITIONS),
    "offsets": MODE,
    "configs": mapped(TEXT, TEXT),
}
# Older releases did not record it.
_LATER = {"replicas": maybe(whole(1, MOST_REPLICAS))}


@dataclass(frozen=True)
class OwnedTopic:
    """One remote topic that an apply has made, or is about to make.

    Attributes:
        name: the remote topic.
        topic_id: its id; None until the creation was confirmed, because the record is written before the topic is made,
            and an apply that is killed in between must still recognise its own work.
        topology: name of the topology that made it.
        digest: of the topology when it was last applied to this topic.
        flow: name of the flow that fills it.
        source: alias of the source cluster.
        source_topic: the topic it is a copy of.
        source_topic_id: id of that topic when it was last applied.
        partitions: how many it was made with, or grown to.
        offsets: the mode chosen for it, for good.
        configs: the topic-level configuration last applied; other settings there are not ours.
        replicas: how many each partition should have; None where the record is of a release that did not write it.
    """

    name: str
    topic_id: str | None
    topology: str
    digest: str
    flow: str
    source: str
    source_topic: str
    source_topic_id: str
    partitions: int
    offsets: str
    configs: Mapping[str, str]
    replicas: int | None = None

    @property
    def is_confirmed(self) -> bool:
        """Whether the topic is known to have been made, and not only planned."""
        return self.topic_id is not None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OwnedTopic:
        """Return what `dataclasses.asdict` gave; fields that are not known are left out.

        Raises:
            Misfit: it is something else.
        """
        return cls(**fields(value, _FIELDS, _LATER))


def kafka_id(topic_id: str | None) -> str | None:
    """Return a topic's id as records of ownership have it: as clients spell it, in plain base64 without its end."""
    return None if topic_id is None else base64.b64encode(uuid.UUID(topic_id).bytes).rstrip(b"=").decode()


def copies_of(
    records: Iterable[OwnedTopic], topology: str, flow: Flow, heartbeats: bool = False
) -> dict[str, OwnedTopic]:
    """Return a flow's copies among the records of its target, by original.

    Of several of one original, as its policy was another one before, it is the one that the flow fills now.

    Args:
        records: of all topics that are ours on the target.
        topology: name of the topology.
        flow: one of its flows.
        heartbeats: whether copies of heartbeats are among them.
    """
    found: dict[str, OwnedTopic] = {}
    for one in records:
        topic = one.source_topic
        if (one.topology, one.flow) != (topology, flow.name):
            continue
        if is_heartbeats(topic, flow.policy.separator) and not heartbeats:
            continue
        if topic not in found or (flow.nameless(topic) is None and flow.remote_topic(topic) == one.name):
            found[topic] = one
    return found
