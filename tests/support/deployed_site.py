"""A topology whose second data centre is deployed on this machine, changed and looked at by commands."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import declared
from tests.support.commands.command import Ended, anabranch
from tests.support.deploying import EAST_AND_WEST
from tests.support.replicator.copying import log_ends
from tests.support.waiting import eventually

LIMIT = 580
FILE = (
    EAST_AND_WEST
    + """\
flows:
  - {{from: east, to: west, topics: {{include: ["{name}.*"]}}, heartbeats: false, linger: {linger}}}
datacenters:
  dc2: {{deploy: {deploy}}}
"""
)


class Site:
    """A topology whose second data centre is deployed on this machine.

    Args:
        folder: for everything.
        clusters: by alias.
        name: of the topology, and how its topics begin.
    """

    def __init__(self, folder: Path, clusters: Mapping[str, EmbeddedCluster], name: str) -> None:
        self.name, self.folder = name, folder / "dc2"
        self.file = folder / "site.yaml"
        self.linger = "1ms"
        self._clusters = clusters
        self.write()

    def write(self, **deploy: Any) -> None:
        """Declare the deployment with these fields."""
        fields = {"kind": "local", "folder": str(self.folder)} | deploy
        addresses = {alias: one.bootstrap for alias, one in self._clusters.items()}
        self.file.write_text(FILE.format(name=self.name, linger=self.linger, deploy=json.dumps(fields), **addresses))

    def apply(self) -> Ended:
        return anabranch("apply", self.file, "--yes", limit=LIMIT)

    def processes(self) -> dict[str, dict[str, Any]]:
        told = anabranch("deployments", self.file, "--json")
        assert told.code == 0, told
        return {one["process"]: one for one in json.loads(told.stdout)["processes"]}

    def pids(self) -> dict[str, int]:
        return {name: one["pid"] for name, one in self.processes().items() if one["running"]}

    def states(self) -> list[str]:
        """Return the state of the flow and of each of its partitions."""
        (flow,) = json.loads(anabranch("status", self.file, "--format", "json", "--partitions").stdout)["flows"]
        return [flow["state"], *(one["state"] for one in flow["partitions"])]

    def copied(self) -> int:
        """Return how many records the copy has."""
        west = declared("west", self._clusters["west"])
        return log_ends(west, f"east.{self.name}", 2)


def longest_break(site: Site) -> tuple[float, Ended]:
    """Apply, and return the longest time meanwhile in which no record was copied."""
    before = site.copied()
    # A change of the declaration, as before, ends a run; what is measured begins when the next one copies.
    newest = eventually("records are copied", site.copied, lambda copied: copied > before)
    longest, since = 0.0, time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        applying = pool.submit(site.apply)
        while not applying.done():
            if (copied := site.copied()) != newest:
                newest, since = copied, time.monotonic()
            longest = max(longest, time.monotonic() - since)
            time.sleep(0.1)
        return longest, applying.result()
