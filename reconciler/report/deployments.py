"""How deployed processes fare, as text and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rich.console import Group

from reconciler.model.planning.deployments import DeployedProcess
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line

FORMAT = 1
_TITLES = ("data centre", "process", "kind", "state", "pid", "restarts", "version", "why")


def processes_json(topology: str, processes: Collection[DeployedProcess]) -> dict[str, Any]:
    """Return `format`, `topology` and `processes`.

    Each has `datacenter`, `process`, `running`, `pid` (0 while it does not run), `restarts`, `why` it does not run or
    ended the last time, and its `facts`.
    """
    told = [
        {
            "datacenter": one.process.datacenter,
            "process": one.process.name,
            "running": one.is_running,
            "pid": one.pid,
            "restarts": one.restarts,
            "why": one.why,
            "facts": one.process.facts,
        }
        for one in processes
    ]
    return {"format": FORMAT, "topology": topology, "processes": told}


def processes_text(topology: str, processes: Collection[DeployedProcess]) -> Group:
    """Return a table for a rich console."""
    running = sum(one.is_running for one in processes)
    title = Line.assemble((topology, "bold"), f" · {running} of {len(processes)} processes run")
    rows = [
        (
            one.process.datacenter,
            one.process.name,
            one.process.kind,
            Line("running", style="green") if one.is_running else Line("not running", style="red"),
            str(one.pid or ""),
            str(one.restarts or ""),
            one.process.version,
            one.why,
        )
        for one in processes
    ]
    return Group(title, *([Line()] if rows else []), *aligned(_TITLES, rows, right=("pid", "restarts")))
