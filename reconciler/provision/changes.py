"""What all requests that change a cluster share: how many travel together, and what their failures are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from confluent_kafka import KafkaError

from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import UNANSWERED, in_words, is_refusal, refused, unreachable

Item = TypeVar("Item")


def portions(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield items in portions of at most `size`, in their order."""
    for first in range(0, len(items), size):
        yield items[first : first + size]


def failed(cluster: Cluster, error: KafkaError, operation: str, needed_on: str, subject: str) -> Problem:
    """Return the problem that a change was not made, or may not have been.

    Args:
        cluster: which one.
        error: from it, or from the client.
        operation: Kafka's name of what the change takes.
        needed_on: on which resource it takes that.
        subject: what was to be changed.
    """
    if is_refusal(error):
        return refused(cluster, operation, needed_on)
    if error.code() in UNANSWERED:
        return unreachable(cluster, f"{in_words(error)}; whether it did it is unknown").problems[0]
    where = f"{cluster.where}, {subject}"
    return Problem("AB314", where, in_words(error), "mend what the cluster names, then apply again")
