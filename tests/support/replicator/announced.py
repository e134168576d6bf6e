"""What a task that begins to listen now would hear of its shares."""

from __future__ import annotations

from typing import Any

from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.seal import Seal
from reconciler.state.listener import Listener


def announced(cluster: Cluster, seal: Seal) -> dict[str, Any] | None:
    """Return the shares that were announced last under the seal of a run; None where there are none."""
    listener = Listener(cluster, seal)
    try:
        return listener.shares
    finally:
        listener.close()
