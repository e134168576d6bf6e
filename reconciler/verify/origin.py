"""What saved progress belongs to: a declared flow, two clusters by their ids, and topics by theirs.

A file of `--resume` records which partitions are equal. This does not hold for another flow, another cluster under the
same alias, or a topic that was made again under the same name. `drive` checks it before it goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.place import differ
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import unreachable
from reconciler.verify.slices import SliceBounds
from reconciler.wire import BrokerError, ConnectionLost, ErrorCode, Loop, Wire

_TIMEOUT = 10.0
_DELETE = "name another file, or delete this one to begin anew"


@dataclass(frozen=True)
class Origin:
    """Where a comparison was made.

    Attributes:
        declared: digest of the flow's declaration.
        source: cluster id of the source; empty if it has none.
        target: likewise of the target.
    """

    declared: str
    source: str
    target: str


def origin_of(spec: FlowSpec) -> Origin:
    """Return the origin of a flow now.

    Raises:
        Unreachable: AB310, one of its clusters does not answer.
        EnvironmentFault: a login is refused.
    """
    declared = json.dumps(json.loads(spec.to_json())["flow"], sort_keys=True)
    ids = (clients.metadata(cluster, _TIMEOUT)[1].cluster_id or "" for cluster in (spec.source, spec.target))
    return Origin(hashlib.sha256(declared.encode()).hexdigest()[:16], *ids)


def objections(path: str, spec: FlowSpec, kept: Origin, now: Origin) -> Iterator[Problem]:
    """Yield why saved progress does not apply to a flow as it is now.

    Args:
        path: of the file.
        spec: the flow.
        kept: its saved origin.
        now: its origin now.
    """
    where, name = path, spec.flow.name
    if kept.declared != now.declared:
        yield Problem("AB610", where, f"flow {name} was declared otherwise when it was compared", _DELETE)
    for cluster, before, found in ((spec.source, kept.source, now.source), (spec.target, kept.target, now.target)):
        if before != found:
            what = f"flow {name} was compared on a cluster with the id {before or 'unknown'}; {cluster.where} is "
            yield Problem("AB614", where, f"{what}{found or 'one of an unknown cluster'}", _DELETE)


def made_anew(path: str, spec: FlowSpec, bounds: list[SliceBounds]) -> list[Problem]:
    """Return a problem (AB614) for each compared topic that is gone, or was made again.

    Raises:
        Unreachable: AB310, a cluster does not answer.
    """
    loop = Loop()
    try:
        sides = (
            (spec.source, {one.topic: one.source_id for one in bounds}),
            (spec.target, {one.remote: one.target_id for one in bounds}),
        )
        return [
            Problem("AB614", path, f"{cluster.where}: topic {topic} was compared, and is another one by now", _DELETE)
            for cluster, before in sides
            for topic, found in sorted(_ids(loop, cluster, before).items())
            if differ(before[topic], found)
        ]
    finally:
        loop.close()


def _ids(loop: Loop, cluster: Cluster, topics: dict[str, str | None]) -> dict[str, str | None]:
    """Return the ids of some topics: "" for one that is gone, None if brokers have no topic ids."""
    wire = Wire(loop, cluster, "anabranch-verify", _TIMEOUT)
    found: dict[str, str | None] = {}

    async def ask() -> None:
        for name, info in (await wire.topics(sorted(topics))).items():
            known = None if info.topic_id is None else str(info.topic_id)
            found[name] = "" if info.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else known

    try:
        if topics:
            loop.run(ask)
    except (ConnectionLost, BrokerError) as error:
        raise unreachable(cluster, error) from None
    finally:
        wire.close()
    return found
