"""Three data centres of two clusters each, as KIP-382 draws them for cross-data-centre replication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from reconciler.embedded import EmbeddedCluster, running

ALIASES = tuple(f"{place}-{number}" for place in ("west", "east", "north") for number in (1, 2))
REPLICATION = """\
replication:
  - xdcr:
      west: [west-1, west-2]
      east: [east-1, east-2]
      north: [north-1, north-2]
    topics: {include: ["(.*[.])?orders", "(.*[.])?users"]}
"""
"""The part of a topology file in which each cluster's topics come to all others."""

Clusters = Mapping[str, EmbeddedCluster]


@contextmanager
def six_running() -> Iterator[Clusters]:
    """Start the clusters; yield them by alias."""
    with running(*(EmbeddedCluster(alias) for alias in ALIASES)) as started:
        yield dict(zip(ALIASES, started, strict=True))


def declared(clusters: Clusters) -> str:
    """Return the part of a topology file that declares them."""
    lines = [
        f'  {alias}: {{bootstrap: ["{one.bootstrap}"], datacenter: {alias.partition("-")[0]}}}\n'
        for alias, one in clusters.items()
    ]
    return "clusters:\n" + "".join(lines)
