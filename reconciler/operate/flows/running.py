"""What a run of flows starts from: checks, the Spark cluster, the specs of tasks; and why a partition was left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.model.base.errors import Problem, together
from reconciler.model.declared.datacenter import Spark
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus
from reconciler.operate.targets import InvalidArgument

if TYPE_CHECKING:
    from reconciler.operate.flows.gate import FlowGate


def specs_of(topology: Topology, flows: Sequence[Flow], run: str, round_seconds: float) -> list[FlowSpec]:
    """Return the specs of tasks for some flows, with where this process has found the journals."""
    from reconciler.state.journals.home import home_of

    homes = {alias: home_of(topology.clusters[alias], topology.name) for alias in {flow.target for flow in flows}}
    return [FlowSpec.compile(topology, flow, run, round_seconds, homes[flow.target]) for flow in flows]


def check_flows(gate: FlowGate) -> None:
    """Check that there is something to copy, and that all its clusters answer.

    The source of a flow that is failed over need not answer: that may be why it is.

    Raises:
        InvalidArgument: no enabled flow leads into the targets.
        Unreachable: AB310, some clusters do not answer.
    """
    from reconciler.observe.reach import unreachable_among

    topology, targets = gate.topology, gate.targets
    flows = topology.flows_into(targets)
    if not flows:
        message = f"no enabled flow leads into {', '.join(targets) or 'any cluster'}"
        raise InvalidArgument(message, "clusters")
    sides = dict.fromkeys(alias for flow in flows for alias in (flow.source, flow.target))
    failures = unreachable_among([topology.clusters[alias] for alias in sides])
    if failures and not failures.keys() & set(targets):
        needed = {flow.source for flow in flows if flow.name not in gate.failed_over()}
        failures = {alias: failure for alias, failure in failures.items() if alias in needed}
    if failures:
        raise together(list(failures.values()))


def spark_of(topology: Topology, targets: Sequence[str]) -> Spark:
    """Return where the flows into some clusters run.

    Raises:
        InvalidArgument: on several Spark clusters.
    """
    found: dict[Spark, str] = {}
    for flow in topology.flows_into(targets):
        found.setdefault(topology.spark(flow.target), flow.target)
    if len(found) > 1:
        told = ", ".join(f"{alias} ({topology.clusters[alias].datacenter})" for alias in found.values())
        message = f"the flows into {told} run on different Spark clusters: run a process for each data centre"
        raise InvalidArgument(message, "clusters")
    return next(iter(found), Spark())


def parked_problem(flow: str, partition: PartitionStatus) -> Problem:
    """Return why a partition of a flow was not copied to its end."""
    where = f"flow {flow}, {partition.remote}/{partition.partition}"
    if partition.state is PartitionState.PAUSED:
        return Problem("AB230", where, "paused before it was caught up", "let it go on with `anabranch resume`")
    reason = partition.reason
    if reason is not None and reason.code == "AB231":
        return Problem(reason.code, f"flow {flow}, topic {partition.topic}", f"not copied: {reason.text}", "")
    return Problem(reason.code if reason else "AB200", where, f"parked: {reason.text if reason else 'no reason'}", "")
