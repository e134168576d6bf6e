"""Detects copies that several flows fill, whose records cannot be divided at a cut."""

from __future__ import annotations

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.translation.other_writers import fillers
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.state.copies import Copies


def shared_copies(topology: Topology, flow: Flow, target: Groups) -> list[Problem]:
    """Return a problem (AB716) for each copy of a flow that another declared flow has filled, too.

    Args:
        topology: the declaration.
        flow: the flow to fail over.
        target: reads its target cluster.

    Raises:
        Unreachable: AB310, the target does not answer.
        EnvironmentFault: AB311, reading is refused.
    """
    others = {one.name for one in topology.flows if one.target == flow.target} - {flow.name}
    if not others:
        return []
    copies = Copies(target.cluster, topology.name)
    try:
        copies.refresh()
        mine = [log for log, names in copies.flows().items() if flow.name in names]
        ids = target.ids({remote for remote, _ in mine})
        shared: dict[str, set[str]] = {}
        for log in mine:
            if names := others.intersection(fillers(copies, flow.name, log, ids.get(log[0]))):
                shared.setdefault(log[0], set()).update(names)
    finally:
        copies.close()
    return [
        Problem(
            "AB716",
            f"{target.cluster.where}, topic {remote}",
            f"it is a copy of flow {flow.name}, and {' and '.join(sorted(names))} fills it as well: which flow "
            "later records are from could not be determined",
            "give each flow topics of its own (policy), or move consumers by hand: `anabranch offsets translate`",
        )
        for remote, names in sorted(shared.items())
    ]
