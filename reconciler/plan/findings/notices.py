"""What the plan leaves as it is, and what the user should know beside its steps.

Pure. Called by `build`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import Notice
from reconciler.plan.acls.bindings import acl_notices
from reconciler.plan.copies.declared_elsewhere import unlike
from reconciler.plan.copies.failed_over import resting_flows
from reconciler.plan.copies.offsets import Choice, Observed, limited, taken_topics
from reconciler.plan.copies.recreated import kept_as_it_is, made_anew_since, why_gone_on_with, why_kept
from reconciler.plan.copies.settings import unknown_keys
from reconciler.plan.findings.own_state import vanishing_state
from reconciler.plan.findings.replicas import replica_notices
from reconciler.plan.findings.unmatched import left_behind, unmatched, unmatched_groups
from reconciler.plan.removal.prune import prunable

_SHOWN = 10


def left_alone(chosen: Collection[Choice], target: ObservedCluster, topology: Topology) -> Iterator[Notice]:
    """Yield what is ours on this cluster and no longer declared: it is not deleted unless the user allows it."""
    wanted = {choice.remote for choice in chosen if choice.flow.target == target.alias}
    flows = {flow.name: flow for flow in topology.flows}
    resting = resting_flows(topology, target)
    may_go = {step.name: step for step in prunable(topology, target, wanted)}
    by = "--allow-delete"
    if not topology.flows_into((target.alias,)):
        by = f"`anabranch destroy FILE... --clusters {target.alias}`"
    for name, record in sorted(target.owned.items()):
        if record.topology != topology.name or name in wanted or name not in target.names or record.flow in resting:
            continue
        flow = flows.get(record.flow)
        own = [f"{record.source}'s {record.source_topic}"]
        if flow is None:
            why, own = f"no flow {record.flow} is declared any more", []
        elif not flow.enabled:
            why, own = f"flow {record.flow} is not enabled", []
        elif flow.takes(record.source_topic, topology.aliases):
            now = flow.remote_topic(record.source_topic)
            why = "{} is gone" if now == name else f"flow {record.flow} names the copy of {{}} {{}} now"
            own += [] if now == name else [now]
        else:
            why = f"flow {record.flow} no longer takes {{}}"
        if name in may_go and (doubt := may_go[name].doubt):
            why = f"{why}; on record as ours, but {topology.name} would not have made it: {{}}"
            yield Notice.about(
                name, f"{why}; only `--target {{}}` and --allow-delete together delete it", *own, doubt, name
            )
        else:
            yield Notice.about(name, f"{why}; {by} deletes it" if name in may_go else why, *own)


def warnings(topics: Collection[DesiredTopic], alias: str, topology: Topology, observed: Observed) -> Iterator[Notice]:
    """Yield what the user should know about one target and the flows into it."""
    target = observed[alias]
    rules = {flow.name: flow.configs for flow in topology.flows}
    by_name = {flow.name: flow for flow in topology.flows}
    flows = topology.flows_into([alias])
    if not flows and not topology.clusters[alias].replicator:
        yield Notice(f"cluster {alias}", "no enabled flow leads into it")
    for flow in flows:
        yield from (Notice(f"flow {flow.name}", said) for said in _of_flow(flow, topology, observed))
    yield from vanishing_state(target)
    yield from acl_notices(topology, observed, alias)
    yield from replica_notices(topics, topology, target)
    if target.unasked_values:
        said = (
            f"whether it takes the settings that flows declare (configs.set) was not checked: {target.unasked_values}"
        )
        yield Notice(f"cluster {alias}", said)
    for topic in topics:
        original = observed[topic.source].topics[topic.source_topic]
        if left_out := unknown_keys(original, target, rules[topic.flow]):
            yield Notice(
                topic.name, f"{alias} has no setting {', '.join(left_out)} of topics, set on the original: left out"
            )
        found, record = target.topics.get(topic.name), target.owned.get(topic.name)
        if found is not None and not topic.is_made:
            if said := unlike(topic, found):
                yield Notice(topic.name, said)
            continue
        if found is None or record is None:
            continue
        if found.partitions > topic.partitions:
            said = "has {} partitions, the original {}: never fewer"
            yield Notice.about(topic.name, said, found.partitions, topic.partitions)
        if kept_as_it_is(by_name[topic.flow], original, target) is not None:
            yield Notice(topic.name, why_kept(by_name[topic.flow], original))
            continue
        if made_anew_since(by_name[topic.flow], original, target) is not None:
            yield Notice(topic.name, why_gone_on_with(by_name[topic.flow], original))
        # With translated offsets it has more than its original: markers of transactions, and what was written twice.
        # What is itself copied further was looked at later than its original may have been.
        if topic.offsets == "identical" and not any(
            flow.source == alias and flow.takes(topic.name, topology.aliases) for flow in topology.flows
        ):
            yield from _ahead(topic, original, found)


def _of_flow(flow: Flow, topology: Topology, observed: Observed) -> Iterator[str]:
    if observed[flow.source].is_away:
        yield f"{flow.source} does not answer, and need not while this is failed over"
    elif not flow.failed_over:
        if not taken_topics(flow, topology, observed):
            yield f"no topic of {flow.source} matches; it waits for one"
        yield from unmatched(flow, observed[flow.source].names)
        if left := left_behind(flow, observed[flow.source].names, topology.aliases):
            said = ", ".join(left[:_SHOWN]) + (f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else "")
            yield f"left out, as their names are those of internal topics: {said}; add them to topics.include to copy"
        groups = observed[flow.source].groups
        if groups is not None:
            yield from unmatched_groups(flow, groups)
        yield from (str(one.problem) for one in limited(flow, topology, observed).beyond)


def _ahead(topic: DesiredTopic, original: ObservedTopic, found: ObservedTopic) -> Iterator[Notice]:
    """Yield where a copy holds more than its original ever did."""
    ends = [
        (number, there[1], here[1])
        for number in range(min(original.partitions, found.partitions))
        if (there := found.bounds(number)) and (here := original.bounds(number)) and there[1] > here[1]
    ]
    if ends:
        number, copied, written = ends[0]
        more = f", and {len(ends) - 1} more such partitions" if len(ends) > 1 else ""
        yield Notice(
            topic.name,
            f"partition {number} ends at {copied:,}, its original at {written:,}{more}: another producer writes there, "
            "the original lost records or was made anew, or it is a shifted run; status shows what is parked",
        )
