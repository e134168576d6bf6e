"""What a plan leaves alone because a flow is failed over: producers write to its copies now.

Pure. A flow is failed over where its file declares it, or a record at its target has it; where only one does, `plan`
and `drift` report it. Its ACLs are in `bindings` and `own_bindings`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from reconciler.model.base.errors import Problem
from reconciler.model.base.text import utc
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.drift import Drifted
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import Notice, Plan
from reconciler.model.recorded.failed_flows import failed_flows, why_resting
from reconciler.plan.copies.offsets import Choice, Observed


def resolved(topology: Topology, observed: Observed) -> Topology:
    """Return the topology in which each flow with such a record at its target is failed over.

    It is not what was declared: digests are those of the other one.
    """
    flows = tuple(
        replace(flow, failed_over=True)
        if flow.target in observed and flow.name in observed[flow.target].failed_over
        else flow
        for flow in topology.flows
    )
    return replace(topology, flows=flows)


def opened(topology: Topology, observed: Observed) -> Topology:
    """Return the topology in which each flow is failed over to whose copies others may write.

    A failover that has only begun cuts them later, or is called off: as long as they are not cut it changes no ACL.

    Args:
        topology: what is declared, not what `resolved` returned.
        observed: targets.
    """
    flows = tuple(
        replace(flow, failed_over=True)
        if (target := observed.get(flow.target))
        and flow.name in target.failed_over
        and target.failed_over[flow.name].phase != "ending"
        else flow
        for flow in topology.flows
    )
    return replace(topology, flows=flows)


def running(topology: Topology) -> Topology:
    """Return a resolved topology in which no flow is enabled that is failed over: nothing is made for it."""
    flows = tuple(replace(flow, enabled=False) if flow.failed_over else flow for flow in topology.flows)
    return replace(topology, flows=flows)


def of_running(chosen: Collection[Choice]) -> tuple[Choice, ...]:
    """Return the choices of a resolved topology without copies of flows that are failed over."""
    resting = {(choice.flow.target, choice.remote) for choice in chosen if choice.flow.failed_over}
    return tuple(choice for choice in chosen if (choice.flow.target, choice.remote) not in resting)


def resting_flows(topology: Topology, target: ObservedCluster) -> frozenset[str]:
    """Return the names of the flows into a target that are failed over, declared any more or not."""
    flows = [flow for flow in topology.flows if flow.target == target.alias]
    elsewhere = {flow.name for flow in topology.flows if flow.target != target.alias}
    return frozenset((failed_flows(flows, target.failed_over).keys() | target.failed_over.keys()) - elsewhere)


def failover_notices(topology: Topology, target: ObservedCluster) -> Iterator[Notice]:
    """Yield which flows into a target are failed over, and where file and record differ."""
    flows = {flow.name: flow for flow in topology.flows if flow.target == target.alias}
    for name, state in failed_flows(topology.flows_into((target.alias,)), target.failed_over).items():
        yield Notice(f"flow {name}", f"{why_resting(name, state)}; its copies are left as they are")
        if remedy := _remedy(name, state is not None, flows[name].failed_over):
            yield Notice(f"flow {name}", remedy)
    for name in sorted(resting_flows(topology, target) - flows.keys()):
        yield Notice(f"flow {name}", f"{why_resting(name, target.failed_over[name])}, and it is declared no more")


def failover_drift(topology: Topology, target: ObservedCluster) -> Iterator[Drifted]:
    """Yield where a file and the record at the target differ about a flow."""
    for flow in topology.flows_into((target.alias,)):
        state = target.failed_over.get(flow.name)
        remedy = _remedy(flow.name, state is not None, flow.failed_over)
        if remedy is None:
            continue
        about = (f"flow {flow.name}", "failed-over")
        if state is None:
            yield Drifted(target.alias, "missing", *about, "true", None, remedy)
        else:
            yield Drifted(target.alias, "unmanaged", *about, None, f"since {utc(state.since)} by {state.by}", remedy)


def renamed_copies(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[Problem]:
    """Yield flows on record as failed over whose policy gives other names than their copies have."""
    for flow in topology.flows:
        state = observed[flow.target].failed_over.get(flow.name) if flow.target in targets else None
        for cut in () if state is None else sorted(state.cuts.values(), key=lambda cut: cut.topic):
            if flow.nameless(cut.topic) is None and (now := flow.remote_topic(cut.topic)) != cut.remote:
                yield Problem(
                    "AB438",
                    f"{topology.clusters[flow.target].where}, topic {cut.remote}",
                    f"flow {flow.name} is failed over, so producers write to it, and its policy would name it {now}",
                    f"declare the former policy; or `anabranch failback --flow {flow.name}` first",
                )
                break


def primaries_deleted(plan: Plan, observed: Observed) -> Iterator[Problem]:
    """Yield each deletion of a copy whose flow is on record as failed over: what stands there stands nowhere else."""
    for step in plan.steps:
        if not isinstance(step, DeleteTopic):
            continue
        for state in observed[step.cluster].failed_over.values():
            # The flow may have another name since.
            if state.flow == step.flow or any(cut.remote == step.name for cut in state.cuts.values()):
                yield Problem(
                    "AB436",
                    f"{step.cluster}, topic {step.name}",
                    f"flow {state.flow} is failed over, so producers write to it: {why_resting(state.flow, state)}",
                    f"`anabranch failback --flow {state.flow}` first, or name other topics with --target",
                )


def _remedy(name: str, is_on_record: bool, is_declared: bool) -> str | None:
    if is_declared and not is_on_record:
        said = "declared as failed over, and no failover is on record"
        return f"{said}: `anabranch failover --flow {name}`, or take failed-over out"
    if is_on_record and not is_declared:
        return f"not declared as failed over: declare `failed-over: true`, or `anabranch failback --flow {name}`"
    return None
