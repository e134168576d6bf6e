"""What a kept comparison belongs to: a flow as it is declared, between two clusters, of topics with their ids.

A file of `--resume` says of partitions that they are equal. That holds of no other flow, of no other cluster that
answers under the same alias, and of no topic that was made anew under the same name. `drive` asks before it goes on.
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
        source: id of the source cluster, as it says itself; empty where it says none.
        target: likewise of the target.
    """

    declared: str
    source: str
    target: str


def origin_of(spec: FlowSpec) -> Origin:
    """Return what holds of a flow now.

    Raises:
        Unreachable: AB310, one of its clusters does not answer.
        EnvironmentFault: one does not let us in.
    """
    declared = json.dumps(json.loads(spec.to_json())["flow"], sort_keys=True)
    ids = (clients.metadata(cluster, _TIMEOUT)[1].cluster_id or "" for cluster in (spec.source, spec.target))
    return Origin(hashlib.sha256(declared.encode()).hexdigest()[:16], *ids)


def objections(path: str, spec: FlowSpec, kept: Origin, now: Origin) -> Iterator[Problem]:
    """Yield why what is kept of a flow says nothing of it as it is now.

    Args:
        path: of the file.
        spec: the flow.
        kept: where it was compared.
        now: what holds of it now.
    """
    where, name = path, spec.flow.name
    if kept.declared != now.declared:
        yield Problem("AB610", where, f"flow {name} was declared otherwise when it was compared", _DELETE)
    for cluster, before, found in ((spec.source, kept.source, now.source), (spec.target, kept.target, now.target)):
        if before != found:
            what = f"flow {name} was compared on a cluster with the id {before or 'unknown'}; {cluster.where} is "
            yield Problem("AB614", where, f"{what}{found or 'one of an unknown cluster'}", _DELETE)


def made_anew(path: str, spec: FlowSpec, bounds: list[SliceBounds]) -> list[Problem]:
    """Return which topics of kept partitions are not those that were compared: they are gone, or were made anew.

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
    """Return the ids of some topics, "" where one is gone; None where the brokers have none."""
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
