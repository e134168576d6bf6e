"""The plan that writes ownership records anew where they were lost, although the copies are there.

Pure. What proves that a topic is a copy of ours are the records of copies, with the ids of both topics: a topic that
others have made, or that was made anew since, has another id. A copy with identical offsets is compared with its
original before it is recorded as such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import ClusterPlan, CreateInternalTopic, Notice, Plan, RecordOwnership
from reconciler.model.recorded.remembered import RememberedCopy
from reconciler.plan.build import lacking
from reconciler.plan.copies.desired import desired_of
from reconciler.plan.copies.failed_over import resolved, running
from reconciler.plan.copies.offsets import Choice, Observed, choices
from reconciler.plan.part import narrowed

_TRANSLATED = "the copy was begun with translated offsets"


def proof_of(choice: Choice, target: ObservedCluster) -> RememberedCopy | None:
    """Return what proves that the remote topic of a choice is the copy that its flow has made; None where nothing does.

    A topic that is on record needs none.
    """
    existing = target.topics.get(choice.remote)
    if existing is None or choice.remote in target.owned:
        return None
    # Of an original that was made anew the former one is on record: it is its copy all the same.
    named = [one for one in target.remembered if (one.flow, one.remote) == (choice.flow.name, choice.remote)]
    found = [one for one in named if one.target_id == existing.topic_id]
    same = [one for one in found if one.source_id == choice.original.topic_id]
    return max(same or found, key=lambda one: one.partitions, default=None)


def to_compare(
    topology: Topology, observed: Observed, targets: Collection[str], only: Collection[str] = ()
) -> list[str]:
    """Return the remote topics that may have identical offsets and would be recorded: to be compared first."""
    return sorted(
        choice.remote
        for choice, proof, existing in _proved(topology, observed, targets, only)
        if not _is_translated(choice, proof) and not _is_empty(existing)
    )


def rebuild_plan(
    topology: Topology,
    observed: Observed,
    targets: Collection[str],
    only: Collection[str] = (),
    against: Mapping[str, str] | None = None,
) -> Plan:
    """Return the plan that records the copies which the records of copies prove to be ours.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of the target clusters to plan for.
        only: names of remote topics; empty means all.
        against: by remote topic, why it must not be recorded, as comparing has found.

    Raises:
        Refused: AB417, a topic differs from its original, or could not be compared.
    """
    proved = list(_proved(topology, observed, targets, only))
    if problems := [
        _differs(topology, choice, why) for choice, _, _ in proved if (why := (against or {}).get(choice.remote))
    ]:
        raise Refused(problems)
    clusters = []
    for alias in (alias for alias in topology.aliases if alias in targets):
        here = [one for one in proved if one[0].flow.target == alias]
        topics = [_recorded(one, observed) for one in here]
        clusters.append(
            ClusterPlan(
                alias=alias,
                datacenter=topology.clusters[alias].datacenter,
                steps=(
                    *((CreateInternalTopic(alias, name) for name in lacking(observed[alias])) if topics else ()),
                    *(
                        RecordOwnership(topic, observed[alias].topics[topic.name].topic_id, "rebuilt")
                        for topic in topics
                    ),
                ),
                left_alone=tuple(_without_proof(topology, observed, alias, {one[0].remote for one in here}, only)),
            )
        )
    return Plan(topology.name, topology.digest, tuple(clusters))


def _proved(
    topology: Topology, observed: Observed, targets: Collection[str], only: Collection[str]
) -> Iterator[tuple[Choice, RememberedCopy, ObservedTopic]]:
    """Yield the choices whose copies are proved to be ours, each remote topic once."""
    part = running(resolved(topology, observed))
    part = narrowed(part, observed, targets, only) if only else part
    seen: set[tuple[str, str]] = set()
    for choice in choices(part, observed, targets):
        alias = choice.flow.target
        if (alias, choice.remote) in seen or (proof := proof_of(choice, observed[alias])) is None:
            continue
        seen.add((alias, choice.remote))
        yield choice, proof, observed[alias].topics[choice.remote]


def _is_translated(choice: Choice, proof: RememberedCopy) -> bool:
    return proof.translated or choice.flow.offsets == "translated" or choice.flow.repeats


def _is_empty(existing: ObservedTopic) -> bool:
    return all((existing.bounds(number) or (0, 1))[1] == 0 for number in range(existing.partitions))


def _recorded(proved: tuple[Choice, RememberedCopy, ObservedTopic], observed: Observed) -> DesiredTopic:
    """Return a copy as it is to be on record: as it stands, with what of its settings is as it should be."""
    choice, proof, existing = proved
    against = _TRANSLATED if _is_translated(choice, proof) else None
    settled = replace(choice, against=against, padding={}, blocked=None, kept_at=existing.partitions)
    (topic,) = desired_of([settled], observed)
    return replace(
        topic,
        source_topic_id=proof.source_id,
        partitions=existing.partitions,
        settings=tuple(one for one in topic.settings if one.accepts(existing.configs.get(one.key))),
    )


def _differs(topology: Topology, choice: Choice, why: str) -> Problem:
    where = f"{topology.clusters[choice.flow.target].where}, topic {choice.remote}"
    remedy = (
        "see `anabranch verify`; then `adopt` it without --rebuild, with translated offsets from a declared start, or "
        "delete it to have it made anew"
    )
    return Problem("AB417", where, f"its records of copies show that it is ours, and {why}", remedy)


def _without_proof(
    topology: Topology, observed: Observed, alias: str, proved: Collection[str], only: Collection[str]
) -> Iterator[Notice]:
    """Yield the topics under the names of copies that are not on record and that nothing proves to be ours."""
    target = observed[alias]
    for remote in sorted({one.remote for one in choices(topology, observed, (alias,))}):
        if remote in proved or remote not in target.topics or (only and remote not in only):
            continue
        if remote in target.owned:
            continue
        yield Notice(remote, "no record of copies proves that it is ours: `anabranch adopt` takes it over, if it may")
