"""Makes a target ready for a run: its journals, what may be written there, and what its brokers are able to.

`driver` calls it before Spark begins, and `stream` for flows that a program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.replicator.driver import dead_letter_topics
from reconciler.replicator.gaps import probe
from reconciler.state import control
from reconciler.state.confluent import clients
from reconciler.state.journals import allowed
from reconciler.state.journals.home import journals
from reconciler.state.journals.journal import Journal
from reconciler.state.status import forget_old

_SECONDS = 5.0


def prepare(target: Cluster, topology: str, flows: Sequence[Flow], warn: Callable[[str], None]) -> None:
    """Make a target ready for a run: make its journals, remove outdated records, check what the run needs.

    Args:
        target: the cluster.
        topology: name of the topology.
        flows: those of the run that write to it.
        warn: called with each warning.

    Raises:
        AnabranchError: the target does not answer, refuses us, cannot hold identical offsets, or lacks a topic for
            dead letters.
    """
    ours = journals(target, topology)
    written = (ours.status, ours.control, ours.copies)
    # One look for all of them: each is many round trips where the target is far away.
    _, seen = clients.metadata(target, _SECONDS)
    for journal in written:
        if journal.name not in seen.topics:
            Journal(target, journal, timeout=_SECONDS).ensure()
    allowed.check(target, written)
    forget_old(target, topology, [flow.name for flow in flows])
    control.forget_old(target, topology)
    dead_letter_topics.check(target, flows)
    probe.check(target, topology, flows, warn)
