"""Makes sure that the topics for dead letters are there before any record is written.

`driver` calls it before Spark starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.state.confluent import clients

_TIMEOUT = 5.0


def check(target: Cluster, flows: Sequence[Flow]) -> None:
    """Check that the dead-letter topics of flows exist.

    Args:
        target: the cluster that they write to.
        flows: the flows.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB363, some are missing, or hidden from our user.
    """
    wanted = [flow for flow in flows if flow.dlq is not None]
    if not wanted:
        return
    there = clients.metadata(target, _TIMEOUT)[1].topics
    missing = [flow.lacks_dlq(target) for flow in wanted if flow.dlq not in there]
    if missing:
        raise EnvironmentFault(missing)
