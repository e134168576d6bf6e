"""The connectors that workers take, and the settings of each that have an equal here.

Names, types and which settings are required are those of Kafka 4.3; defaults are given where both have the same.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.declare.documents import mirrormaker

MIRROR_PACKAGE = "org.apache.kafka.connect.mirror"
SOURCE, CHECKPOINTS, HEARTBEATS = "MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector"
SINK = "MirrorSinkConnector"
"""What KIP-382 names beside the source connector, and no release has: it does what that does."""
MIRUS = "MirusSourceConnector"
COPYING = (SOURCE, SINK, MIRUS)
"""Those that copy records; the others go with one of them."""


class PluginSetting(NamedTuple):
    """A setting of a connector.

    Attributes:
        name: of it.
        type: in Kafka's words.
        default: what holds without it; None where nothing does, or what the topology has for it.
        is_required: whether it must be there.
    """

    name: str
    type: str
    default: str | None = None
    is_required: bool = False

    @property
    def documentation(self) -> str:
        """What stands for it here."""
        found = mirrormaker.answer(self.name, behind_alias=False)
        if found is None:
            return ""
        return mirrormaker.said(found.fields) if found.fields else found.why


class Plugin(NamedTuple):
    """A connector that workers take.

    Attributes:
        kind: its class without the package.
        package: of the class.
        settings: that have an equal here.
    """

    kind: str
    package: str
    settings: tuple[PluginSetting, ...]

    @property
    def full_name(self) -> str:
        """The class with its package."""
        return f"{self.package}.{self.kind}"


_OF_ALL = (
    PluginSetting("name", "STRING", is_required=True),
    PluginSetting("connector.class", "STRING", is_required=True),
    PluginSetting("tasks.max", "INT", "1"),
    PluginSetting("key.converter", "CLASS"),
    PluginSetting("value.converter", "CLASS"),
)
_OF_MIRRORS = (
    *_OF_ALL,
    PluginSetting("enabled", "BOOLEAN", "true"),
    PluginSetting("source.cluster.alias", "STRING", is_required=True),
    PluginSetting("target.cluster.alias", "STRING", "target"),
    PluginSetting("source.cluster.bootstrap.servers", "LIST"),
    PluginSetting("target.cluster.bootstrap.servers", "LIST"),
    PluginSetting("replication.policy.class", "CLASS", f"{MIRROR_PACKAGE}.DefaultReplicationPolicy"),
    PluginSetting("replication.policy.separator", "STRING", "."),
)
_COPIES = (
    *_OF_MIRRORS,
    PluginSetting("topics", "LIST", ".*"),
    PluginSetting("topics.exclude", "LIST"),
    PluginSetting("config.properties.exclude", "LIST"),
    PluginSetting("refresh.topics.interval.seconds", "LONG"),
    PluginSetting("sync.topic.configs.enabled", "BOOLEAN", "true"),
    PluginSetting("sync.topic.acls.enabled", "BOOLEAN"),
    PluginSetting("replication.factor", "INT"),
    PluginSetting("offset-syncs.topic.replication.factor", "SHORT"),
)
PLUGINS = (
    Plugin(
        CHECKPOINTS,
        MIRROR_PACKAGE,
        (
            *_OF_MIRRORS,
            PluginSetting("groups", "LIST", ".*"),
            PluginSetting("groups.exclude", "LIST"),
            PluginSetting("emit.checkpoints.enabled", "BOOLEAN", "true"),
            PluginSetting("emit.checkpoints.interval.seconds", "LONG"),
            PluginSetting("sync.group.offsets.enabled", "BOOLEAN"),
            PluginSetting("checkpoints.topic.replication.factor", "SHORT"),
        ),
    ),
    Plugin(
        HEARTBEATS,
        MIRROR_PACKAGE,
        (
            *_OF_MIRRORS,
            PluginSetting("emit.heartbeats.enabled", "BOOLEAN", "true"),
            PluginSetting("emit.heartbeats.interval.seconds", "LONG", "1"),
            PluginSetting("heartbeats.topic.replication.factor", "SHORT"),
        ),
    ),
    Plugin(SOURCE, MIRROR_PACKAGE, _COPIES),
    Plugin(SINK, MIRROR_PACKAGE, _COPIES),
    Plugin(
        MIRUS,
        "com.salesforce.mirus",
        (
            *_OF_ALL,
            PluginSetting("topics.whitelist", "LIST"),
            PluginSetting("topics.regex", "STRING"),
            PluginSetting("topics.regex.list", "LIST"),
            PluginSetting("destination.topic.name.prefix", "STRING"),
            PluginSetting("destination.topic.name.suffix", "STRING"),
            PluginSetting("monitor.poll.wait.ms", "LONG"),
            PluginSetting("consumer.bootstrap.servers", "LIST", is_required=True),
            PluginSetting("destination.consumer.bootstrap.servers", "LIST"),
        ),
    ),
)


def plugin_of(name: str) -> Plugin | None:
    """Return the connector of a class, named with or without its package and the word Connector; None for others."""
    return next((one for one in PLUGINS if name in (one.full_name, one.kind, one.kind.removesuffix("Connector"))), None)
