"""The client for programs of consumers: where a group of one cluster goes on at another one, and whence copies come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reconciler.checkpoints.mirrormaker.client import MirrorClient, translate_offsets
from reconciler.checkpoints.mirrormaker.formats import Checkpoint, Heartbeat
from reconciler.model.policies.policy import ReplicationPolicy

__all__ = ["Checkpoint", "Heartbeat", "MirrorClient", "ReplicationPolicy", "declared_client", "translate_offsets"]


def declared_client(files: str | Path | Sequence[str | Path], alias: str, timeout: float = 30.0) -> MirrorClient:
    """Return a client of a cluster as topology files declare it: its addresses, security, and policies of its flows.

    Args:
        files: a topology file, or several.
        alias: which of its clusters.
        timeout: seconds that the cluster may be silent.

    Raises:
        DeclaredInputError: AB1xx, the files cannot be accepted.
        ValueError: they declare no such cluster.
    """
    # Reading YAML takes long to import, and is not needed where a cluster is given by its settings.
    from reconciler.declare import load  # noqa: PLC0415

    paths = [files] if isinstance(files, str | Path) else files
    topology = load([Path(path) for path in paths])
    if alias not in topology.clusters:
        message = f"no cluster {alias} in {topology.name}; there are {', '.join(topology.aliases)}"
        raise ValueError(message)
    policies = dict.fromkeys(flow.policy for flow in topology.flows if flow.target == alias)
    return MirrorClient(topology.clusters[alias], *policies, clusters=topology.aliases, timeout=timeout)
