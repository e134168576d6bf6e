"""The probe: tests on a scratch topic of a target what identical offsets depend on, once for each cluster.

The driver calls it before Spark starts, so that a cluster that only implements Kafka's protocol in part is refused
before any record is written. Results are stored in the target's journal; what failed is tested again at every start,
as an operator may have fixed it. The scratch topic stays: another probe may be using it, deleting it needs another
permission, and a topic that is deleted and created again is not current on every broker at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.recorded.capabilities import Capabilities, Capability, ProbeFinding, Verdict
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.gaps.trials import Scene, Trials
from reconciler.state.confluent import clients, faults, replicas
from reconciler.state.confluent.faults import unreachable
from reconciler.state.journals.home import journals
from reconciler.state.probes import Probes
from reconciler.wire import ConnectionLost, Loop, Wire

# The records of the trials are not read later.
_SCRATCH_CONFIG = {"cleanup.policy": "delete", "retention.ms": "3600000"}
_PARTITIONS = 8

_TIMEOUT = 5.0
_ATTEMPTS = 4


def check(target: Cluster, topology: str, flows: Sequence[Flow], warn: Callable[[str], None]) -> None:
    """Make sure that `target` can hold identical offsets, as far as its permissions allow testing.

    Args:
        target: the cluster.
        topology: name of the topology.
        flows: those that write to it.
        warn: called with a message for each thing that could not be tested.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB317 it cannot, AB362 a flow demands markers and may not write them, AB450 too many of its
            brokers are down.
    """
    # Flows with at-least-once delivery do not depend on any of this.
    flows = [flow for flow in flows if not flow.repeats]
    if not flows:
        return
    demanding = any(flow.demands_markers for flow in flows)
    try:
        ours = journals(target, topology)
        cluster_id = _scratch_topic(target, ours.scratch)
    except KafkaException as error:
        if not faults.is_refusal(error.args[0]):
            raise faults.no_connection(target, error.args[0]) from None
        warn(f"{target.where}: what the cluster does was not tried, as topic {ours.scratch} may not be made")
        return
    found = _remembered(target, topology, cluster_id)
    if found is None or not found.is_sufficient or not _can_fill(found, demanding):
        found = probe(target, Scene(ours.scratch, ProducerNames(*ours.probe)), cluster_id)
        if found.is_sufficient:
            _remember(target, topology, found, warn)
    _judge(target, found, demanding, warn)


def probe(target: Cluster, scene: Scene, cluster_id: str) -> Capabilities:
    """Run all trials now, on the scratch topic of the scene, which must exist.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """
    loop = Loop()
    declared = target.clients.admin
    wire = Wire(loop, target, declared.client_id or "anabranch-probe", declared.patience(_TIMEOUT))
    findings: list[ProbeFinding] = []

    async def run() -> None:
        for attempt in range(_ATTEMPTS):
            # A concurrent probe would disturb the offsets, so each takes a random partition.
            await loop.sleep(random.uniform(0, attempt))
            known = (await wire.topics([scene.topic]))[scene.topic].partitions
            findings[:] = await Trials(loop, wire, scene, random.choice(list(known) or [0])).all()
            if not any(found.verdict is Verdict.FAILS for found in findings):
                return

    try:
        loop.run(run)
    except ConnectionLost as error:
        raise unreachable(target, error) from None
    finally:
        wire.close()
        loop.close()
    return Capabilities(cluster_id, time.time(), tuple(findings))


def _scratch_topic(target: Cluster, name: str) -> str:
    """Make the scratch topic if it is missing; return the cluster's id."""
    admin, metadata = clients.metadata(target, _TIMEOUT)
    if name not in metadata.topics:

        def create(count: int) -> None:
            """Raises KafkaException."""
            new = NewTopic(name, _PARTITIONS, count, config=_SCRATCH_CONFIG)
            admin.create_topics([new], operation_timeout=_TIMEOUT, request_timeout=_TIMEOUT)[name].result()

        try:
            replicas.make(metadata, create, target.state_replication_factor)
        except KafkaException as error:
            if replicas.is_too_few(error.args[0]):
                raise replicas.refused_now(target, f"topic {name}", error.args[0], metadata) from None
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    return str(metadata.cluster_id)


def _remembered(target: Cluster, topology: str, cluster_id: str) -> Capabilities | None:
    try:
        return Probes(target, topology, _TIMEOUT).read(cluster_id)
    except AnabranchError:
        # Without permission to read the journal the probe runs at every start.
        return None


def _remember(target: Cluster, topology: str, found: Capabilities, warn: Callable[[str], None]) -> None:
    try:
        Probes(target, topology, _TIMEOUT).write(found)
    except AnabranchError as error:
        warn(f"what the cluster does is tried again at the next start: {error.problems[0].message}")


def _judge(target: Cluster, found: Capabilities, demanding: bool, warn: Callable[[str], None]) -> None:
    failed = found.required(Verdict.FAILS)
    if failed:
        remedy = "this cluster cannot hold copies with identical offsets; take Apache Kafka 2.8 or newer"
        raise EnvironmentFault([Problem("AB317", target.where, str(one), remedy) for one in failed])
    for one in found.required(Verdict.REFUSED):
        warn(f"{target.where}: could not be tried: {one}")
    if _can_fill(found, demanding):
        return
    if demanding:
        raise EnvironmentFault(
            Problem(
                "AB362",
                target.where,
                f"a flow demands fill: markers, and {target.user} may not write them: {_said(found)}",
                "grant ALTER on the cluster (CLUSTER_ACTION before Kafka 3.8), or let fill be auto: it takes "
                "transactions then",
            )
        )
    warn(f"{target.where}: neither markers nor transactions can be written; partitions park at gaps")


def _said(found: Capabilities) -> str:
    return next((one.detail for one in found.findings if one.capability is Capability.MARKERS), "not tried")


def _can_fill(found: Capabilities, by_markers: bool) -> bool:
    ways = (Capability.MARKERS,) if by_markers else (Capability.MARKERS, Capability.TRANSACTIONS)
    return any(found.verdict(way) is Verdict.HOLDS for way in ways)
