"""Topics of our own state whose settings let its records vanish, as a clean-up or a topic operator sets them.

Pure. They are compacted and never deleted from: what stands in them is the only proof of much, and no log of events.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.drift import Drifted
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import Notice

_KEY, _WANTED = "cleanup.policy", "compact"


def vanishing_state(target: ObservedCluster) -> Iterator[Notice]:
    """Yield which topics of our own state do not keep their records."""
    for name, found in sorted(target.state_policies.items()):
        if found != _WANTED:
            yield Notice(name, f"has {_KEY}={found}, and records of what is ours vanish by that: {_remedy(name)}")


def changed_state(topology: Topology, target: ObservedCluster) -> Iterator[Drifted]:
    """Yield the same as drift."""
    for name, found in sorted(target.state_policies.items()):
        if found != _WANTED:
            yield Drifted(target.alias, "changed", name, _KEY, _WANTED, found, _remedy(name))


def _remedy(name: str) -> str:
    change = f"`kafka-configs.sh --alter --topic {name} --add-config {_KEY}={_WANTED}`"
    return f"set it back ({change}), and keep clean-ups and topic operators away from it"
