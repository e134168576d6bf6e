"""A plan as text for people: what is made, what changes and why, by target cluster.

Called by the commands. It adds nothing to the plan and leaves nothing out; colour is the console's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group

from reconciler.model.changes import Change
from reconciler.model.desired import Setting
from reconciler.model.removals import DeleteTopic, ForgetTopic, Removal
from reconciler.model.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Notice,
    Plan,
    PlannedFlow,
    RecordOwnership,
    TopicChange,
)
from reconciler.model.text import shown
from reconciler.report.columns import WIDEST
from reconciler.report.line import Line
from reconciler.report.words import (
    CHANGE_REASONS,
    IN_DOUBT,
    OWNERSHIP_REASONS,
    REMOVAL_REASONS,
    SETTING_REASONS,
    acl_reason,
    counted,
    fate,
    field_change,
    in_force,
    padding,
    place,
    shared_settings,
    stopped,
    summary,
)

_MARK = 2
_DETAIL = " " * 13


def plan_text(plan: Plan) -> Group:
    """Return the plan as lines for a rich console."""
    flows = sum(len(cluster.flows) for cluster in plan.clusters)
    counts = f"{counted(len(plan.clusters), 'target cluster')}, {counted(flows, 'flow')}"
    lines = [Line.assemble((plan.topology, "bold"), f" · {counts} · observed just now")]
    for cluster in plan.clusters:
        lines += [Line(), *_cluster(cluster, place(plan, cluster))]
    if plan.notices:
        lines += [Line(), *(_notice("!", "yellow", "note", notice) for notice in plan.notices)]
    return Group(*lines, Line(), Line(summary(plan), style="bold"))


def _cluster(cluster: ClusterPlan, where: str) -> Iterator[Line]:
    yield Line.assemble((cluster.alias, "bold"), f" ({where})")
    if not (cluster.steps or cluster.changes):
        yield Line("    no changes", style="dim")
    internal = [step.name for step in cluster.steps if isinstance(step, CreateInternalTopic)]
    if internal:
        yield _head("+", "green", "state", ", ".join(internal))
    created = [step for step in cluster.steps if isinstance(step, CreateTopic)]
    shared = shared_settings([step.topic for step in created])
    width = max((len(step.name) for step in created), default=0)
    for step in created:
        topic = step.topic
        facts = f"{counted(topic.partitions, 'partition')}, replication {topic.replication_factor}"
        yield _head("+", "green", "topic", f"{topic.name:<{width}}   {facts}, {topic.offsets} offsets")
        yield from _settings([setting for setting in topic.settings if setting not in shared])
    if shared:
        yield Line(f"    each of these {len(created)} topics also gets", style="dim")
        yield from _settings(shared)
    changes = [step for step in cluster.steps if isinstance(step, TopicChange)]
    for name, steps in groupby(sorted(changes, key=lambda step: step.name), key=lambda step: step.name):
        yield from _change(name, tuple(steps))
    yield from _acls([step for step in cluster.steps if isinstance(step, AclChange)])
    yield from _removals([step for step in cluster.steps if isinstance(step, Removal)], width)
    for change in cluster.changes:
        yield from _changes(change)
    for flow in cluster.flows:
        yield from _flow(flow)
    for left_out in cluster.not_started:
        original = f"{left_out.source}'s {left_out.topic}"
        yield _head("✗", "red", "skip", f"{left_out.remote}   {original}, {left_out.why}")
    for notice in cluster.left_alone:
        yield _notice("·", "dim", "left", notice)
    for notice in cluster.warnings:
        yield _notice("!", "yellow", "note", notice)
    if cluster.declared is not None:
        mark, style = ("=", "dim") if cluster.declared.is_in_force else ("~", "yellow")
        yield _head(mark, style, "force", in_force(cluster.declared))


def _change(name: str, steps: Sequence[TopicChange]) -> Iterator[Line]:
    yield _head("~", "yellow", "topic", name)
    rows: list[tuple[str, str, str]] = []
    for step in steps:
        match step:
            case AddPartitions():
                rows.append(("partitions", f"{step.found} → {step.topic.partitions}", "as at the source"))
            case AlterConfig():
                rows += [
                    (change.key, f"{_value(change.old)} → {_value(change.new)}", CHANGE_REASONS[change.reason])
                    for change in step.changes
                ]
            case RecordOwnership():
                rows.append(("ownership", "recorded", OWNERSHIP_REASONS[step.reason]))
    yield from _table(rows)


def _changes(change: Change) -> Iterator[Line]:
    """Yield what changes against the declaration that is in force, of a flow or of what else it says."""
    said = fate(change)
    if said:
        mark, style = ("+", "green") if change.fate == "begins" else ("-", "red")
        yield _head(mark, style, change.subject, f"{change.name} {said}")
    elif change.fields:
        yield _head("~", "yellow", change.subject, change.name)
        yield from _table([(one.field, field_change(one), "") for one in change.fields])
    for stop in change.stops:
        what, copy = stopped(stop)
        yield Line.assemble(_head("-", "red", change.subject, f"{change.name} {what}"), (f"   {copy}", "dim"))


def _acls(steps: Sequence[AclChange]) -> Iterator[Line]:
    principals = [shown(step.binding.who, WIDEST) for step in steps]
    width = max(map(len, principals), default=0)
    for step, principal in zip(steps, principals, strict=True):
        mark, style = ("+", "green") if isinstance(step, GrantAcl) else ("-", "red")
        said = f"{principal:<{width}}   {step.binding.what}"
        yield Line.assemble(_head(mark, style, "acl", said), ("   " + acl_reason(step), "dim"))


def _removals(steps: Sequence[Removal], width: int) -> Iterator[Line]:
    """Yield what is taken away, and apart from it what the declaration would not have made."""
    doubtful = [step for step in steps if isinstance(step, DeleteTopic) and step.doubt]
    for step in steps:
        if step not in doubtful:
            yield _removal(step, width)
    if doubtful:
        yield Line(f"    {IN_DOUBT}; they are deleted only where --target names them", style="red")
    for one in doubtful:
        yield _removal(one, width).append(f"; {one.doubt}", "red")


def _removal(step: Removal, width: int) -> Line:
    match step:
        case DeleteTopic():
            facts = f"deleted with all records, copy of {step.source}'s {step.source_topic}"
            line = _head("-", "red", "topic", f"{step.name:<{width}}   {facts}")
            return line.append(f"   {REMOVAL_REASONS[step.reason]}", "dim")
        case ForgetTopic():
            return _head("~", "yellow", "topic", f"{step.name:<{width}}   is gone: its ownership record is removed")


def _value(value: str | None) -> str:
    return "(default)" if value is None else value


def _settings(settings: Sequence[Setting]) -> Iterator[Line]:
    return _table([(setting.key, setting.value, SETTING_REASONS[setting.reason]) for setting in settings])


def _table(rows: Sequence[tuple[str, str, str]]) -> Iterator[Line]:
    """Yield rows in columns: name to the left, value to the right, reason."""
    rows = [(shown(name, WIDEST), shown(value, WIDEST), reason) for name, value, reason in rows]
    names = max((len(name) for name, _, _ in rows), default=0)
    values = max((len(value) for _, value, _ in rows), default=0)
    for name, value, reason in rows:
        yield Line.assemble(_DETAIL, f"{name:<{names}}  {value:>{values}}", ("   " + reason, "dim"))


def _flow(flow: PlannedFlow) -> Iterator[Line]:
    what = f"{flow.source} → {flow.target}   {counted(flow.tasks, 'task')}, {counted(flow.topics, 'topic')}"
    named = "" if flow.name == f"{flow.source}-{flow.target}" else f"   ({flow.name})"
    yield _head("▶", "cyan", "flow", what + named)
    rows = [("offsets", flow.offsets, flow.offsets_reason), ("fill", flow.fill, flow.fill_reason)]
    for name, value, why in [*rows, *([("padding", *padding(flow))] if flow.padding.offsets else [])]:
        yield Line.assemble(_DETAIL, f"{name:<8} {value}", ("   " + why, "dim"))


def _notice(mark: str, style: str, kind: str, notice: Notice) -> Line:
    return _head(mark, style, kind, f"{notice.subject}   {notice.message}")


def _head(mark: str, style: str, kind: str, rest: str) -> Line:
    return Line.assemble(" " * _MARK, (mark, style), f" {kind:<6} {rest}")
