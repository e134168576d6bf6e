"""Settings of MirrorMaker 2, Kafka Connect, Mirus, Strimzi and Kafka's clients that no field stands for, and why.

The reference has the same list, and a test holds the two together; `mirrormaker` answers by it.
"""

from __future__ import annotations

_WAITS = "the replicator waits and retries according to the brokers' errors"
_BYTES = "records pass as bytes"
WITHOUT_FIELD: dict[str, str] = {
    "offset-syncs.topic.location": "offset syncs are written to the target, with each commit",
    "offset.lag.max": "offset syncs are written with each commit",
    **dict.fromkeys(
        (
            *("config.storage.topic", "offset.storage.topic", "status.storage.topic"),
            *("config.storage.replication.factor", "offset.storage.replication.factor"),
            *("status.storage.replication.factor", "offset.storage.partitions", "status.storage.partitions"),
            *("plugin.path", "plugin.discovery", "offset.storage.file.filename"),
        ),
        "no Connect is needed",
    ),
    "replication.policy.internal.topic.separator.enabled": "internal topics have the separator in their names",
    "use.defaults.from": "a setting that an original does not have of its own is the target's default at its copy",
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
    # --- connectors and workers of Kafka Connect
    "connector.class": "flows are declared without a class",
    "name": "flows have names of their own",
    "tasks.max.enforce": "a flow never has more tasks than `tasks`",
    "offsets.storage.topic": "positions are kept in a group at the target, or are the copy's own end",
    **dict.fromkeys(
        (
            *("key.converter.plugin.version", "value.converter.plugin.version", "header.converter.plugin.version"),
            "connector.plugin.version",
        ),
        "the installed version is the one that runs",
    ),
    **dict.fromkeys(
        ("errors.retry.timeout", "errors.retry.delay.max.ms", "consumer.poll.timeout.ms", "admin.timeout.ms"), _WAITS
    ),
    **dict.fromkeys(
        ("errors.log.enable", "errors.log.include.messages"), "errors are always logged, and never with records"
    ),
    "emit.offset-syncs.enabled": "offset syncs are written with each commit of a translated copy",
    "config.action.reload": "a reference is looked up again with each connection",
    "config.providers": "references need no such declaration",
    "metric.names.formats": "`metrics --mirror-maker-names` chooses between the names",
    **dict.fromkeys(
        (
            *("connect.protocol", "rebalance.timeout.ms", "scheduled.rebalance.max.delay.ms", "worker.sync.timeout.ms"),
            *("worker.unsync.backoff.ms", "task.shutdown.graceful.timeout.ms", "offset.flush.timeout.ms"),
        ),
        "processes share partitions by leases, without rebalances",
    ),
    **dict.fromkeys(
        (
            *("inter.worker.key.generation.algorithm", "inter.worker.key.size", "inter.worker.key.ttl.ms"),
            *("inter.worker.signature.algorithm", "inter.worker.verification.algorithms"),
        ),
        "processes communicate through topics of the target, and sign what they write there",
    ),
    **dict.fromkeys(
        (
            *("access.control.allow.methods", "access.control.allow.origin", "admin.listeners", "listeners"),
            *("response.http.headers.config", "rest.advertised.host.name", "rest.advertised.listener"),
            *("rest.advertised.port", "rest.extension.classes", "rest.host.name", "rest.port"),
        ),
        "`serve` and `connect-distributed` listen where their options name an address",
    ),
    **dict.fromkeys(
        ("topic.tracking.enable", "topic.tracking.allow.reset"), "the topics of a flow are those that are copied now"
    ),
    "connector.client.config.override.policy": "settings of clients are those of the cluster",
    # --- clients
    "bootstrap.controllers": "clusters are administered through their brokers",
    "enable.metrics.push": "figures are those of `status`, and brokers get none",
    **dict.fromkeys(
        ("metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms"),
        "addresses of `bootstrap` are tried again when no known broker answers",
    ),
    **dict.fromkeys(
        (
            *("group.protocol", "group.remote.assignor", "share.acknowledgement.mode", "share.acquire.mode"),
            "internal.throw.on.fetch.stable.offset.unsupported",
        ),
        "partitions are read without a consumer group",
    ),
    **dict.fromkeys(
        ("partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms"),
        "each record goes to the partition that it comes from, as it is",
    ),
    "transaction.two.phase.commit.enable": "transactions end with the commit of a flow",
    **dict.fromkeys(
        (
            *("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.retry.backoff.ms"),
            "sasl.login.retry.backoff.max.ms",
        ),
        "a token endpoint has 3 s to answer, and is asked again with the next connection",
    ),
    **dict.fromkeys(
        (
            *("sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience"),
            *("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            *("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
            *("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.jwt.validator.class"),
            *("sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name"),
        ),
        "tokens are checked by the brokers",
    ),
    "sasl.oauthbearer.header.urlencode": "the client id and secret are sent as they are",
    # --- Mirus
    "enable.partition.matching": "records always keep their partitions",
    "enable.destination.topic.checking": "copies are there before their records, or are named as missing",
    **dict.fromkeys(("source.key.converter", "source.value.converter", "source.header.converter"), _BYTES),
    **dict.fromkeys(("replay.policy", "replay.window.records"), "no record is written twice"),
    **dict.fromkeys(
        (
            *("mirus.task.monitor.polling.interval.ms", "mirus.task.auto.restart.enabled"),
            *("mirus.connector.auto.restart.enabled", "commit.failure.restart.ms", "poll.timeout.ms"),
        ),
        "tasks that fail or are silent are always started again, with a growing pause",
    ),
}
