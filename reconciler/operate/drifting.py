"""Compares what is on record of the last apply with what the targets hold now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.drift import Drift
from reconciler.operate.deployments.observed import Deployments
from reconciler.operate.planning import report_away
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.operate.targets import changed_clusters, check_names


@dataclass(frozen=True)
class DriftOptions:
    """What is compared.

    Attributes:
        clusters: aliases of the targets; none means all.
        target: remote topics; none means all.
        ignore: fields that are left out, such as `retention.ms`.
        all_settings: whether settings count that no copy gets, such as the throttles of a rebalance.
    """

    clusters: Sequence[str] = ()
    target: Sequence[str] = ()
    ignore: Sequence[str] = ()
    all_settings: bool = False


EVERYTHING_RECORDED = DriftOptions()


def drift(topology: Topology, options: DriftOptions = EVERYTHING_RECORDED, reporter: Reporter = SILENT) -> Drift:
    """Return what differs at the targets from the record of the last apply; changes nothing, and reads targets alone.

    Args:
        topology: what is declared.
        options: what is compared.
        reporter: receives progress.

    Returns:
        The differences, field by field; targets that do not answer are in `unseen`, each with a problem.

    Raises:
        InvalidArgument: `clusters` or `target`, a name is unknown.
        EnvironmentFault: AB304, AB311, AB312, AB313, a target cannot be read.
    """
    from reconciler.observe.topology import observe_owned
    from reconciler.plan.findings.drift import drift_of
    from reconciler.plan.part import ours

    targets = changed_clusters(topology, options.clusters)
    with reporter.working("looking at the clusters"):
        seen_or_away, unseen = observe_owned(topology, targets, resting_may_be_away=True)
    report_away(seen_or_away, reporter)
    observed = {alias: seen for alias, seen in seen_or_away.items() if not seen.is_away}
    if options.target and not unseen:
        known = {name for seen in observed.values() for name in (*ours(topology, seen), *seen.names)}
        check_names(options.target, known)
    found = tuple(
        one
        for one in drift_of(topology, observed, options.all_settings)
        if one.field not in options.ignore and (not options.target or one.topic in options.target)
    )
    looked_at = tuple(alias for alias in targets if alias in observed)
    processes = () if options.target else Deployments(topology).drift(targets)
    return Drift(topology.name, looked_at, found, tuple(unseen), processes)
