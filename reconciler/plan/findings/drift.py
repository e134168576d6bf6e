"""Find drift: what is on record of the last apply against what is there.

Pure. The record alone is compared, never the sources: what changed there is for `plan` to follow, and a source that
does not answer does not make anything appear missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import TopicSetting
from reconciler.model.planning.drift import Drifted
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.acls.bindings import stale, strangers
from reconciler.plan.copies.failed_over import failover_drift, resting_flows
from reconciler.plan.copies.settings import EXCLUDED, FLOORS, OF_CLUSTERS
from reconciler.plan.findings.overridden import override_drift
from reconciler.plan.findings.own_state import changed_state
from reconciler.plan.findings.replicas import thin_copy, thin_state

_APPLY = "`anabranch apply` sets it back"


def drift_of(
    topology: Topology, observed: Mapping[str, ObservedCluster], all_settings: bool = False
) -> tuple[Drifted, ...]:
    """Return what drifted, by cluster and topic.

    Args:
        topology: what is declared.
        observed: the targets that answered.
        all_settings: whether settings count that belong to the clusters, and no copy gets from its original, such
            as the throttles of a rebalance.
    """
    ours = partial(_of_ours, all_settings=all_settings)
    looks = (ours, _of_strangers, _of_bindings, failover_drift, override_drift, thin_state, changed_state)
    return tuple(
        found
        for alias in topology.aliases
        if alias in observed
        for look in looks
        for found in look(topology, observed[alias])
    )


def _of_ours(topology: Topology, target: ObservedCluster, all_settings: bool) -> Iterator[Drifted]:
    resting = resting_flows(topology, target)
    rules = {flow.name: flow.configs for flow in topology.flows}
    # No apply sets back what another tool declares by now; what it should be is compared by the plan.
    declared_elsewhere = frozenset(flow.name for flow in topology.flows if not flow.create)
    for name, record in sorted(target.owned.items()):
        # Copies that producers write to may be changed by others.
        if record.topology != topology.name or not record.is_confirmed or record.flow in resting | declared_elsewhere:
            continue
        existing = target.topics.get(name)
        if existing is None:
            if _is_wanted(topology, target.alias, record):
                remedy = f"`anabranch apply` makes it again, while {record.source} still has {record.source_topic}"
                yield Drifted(target.alias, "missing", name, "topic", _facts(record.partitions), None, remedy)
        elif existing.topic_id != record.topic_id:
            remedy = "it was deleted and made again: delete it, or exclude its original, then apply"
            yield Drifted(target.alias, "changed", name, "topic id", record.topic_id, existing.topic_id, remedy)
        else:
            ignored = frozenset[str]() if all_settings else _of_clusters(rules.get(record.flow))
            yield from _within(target.alias, record, existing, ignored)
            yield from thin_copy(topology, record, existing, target.alias)


def _of_clusters(rules: ConfigRules | None) -> frozenset[str]:
    """Return the settings that do not belong to the flow: usually not copied, and not by its rules either."""
    return frozenset(key for key in OF_CLUSTERS if rules is None or not rules.copies(key, is_excluded=True))


def _within(alias: str, record: OwnedTopic, existing: ObservedTopic, ignored: Collection[str]) -> Iterator[Drifted]:
    name = record.name
    if existing.partitions != record.partitions:
        desired, found = str(record.partitions), str(existing.partitions)
        remedy = "partitions never become fewer: `anabranch apply` takes note of them"
        yield Drifted(alias, "changed", name, "partitions", desired, found, remedy)
    for key, value in sorted(record.configs.items()):
        found_value = existing.configs.get(key)
        if not TopicSetting(key, value, "source", floor=key in FLOORS).accepts(found_value):
            yield Drifted(alias, "changed", name, key, value, found_value, _APPLY)
    for key, value in sorted(existing.configs.items()):
        if key not in record.configs and key not in ignored:
            remedy = "it is not declared, and it is left alone: remove it there"
            if key not in EXCLUDED:
                remedy += ", or set it on the original"
            yield Drifted(alias, "unmanaged", name, key, None, value, remedy)


def _of_strangers(topology: Topology, target: ObservedCluster) -> Iterator[Drifted]:
    """Yield topics that have the name of a copy, and that no apply made."""
    flows = [flow for flow in topology.flows_into((target.alias,)) if flow.policy.prefixes and flow.create]
    for name in sorted(target.names - target.owned.keys()):
        for flow in flows:
            original = flow.policy.original(flow.source, name)
            if original is not None and flow.takes(original, topology.aliases):
                remedy = f"rename or delete it, or exclude {original} from flow {flow.name}: plan refuses to touch it"
                yield Drifted(target.alias, "unmanaged", name, "topic", None, "there", remedy)
                break


def _of_bindings(topology: Topology, target: ObservedCluster) -> Iterator[Drifted]:
    """Yield ACLs that we granted and that are gone, and others that were added to our topics."""
    for gone in stale(topology, target):
        wanted = "the originals have it" if gone.role == "followed" else "the replicator needs it"
        remedy = f"{_APPLY}, while {wanted} (flow {gone.flow})"
        name = gone.binding.pattern.name
        yield Drifted(target.alias, "missing", name, "acl", str(gone.binding), None, remedy)
    resting = resting_flows(topology, target)
    for one, flow in strangers(topology, target).items():
        if flow in resting:
            continue
        remedy = "no apply granted it: `apply --allow-delete acl=N` takes it away; or grant it on the original as well"
        yield Drifted(target.alias, "unmanaged", one.pattern.name, "acl", None, str(one), remedy)


def _is_wanted(topology: Topology, alias: str, record: OwnedTopic) -> bool:
    """Return whether some flow still declares the copy of this original under this name."""
    return any(
        flow.source == record.source
        and flow.takes(record.source_topic, topology.aliases)
        and flow.remote_topic(record.source_topic) == record.name
        for flow in topology.flows_into((alias,))
    )


def _facts(partitions: int) -> str:
    return f"{partitions} partition{'' if partitions == 1 else 's'}"
