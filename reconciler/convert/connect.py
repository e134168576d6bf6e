"""Connectors of MirrorMaker 2 as Kafka Connect has them, in JSON or properties: several of them make one flow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from reconciler.convert.clusters import ClusterKeys
from reconciler.convert.flows import FlowKeys, as_it_is
from reconciler.convert.parts import FlowEnds, TopologyParts
from reconciler.convert.plugins import CHECKPOINTS, HEARTBEATS, SINK, SOURCE, plugin_of
from reconciler.convert.settings import UNREADABLE, WITHOUT_EQUAL, Setting, Settings
from reconciler.convert.values import contradicting
from reconciler.model.base.errors import DeclaredInputError, Problem

CLASS = "connector.class"
_CLASSES = (SOURCE, CHECKPOINTS, HEARTBEATS, SINK)
_OF_WORKERS = ("bootstrap.servers", "security.", "sasl.", "ssl.")
"""What a worker has for the cluster that it writes to, as a whole or as a beginning."""
_OF_PRODUCERS = "producer.compression.type"
PASSED_OVER = ("name", CLASS, "clusters", "source.cluster.alias", "target.cluster.alias", "enabled")
"""Settings whose values a flow has already."""
_OWN_ROLES = (("source", "consumer"), ("target", "producer"))


@dataclass(frozen=True)
class Connector:
    """One connector.

    Attributes:
        name: of it; empty where it has none.
        settings: its configuration.
        where: file, or file and place in it.
        is_stopped: whether it is there and does nothing.
    """

    name: str
    settings: Settings
    where: str
    is_stopped: bool = False

    @property
    def kind(self) -> str:
        """The class of the connector, without its package."""
        named = self.settings.first(CLASS)
        if named is None:
            return ""
        known = plugin_of(named.value)
        return known.kind if known is not None else named.value.rpartition(".")[2]

    def alias(self, end: str) -> str:
        """Return the alias of one end, `source` or `target`; MirrorMaker 2's default where it names none."""
        named = self.settings.first(f"{end}.cluster.alias")
        return named.value if named is not None and named.value else end


def convert(
    connectors: Sequence[Connector], worker: Settings | None = None, *, are_named: bool = False
) -> TopologyParts:
    """Return what connectors declare together: a flow for each that copies.

    Args:
        connectors: all that belong together.
        worker: settings of a single worker that has them: its brokers, where a connector names none for the target.
        are_named: whether flows are called after their connectors, and keep their names when others come; what only
            goes with a flow may then be there before it. Else they are where several lead from one cluster to another.

    Raises:
        DeclaredInputError: AB140, one is none of MirrorMaker 2's; AB141 or AB142, a setting cannot be converted.
    """
    _check(connectors)
    parts = TopologyParts()
    pairs = dict.fromkeys((one.alias("source"), one.alias("target")) for one in connectors)
    for pair in pairs:
        own = [one for one in connectors if (one.alias("source"), one.alias("target")) == pair]
        _flows(parts, pair, own, worker, are_named)
    return parts


def _check(connectors: Sequence[Connector]) -> None:
    problems, seen = [], dict[str, Connector]()
    for one in connectors:
        if one.kind not in _CLASSES:
            message = f"expected {CLASS} to be one of {', '.join(_CLASSES)}; found {one.kind or 'none'}"
            problems.append(Problem(UNREADABLE, one.where, message, "leave it out, or correct it"))
        other = seen.setdefault(one.name, one) if one.name else one
        if other is not one and _content(other) != _content(one):
            message = f"the connector {one.name} has another configuration at {other.where}"
            problems.append(Problem(WITHOUT_EQUAL, one.where, message, "leave one of the two out"))
    if problems:
        raise DeclaredInputError(problems)


def _content(one: Connector) -> dict[str, str]:
    return {setting.key: setting.value for setting in one.settings}


