"""Observe the clusters of a topology, side by side.

Called by the commands that plan, and by the Pulumi program. Rounds of questions: which topics are there, then the
details of those that flows take, fill or have filled, and what we may do, then where logs begin and end. It decides
nothing about what should be.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from confluent_kafka.admin import ConfigEntry, ConfigSource, TopicDescription

from reconciler.model.acls.binding import ObservedBindings
from reconciler.model.acls.own_access import Access
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem, Refused, Unreachable, together
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import TARGETS_DEFAULT, Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.planning.observed import (
    EFFECTIVE_KEYS,
    OLD_TIMESTAMP_KEYS,
    PASSAGE_KEYS,
    TIMESTAMP_KEYS,
    ObservedCluster,
    ObservedTopic,
)
from reconciler.model.recorded.declaration import DESTROYED
from reconciler.model.recorded.failed_flows import needless_sources
from reconciler.observe.access import observe_access
from reconciler.observe.acls import names_ranges, with_bindings, with_ranges
from reconciler.observe.brokers import brokers_of, default_replicas, fewest_replicas, most_replicas
from reconciler.observe.connection import Configs, Connection, operations_of
from reconciler.observe.remembered import with_remembered
from reconciler.observe.values import refused_values
from reconciler.state.confluent import faults
from reconciler.state.declarations import Declarations
from reconciler.state.failovers import failed_over
from reconciler.state.journals import home
from reconciler.state.ownership import Ownership, Records

Answer = TypeVar("Answer")

_LOG = logging.getLogger(__name__)


def observe(
    topology: Topology, targets: Collection[str], resting_may_be_away: bool = False
) -> dict[str, ObservedCluster]:
    """Return the target clusters and the sources of the flows into them, as they are now.

    Args:
        topology: what is declared.
        targets: aliases of the target clusters that matter.
        resting_may_be_away: whether sources of flows that are all failed over need not answer; they are `away`.

    Raises:
        Unreachable: AB310, some clusters that are needed do not answer; all problems of all clusters are named.
        EnvironmentFault: AB304, AB311, AB312 or AB313 and nothing worse.
        Refused: AB423, a cluster is another one than the declared.
    """
    flows = topology.flows_into(targets)
    connections = connect(topology, targets, resting_may_be_away)
    aliases = list(connections)
    clusters = {alias: topology.clusters[alias] for alias in aliases}
    names = {alias: frozenset(connections[alias].metadata.topics) for alias in aliases}
    touched = _touched(topology, targets, names)

    def look(alias: str) -> ObservedCluster:
        owned = _owned(topology, clusters[alias], connections[alias]) if alias in targets else Records({}, ())
        # What other topologies have made is theirs to look at: we may not be allowed to.
        ours = {name for name, record in owned.topics.items() if record.topology == topology.name} & names[alias]
        seen = _observe_cluster(clusters[alias], connections[alias], touched[alias] | ours, owned)
        seen = replace(seen, failed_over=failed_over(topology.name, owned.others))
        if alias in targets:
            wanted = _wanted(topology, alias, connections, touched)
            seen = _with_brokers(seen, clusters[alias], connections[alias], wanted)
            seen = _with_journals(seen, clusters[alias], connections[alias], topology)
        is_granted = alias in targets and (clusters[alias].replicator or seen.acls.owned_by(topology.name))
        if is_granted or any(flow.acls and alias in (flow.source, flow.target) for flow in flows):
            seen = with_bindings(seen, connections[alias])
        if any(flow.source == alias and flow.groups.names_some for flow in flows):
            seen = replace(seen, groups=connections[alias].consumer_groups())
        into = [flow for flow in flows if flow.target == alias]
        if not into:
            return replace(seen, access=Access(connections[alias].cluster_operations())) if is_granted else seen
        seen = _with_answers(seen, clusters[alias], connections[alias], into, (touched[alias], ours))
        return replace(seen, access=observe_access(connections[alias], seen.topic_keys, topology.name, into))

    observed = _with_ranges(_of_each(clusters, look), clusters)
    originals: dict[str, set[str]] = {alias: set() for alias in aliases}
    copies: dict[str, set[str]] = {alias: set() for alias in aliases}
    answering = [flow for flow in flows if flow.source in connections]
    for flow in answering:
        taken = {name for name in observed[flow.source].topics if flow.takes(name, topology.aliases)}
        originals[flow.source] |= taken
        copies[flow.target] |= {flow.remote_topic(name) for name in taken} & observed[flow.target].topics.keys()
    for alias in observed.keys() & set(targets):
        # The plan shows how many records a copy holds that no flow fills any more.
        left = (name for name, record in observed[alias].owned.items() if record.topology == topology.name)
        copies[alias] |= observed[alias].topics.keys() & set(left)
    # Copies first: asked later than its original, one that is written all the time would seem ahead.
    seen = _with_bounds(_with_bounds(observed, connections, clusters, copies), connections, clusters, originals)
    seen |= {one: with_remembered(seen[one], clusters[one], topology, copies[one]) for one in {*targets} & seen.keys()}
    needed = {*targets, *(flow.source for flow in flows)}
    return seen | {alias: ObservedCluster.away(alias) for alias in needed - seen.keys()}


def connect(topology: Topology, targets: Collection[str], resting_may_be_away: bool = False) -> dict[str, Connection]:
    """Connect to the targets and the sources of the flows into them, and return the connections by alias.

    Args:
        topology: what is declared.
        targets: aliases of the target clusters that matter.
        resting_may_be_away: whether sources of flows that are all failed over need not answer; they are left out.

    Raises:
        Unreachable: AB310, some clusters that are needed do not answer; all problems of all clusters are named.
        EnvironmentFault: AB304, AB306, AB307, AB312, AB318 or AB319, and nothing worse.
        Refused: AB423, a cluster is another one than the declared.
    """
    flows = topology.flows_into(targets)
    aliases = [alias for alias in topology.aliases if alias in targets or any(flow.source == alias for flow in flows)]
    connections, errors = _ask_each(aliases, lambda alias: Connection(topology.clusters[alias]))
    are_only_silent = all(isinstance(error, Unreachable) for error in errors.values())

    @functools.cache
    def on_record(alias: str) -> Collection[str]:
        if alias not in connections:
            return ()
        return failed_over(topology.name, _owned(topology, topology.clusters[alias], connections[alias]).others)

    if not (resting_may_be_away and are_only_silent and errors.keys() == needless_sources(flows, errors, on_record)):
        _raise(errors.values())
    return connections


def observe_owned(
    topology: Topology, targets: Collection[str], resting_may_be_away: bool = False
) -> tuple[dict[str, ObservedCluster], list[Problem]]:
    """Return the targets that answer, with what is ours there, and why the others do not.

    Sources are not asked. Nothing is known of what flows would take, nor of what we may do.

    Args:
        topology: what is declared.
        targets: aliases of the target clusters that matter.
        resting_may_be_away: whether those of them need not answer that are sources of flows that are all failed over,
            and nothing else: they are `away`, without an error.

    Raises:
        EnvironmentFault: AB304, AB311, AB312 or AB313: a cluster answers, and does not let us look.
        Refused: AB423, a cluster is another one than the declared.
    """

    def look(alias: str) -> ObservedCluster:
        cluster, connection = topology.clusters[alias], Connection(topology.clusters[alias])
        owned = _owned(topology, cluster, connection)
        # Asked by name: what is hidden from us must not look as if it were gone.
        ours = {name for name, record in owned.topics.items() if record.topology == topology.name}
        seen = _observe_cluster(cluster, connection, ours, owned)
        seen = replace(seen, failed_over=failed_over(topology.name, owned.others))
        seen = _with_brokers(seen, cluster, connection, _wanted(topology, alias, {}, {}))
        seen = _with_journals(seen, cluster, connection, topology)
        records = seen.acls.owned_by(topology.name)
        follows = any(flow.acls for flow in topology.flows_into((alias,)))
        if not (records or follows or cluster.replicator):
            return seen
        seen = with_bindings(seen, connection)
        if records and seen.acls.sight == "hidden":
            raise EnvironmentFault(faults.refused(cluster, "DESCRIBE", "the cluster, which shows ACLs"))
        return seen

    observed, errors = _ask_each(targets, look)
    if refused := [error for error in errors.values() if not isinstance(error, Unreachable)]:
        raise together(refused)
    if resting_may_be_away:
        flows = [flow for flow in topology.flows if flow.target in targets]
        for alias in needless_sources(flows, errors, lambda target: _on_record(observed.get(target))):
            observed[alias] = ObservedCluster.away(alias)
            del errors[alias]
    return observed, [problem for error in errors.values() for problem in error.problems]


def _on_record(seen: ObservedCluster | None) -> Collection[str]:
    """Return which flows are on record at a target as failed over; none where it does not answer."""
    return () if seen is None else seen.failed_over


def _with_ranges(observed: dict[str, ObservedCluster], clusters: Mapping[str, Cluster]) -> dict[str, ObservedCluster]:
    """Add which clusters take ranges of addresses, where some ACL is about one."""
    if not names_ranges(observed.values()):
        return observed
    return _of_each(observed, lambda alias: with_ranges(observed[alias], clusters[alias]))


def _with_bounds(
    observed: Mapping[str, ObservedCluster],
    connections: Mapping[str, Connection],
    clusters: Mapping[str, Cluster],
    names: Mapping[str, set[str]],
) -> dict[str, ObservedCluster]:
    """Add where the logs of the named topics begin and end."""

    def ask(alias: str) -> ObservedCluster:
        topics = observed[alias].topics
        bounds = connections[alias].log_bounds({name: topics[name].partitions for name in sorted(names[alias])})
        known = {name: replace(topics[name], starts=starts, ends=ends) for name, (starts, ends) in bounds.items()}
        return replace(observed[alias], topics={**topics, **known})

    return _of_each(clusters, ask)


def _touched(topology: Topology, targets: Collection[str], names: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    """Return, for each cluster, the topics that a flow takes there or would fill there, whether they exist or not.

    A cluster lists only topics that the user may DESCRIBE. Described by name, a refusal shows, for the plan.
    """
    touched: dict[str, set[str]] = {alias: set() for alias in names}
    for flow in topology.flows_into(targets):
        if flow.source not in names:
            continue
        taken = {name for name in names[flow.source] if flow.takes(name, topology.aliases)}
        touched[flow.source] |= taken | set(flow.topics.literals())
        touched[flow.target] |= {flow.remote_topic(name) for name in taken}
    return touched


def _observe_cluster(cluster: Cluster, connection: Connection, touched: set[str], owned: Records) -> ObservedCluster:
    """Ask one cluster for the details of the topics in question."""
    metadata = connection.metadata
    names = frozenset(metadata.topics)
    described = connection.describe_topics(sorted(touched))
    configs = connection.topic_configs(described)
    topic_keys, timestamp_keys = _known_keys(configs, connection)
    counts = len(metadata.brokers), len(names), len(described), len(owned.topics)
    _LOG.debug("%s: %d brokers, %d topics, described %d, ownership records %d", cluster.where, *counts)
    return ObservedCluster(
        alias=cluster.alias,
        cluster_id=metadata.cluster_id,
        brokers=len(metadata.brokers),
        names=names,
        topics={
            # A topic that was deleted between two questions is in one answer only.
            name: _topic(described[name], configs[name])
            for name in sorted(described.keys() & configs.keys())
        },
        topic_keys=topic_keys,
        timestamp_keys=timestamp_keys,
        owned=owned.topics,
        acls=ObservedBindings(owned=owned.acls),
    )


def _owned(topology: Topology, cluster: Cluster, connection: Connection) -> Records:
    """Return the ownership records, and make sure first that they are not hidden: without them all seems foreign."""
    names = connection.metadata.topics
    journals = home.seen(cluster, topology.name, names).names
    connection.describe_topics(journals if topology.flows_into((cluster.alias,)) else journals[:1])
    return Ownership(cluster, topology.name).read_everywhere(names)


def _wanted(
    topology: Topology, target: str, connections: Mapping[str, Connection], touched: Mapping[str, Collection[str]]
) -> int:
    """Return how many replicas some copy at a target should have: what is declared, or what an original has."""
    most = [0]
    for flow in topology.flows_into((target,)):
        if flow.replication_factor not in (None, TARGETS_DEFAULT):
            most.append(flow.replication_factor)
        elif flow.source in connections:
            most.append(most_replicas(connections[flow.source].metadata, touched[flow.source]))
    return max(most)


def _with_brokers(seen: ObservedCluster, cluster: Cluster, connection: Connection, wanted: int) -> ObservedCluster:
    """Add how many brokers a target has, and which of them are down."""
    brokers, down = brokers_of(cluster, connection.metadata, wanted)
    return replace(seen, brokers=brokers, down=down)


def _with_answers(
    seen: ObservedCluster,
    cluster: Cluster,
    connection: Connection,
    flows: Collection[Flow],
    names: tuple[Collection[str], Collection[str]],
) -> ObservedCluster:
    """Add a target's answers to the declared values of flows into it; `names` are of their copies and of our topics."""
    refused, unasked = refused_values(connection, flows, *names)
    seen = replace(seen, refused_values=refused, unasked_values=unasked)
    if any(flow.replication_factor == TARGETS_DEFAULT for flow in flows):
        return replace(seen, default_replicas=default_replicas(cluster, connection, flows))
    return seen


