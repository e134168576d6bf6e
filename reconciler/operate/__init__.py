"""Plan, apply, status and drift as a library: no terminal, no printing, no exit codes.

Progress and notices go to a `Reporter`, which by default discards them. Arguments that the declaration or the clusters
do not allow raise `InvalidArgument`; all other problems are the errors of `reconciler.model.base.errors`, with code,
place and remedy.

Example:
    topology = load(["payments.yaml"])
    planned = plan(topology)
    if not planned.plan.changes_nothing:
        applied = apply(topology)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.operate.applying import Applied, ApplyOptions, Approval
    from reconciler.operate.drifting import DriftOptions, drift
    from reconciler.operate.library import apply, load
    from reconciler.operate.planning import PlannedApply, PlanOptions, plan
    from reconciler.operate.reporter import Reporter
    from reconciler.operate.targets import InvalidArgument
    from reconciler.operate.watching import StatusView, status

__all__ = [
    "Applied",
    "ApplyOptions",
    "Approval",
    "DriftOptions",
    "InvalidArgument",
    "PlanOptions",
    "PlannedApply",
    "Reporter",
    "StatusView",
    "apply",
    "drift",
    "load",
    "plan",
    "status",
]

# All of it takes a tenth of a second to import, and every command imports this room.
_MODULES = {
    "applying": ("Applied", "ApplyOptions", "Approval"),
    "drifting": ("DriftOptions", "drift"),
    "library": ("apply", "load"),
    "planning": ("PlanOptions", "PlannedApply", "plan"),
    "reporter": ("Reporter",),
    "targets": ("InvalidArgument",),
    "watching": ("StatusView", "status"),
}


def __getattr__(name: str) -> Any:
    """Import what is taken from the room when it is taken."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    message = f"module {__name__} has no attribute {name}"
    raise AttributeError(message)
