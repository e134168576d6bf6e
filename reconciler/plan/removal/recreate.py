"""The plan that deletes copies of ours which flows make anew: first the old records go, then `build` plans new topics.

Pure. What could not be copied again is refused, and what the original does not have any more is a warning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedTopic
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import ClusterPlan, Notice, Plan
from reconciler.plan.copies.offsets import Choice, Observed, choices
from reconciler.plan.removal.destroy import against

Copies = Mapping[tuple[str, str], tuple[Choice, ...]]
"""By alias of the target and remote topic: each original that flows copy into it."""


def recreated(topology: Topology, observed: Observed, targets: Collection[str], names: Collection[str]) -> Copies:
    """Return what flows copy into the named remote topics of ours.

    Args:
        topology: what is declared.
        observed: the targets, and the sources of flows into them.
        targets: aliases of targets.
        names: of remote topics.

    Raises:
        Refused: AB458, no enabled flow would copy one again, or it is not certain to be ours.
    """
    found: dict[tuple[str, str], list[Choice]] = {}
    for choice in choices(topology, observed, targets):
        if choice.remote in names and choice.blocked is None:
            found.setdefault((choice.flow.target, choice.remote), []).append(choice)
    problems, copies = [], {}
    for alias in targets:
        ours = {name: one for name, one in observed[alias].owned.items() if one.topology == topology.name}
        for name in sorted(ours.keys() & set(names)):
            existing = observed[alias].topics.get(name)
            why = None if existing is None else against(name, ours[name], existing)
            if why is None and (alias, name) not in found:
                original = f"{ours[name].source}'s {ours[name].source_topic}"
                why = f"nothing would be copied again: no enabled flow copies {original} there now"
            if why is not None:
                remedy = "correct the files, or `anabranch destroy --target` deletes it without a new copy"
                problems.append(Problem("AB458", f"{alias}, topic {name}", why, remedy))
            else:
                copies[alias, name] = tuple(found[alias, name])
    if problems:
        raise Refused(problems)
    return copies


def recreation_plan(topology: Topology, observed: Observed, copies: Copies) -> Plan:
    """Return the plan that deletes copies; those that are not there any more need none.

    Args:
        topology: what is declared.
        observed: what `copies` come from.
        copies: as of `recreated`.
    """
    clusters = []
    for alias in topology.aliases:
        here = {name: originals for (target, name), originals in copies.items() if target == alias}
        if not here:
            continue
        there = {name: topic for name, topic in observed[alias].topics.items() if name in here}
        owned = observed[alias].owned
        steps = tuple(
            DeleteTopic.of(alias, owned[name], topic.topic_id, "recreated") for name, topic in sorted(there.items())
        )
        kept = {name: _kept(there.get(name), originals) for name, originals in sorted(here.items())}
        clusters.append(
            ClusterPlan(
                alias=alias,
                datacenter=topology.clusters[alias].datacenter,
                steps=steps,
                warnings=tuple(Notice(name, message) for name, message in kept.items() if message),
                wave=topology.wave(alias),
            )
        )
    return Plan(topology.name, topology.digest, tuple(clusters))


def _kept(copy: ObservedTopic | None, originals: Collection[Choice]) -> str:
    """Return how much of what a copy holds its original still has; empty where it holds nothing."""
    has, held = sum(choice.original.held for choice in originals), 0 if copy is None else copy.held
    if not held:
        return ""
    found = f"it holds {held:,} offsets, and its original {has:,} by now: "
    return found + ("all of them are copied again" if has >= held else "what the original has no more is lost")
