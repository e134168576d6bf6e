"""What failures of a cluster are called: who was refused what, in words that a person can act on.

Called by the rooms that hold an admin client, so that all say the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from confluent_kafka import KafkaError

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import peers, tls

_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
LEADER_CHANGES = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._NOENT,
    }
)
"""Codes that say that a partition has no leader now, or another one than client or broker know."""
_CHECK_LOGIN = "check security: protocol, mechanism, username and the password it refers to"
_CHECK_KERBEROS = (
    "check security.kerberos, the clocks, and whether `kinit` gets a ticket with the same keytab and principal"
)
# What librdkafka says of an answer that begins with a size that none has; these four bytes tell what answers.
_SIZE = re.compile(r"(?P<address>[^\s/]+?)(?:/\w+)?: Receive failed: Invalid response size (?P<size>-?\d+)")
# What it says of a name that the resolver does not know, in the words of C libraries for EAI_NONAME and EAI_NODATA.
_UNKNOWN = re.compile(
    r"Failed to resolve '(?P<address>[^']+)': (?:Name or service not known|No address associated with hostname|"
    r"Name does not resolve|nodename nor servname provided|No such host is known)"
)
# A large answer may be beyond what it allows; none is so large.
_NO_SIZE = 2**28
_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})


def is_refusal(error: KafkaError) -> bool:
    """Tell whether an ACL is missing."""
    return error.code() in _REFUSED


def is_authentication(error: KafkaError) -> bool:
    """Tell whether the cluster does not know us."""
    return error.code() in _AUTHENTICATION


def is_not_let_in(error: KafkaError) -> bool:
    """Tell whether other credentials or certificates are needed; trying again with the same is of no use."""
    return is_authentication(error) or error.code() == KafkaError._SSL


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


def not_allowed(cluster: Cluster, topic: str, operations: str) -> Problem:
    """Return the problem that a user may not do what is needed with a journal's topic."""
    found = refused(cluster, operations, f"topic {topic}")
    return replace(found, code="AB311", where=f"{cluster.where}, topic {topic}")


def unreachable(cluster: Cluster, reason: object) -> Unreachable:
    """Return the error for a cluster that does not answer."""
    return Unreachable(
        Problem("AB310", cluster.where, f"does not answer: {reason}", "check that it runs and the address is right")
    )


def unresolved(cluster: Cluster, reported: Collection[KafkaError]) -> Unreachable | None:
    """Return the error that no address of a cluster is one, as none of their names is known; None while one may be.

    A resolver that fails for the moment says something else, and is asked again.
    """
    found: dict[str, None] = {}
    for error in reported:
        if error.code() == KafkaError._RESOLVE and (name := _UNKNOWN.search(error.str())):
            found[name["address"]] = None
    if not found or set(cluster.addresses) - found.keys():
        return None
    names = list(dict.fromkeys(address.rpartition(":")[0] for address in found))
    told = f"the name {names[0]}" if len(names) == 1 else f"none of the names {', '.join(names)}"
    what = f"{told} {'cannot' if len(names) == 1 else 'can'} be resolved"
    where = f"cluster {cluster.alias} ({cluster.place})" if cluster.place else cluster.where
    return Unreachable(
        Problem("AB310", where, what, "correct bootstrap, or see whether this machine has the right DNS")
    )


def no_connection(cluster: Cluster, failure: KafkaError, reported: Collection[KafkaError] = ()) -> AnabranchError:
    """Return why there is no connection to a cluster.

    Args:
        cluster: which one.
        failure: what the request ended with.
        reported: what librdkafka told meanwhile of its connections.
    """
    if cluster.security.oauth is not None:
        try:
            cluster.token()
        except AnabranchError as error:
            return error
    for one in (*reported, failure):
        if is_authentication(one):
            return EnvironmentFault(
                Problem(
                    "AB312",
                    cluster.where,
                    f"does not let {principal(cluster)} in: {in_words(one)}",
                    _CHECK_KERBEROS if cluster.security.kerberos else _CHECK_LOGIN,
                )
            )
    if (unknown := unresolved(cluster, reported)) is not None:
        return unknown
    down = KafkaError._ALL_BROKERS_DOWN
    told = sorted({in_words(error) for error in reported if error.code() != down})
    if (found := wrong_protocol(cluster, reported)) is not None:
        return found
    if told:
        return unreachable(cluster, "; ".join(told))
    if any(error.code() == down for error in reported):
        return unreachable(cluster, f"connections are closed at once; does it speak {cluster.security.protocol}?")
    return unreachable(cluster, in_words(failure))


def wrong_protocol(cluster: Cluster, reported: Collection[KafkaError]) -> EnvironmentFault | None:
    """Return what is wrong with certificates or the protocol, where a broker was reached at all."""
    told = [error.str() for error in reported if error.code() != KafkaError._ALL_BROKERS_DOWN]
    if told and all("refused" in text or "resolve" in text for text in told):
        return None
    for one in map(_SIZE.search, told):
        if one is not None and (size := int(one["size"])) >= 0 and not peers.speaks_tls(size.to_bytes(4, "big")):
            first = size.to_bytes(4, "big")
            if peers.is_known(first) or size >= _NO_SIZE:
                return EnvironmentFault(tls.no_broker(cluster, one["address"], peers.who_answers(first)))
    return tls.examine(cluster)


def in_words(error: KafkaError) -> str:
    """Return librdkafka's report without its own bookkeeping: thread names, durations and states."""
    text = re.sub(r"\s*\(after \d+ms in state \w+.*\)$", "", error.str())
    text = re.sub(r"^\w+://", "", text)
    text = re.sub(r"Connect to \S+ failed: ", "", text)
    return re.sub(r"^(\S+)/(?:bootstrap|\d+): ", r"\1: ", text)
