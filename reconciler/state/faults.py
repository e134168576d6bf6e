"""What failures of a cluster are called: who was refused what, in words that a person can act on.

Called by the rooms that hold an admin client, `observe` and `provision`, so that both say the same.
"""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

from reconciler.model.cluster import Cluster
from reconciler.model.errors import Problem

_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})


def is_refusal(error: KafkaError) -> bool:
    """Tell whether an ACL is missing."""
    return error.code() in _REFUSED


def is_authentication(error: KafkaError) -> bool:
    """Tell whether the cluster does not know us."""
    return error.code() in _AUTHENTICATION


def principal(cluster: Cluster) -> str:
    """Return how messages name the user that we are on a cluster."""
    return cluster.user


def refused(cluster: Cluster, operation: str, resource: str) -> Problem:
    """Return the problem that an ACL is missing: who, what, and on which resource."""
    return Problem(
        "AB313",
        cluster.where,
        f"{principal(cluster)} is not allowed {operation} on {resource}",
        f"grant {operation} on {resource}",
    )


def in_words(error: KafkaError) -> str:
    """Return librdkafka's report without its own bookkeeping: thread names, durations and states."""
    text = re.sub(r"\s*\(after \d+ms in state \w+.*\)$", "", error.str())
    text = re.sub(r"^\w+://", "", text)
    text = re.sub(r"Connect to \S+ failed: ", "", text)
    return re.sub(r"^(\S+)/(?:bootstrap|\d+): ", r"\1: ", text)
