"""Turns Kafka errors of a cluster into problems: principal, operation, resource and a remedy.

All packages with an admin client use it, so that their messages agree.
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
"""Codes for a partition without a leader, or with another leader than client or broker have on record."""
LOST = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._DESTROY_BROKER})
"""Codes for a connection that ended with a request in it, as that to a broker that has left the cluster's metadata."""
UNANSWERED = LOST | {KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}
"""Codes for a request without an answer: what it asked for may have been done."""
_CHECK_LOGIN = "check security: protocol, mechanism, username and the password it refers to"
_CHECK_KERBEROS = (
    "check security.kerberos, the clocks, and whether `kinit` gets a ticket with the same keytab and principal"
)
# librdkafka's error for an impossible frame size; these four bytes show which protocol answers.
_SIZE = re.compile(r"(?P<address>[^\s/]+?)(?:/\w+)?: Receive failed: Invalid response size (?P<size>-?\d+)")
# Its error for a name that does not resolve: texts of C libraries for EAI_NONAME and EAI_NODATA.
_UNKNOWN = re.compile(
    r"Failed to resolve '(?P<address>[^']+)': (?:Name or service not known|No address associated with hostname|"
    r"Name does not resolve|nodename nor servname provided|No such host is known)"
)
# A real answer may be above its limit, but never as large as this (bytes).
_NO_SIZE = 2**28
_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
# librdkafka reports as authentication also that a connection ended or hung while it logged in (`rdkafka_broker.c`,
# `rd_kafka_handle_SaslHandshake`), as to a broker that is stopped.
_CUT_SHORT = tuple(f"failed: {KafkaError(code).str()}" for code in sorted(UNANSWERED))


def is_refusal(error: KafkaError) -> bool:
    """Return whether an ACL is missing."""
    return error.code() in _REFUSED


def is_authentication(error: KafkaError) -> bool:
    """Return whether authentication failed: a broker has answered so."""
    return error.code() in _AUTHENTICATION and not any(text in error.str() for text in _CUT_SHORT)


def is_not_let_in(error: KafkaError) -> bool:
    """Return whether other credentials or certificates are needed, so that a retry with the same is of no use."""
    return is_authentication(error) or error.code() == KafkaError._SSL


def principal(cluster: Cluster) -> str:
    """Return the principal of this process on a cluster, as messages name it."""
    return cluster.user


def refused(cluster: Cluster, operation: str, resource: str) -> Problem:
    """Return the problem that an ACL is missing: principal, operation and resource."""
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
    remedy = "see whether its brokers run and do not hang, and whether the address is right"
    return Unreachable(Problem("AB310", cluster.where, f"does not answer: {reason}", remedy))


def unresolved(cluster: Cluster, reported: Collection[KafkaError]) -> Unreachable | None:
    """Return the error that no address of a cluster resolves; None while one may.

    A temporary failure of the resolver has another text, and the client tries again.
    """
    found: dict[str, None] = {}
    for error in reported:
        if error.code() == KafkaError._RESOLVE and (name := _UNKNOWN.search(error.str())):
            found[name["address"]] = None
    if not found or set(cluster.addresses) - found.keys():
        return None
    names = list(dict.fromkeys(address.rpartition(":")[0] for address in found))
    names_text = f"the name {names[0]}" if len(names) == 1 else f"none of the names {', '.join(names)}"
    what = f"{names_text} {'cannot' if len(names) == 1 else 'can'} be resolved"
    where = f"cluster {cluster.alias} ({cluster.place})" if cluster.place else cluster.where
    return Unreachable(
        Problem("AB310", where, what, "correct bootstrap, or see whether this machine has the right DNS")
    )


def no_connection(cluster: Cluster, failure: KafkaError, reported: Collection[KafkaError] = ()) -> AnabranchError:
    """Return why there is no connection to a cluster.

    Args:
        cluster: which one.
        failure: what the request ended with.
        reported: connection errors of librdkafka meanwhile.
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
    reasons = sorted({in_words(error) for error in reported if error.code() != down})
    if (found := wrong_protocol(cluster, reported)) is not None:
        return found
    if reasons:
        return unreachable(cluster, "; ".join(reasons))
    if any(error.code() == down for error in reported):
        why = f"does the broker hang, or is this no {cluster.security.protocol} listener?"
        return unreachable(cluster, f"connections end without an answer: {why}")
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
