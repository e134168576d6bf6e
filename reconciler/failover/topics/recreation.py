"""A topic made anew: deleted, and made again as it was, without its records.

What it was is on record in the topology's journal of ownership at its cluster from before it is deleted until it is
there again: killed at any moment, the next call finishes.
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
    """Delete a topic, and make it again with the same partitions, replicas and settings of its own.

    ACLs stay, as they go by names. Records of ours that name the old topic's id are not touched.

    Args:
        cluster: where it is.
        topology: name of the topology that does it; what it was is on record under that name.
        topic: which one.
        seconds: how long may be waited for each change to be seen.

    Returns:
        Its new id, as Kafka's tools print it and ownership records have it; None where brokers have none.

    Raises:
        Unreachable: AB310, the cluster does not answer. Called again, it goes on.
        EnvironmentFault: AB311, the journal cannot be read or written; AB313, what is needed is refused; AB722, there
            is no such topic; AB726, the cluster does not delete or make it; AB727, after it was deleted somebody else
            made it and wrote to it; AB728, it is an internal one.
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
    """Take away what has the topic's name, until a topic of its shape was made that is another one and empty."""
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
            # Records of somebody who was not asked are not deleted.
            what = "was made again by another client after it was deleted, and holds records"
            raise EnvironmentFault(
                Problem("AB727", where, what, "check its records and its producers; delete it, then run it again")
            )
        elif there.shape == shape:
            return
        else:
            # Made by brokers for whoever reads or writes there.
            topics.delete(topic, there.topic_id)
        if time.monotonic() > deadline:
            what = f"was made again by another client each time it was deleted, for {seconds:g} s"
            raise EnvironmentFault(Problem("AB726", where, what, "stop its producers and consumers, then run it again"))
        time.sleep(_PAUSE_SECONDS if there is None else 0)


def _is_written(topics: Topics, topic: str, partitions: int) -> bool:
    topics.await_led(topic, partitions)
    bounds = topics.bounds(topic, partitions)
    # A leader that does not answer now may have something.
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
