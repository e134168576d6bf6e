"""Settings of MirrorMaker 2, Kafka Connect and Strimzi, and the field that stands for each here.

The one table: `violations` answers unknown fields by it, and docs/reference/topology.md is held to it by a test. A key
is written without the prefixes that name the owner of the setting (`A.`, `A->B.`, `source.cluster.`, `consumer.`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from reconciler.declare.documents.words import either

_PREFIX = re.compile(
    r"^([A-Za-z0-9_-]+->[A-Za-z0-9_-]+\.)?((source|target)\.(cluster\.)?)?((consumer|producer|admin)\.(override\.)?)?"
)


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
    "compression.type": Answer(("compression",)),
    "compression.level": Answer(("compression",)),
    "errors.deadletterqueue.topic.name": Answer(("dlq",)),
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
        ("sasl.login.callback.handler.class", "sasl.login.class", "sasl.oauthbearer.config"),
        Answer((f"{_OAUTH}token-provider", f"{_OAUTH}token-provider-options")),
    ),
    "sasl.oauthbearer.extensions": Answer((f"{_OAUTH}extensions",)),
    "sasl.oauthbearer.client.id": Answer((f"{_OAUTH}client-id",)),
    "sasl.oauthbearer.client.secret": Answer((f"{_OAUTH}client-secret",)),
    "sasl.oauthbearer.method": _security("oauth"),
    "sasl.kerberos.principal": _security("kerberos.principal"),
    "sasl.kerberos.keytab": _security("kerberos.keytab"),
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
_WAITS = "the replicator waits and retries according to the brokers' errors"
_BYTES = "records pass as bytes"
# What nothing stands for, and why.
_NOTHING: dict[str, str] = {
    "offset-syncs.topic.location": "offset syncs are written to the target, with each commit",
    "offset.lag.max": "offset syncs are written with each commit",
    **dict.fromkeys(
        (
            *("config.storage.topic", "offset.storage.topic", "status.storage.topic"),
            *("config.storage.replication.factor", "offset.storage.replication.factor"),
            "status.storage.replication.factor",
        ),
        "no Connect is needed",
    ),
    "heartbeats.replication.enabled": "topics called heartbeats are taken where `topics` has them",
    "replication.policy.internal.topic.separator.enabled": "internal topics have the separator in their names",
    "use.incremental.alter.configs": "settings are always altered one by one",
    "add.source.alias.to.metrics": "status has the flow's name in each of its lines",
    "forwarding.admin.class": "topics are made by `apply`, and by `replicate` where it may",
    "dedicated.mode.enable.internal.rest": "processes communicate through topics of the target",
    **dict.fromkeys(("key.converter", "value.converter", "header.converter"), _BYTES),
    **dict.fromkeys(("transforms", "predicates"), f"{_BYTES}; what changes records runs behind the copy"),
    "consumer.group.id": "a flow's group is anabranch.TOPOLOGY.FLOW",
    "group.id": "a flow's group is anabranch.TOPOLOGY.FLOW, and `start` of the flow sets where it begins",
    "group.instance.id": "tasks share partitions by leases",
    **dict.fromkeys(
        (
            *("retries", "retry.backoff.ms", "retry.backoff.max.ms", "delivery.timeout.ms", "max.block.ms"),
            *("default.api.timeout.ms", "socket.connection.setup.timeout.ms"),
            *("socket.connection.setup.timeout.max.ms", "metadata.max.idle.ms"),
        ),
        _WAITS,
    ),
    **dict.fromkeys(
        ("session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms"),
        "a task's lease has times of its own, as what it may write rests on them",
    ),
    **dict.fromkeys(
        ("buffer.memory", "max.poll.records", "max.in.flight.requests.per.connection", "queued.max.messages.kbytes"),
        "how much is on its way follows from the line and from fetch.max.bytes and max.request.size",
    ),
    **dict.fromkeys(
        ("enable.auto.commit", "auto.commit.interval.ms", "allow.auto.create.topics", "exclude.internal.topics"),
        "positions and topics are the replicator's own matter",
    ),
    **dict.fromkeys(
        ("partition.assignment.strategy", "partitioner.class", "partitioner.ignore.keys", "interceptor.classes"),
        "each record goes to the partition that it comes from, as it is",
    ),
    **dict.fromkeys(("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"), _BYTES),
    "check.crcs": "checksums are always checked",
    "client.dns.lookup": "all addresses of a name are tried",
    **dict.fromkeys(
        ("metrics.recording.level", "metrics.num.samples", "metrics.sample.window.ms", "metric.reporters"),
        "figures are those of `status`",
    ),
    **dict.fromkeys(
        (
            *("security.providers", "ssl.provider", "ssl.engine.factory.class", "sasl.client.callback.handler.class"),
            *("ssl.trustmanager.algorithm", "ssl.keymanager.algorithm", "ssl.secure.random.implementation"),
        ),
        "it is a class of Java's",
    ),
    **dict.fromkeys(
        (
            *("sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin"),
            *("sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor"),
            *("sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"),
            *("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.buffer.seconds"),
        ),
        "tickets and tokens are renewed in time by themselves",
    ),
    **dict.fromkeys(
        ("replicas", "resources", "jvmOptions", "autoRestart", "logging", "metricsConfig", "connectCluster"),
        "it is a matter of what runs the processes",
    ),
}


def answer(key: str) -> Answer | None:
    """Return what stands for a setting of MirrorMaker 2, Connect, Strimzi or a Java client; None where it is none.

    Args:
        key: as it is written, with the prefixes of clusters and clients or without.
    """
    for name in _without_prefixes(key):
        if found := _FIELDS.get(name) or _STRIMZI.get(name):
            return found
        if why := _NOTHING.get(name):
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
    return {key: one.fields for key, one in (_FIELDS | _STRIMZI).items()}


def without_field() -> dict[str, str]:
    """Return why nothing stands for the other settings that are known."""
    return dict(_NOTHING)
