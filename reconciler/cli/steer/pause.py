"""`anabranch pause`: let partitions stand still, cleanly drained, until they are resumed."""

from __future__ import annotations

from reconciler.cli.common import Files, load_topology
from reconciler.cli.steer.steering import FlowName, Topics, steer
from reconciler.operate.flows.steering import SteeringWords


def pause(files: Files, flow: FlowName = None, topic: Topics = None) -> None:
    """Pause flows, topics or partitions: what is in flight is finished, and nothing more is copied until `resume`."""
    from reconciler.state import control

    words = SteeringWords("paused", "paused {what}; nothing runs now: it holds from the next start of replicate on")
    steer(load_topology(files), flow, topic, control.pause, words)
