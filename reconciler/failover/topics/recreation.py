"""Deletes a topic, and makes it again with the same shape, without its records.

Its shape is recorded in the topology's journal of ownership at its cluster before it is deleted, until it exists again:
after a kill at any moment, the next call finishes.
"""

from __future__ import annotations

import time

from reconciler.failover.topics.topics import Shape, Topics
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.selection import is_reserved
from reconciler.state.journals import records
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal

_KIND = "rebuild"
_PAUSE_SECONDS = 0.1


def recreate(cluster: Cluster, topology: str, topic: str, seconds: float = 60.0) -> str | None:
    """Delete a topic, and make it again with the same partitions, replicas and topic configs.

    ACLs stay, as they name topics. Journal records that hold the old topic's id are not changed.

    Args:
        cluster: the cluster.
        topology: name of the topology whose journal holds the shape.
        topic: name of the topic.
        seconds: how long to wait for each change.

    Returns:
        Its new id, as Kafka's tools print it and ownership records have it; None where brokers have none.

    Raises:
        Unreachable: AB310, the cluster does not answer; another call goes on.
        EnvironmentFault: AB311, the journal cannot be read or written; AB313, an operation is refused; AB722, there
            is no such topic; AB726, the cluster does not delete or make it; AB727, another client made it again
            and wrote to it; AB728, it is an internal one.
    """
    where = f"{cluster.where}, topic {topic}"
    if is_reserved(topic):
        raise EnvironmentFault(Problem("AB728", where, "is internal, and is never made anew", "name another topic"))
    topics = Topics(cluster, seconds)
    journal = Journal(cluster, JournalPlace(topology, "owned"))
    key = f"{_KIND}/{topology}/{topic}"
    there = topics.look(topic)
    record = journal.read().get(key)
    if record is None:
        if there is None:
            raise EnvironmentFault(Problem("AB722", where, "there is no such topic", "name one that is there"))
        record = _value(topology, topic, there.topic_id, there.shape)
        journal.ensure()
        journal.write(key, record)
    was = records.rebuilt(record)
    old_id, shape = was["id"], Shape(was["partitions"], was["replicas"], was["configs"])
    _replace(topics, where, topic, (old_id, shape), seconds)
    new_id = topics.await_led(topic, shape.partitions, old_id)
    journal.write(key, None)
    return new_id


def _replace(topics: Topics, where: str, topic: str, was: tuple[str | None, Shape], seconds: float) -> None:
    """Delete topics of this name until there is a new, empty one of the same shape."""
    old_id, shape = was
    deadline = time.monotonic() + seconds
    while True:
        there = topics.look(topic)
        if there is None:
            if topics.make(topic, shape):
                return
        elif there.topic_id is None or there.topic_id == old_id:
            topics.delete(topic, there.topic_id)
        elif _is_written(topics, topic, there.shape.partitions):
            # Records of another client are never deleted.
            what = "was made again by another client after it was deleted, and holds records"
            raise EnvironmentFault(
                Problem("AB727", where, what, "check its records and its producers; delete it, then run it again")
            )
        elif there.shape == shape:
            return
        else:
            # Created automatically by brokers, for a producer or consumer.
            topics.delete(topic, there.topic_id)
        if time.monotonic() > deadline:
            what = f"was made again by another client each time it was deleted, for {seconds:g} s"
            raise EnvironmentFault(Problem("AB726", where, what, "stop its producers and consumers, then run it again"))
        time.sleep(_PAUSE_SECONDS if there is None else 0)


def _is_written(topics: Topics, topic: str, partitions: int) -> bool:
    topics.await_led(topic, partitions)
    bounds = topics.bounds(topic, partitions)
    # A leader that does not answer may have records.
    return len(bounds) < partitions or any(end > 0 for _, end in bounds.values())


def _value(topology: str, topic: str, topic_id: str | None, shape: Shape) -> Value:
    return {
        "kind": _KIND,
        "topology": topology,
        "topic": topic,
        "id": topic_id,
        "partitions": shape.partitions,
        "replicas": shape.replicas,
        "configs": dict(shape.configs),
    }
