"""Whose declaration of a topology is in force at its targets, and whether another owner's files may end it.

Pure. Two repositories that give their topologies one name would take turns in ending each other's flows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.plan.copies.offsets import Observed


def check_owner(topology: Topology, observed: Observed, targets: Collection[str], take_over: bool) -> None:
    """Make sure that what is in force at targets belongs to the owner of these files, or may be taken over.

    What was put in force without an owner may be taken over by any.

    Args:
        topology: what is declared.
        observed: the targets.
        targets: their aliases.
        take_over: whether it may be another owner's.

    Raises:
        Refused: AB447, with each target where it is another owner's.
    """
    problems = [] if take_over else list(_foreign(topology, observed, targets))
    if problems:
        raise Refused(problems)


def _foreign(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[Problem]:
    ours = "these files name no owner" if topology.owner is None else f"these files are {topology.owner}'s"
    for alias in topology.aliases:
        # One that is away holds nothing that could be looked at, and nothing is changed there.
        entry = observed[alias].in_force if alias in targets and alias in observed else None
        if entry is None or not entry.is_declared or entry.owner in (None, topology.owner):
            continue
        yield Problem(
            "AB447",
            topology.clusters[alias].where,
            f"{entry}; {ours}",
            "give this topology a name of its own, or owner the value that is in force; where it is to change hands, "
            "`--take-over` allows it, and the flows that the plan shows to end do",
        )