def _with_journals(
    seen: ObservedCluster, cluster: Cluster, connection: Connection, topology: Topology
) -> ObservedCluster:
    """Add where the topology's state is, what is in force on a cluster, and under which other aliases something is."""
    journals = home.journals(cluster, topology.name).names
    state = (*journals, *(syncs_topic(flow.source) for flow in topology.flows_into((cluster.alias,))))
    policies = connection.cleanup_policies(sorted(seen.names.intersection(journals)))
    replicas = fewest_replicas(connection.metadata, state)
    seen = replace(seen, journals=journals, state_replicas=replicas, state_policies=policies)
    if seen.journals[0] not in seen.names:
        return seen
    declarations = Declarations(cluster, topology.name)
    try:
        others = {alias: one.in_force for alias, one in declarations.others().items()}
        lasting = frozenset(alias for alias, one in others.items() if one is not None and one.digest != DESTROYED)
        now = declarations.current()
        seen = replace(seen, in_force=now.in_force, declaration=now.declaration, overrides=now.overrides)
        return replace(seen, aliases=lasting)
    finally:
        declarations.close()


def _topic(described: TopicDescription, configs: Configs) -> ObservedTopic:
    return ObservedTopic(
        name=described.name,
        topic_id=str(described.topic_id),
        partitions=len(described.partitions),
        replication_factor=len(described.partitions[0].replicas),
        fewest_replicas=_fewest(described),
        configs={name: entry.value for name, entry in sorted(configs.items()) if _is_set_on_topic(entry)},
        effective={name: configs[name].value for name in (*EFFECTIVE_KEYS, *PASSAGE_KEYS) if name in configs},
        operations=operations_of(described),
    )


