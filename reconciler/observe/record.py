"""What was observed, written down for the Pulumi program, so that it declares the topics that a plan has shown.

`plan --write-observed` writes one file per data centre, the program reads its own. The files hold names and settings of
topics, never a secret; they belong to one moment and are not committed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from reconciler.model.base.declared_types import check
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.base.files import read_json
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster

FORMAT = 8
OLDEST_SECONDS = 3600.0
"""How old a record may be that a preview uses. ACLs that were granted since would look as if no flow needed them."""


def write_observed(
    folder: Path, topology: Topology, observed: Mapping[str, ObservedCluster], targets: Collection[str]
) -> tuple[Path, ...]:
    """Write `<datacenter>.json` for every data centre that was observed whole; return the files.

    Args:
        folder: where to; made when it is missing.
        topology: the declaration.
        observed: the targets and the sources of the flows into them.
        targets: the clusters that were observed as targets; of a source alone, what is ours on it was not read.

    Raises:
        DeclaredInputError: AB180, the folder cannot be written.
    """
    written = []
    halves = {cluster.datacenter for alias, cluster in topology.clusters.items() if alias not in targets}
    for datacenter in sorted({topology.clusters[alias].datacenter for alias in targets} - halves):
        path = folder / f"{datacenter}.json"
        value = {
            "format": FORMAT,
            "digest": topology.digest,
            "time": time.time(),
            "clusters": {alias: observed[alias].to_json() for alias in sorted(observed)},
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            problem = Problem("AB180", str(path), f"cannot be written: {error.strerror}", "name another folder")
            raise DeclaredInputError(problem) from None
        written.append(path)
    return tuple(written)


def read_observed(
    path: Path, topology: Topology, aliases: Collection[str], oldest: float = math.inf
) -> dict[str, ObservedCluster] | None:
    """Return what was written down, or None when there is nothing for this declaration and these clusters.

    Args:
        path: one data centre's file.
        topology: the declaration; a file that was written for another one does not count.
        aliases: the clusters that are needed.
        oldest: how many seconds ago it may have been written.

    Raises:
        DeclaredInputError: AB181, the file is there and cannot be read, or is too old.
    """
    if not path.exists():
        return None
    try:
        value = read_json(path)
        if value["format"] != FORMAT or value["digest"] != topology.digest:
            return None
        age = abs(time.time() - value["time"])
        clusters = {alias: ObservedCluster.from_json(one) for alias, one in value["clusters"].items()}
        for cluster in clusters.values():
            check(cluster)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        what = f"is no record of observed clusters: {error!s:.200}"
        raise DeclaredInputError(Problem("AB181", str(path), what, "delete it and plan again")) from None
    if not clusters.keys() >= set(aliases):
        return None
    if age > oldest:
        message = f"was observed {age / 60:.0f} minutes ago; {oldest / 60:.0f} are allowed, as clusters change"
        raise DeclaredInputError(
            Problem("AB181", str(path), message, "write it anew, or delete it to observe them now")
        )
    return clusters
