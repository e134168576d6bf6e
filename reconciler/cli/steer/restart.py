"""`anabranch restart`: have partitions tried again at once, however long they would wait by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.cli.common import Files, load_topology
from reconciler.cli.steer.steering import FlowName, Topics, steer
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.pauses import PauseScope
from reconciler.operate.flows.steering import SteeringWords


def restart(files: Files, flow: FlowName = None, topic: Topics = None) -> None:
    """Try parked partitions again at once; those named by --topic also when they run."""
    from reconciler.state import control

    def tell(cluster: Cluster, topology: str, scopes: Sequence[PauseScope]) -> int:
        return control.restart(cluster, topology, scopes, parked_only=not topic)

    done = "restarted" if topic else "restarted what is parked of"
    words = SteeringWords(done, "no run is live: there is nothing to restart of {what}")
    steer(load_topology(files), flow, topic, tell, words)
