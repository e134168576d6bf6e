"""What a plan refuses to do. Each problem names what allows it, or what to do instead.

Pure. All refusals are found before anything is changed, and are shown together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby

from reconciler.model.base.errors import Problem
from reconciler.model.declared.config_rules import THROTTLES
from reconciler.model.declared.flow import TARGETS_DEFAULT
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic, same_configs
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.copies.identity import has_id
from reconciler.plan.copies.offsets import Observed, hindrances
from reconciler.plan.copies.refused_names import alike, misnamed
from reconciler.plan.copies.refused_values import refused_settings


def refusals(
    topology: Topology, observed: Observed, desired: Collection[DesiredTopic], targets: Collection[str]
) -> Iterator[Problem]:
    """Yield every reason not to carry this plan out."""
    yield from emptied(topology)
    yield from renamed_clusters(topology, observed, desired, targets)
    yield from impossible(topology, observed, desired, targets)
    for topic in desired:
        existing = observed[topic.cluster].topics.get(topic.name)
        if existing is not None:
            where = _where(topology, topic)
            yield from _not_ours(topic, existing, observed[topic.cluster], topology, where)
            yield from _renamed_flow(topic, observed[topic.cluster], topology, where)
            yield from _fewer(topic, existing, observed[topic.cluster].owned.get(topic.name), topology, where)


def emptied(topology: Topology) -> Iterator[Problem]:
    """Yield that a file declares no flow at all: it must not end what runs, as if that had been requested."""
    if not topology.flows:
        yield Problem(
            "AB422",
            topology.name,
            "no flow is declared, so that nothing would be copied any more",
            "correct the files; `enabled: false` ends a flow, and `anabranch destroy` deletes what it has copied",
        )


def renamed_clusters(
    topology: Topology, observed: Observed, desired: Collection[DesiredTopic], targets: Collection[str]
) -> Iterator[Problem]:
    """Yield clusters that are known under another alias: all would be copied anew, beside the copies that are there."""
    ours = [
        (alias, record)
        for alias in targets
        for record in observed[alias].owned.values()
        if record.topology == topology.name
    ]
    # A cluster may have several names, of which one is given up: what has a copy under another one is not renamed.
    kept = {(alias, record.source_topic_id) for alias, record in ours if record.source in topology.clusters}
    gone = {
        (alias, record.source_topic_id): record.source
        for alias, record in ours
        if record.source not in topology.clusters and (alias, record.source_topic_id) not in kept
    }
    known: dict[str, str] = {}
    for topic in desired:
        source = gone.get((topic.cluster, topic.source_topic_id))
        if source is not None and has_id(topic.source_topic_id):
            known.setdefault(topic.source, source)
    for alias in targets:
        for former in sorted(observed[alias].aliases - topology.clusters.keys()):
            known.setdefault(alias, former)
    for alias, former in known.items():
        yield Problem(
            "AB432",
            topology.clusters[alias].where,
            f"was declared as {former} before: under the name {alias} everything would be copied once more",
            f"name it {former} again; or delete the former copies with the former files: `anabranch destroy`",
        )


def _renamed_flow(topic: DesiredTopic, target: ObservedCluster, topology: Topology, where: str) -> Iterator[Problem]:
    """Yield that a copy would be filled by a flow of another name, where what it goes on by goes by the name."""
    record = target.owned.get(topic.name)
    if record is None or (record.topology, record.flow) == (topology.name, topic.flow):
        return
    if record.topology != topology.name or not _is_copy_of(record, topic):
        return
    if record.flow in target.failed_over:
        why = f"flow {record.flow} is failed over, so producers write to it"
        remedy = f"or `anabranch failback --flow {record.flow}` first"
    elif record.offsets == "translated":
        why = "its positions go by the flow's name: all would be copied once more"
        remedy = "or delete the copy first, to have it made anew"
    else:
        return
    found = f"was filled by flow {record.flow}, and would be by flow {topic.flow}: {why}"
    yield Problem("AB438", where, found, f"let flow {record.flow} take {topic.source_topic}, as before; {remedy}")


def _fewer(
    topic: DesiredTopic, existing: ObservedTopic, record: OwnedTopic | None, topology: Topology, where: str
) -> Iterator[Problem]:
    """Yield that a flow declares fewer partitions than its copy was made with; added ones are a notice only."""
    flow = next(flow for flow in topology.flows if flow.name == topic.flow)
    if flow.partitions is None or record is None or not is_ours(existing, record, topology.name):
        return
    if topic.partitions < min(record.partitions, existing.partitions):
        found = f"has {existing.partitions} partitions, and flow {flow.name} declares {topic.partitions}"
        remedy = f"partitions never become fewer: set partitions to {record.partitions}, or leave the number out"
        yield Problem("AB430", where, found, remedy)


def refused_topics(
    topology: Topology, observed: Observed, desired: Collection[DesiredTopic]
) -> Mapping[tuple[str, str], Problem]:
    """Return, by flow and original, why a topic must not be copied."""
    found: dict[tuple[str, str], Problem] = {}
    for _, group in groupby(desired, key=lambda topic: (topic.cluster, topic.name)):
        topics = tuple(group)
        where = _where(topology, topics[0])
        existing = observed[topics[0].cluster].topics.get(topics[0].name)
        for topic in topics:
            target = observed[topic.cluster]
            foreign = _not_ours(topic, existing, target, topology, where) if existing else ()
            for problem in (*_ambiguous(topics, where), *foreign):
                found.setdefault((topic.flow, topic.source_topic), problem)
    for topic, problem in alike(topology, desired, observed):
        found.setdefault((topic.flow, topic.source_topic), problem)
    return found


def is_made_elsewhere(topic: DesiredTopic, target: ObservedCluster) -> bool:
    """Return whether a topic that is not on record stands just as we would have made it: another tool did it for us."""
    existing = target.topics.get(topic.name)
    if existing is None or topic.name in target.owned or existing.partitions < topic.partitions:
        return False
    return all(setting.accepts(existing.configs.get(setting.key)) for setting in topic.settings)


def impossible(
    topology: Topology, observed: Observed, desired: Collection[DesiredTopic], targets: Collection[str]
) -> Iterator[Problem]:
    """Yield why no provisioner could make what is desired, regardless of the owners of existing topics."""
    yield from _misnamed(topology, observed, targets)
    yield from _missing_required(topology, observed, targets)
    yield from _no_such_start(topology, observed, targets)
    yield from _too_many_replicas(topology, observed, targets)
    yield from refused_settings(topology, observed, targets)
    yield from (problem for _, problem in alike(topology, desired, observed))
    for _, group in groupby(desired, key=lambda topic: (topic.cluster, topic.name)):
        topics = tuple(group)
        yield from _ambiguous(topics, _where(topology, topics[0]))


def is_ours(existing: ObservedTopic, record: OwnedTopic | None, topology: str) -> bool:
    """Return whether this very topic was made by `topology`.

    A record without a topic id was written by an apply that was killed before it could confirm its work: the topic is
    ours when it is exactly what that apply was about to make.
    """
    if record is None or record.topology != topology:
        return False
    if record.is_confirmed:
        return record.topic_id == existing.topic_id
    # What a rebalance puts on topics meanwhile makes it no other one.
    found = {key: value for key, value in existing.configs.items() if key in record.configs or key not in THROTTLES}
    return existing.partitions == record.partitions and same_configs(record.configs, found)


def _where(topology: Topology, topic: DesiredTopic) -> str:
    return f"{topology.clusters[topic.cluster].where}, topic {topic.name}"


def _ambiguous(topics: tuple[DesiredTopic, ...], where: str) -> Iterator[Problem]:
    if len(topics) > 1:
        originals = " and ".join(f"{topic.source}'s {topic.source_topic} (flow {topic.flow})" for topic in topics)
        yield Problem(
            "AB402",
            where,
            f"would be the copy of {originals}",
            "let only one flow take it (topics.exclude), or give them a policy that prefixes (policy.type: default)",
        )


def _misnamed(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[Problem]:
    for flow in topology.flows_into(targets):
        # Topics that are to have one name are one problem.
        yield from dict.fromkeys(misnamed(topology, flow, observed).values())


def _not_ours(
    topic: DesiredTopic, existing: ObservedTopic, target: ObservedCluster, topology: Topology, where: str
) -> Iterator[Problem]:
    record = target.owned.get(topic.name)
    if not topic.is_made and (record is None or record.topology == topology.name):
        # Another tool declares it, and an apply does nothing to it.
        return
    by_hand = f"delete or rename the topic, or exclude {topic.source_topic} from flow {topic.flow}"
    if record is None or record.topology == topology.name:
        by_hand += f"; `anabranch adopt --target {topic.name}` takes it over"
    remembered = {(one.flow, one.remote, one.target_id) for one in target.remembered}
    if record is None and (topic.flow, topic.name, existing.topic_id) in remembered:
        yield Problem(
            "AB416",
            where,
            f"is not on record as ours, and records of copies show that flow {topic.flow} has filled it: the record of "
            "ownership is missing, though copies are here",
            f"`anabranch adopt --rebuild --target {topic.name}` writes it anew once the copy was compared; identical "
            "offsets stay",
        )
    elif not is_ours(existing, record, topology.name):
        found = f"exists and is not ours: {_whose(existing, record, topology)}"
        if topic.offsets == "identical" and (hindered := hindrances(existing)):
            found += f"; {', '.join(hindered)}: identical offsets could not be held in it"
        yield Problem("AB401", where, found, by_hand)
    elif record is not None and record.offsets == "identical" and not _is_copy_of(record, topic):
        yield Problem(
            "AB405",
            where,
            f"holds the copy of {record.source}'s {record.source_topic}, "
            f"and flow {topic.flow} would add {topic.source}'s {topic.source_topic} to it",
            "give one of them another name (policy), or delete the topic when its records are no longer needed",
        )


def _is_copy_of(record: OwnedTopic, topic: DesiredTopic) -> bool:
    return (record.source, record.source_topic) == (topic.source, topic.source_topic)


def _whose(existing: ObservedTopic, record: OwnedTopic | None, topology: Topology) -> str:
    if record is None:
        return f"no apply of {topology.name} made it"
    if record.topology != topology.name:
        return f"the topology {record.topology} made it"
    if record.is_confirmed:
        return f"ours was deleted and made again (topic id {record.topic_id} then, {existing.topic_id} now)"
    return "an interrupted apply was about to make it, but this one has other settings or partitions"


def _too_many_replicas(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[Problem]:
    for alias in dict.fromkeys(flow.target for flow in topology.flows_into(targets)):
        cluster, brokers = topology.clusters[alias], observed[alias].brokers
        if (asked := cluster.state_replication_factor or 0) > brokers:
            found = f"state-replication-factor {asked} is declared, and it has {brokers} brokers"
            yield Problem("AB403", cluster.where, found, "start brokers that are missing, or leave the factor out")
    for flow in topology.flows_into(targets):
        brokers = observed[flow.target].brokers
        if flow.replication_factor == TARGETS_DEFAULT and not observed[flow.target].default_replicas:
            yield Problem(
                "AB454",
                f"flow {flow.name} ({flow.origin})" if flow.origin else f"flow {flow.name}",
                f"replication-factor -1 means the default of {flow.target}, which does not show it to "
                f"{topology.clusters[flow.target].user}",
                "grant DESCRIBE_CONFIGS on the cluster, or CREATE and DESCRIBE_CONFIGS on copies; or set the number",
            )
        if flow.replication_factor is not None and flow.replication_factor > brokers:
            yield Problem(
                "AB403",
                f"flow {flow.name} ({flow.origin})" if flow.origin else f"flow {flow.name}",
                f"replication factor {flow.replication_factor} is declared, and {flow.target} has {brokers} brokers, "
                "those that are down among them, as far as it reports them",
                "start brokers that have never been up yet; where the cluster is to stay that small, leave "
                "replication-factor out: then it is the source's, at most the number of brokers",
            )


def _no_such_start(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[Problem]:
    """Yield the offsets at which a copy cannot begin; one that is begun already has a position."""
    for flow in topology.flows_into(targets):
        for name, offsets in flow.start.offsets:
            original = observed[flow.source].topics.get(name)
            if original is None or not flow.takes(name, topology.aliases):
                continue
            if flow.remote_topic(name) in observed[flow.target].owned:
                continue
            where = f"{topology.clusters[flow.source].where}, topic {name}"
            remedy = f"correct start.offsets of flow {flow.name}"
            if len(offsets) > original.partitions:
                found = f"has {original.partitions} partitions, and flow {flow.name} names {len(offsets)} to begin at"
                yield Problem("AB410", where, found, remedy)
            for number, offset in enumerate(offsets[: original.partitions]):
                first, last = original.bounds(number) or (offset, offset)
                if not first <= offset <= last:
                    found = f"has offsets {first} to {last}, and flow {flow.name} would begin at {offset}"
                    yield Problem("AB410", f"{where}, partition {number}", found, remedy)


def _missing_required(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[Problem]:
    for flow in topology.flows_into(targets):
        for name in flow.topics.literals() if flow.topics.required else ():
            if name not in observed[flow.source].names:
                yield Problem(
                    "AB404",
                    f"{topology.clusters[flow.source].where}, topic {name}",
                    f"does not exist, or we may not see it, and flow {flow.name} requires it",
                    "create it, correct the name, or take away required: true",
                )
