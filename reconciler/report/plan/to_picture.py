"""A plan as a picture: clusters and flows in the colour of what changes there, with counts.

Called by `anabranch plan`. What is counted is what the other printers of plans count; the tones follow from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.changes import Change
from reconciler.model.planning.steps import ClusterPlan, CreateTopic, Plan, PlannedFlow, Step
from reconciler.report.pictures.mermaid import mermaid, plain_text
from reconciler.report.pictures.picture import Arrow, Box, Key, Line, Picture, Tone, taken
from reconciler.report.pictures.svg import svg
from reconciler.report.plan.to_json import plan_json
from reconciler.report.text.words import counted, summary

_LEGEND: tuple[tuple[Key, str], ...] = (
    ("add", "added"),
    ("change", "changed"),
    ("delete", "deleted"),
    ("same", "unchanged"),
    ("absent", "not in this plan"),
    ("words", "▶ starts: all that a flow copies is made now"),
)
_STARTS = "▶ starts"


@dataclass(frozen=True)
class _Counts:
    """How much is added, changed and deleted at one place."""

    add: int = 0
    change: int = 0
    delete: int = 0

    @property
    def tone(self) -> Tone:
        """The colour: what is most to be looked at."""
        if self.delete:
            return "delete"
        if self.change:
            return "change"
        return "add" if self.add else "same"

    @property
    def line(self) -> Line:
        """The counts, each in its colour where it is not zero."""
        return (
            (f"+{self.add}", "add" if self.add else "dim"),
            (" ", ""),
            (f"~{self.change}", "change" if self.change else "dim"),
            (" ", ""),
            (f"-{self.delete}", "delete" if self.delete else "dim"),
        )


def plan_mermaid(topology: Topology, plan: Plan) -> str:
    """Return a Mermaid flowchart of the topology with what the plan changes in colour."""
    return mermaid(plan_picture(topology, plan))


def plan_svg(topology: Topology, plan: Plan) -> str:
    """Return an SVG document of the topology with what the plan changes in colour."""
    return svg(plan_picture(topology, plan))


def plan_picture(topology: Topology, plan: Plan) -> Picture:
    """Return the picture of what a plan changes in its topology.

    Args:
        topology: whole; clusters and flows that the plan is not for are drawn pale.
        plan: for it.
    """
    here = {cluster.alias: cluster for cluster in plan.clusters}
    boxes = tuple(_box(alias, one.datacenter, plan, here.get(alias)) for alias, one in topology.clusters.items())
    arrows = tuple(_arrow(flow, plan, here) for flow in topology.flows)
    changed = [box for box in boxes if box.tone not in ("same", "absent")]
    told = "; ".join(f"{box.alias} {plain_text(box.lines[0])}" for box in changed)
    return Picture(
        title=f"{topology.name}: plan",
        subtitle=summary(plan),
        description=f"{summary(plan)} {f'By target cluster: {told}.' if told else ''}".strip(),
        boxes=boxes,
        arrows=arrows,
        legend=_LEGEND,
    )


def _box(alias: str, datacenter: str, plan: Plan, cluster: ClusterPlan | None) -> Box:
    if cluster is None:
        return Box(alias, datacenter, tone="absent")
    counts = _counted(plan, cluster, cluster.steps, cluster.changes)
    puts = cluster.declared is not None and not cluster.declared.is_in_force
    lines: list[Line] = [counts.line]
    lines += [(("declaration put in force", "dim"),)] if puts else []
    lines += _waiting(len(cluster.not_started))
    # A declaration alone that is put in force is a change, though no topic is touched.
    tone: Tone = "change" if puts and counts.tone == "same" else counts.tone
    return Box(alias, datacenter, tuple(lines), tone)


def _arrow(flow: Flow, plan: Plan, here: Mapping[str, ClusterPlan]) -> Arrow:
    cluster = here.get(flow.target)
    planned = next((one for one in cluster.flows if one.name == flow.name), None) if cluster is not None else None
    topics: Line = ((taken(flow), "code"),)
    if cluster is None or planned is None:
        rests = "failed over" if flow.failed_over else "not in this plan"
        why: Line = ((rests if flow.enabled else "disabled", "dim"),)
        return Arrow(flow.name, flow.source, flow.target, (topics, why), "absent", dotted=True)
    steps = _steps_of(flow.name, plan, cluster)
    changes = tuple(one for one in cluster.changes if (one.subject, one.name) == ("flow", flow.name))
    counts = _counted(plan, replace(cluster, declared=None), steps, changes)
    # A flow starts when all that it copies is made now.
    is_new = planned.topics > 0 and sum(isinstance(step, CreateTopic) for step in steps) >= planned.topics
    starts: Line = ((f"  {_STARTS}", "add"),) if is_new else ()
    left_out = sum(one.flow == flow.name for one in cluster.not_started)
    lines = ((*counts.line, *starts), topics, _copies(planned), *_waiting(left_out))
    return Arrow(flow.name, flow.source, flow.target, lines, counts.tone)


def _copies(flow: PlannedFlow) -> Line:
    """Return what a flow copies now."""
    named = f", flow {flow.name}" if flow.name != f"{flow.source}-{flow.target}" else ""
    offsets = f", {flow.offsets} offsets" if flow.topics else ""
    return ((f"{counted(flow.topics, 'topic')}{offsets}{named}", "dim"),)


def _waiting(topics: int) -> list[Line]:
    return [((f"{counted(topics, 'topic')} not started", "delete"),)] if topics else []


def _counted(plan: Plan, cluster: ClusterPlan, steps: Iterable[Step], changes: tuple[Change, ...]) -> _Counts:
    """Count some of a cluster's part as all of a plan is counted: pictures and text show the same numbers."""
    alone = replace(plan, clusters=(replace(cluster, steps=tuple(steps), changes=changes),))
    told = plan_json(alone)["summary"]
    return _Counts(told["add"] - told["own"], told["change"], told["delete"])


def _steps_of(flow: str, plan: Plan, cluster: ClusterPlan) -> list[Step]:
    """Return the steps of one flow."""
    (told,) = plan_json(replace(plan, clusters=(cluster,)))["clusters"]
    return [step for step, said in zip(cluster.steps, told["steps"], strict=True) if said.get("flow") == flow]
