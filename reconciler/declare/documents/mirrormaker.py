"""Settings of MirrorMaker 2, Kafka Connect, Mirus and Strimzi, and the field that stands for each here.

The one table: `violations` answers unknown fields by it, and docs/reference/topology.md is held to it by a test. A key
is written without the prefixes that name the owner of the setting (`A.`, `A->B.`, `source.cluster.`, `consumer.`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from reconciler.declare.documents.without_field import WITHOUT_FIELD
from reconciler.declare.documents.words import either

_PREFIX = re.compile(
    r"^([A-Za-z0-9_-]+->[A-Za-z0-9_-]+\.)?((source|target)\.(cluster\.)?)?((consumer|producer|admin)\.(override\.)?)?"
)


UNKNOWN = "no setting of MirrorMaker 2, Connect or its clients is known by this name"
"""The message for a setting without an answer."""


class Answer(NamedTuple):
    """What stands for a setting.

    Attributes:
        fields: of the topology, as its reference calls them; none where nothing stands for it.
        why: what is to be known, where nothing stands for it, or where the field does not do quite the same.
    """

    fields: tuple[str, ...] = ()
    why: str = ""


_CLUSTER, _SECURITY = "clusters.*.", "clusters.*.security."
_OAUTH = f"{_SECURITY}oauth."


def _security(*fields: str) -> Answer:
    return Answer(tuple(f"{_SECURITY}{field}" for field in fields))


# The settings that the reference names beside each field, and their kin.
_FIELDS: dict[str, Answer] = {
    "bootstrap.servers": Answer((f"{_CLUSTER}bootstrap",)),
    "client.rack": Answer((f"{_CLUSTER}rack",)),
    "clusters": Answer(("clusters",)),
    "source.cluster.alias": Answer(("from",)),
    "target.cluster.alias": Answer(("to",)),
    **dict.fromkeys(
        (
            *("offset-syncs.topic.replication.factor", "checkpoints.topic.replication.factor"),
            "heartbeats.topic.replication.factor",
        ),
        Answer((f"{_CLUSTER}state-replication-factor",)),
    ),
    "enabled": Answer(("enabled",)),
    "topics": Answer(("topics.include",)),
    "topics.exclude": Answer(("topics.exclude",)),
    "topics.blacklist": Answer(("topics.exclude",)),
    "topics.whitelist": Answer(("topics.include",)),
    "heartbeats.replication.enabled": Answer(("topics.include",), "flows take heartbeats where it names them"),
    "topic.filter.class": Answer(("topics.include", "topics.exclude")),
    "groups": Answer(("groups.include",)),
    "groups.exclude": Answer(("groups.exclude",)),
    "groups.blacklist": Answer(("groups.exclude",)),
    "group.filter.class": Answer(("groups.include", "groups.exclude")),
    "config.properties.exclude": Answer(("configs.exclude",)),
    "config.properties.blacklist": Answer(("configs.exclude",)),
    "config.property.filter.class": Answer(("configs.include", "configs.exclude")),
    "replication.policy.class": Answer(("policy.type", "policy.class")),
    "replication.policy.separator": Answer(("policy.separator",)),
    "replication.factor": Answer(("replication-factor",)),
    "tasks.max": Answer(("tasks",)),
    "topic.creation.enable": Answer(("create",)),
    "topic.creation.groups": Answer(("replication-factor", "configs.set")),
    "refresh.topics.interval.seconds": Answer(("refresh-interval",)),
    "refresh.topics.enabled": Answer(("refresh-interval",), "`replicate --no-reconcile` discovers no new topics"),
    "sync.topic.configs.enabled": Answer(("configs.sync",)),
    "sync.topic.configs.interval.seconds": Answer(("refresh-interval",)),
    "sync.topic.acls.enabled": Answer(("acls",)),
    "sync.topic.acls.interval.seconds": Answer(("refresh-interval",)),
    "sync.group.offsets.enabled": Answer(("groups.sync-offsets",)),
    "sync.group.offsets.interval.seconds": Answer(("groups.interval",)),
    "refresh.groups.interval.seconds": Answer(("groups.interval",)),
    "refresh.groups.enabled": Answer(("groups.include",), "groups are looked for in each round"),
    "emit.heartbeats.enabled": Answer(("heartbeats",)),
    "emit.heartbeats.interval.seconds": Answer(("heartbeats",)),
    "emit.checkpoints.enabled": Answer(("groups.include",), "checkpoints are written for the groups that it names"),
    "emit.checkpoints.interval.seconds": Answer(("groups.interval",)),
    "exactly.once.source.support": Answer(("delivery",)),
    "exactly.once.support": Answer(("delivery",)),
    "transaction.boundary": Answer(("commit-interval",)),
    "transaction.boundary.interval.ms": Answer(("commit-interval",)),
    "offset.flush.interval.ms": Answer(("commit-interval",)),
    "auto.offset.reset": Answer(("start",)),
    "isolation.level": Answer(("isolation-level",)),
    "batch.size": Answer(("batch-size",)),
    "linger.ms": Answer(("linger",)),
    "fetch.min.bytes": Answer(("linger",)),
    **dict.fromkeys(
        (
            *("compression.type", "compression.level", "compression.gzip.level", "compression.lz4.level"),
            "compression.zstd.level",
        ),
        Answer(("compression",)),
    ),
    **dict.fromkeys(
        ("errors.deadletterqueue.topic.name", "errors.tolerance"),
        Answer(("dlq",), "without it a record that a target refuses parks its partition"),
    ),
    "acks": Answer(("delivery",)),
    "enable.idempotence": Answer(("delivery",)),
    "transactional.id": Answer(("delivery",)),
    "transaction.timeout.ms": Answer(("delivery",)),
    "security.protocol": _security("protocol"),
    "sasl.mechanism": _security("mechanism"),
    "sasl.jaas.config": _security("username", "password", "kerberos.principal", "kerberos.keytab", "kerberos"),
    "sasl.username": _security("username"),
    "sasl.password": _security("password"),
    "sasl.kerberos.service.name": _security("kerberos.service"),
    "sasl.oauthbearer.token.endpoint.url": Answer((f"{_OAUTH}token-endpoint", f"{_OAUTH}token")),
    "sasl.oauthbearer.client.credentials.client.id": Answer((f"{_OAUTH}client-id",)),
    "sasl.oauthbearer.client.credentials.client.secret": Answer((f"{_OAUTH}client-secret",)),
    "sasl.oauthbearer.scope": Answer((f"{_OAUTH}scope",)),
    **dict.fromkeys(
        ("ssl.truststore.location", "ssl.truststore.certificates", "ssl.truststore.password", "ssl.truststore.type"),
        _security("ca"),
    ),
    **dict.fromkeys(
        (
            *("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type"),
            *("ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.location", "ssl.certificate.location"),
        ),
        _security("certificate", "key"),
    ),
    "ssl.key.password": _security("key-password"),
    **dict.fromkeys(("ssl.ca.location", "ssl.ca.pem", "ssl.truststore.pem"), _security("ca")),
    **dict.fromkeys(("ssl.certificate.pem", "ssl.key.pem"), _security("certificate", "key")),
    **dict.fromkeys(
        ("ssl.endpoint.identification.algorithm", "enable.ssl.certificate.verification"), _security("verify-hostname")
    ),
    **dict.fromkeys(("ssl.enabled.protocols", "ssl.protocol"), _security("tls-protocols")),
    "ssl.cipher.suites": _security("ciphers"),
    "sasl.mechanisms": _security("mechanism"),
    **dict.fromkeys(
        (
            *("sasl.login.callback.handler.class", "sasl.login.class", "sasl.oauthbearer.config"),
            *("sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.assertion.algorithm"),
            *("sasl.oauthbearer.assertion.claim.aud", "sasl.oauthbearer.assertion.claim.exp.seconds"),
            *("sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.assertion.claim.jti.include"),
            *("sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub"),
            *("sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.private.key.file"),
            *("sasl.oauthbearer.assertion.private.key.passphrase", "sasl.oauthbearer.assertion.template.file"),
        ),
        Answer((f"{_OAUTH}token-provider", f"{_OAUTH}token-provider-options")),
    ),
    "sasl.oauthbearer.extensions": Answer((f"{_OAUTH}extensions",)),
    "sasl.oauthbearer.client.id": Answer((f"{_OAUTH}client-id",)),
    "sasl.oauthbearer.client.secret": Answer((f"{_OAUTH}client-secret",)),
    "sasl.oauthbearer.method": _security("oauth"),
    "sasl.kerberos.principal": _security("kerberos.principal"),
    "sasl.kerberos.keytab": _security("kerberos.keytab"),
}
# What Mirus calls the same.
_MIRUS: dict[str, Answer] = {
    "topics.regex": Answer(("topics.include",)),
    "topics.regex.list": Answer(("topics.include",)),
    "destination.topic.name.prefix": Answer(("policy.rules",)),
    "destination.topic.name.suffix": Answer(("policy.rules",)),
    "destination.bootstrap.servers": _FIELDS["bootstrap.servers"],
    "monitor.poll.wait.ms": Answer(("refresh-interval",)),
}
# What Strimzi's resources call the same.
_STRIMZI: dict[str, Answer] = {
    "bootstrapServers": _FIELDS["bootstrap.servers"],
    "sourceCluster": Answer(("from",)),
    "targetCluster": Answer(("to",)),
    "topicsPattern": Answer(("topics.include",)),
    "topicsExcludePattern": Answer(("topics.exclude",)),
    "topicsBlacklistPattern": Answer(("topics.exclude",)),
    "groupsPattern": Answer(("groups.include",)),
    "groupsExcludePattern": Answer(("groups.exclude",)),
    "groupsBlacklistPattern": Answer(("groups.exclude",)),
    "tasksMax": Answer(("tasks",)),
    "authentication": _security("mechanism"),
    "tls": _security("ca"),
}


_WITH_FIELD = _FIELDS | _STRIMZI | _MIRUS


def answer(key: str, *, behind_alias: bool = True) -> Answer | None:
    """Return what stands for a setting of MirrorMaker 2, Connect, Strimzi or a Java client; None where it is none.

    Args:
        key: as it is written, with the prefixes of clusters and clients or without.
        behind_alias: whether any first word may be the alias of a cluster.
    """
    names = _without_prefixes(key)
    for name in names if behind_alias else names[:2]:
        if found := _WITH_FIELD.get(name):
            return found
        if why := WITHOUT_FIELD.get(name):
            return Answer(why=why)
    return None


def _without_prefixes(key: str) -> list[str]:
    """Return the names that a key may have, the whole first: an alias may stand before it."""
    plain = _PREFIX.sub("", key)
    found = [key, plain]
    rest = plain.partition(".")[2]
    return [*found, _PREFIX.sub("", rest)] if rest else found


def said(fields: Sequence[str]) -> str:
    """Return fields that stand for one setting, and whose they are: "`configs.sync` of flows"."""
    owner = "the cluster" if fields[0].startswith(_CLUSTER) else "flows"
    return f"{either([f'`{field.removeprefix(_CLUSTER)}`' for field in fields])} of {owner}"


def fields() -> dict[str, tuple[str, ...]]:
    """Return the fields that stand for each setting."""
    return {key: one.fields for key, one in _WITH_FIELD.items()}


def without_field() -> dict[str, str]:
    """Return why nothing stands for the other settings that are known."""
    return dict(WITHOUT_FIELD)
