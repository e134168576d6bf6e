"""Which settings the clients of each cluster have, and which line of the files sets them.

`anabranch explain --clients` calls it. Pure: no cluster is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line, Lines

# What happens where nothing is declared, for keys without a plain default.
_UNDECLARED = {
    "client.id": "a name of its own for each client",
    "send.buffer.bytes": "the system's",
    "receive.buffer.bytes": "the system's",
    "max.partition.fetch.bytes": "no bound of its own",
    "max.request.size": "4 MiB and the last batch",
    "request.timeout.ms": "depends on the kind of request",
}


class ClientSettings(TypedDict):
    """One setting: Kafka's name of it, its value, None where it has none, and where it is declared, if it is."""

    key: str
    value: str | int | None
    place: str


class ToldClients(TypedDict):
    """The clients of one cluster: what they do there (`consumer`, `producer` or `admin`), and their settings."""

    cluster: str
    role: str
    settings: list[ClientSettings]


def clients_told(topology: Topology, flows: Sequence[Flow]) -> list[ToldClients]:
    """Return the effective settings of the clients that flows have at each cluster, as JSON types."""
    reads, writes = {flow.source for flow in flows}, {flow.target for flow in flows}
    found: dict[tuple[str, str], list[ClientSettings]] = {}
    for alias, cluster in topology.clusters.items():
        uses = {"consumer": alias in reads, "producer": alias in writes, "admin": alias in reads | writes}
        for one in cluster.clients.effective():
            if uses[one.role]:
                found.setdefault((alias, one.role), []).append(
                    ClientSettings(key=one.key, value=one.value, place=one.place)
                )
    return [ToldClients(cluster=alias, role=role, settings=settings) for (alias, role), settings in found.items()]


def clients_text(told: Sequence[ToldClients]) -> Lines:
    """Return the same for people."""
    lines: list[Line] = []
    for one in told:
        lines.append(Line.assemble((one["cluster"], "bold"), f"   {one['role']}"))
        rows = [
            (
                setting["key"],
                _UNDECLARED[setting["key"]] if setting["value"] is None else str(setting["value"]),
                Line(setting["place"] or "built in", style="dim"),
            )
            for setting in one["settings"]
        ]
        lines += aligned(("setting", "value", "from"), rows, indent=2)
    return Lines(lines)
