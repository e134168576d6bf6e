"""`anabranch resume`: let paused partitions go on where their copies end."""

from __future__ import annotations

from reconciler.cli.common import Files, load_topology
from reconciler.cli.steer.steering import FlowName, Topics, steer
from reconciler.operate.flows.steering import SteeringWords


def resume(files: Files, flow: FlowName = None, topic: Topics = None) -> None:
    """Resume what was paused, all of it or some topics or partitions."""
    from reconciler.state import control

    words = SteeringWords("resumed", "resumed {what}; nothing runs now: it holds from the next start of replicate on")
    steer(load_topology(files), flow, topic, control.resume, words)
