"""Reads a compacted topic of one partition from its start to its end, whichever program wrote it.

Journals have a reader of their own (`state/journals/journal`), which counts offsets; here there may be transaction
markers and holes from compaction, also at the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from reconciler.model.base.errors import EnvironmentFault, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls, clients
from reconciler.state.confluent.faults import in_words, no_connection, refused, unreachable
from reconciler.state.journals import unreadable

Record = tuple[bytes | None, bytes | None]

_AT_ONCE = 5_000
# The library waits for the full time, also after it has reported the end.
_POLL_SECONDS = 0.05
_SETTINGS = {
    # The library requires one; no consumer joins it and nothing is committed.
    "group.id": "anabranch-unused",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    # MirrorMaker 2 writes in transactions where it runs with exactly-once.
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 20,
    **unreadable.SETTINGS,
}
_GONE = frozenset(
    {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART},
)


def topics(cluster: Cluster, seconds: float) -> frozenset[str]:
    """Return the names of all topics that our user may see.

    Args:
        cluster: which one.
        seconds: how long it may take to answer.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: what `clients.ask` raises.
        Refused: AB423, it is another cluster than the declared one.
    """
    _, seen = clients.metadata(cluster, seconds)
    if other := cluster.other_cluster(seen.cluster_id):
        raise Refused(other)
    return frozenset(seen.topics)


def records(cluster: Cluster, topic: str, seconds: float) -> Iterator[Record]:
    """Yield keys and values of a topic's partition 0 up to its end as it is now; none where it does not exist.

    Args:
        cluster: where it is.
        topic: which one.
        seconds: how long the cluster may take to answer.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB313, reading is refused; or what `clients.make` raises.
    """
    reports = clients.Reports()
    consumer: Consumer = clients.make(Consumer, cluster, _SETTINGS, reports)
    try:
        # After a look-up by name the leader is known at once; else the library finds it half a second later.
        known = clients.ask(
            cluster, consumer, reports, lambda patience: clients.one_topic(consumer, patience, topic), seconds
        )
        error = known.error
        if error is not None and error.code() in _GONE:
            return
        if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise _refused(cluster, topic)
        with calls.ours(cluster, f"topic {topic}", reports=reports):
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        yield from _upto_end(cluster, topic, consumer, reports, seconds)
    finally:
        consumer.close()


def _upto_end(
    cluster: Cluster, topic: str, consumer: Consumer, reports: clients.Reports, seconds: float
) -> Iterator[Record]:
    deadline = time.monotonic() + seconds
    last: KafkaError | None = None
    while True:
        with calls.ours(cluster, f"topic {topic}", reports=reports):
            messages = consumer.consume(_AT_ONCE, _POLL_SECONDS)
        for message in messages:
            error = message.error()
            if error is None:
                deadline = time.monotonic() + seconds
                yield message.key(), message.value()
            elif error.code() == KafkaError._PARTITION_EOF or error.code() in _GONE:
                return
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise _refused(cluster, topic)
            elif unreadable.is_unreadable(error):
                unreadable.pass_over(consumer, cluster, message, seconds)
                break
            else:
                last = error
        if reports.not_let_in or (time.monotonic() > deadline and reports.errors):
            raise no_connection(cluster, reports.errors[-1], tuple(reports.errors))
        if time.monotonic() > deadline:
            raise unreachable(cluster, in_words(last) if last else f"topic {topic} cannot be read to its end")


def _refused(cluster: Cluster, topic: str) -> EnvironmentFault:
    return EnvironmentFault(refused(cluster, "READ", f"topic {topic}"))
