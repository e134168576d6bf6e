"""The plan that takes over topics which stand where copies would: MirrorMaker 2's, or those made by hand.

Pure. A topic is ours when it is recorded, and it is recorded when its settings are what a copy needs. Only an empty one
can have identical offsets: of what others have written it is unknown whether it is the original's beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from reconciler.model.base.errors import EnvironmentFault, Problem, Refused, together
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import is_reserved
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    Notice,
    Plan,
    RecordOwnership,
    Step,
)
from reconciler.plan.build import lacking
from reconciler.plan.copies.desired import desired_of
from reconciler.plan.copies.differences import config_changes
from reconciler.plan.copies.failed_over import resolved, running
from reconciler.plan.copies.flows import not_started
from reconciler.plan.copies.offsets import Choice, Observed, choices
from reconciler.plan.guardrails.permissions import impossible_demands, missing_permissions
from reconciler.plan.guardrails.refusals import impossible, is_ours
from reconciler.plan.part import narrowed

_HELD = "it held records before it was adopted"


@dataclass(frozen=True)
class _Found:
    """A topic that may be adopted.

    Attributes:
        choices: of every original of which it would be the copy.
        existing: as it stands.
    """

    choices: tuple[Choice, ...]
    existing: ObservedTopic

    @property
    def alias(self) -> str:
        return self.choices[0].flow.target

    @property
    def name(self) -> str:
        return self.existing.name

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to it, as far as every partition reports it."""
        return all(self.existing.bounds(number) == (0, 0) for number in range(self.existing.partitions))

    @property
    def begun(self) -> tuple[Choice, ...]:
        """The choices as they are with what it holds."""
        if self.is_empty:
            return self.choices
        return tuple(replace(one, against=one.against or _HELD, padding={}) for one in self.choices)


def adopt_plan(
    topology: Topology,
    observed: Observed,
    targets: Collection[str],
    only: Collection[str] = (),
    *,
    goes_on: bool = False,
) -> Plan:
    """Return the plan that takes over the topics that stand where copies would.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of the target clusters to plan for.
        only: names of remote topics; empty means all.
        goes_on: whether copies with records go on where their former copier ended; else their flow's start counts.

    Raises:
        Refused: AB425, a topic cannot be adopted; AB402 to AB410, it could not be a copy.
        EnvironmentFault: AB360 to AB364, with every permission that is missing and every demand that cannot be met.
        AnabranchError: both, together.
    """
    part = running(resolved(topology, observed))
    part = narrowed(part, observed, targets, only) if only else part
    found = tuple(_found(part, observed, targets))
    begun = [choice for one in found for choice in one.begun]
    desired = desired_of(begun, observed)
    refused = (
        *(problem for one in found for problem in _against(topology, one, observed[one.alias], goes_on)),
        *impossible(part, observed, desired, targets),
    )
    faults = () if refused else tuple(impossible_demands(part, observed, begun, targets))
    faults = (*faults, *missing_permissions(part, observed, desired, targets))
    errors = [kind(problems) for kind, problems in ((Refused, refused), (EnvironmentFault, faults)) if problems]
    if errors:
        raise together(errors)
    clusters = []
    for alias in (alias for alias in topology.aliases if alias in targets):
        here = [one for one in found if one.alias == alias]
        topics = [topic for topic in desired if topic.cluster == alias]
        clusters.append(
            ClusterPlan(
                alias=alias,
                datacenter=topology.clusters[alias].datacenter,
                steps=tuple(_steps(topics, observed[alias])),
                not_started=tuple(not_started([choice for one in here for choice in one.begun])),
                left_alone=tuple(_no_need(only, here, observed[alias])),
                warnings=tuple(_told(one, topics, goes_on) for one in here),
            )
        )
    return Plan(topology.name, topology.digest, tuple(clusters))


