"""The lines of targets where something else is in force than the files declare, below those of `status`."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.declaration import InForce, digest_into
from reconciler.report.text.line import Line


def unapplied_lines(topology: Topology, in_force: Mapping[str, InForce]) -> list[Line]:
    """Return a line for each target where a declaration is in force, and another one stands in the files.

    Args:
        topology: what the files declare; what runs is what is in force.
        in_force: by alias, where something is and it was read.
    """
    return [
        Line(
            f"{alias}: what runs is not what the files declare: `anabranch plan` shows the difference, and "
            "`anabranch apply` puts the files in force",
            style="yellow",
        )
        for alias, entry in sorted(in_force.items())
        if alias in topology.targets and entry.is_declared and entry.digest != digest_into(topology, alias)
    ]
