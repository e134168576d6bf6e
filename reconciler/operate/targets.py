"""Which clusters and remote topics an operation is for, from the names that its caller gives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from reconciler.model.base.text import shown
from reconciler.operate.reporter import SILENT, Reporter

if TYPE_CHECKING:
    from reconciler.model.declared.topology import Topology
    from reconciler.model.planning.steps import Notice

_SHOWN = 3


class InvalidArgument(ValueError):
    """An argument of an operation has a value that the declaration or the clusters do not allow.

    Attributes:
        message: what is wrong with it.
        argument: its name, such as `clusters`; the commands have an option of the same name.
    """

    def __init__(self, message: str, argument: str) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument


def chosen_targets(topology: Topology, clusters: Sequence[str] | None) -> tuple[str, ...]:
    """Return the aliases in `clusters`, or every target of an enabled flow, in the order of declaration.

    Args:
        topology: what is declared.
        clusters: aliases; each item may be a comma list. None or empty means all targets.

    Raises:
        InvalidArgument: `clusters`, an alias is not declared, or none is named.
    """
    if not clusters:
        return topology.targets
    named = [alias.strip() for item in clusters for alias in item.split(",") if alias.strip()]
    for alias in named:
        if alias not in topology.clusters:
            message = f"no cluster {alias} is declared; there are {', '.join(topology.aliases)}"
            raise InvalidArgument(message, "clusters")
    if not named:
        # An empty variable of a pipeline must not pass for "nothing to do".
        message = f"it names no cluster; there are {', '.join(topology.aliases)}"
        raise InvalidArgument(message, "clusters")
    return tuple(alias for alias in topology.aliases if alias in named)


def changed_clusters(topology: Topology, clusters: Sequence[str] | None) -> tuple[str, ...]:
    """Return the aliases of the clusters that an apply may change by the declaration alone.

    These are the targets, and sources that declare the principal of tasks (`replicator`).

    Raises:
        InvalidArgument: `clusters`, an alias is not declared.
    """
    targets = chosen_targets(topology, clusters)
    if clusters:
        return targets
    sources = {flow.source for flow in topology.flows if flow.enabled}
    granted = {alias for alias in sources if topology.clusters[alias].replicator is not None}
    return tuple(alias for alias in topology.aliases if alias in targets or alias in granted)


def planned_clusters(
    topology: Topology, clusters: Sequence[str] | None, reporter: Reporter = SILENT
) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """Return the aliases of what an apply may change, and a notice for each cluster that could not be read.

    Without `clusters` these include the clusters that no enabled flow leads into any more and where flows are still in
    force: an apply ends them there.

    Raises:
        InvalidArgument: `clusters`, an alias is not declared.
    """
    declared = changed_clusters(topology, clusters)
    if clusters or not topology.flows:
        return declared, ()
    from reconciler.observe.elsewhere import in_force_elsewhere

    with reporter.working("looking where flows are in force"):
        ending, notices = in_force_elsewhere(topology, chosen_targets(topology, None))
    return tuple(alias for alias in topology.aliases if alias in declared or alias in ending), notices


def check_names(names: Sequence[str], known: Collection[str]) -> None:
    """Check that every name is a known remote topic.

    Args:
        names: remote topics that the caller names.
        known: remote topics.

    Raises:
        InvalidArgument: `target`, some are unknown; the message lists similar names.
    """
    for name in names:
        if name in known:
            continue
        from difflib import get_close_matches

        near = get_close_matches(name, sorted(known), n=_SHOWN, cutoff=0.6)
        meant = f"; did you mean {' or '.join(map(shown, near))}?" if near else ""
        message = f"no remote topic {name} is asked for, or ours, at these clusters{meant}"
        raise InvalidArgument(message, "target")
