"""Moves the journals of a topology at its targets to topics of its own, where an older release made shared ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.topology import Topology
from reconciler.operate.reporter import SILENT, Reporter

# Another process moves them later: one that may, or when the apply is done.
_NOT_OURS = frozenset({"AB311", "AB501"})


def move_journals(
    topology: Topology,
    targets: Sequence[str],
    check: Callable[[str], None] | None = None,
    reporter: Reporter = SILENT,
) -> None:
    """Move the journals that are still shared, where no process works with them.

    What cannot be moved goes on as it is. A warning is printed, unless a permission is missing or an apply is at work
    there.

    Args:
        topology: the declaration.
        targets: aliases of targets.
        check: called with the alias before each move, by a caller that holds the lock of apply; raises an
            AnabranchError where the lock is lost. Without one the lock is taken here, if it is free.
        reporter: receives what was moved, and warnings.
    """
    from reconciler.state.journals import home
    from reconciler.state.lock import Lock
    from reconciler.state.moving import RecordFilter, may_move, move

    for alias in targets:
        cluster = topology.clusters[alias]
        whose = RecordFilter(topology.name, frozenset(flow.name for flow in topology.flows if flow.target == alias))
        try:
            if home.journals(cluster, topology.name).is_own or not may_move(cluster, whose):
                continue
            with contextlib.ExitStack() as stack:
                if check is None:
                    lock = stack.enter_context(Lock(cluster, topology.name))
                    lock.take(0)
                    # The holder before may have moved them.
                    if not may_move(cluster, whose):
                        continue
                else:
                    check(alias)
                move(cluster, whose)
            reporter.note(f"journals of {topology.name} moved to topics of their own at {alias}")
        except AnabranchError as error:
            # Read anew from the cluster how far it has come.
            home.forget(cluster, topology.name)
            told = [problem for problem in error.problems if problem.code not in _NOT_OURS]
            reporter.warn(told)