def _flows(
    parts: TopologyParts,
    pair: tuple[str, str],
    connectors: Sequence[Connector],
    worker: Settings | None,
    are_named: bool,
) -> None:
    """Put the flows from one cluster to another into the parts."""
    copying = [one for one in connectors if one.kind in (SOURCE, SINK)]
    beside = [one for one in connectors if one not in copying and not one.is_stopped]
    if not copying and not are_named:
        message = f"nothing copies from {pair[0]} to {pair[1]}: a {SOURCE} is missing"
        raise DeclaredInputError(
            Problem(UNREADABLE, connectors[0].where, message, "convert its file together with these")
        )
    # Connectors of workers come and go, and the copy of heartbeats would go from flow to flow with them.
    carries_heartbeats = not are_named
    # One that is given twice was found to be the same each time.
    copying = list({one.name: one for one in copying}.values()) if all(one.name for one in copying) else copying
    are_named = are_named or len(copying) > 1
    if are_named and (nameless := [one for one in copying if not one.name]):
        message = f"several connectors copy from {pair[0]} to {pair[1]}, and this one has no name"
        raise DeclaredInputError(Problem(UNREADABLE, nameless[0].where, message, "give each a name: flows need them"))
    for one in copying:
        settings = _together([one, *beside], worker)
        keys = flow_keys({other.kind for other in beside}, carries_heartbeats)
        _flow(parts, FlowEnds(*pair, one.name if are_named else ""), one, settings, keys)
        # Its heartbeats are those of the whole way.
        carries_heartbeats = False
        beside = [other for other in beside if other.kind != HEARTBEATS]


def _flow(parts: TopologyParts, ends: FlowEnds, copying: Connector, settings: Settings, keys: FlowKeys) -> None:
    """Put one flow and its clusters into the parts."""
    for key in PASSED_OVER:
        settings.pass_over(key)
    for end, alias in (("source", ends.source), ("target", ends.target)):
        factor = as_it_is if end == "target" else None
        parts.put_cluster(alias, settings, _cluster_keys(end), copying.where, factor)
    fields = parts.fields_of(settings, keys)
    if copying.is_stopped:
        fields[("enabled",)] = (False, None, "stopped")
    parts.flows[ends] = fields
    parts.left.append(settings)


def flow_keys(beside: Collection[str], carries_heartbeats: bool) -> FlowKeys:
    """Return where the settings of a flow stand, beside whose connector there are some of other kinds."""
    return FlowKeys(
        own=as_it_is,
        consumer=lambda name: (f"source.consumer.{name}", f"consumer.{name}", f"source.cluster.consumer.{name}"),
        producer=lambda name: (
            *(f"producer.override.{name}", f"target.producer.{name}", f"producer.{name}"),
            f"target.cluster.producer.{name}",
        ),
        has_checkpoints=CHECKPOINTS in beside,
        has_heartbeats=HEARTBEATS in beside,
        carries_heartbeats=carries_heartbeats,
    )


def _together(connectors: Sequence[Connector], worker: Settings | None) -> Settings:
    """Return the settings of all connectors of a flow; what copies comes first, as its tasks count.

    Raises:
        DeclaredInputError: AB141, they name different brokers or policies.
    """
    ordered = sorted(connectors, key=lambda one: _CLASSES.index(one.kind))
    found: dict[str, Setting] = {}
    for one in ordered:
        for setting in one.settings:
            known = found.setdefault(setting.key, setting)
            is_of_both = setting.key.endswith("bootstrap.servers") or setting.key.startswith("replication.policy.")
            if is_of_both and known.value != setting.value:
                raise contradicting(setting, known, "give the connectors of one flow the same value")
    if worker is not None:
        for given in worker:
            is_of_cluster = given.key.startswith(_OF_WORKERS)
            if is_of_cluster or given.key == _OF_PRODUCERS:
                worker.pass_over(given.key)
                key = f"target.cluster.{given.key}" if is_of_cluster else given.key
                found.setdefault(key, replace(given, key=key, written=given.key))
    return Settings(found.values())


def _cluster_keys(end: str) -> ClusterKeys:
    begins = f"{end}.cluster."
    return ClusterKeys(
        own=lambda name: (f"{begins}{name}",),
        shared=lambda name: (f"{begins}{name}",),
        of_client=lambda role, name: (
            *(f"{end}.{role}.{name}", f"{begins}{role}.{name}"),
            *((f"{role}.{name}", f"{role}.override.{name}") if (end, role) in _OWN_ROLES else ()),
            f"{begins}{name}",
        ),
    )