def _found(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[_Found]:
    """Yield the topics that exist under the names of copies, and are not ours."""
    for (alias, remote), group in groupby(
        choices(topology, observed, targets), lambda one: (one.flow.target, one.remote)
    ):
        existing = observed[alias].topics.get(remote)
        takers = tuple(choice for choice in group if choice.flow.create)
        if takers and existing is not None and not is_ours(existing, observed[alias].owned.get(remote), topology.name):
            yield _Found(takers, existing)


def _against(topology: Topology, found: _Found, target: ObservedCluster, goes_on: bool) -> Iterator[Problem]:
    """Yield why a topic is not adopted."""
    where = f"{topology.clusters[target.alias].where}, topic {found.name}"
    record = target.owned.get(found.name)
    if record is not None and record.topology != topology.name:
        remedy = "let only one topology take its original (topics.exclude), or have that one destroy it"
        yield Problem("AB425", where, f"the topology {record.topology} owns it", remedy)
    if is_reserved(found.name):
        yield Problem("AB425", where, "is an internal topic", "give the copy another name (policy)")
    partitions = max(choice.original.partitions for choice in found.choices)
    if found.existing.partitions > partitions:
        message = f"has {found.existing.partitions} partitions, and its original {partitions}: they never become fewer"
        yield Problem("AB425", where, message, "give the original as many, delete the topic, or exclude the original")
    if found.is_empty:
        return
    held = f"holds {found.existing.held:,} offsets that others have written"
    if not found.existing.held:
        held = "held records that others had written, or its end offsets are unknown"
    for choice in found.choices:
        flow, original = choice.flow, choice.original.name
        if flow.offsets == "identical":
            message = f"{held}, and flow {flow.name} demands identical offsets, which only an empty topic can have"
            yield Problem("AB425", where, message, "let offsets be auto: they are translated then, or delete the topic")
        elif not (goes_on or flow.start.moves(original)):
            message = f"{held}, and flow {flow.name} would copy {original} behind them from its first record on"
            remedy = (
                "declare in the flow's start where its former copier ended, as in "
                f"start: {{offsets: {{{original}: [OFFSET, …]}}}}; with offsets 0 all is copied again"
            )
            yield Problem("AB425", where, message, remedy)


def _steps(topics: Sequence[DesiredTopic], target: ObservedCluster) -> Iterator[Step]:
    if topics:
        yield from (CreateInternalTopic(target.alias, name) for name in lacking(target))
    found = target.topics
    for topic in topics:
        if topic.partitions > found[topic.name].partitions:
            yield AddPartitions(topic, found[topic.name].topic_id, found[topic.name].partitions)
    # Nothing that stands there was applied by us.
    records = {topic.name: replace(topic.owned("", "", None), configs={}) for topic in topics}
    changes = config_changes(topics, found, records)
    for topic in topics:
        if topic.name in changes:
            yield AlterConfig(topic, found[topic.name].topic_id, changes[topic.name])
    for topic in topics:
        yield RecordOwnership(topic, found[topic.name].topic_id, "adopted")


def _told(found: _Found, topics: Collection[DesiredTopic], goes_on: bool) -> Notice:
    """Return what becomes of the records of a topic, in words."""
    if found.is_empty:
        modes = {topic.offsets for topic in topics if topic.name == found.name}
        return Notice(found.name, f"is empty, and gets {' and '.join(sorted(modes)) or 'no'} offsets")
    starts = sorted({f"{one.flow.name}: {_begin(one, goes_on)}" for one in found.choices})
    what = f"its {found.existing.held:,} offsets stay, and records follow behind them with translated offsets"
    return Notice(found.name, f"{what} ({', '.join(starts)}): end whatever else writes there first")


def _begin(choice: Choice, goes_on: bool) -> str:
    return "where the former one ended" if goes_on else f"start {choice.flow.start.at}"


def _no_need(only: Collection[str], found: Collection[_Found], target: ObservedCluster) -> Iterator[Notice]:
    for name in sorted(set(only) - {one.name for one in found}):
        there = name in target.topics
        yield Notice(name, "is ours already" if there else "does not exist: `anabranch apply` makes it")
