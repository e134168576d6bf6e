"""What is in force at a target of flows that were changed at run time, against what the files declare of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.drift import Drifted
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.recorded.declaration import declaration_into
from reconciler.plan.changes import field_changes

_RETURNS = "declare it so, or `anabranch apply` returns to the files"


def override_drift(topology: Topology, target: ObservedCluster) -> Iterator[Drifted]:
    """Yield, field by field, what is in force of flows with an override, and declared otherwise.

    Nothing where the files declare the same by now, or where what is in force has come without the override.

    Args:
        topology: what the files declare, without overrides.
        target: where the overrides are.
    """
    if target.declaration is None or not target.overrides:
        return
    declared, in_force = declaration_into(topology, target.alias).flows, target.declaration.flows
    for one in target.overrides:
        before, now = declared.get(one.flow), in_force.get(one.flow)
        about = f"flow {one.flow}"
        remedy = f"changed at run time {one.told}: {_RETURNS}"
        if now is None and before is not None:
            yield Drifted(target.alias, "changed", about, "enabled", "true", "false", remedy)
        elif before is None and now is not None:
            yield Drifted(target.alias, "unmanaged", about, "enabled", None, "true", remedy)
        elif before is not None and now is not None:
            for change in field_changes(before, now):
                yield Drifted(target.alias, "changed", about, change.field, change.old, change.new, remedy)