def _fewest(described: TopicDescription) -> int | None:
    counts = [len(one.replicas) for one in described.partitions]
    return None if min(counts) == counts[0] else min(counts)


def _is_set_on_topic(entry: ConfigEntry) -> bool:
    return ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG and not entry.is_sensitive


def _known_keys(configs: Mapping[str, Configs], connection: Connection) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the topic-level keys that the brokers know, and those with which they bound timestamps."""
    for described in configs.values():
        keys = frozenset(described)
        return keys, _timestamp_keys(keys)
    some_topic = min(connection.metadata.topics, default=None)
    if some_topic is not None and (keys := connection.config_keys(some_topic)):
        return keys, _timestamp_keys(keys)
    # A broker does not list topic-level keys, but its own show its release.
    broker_keys = frozenset(key.removeprefix("log.") for key in connection.config_keys(None))
    return frozenset(), _timestamp_keys(broker_keys) if broker_keys else TIMESTAMP_KEYS


def _timestamp_keys(keys: frozenset[str]) -> tuple[str, ...]:
    return TIMESTAMP_KEYS if keys.issuperset(TIMESTAMP_KEYS) else OLD_TIMESTAMP_KEYS


def _of_each(aliases: Collection[str], ask: Callable[[str], Answer]) -> dict[str, Answer]:
    """Ask every cluster at once, and raise what all of them had to complain about, together."""
    answers, errors = _ask_each(aliases, ask)
    _raise(errors.values())
    return answers


def _raise(errors: Collection[AnabranchError]) -> None:
    if errors:
        kinds = [kind for kind in (Refused, Unreachable) if any(isinstance(error, kind) for error in errors)]
        raise (kinds[0] if kinds else EnvironmentFault)([problem for error in errors for problem in error.problems])


def _ask_each(
    aliases: Collection[str], ask: Callable[[str], Answer]
) -> tuple[dict[str, Answer], dict[str, AnabranchError]]:
    """Ask every cluster at once, and return the answers, and what the others had to complain about."""
    answers: dict[str, Answer] = {}
    errors: dict[str, AnabranchError] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(aliases))) as pool:
        futures = {alias: pool.submit(ask, alias) for alias in aliases}
    for alias, future in futures.items():
        try:
            answers[alias] = future.result()
        except AnabranchError as error:
            errors[alias] = error
    return answers, errors
