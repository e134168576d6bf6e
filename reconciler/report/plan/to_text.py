"""A plan as text for people: what is made, what changes and why, by target cluster.

Called by the commands. It adds nothing to the plan and leaves nothing out; colour and width are the console's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group

from reconciler.model.base.text import shown
from reconciler.model.planning.changes import Change
from reconciler.model.planning.deployments import FILES, DeploymentPlan, DeployProcess, StopProcess, UpdateProcess
from reconciler.model.planning.desired import DesiredTopic, TopicSetting
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic, Removal
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    Notice,
    NotStarted,
    Plan,
    RecordOwnership,
    TopicChange,
)
from reconciler.report.plan.grouping import GroupRow, access_groups, becomes, folded, new_topics, notice_groups
from reconciler.report.text.columns import WIDEST
from reconciler.report.text.line import Line
from reconciler.report.text.words import (
    CHANGE_REASONS,
    IN_DOUBT,
    OWNERSHIP_REASONS,
    REMOVAL_REASONS,
    SETTING_REASONS,
    counted,
    fact_change,
    fate,
    field_change,
    in_force,
    padding,
    place,
    shared_settings,
    stopped,
    summary,
    turn,
)

_MARK = 2
_HANG = 11
_WIDE = 100
_DETAIL = " " * 13
# What stands in the heading of a deployment, or says the same for every process.
_NOT_SHOWN = ("kind", FILES)
_SIGNS = {
    "+": "add",
    "~": "change",
    "-": "delete, revoke or end",
    "▶": "flow that starts or changes",
    "·": "left as it is",
    "!": "worth knowing",
    "=": "as it is in force",
    "✗": "not started",
}


def plan_text(plan: Plan) -> Group:
    """Return the plan as lines for a rich console."""
    flows = sum(len(cluster.flows) for cluster in plan.clusters)
    counts = f"{counted(len(plan.clusters), 'target cluster')}, {counted(flows, 'flow')}"
    lines: list[Line] = []
    for cluster in plan.clusters:
        lines += [Line(), *_cluster(cluster, place(plan, cluster))]
    for deployment in plan.deployments:
        lines += [Line(), *_deployment(deployment, turn(plan, deployment.wave))]
    if plan.notices:
        lines += [Line(), *_notices("!", "yellow", "note", plan.notices)]
    title = Line.assemble((plan.topology, "bold"), f" · {counts} · observed just now")
    return Group(title, *_legend(lines), *lines, Line(), Line(summary(plan), style="bold"))


def _legend(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield what the signs mean that stand in these lines."""
    begins = {line.plain[_MARK] for line in lines if len(line.plain) > _MARK and not line.plain[:_MARK].strip()}
    if told := [f"{sign} {meaning}" for sign, meaning in _SIGNS.items() if sign in begins]:
        yield Line("   ".join(told), style="dim", hang=0)


def _cluster(cluster: ClusterPlan, where: str) -> Iterator[Line]:
    yield Line.assemble((cluster.alias, "bold"), f" ({where})")
    if not (cluster.steps or cluster.changes):
        yield Line("    no changes", style="dim")
    internal = [step.name for step in cluster.steps if isinstance(step, CreateInternalTopic)]
    if internal:
        yield _head("+", "green", "state", ", ".join(internal))
    yield from _created([step.topic for step in cluster.steps if isinstance(step, CreateTopic)])
    yield from _topics_changed([step for step in cluster.steps if isinstance(step, TopicChange)])
    yield from _acls(cluster)
    yield from _removals([step for step in cluster.steps if isinstance(step, Removal)])
    yield from _changes(cluster.changes)
    yield from _flows(cluster)
    yield from _not_started(cluster.not_started)
    yield from _notices("·", "dim", "left", cluster.left_alone)
    yield from _notices("!", "yellow", "note", cluster.warnings)
    if cluster.declared is not None:
        mark, style = ("=", "dim") if cluster.declared.is_in_force else ("~", "yellow")
        yield _head(mark, style, "force", in_force(cluster.declared))


def _deployment(plan: DeploymentPlan, when: str) -> Iterator[Line]:
    """Yield the lines of one data centre.

    Args:
        plan: of it.
        when: it is changed, in words that follow a name.
    """
    yield Line.assemble((plan.datacenter, "bold"), f" (processes, {plan.kind}{when})")
    for step in plan.steps:
        match step:
            case DeployProcess():
                yield _head("+", "green", "deploy", step.name).aside(f"   {step.why}" if step.why else "")
                yield from _facts({name: one for name, one in step.process.facts.items() if name not in _NOT_SHOWN})
            case UpdateProcess():
                how = "replaced" if step.restarts else "goes on, and reads its files anew"
                yield _head("~", "yellow", "update", step.name).aside(f"   {how}")
                yield from _facts({one.fact: fact_change(one) for one in step.changes})
            case StopProcess():
                yield _head("-", "red", "stop", step.name).aside(f"   {step.why}")
    for name in plan.kept:
        yield _head("=", "dim", "runs", name)
    for notice in plan.notices:
        yield _head("!", "yellow", "note", notice)


def _facts(facts: dict[str, str]) -> Iterator[Line]:
    told = {name: one for name, one in facts.items() if one}
    width = max(map(len, told), default=0)
    for name, value in told.items():
        yield Line(f"{_DETAIL}{name:<{width}}  {shown(value, WIDEST)}", hang=len(_DETAIL) + 2)


def _created(topics: Sequence[DesiredTopic]) -> Iterator[Line]:
    """Yield the copies that are made, those with the same settings below each other, and what settings all get."""
    shared = shared_settings(topics)
    width = max((len(topic.name) for topic in topics), default=0)
    rows = []
    for topic in topics:
        facts = f"{counted(topic.partitions, 'partition')}, replication {topic.replication_factor}"
        settings = tuple(setting for setting in topic.settings if setting not in shared)
        rows.append(GroupRow(settings, f"{topic.name:<{width}}   {facts}, {topic.offsets} offsets"))
    for group in folded(rows):
        yield from (_head("+", "green", "topic", said) for said in group.names)
        yield from _settings_of(len(group.names), group.what)
    yield from _settings_of(len(topics), shared)


def _settings_of(topics: int, settings: Sequence[TopicSetting]) -> Iterator[Line]:
    if topics > 1 and settings:
        yield Line(f"    each of these {topics:,} topics also gets", style="dim")
    yield from _table([(setting.key, setting.value, SETTING_REASONS[setting.reason]) for setting in settings])


def _topics_changed(changes: Sequence[TopicChange]) -> Iterator[Line]:
    """Yield what changes of topics that are there; topics with the same changes are printed together."""
    rows = []
    for name, steps in groupby(sorted(changes, key=lambda step: step.name), key=lambda step: step.name):
        rows.append(GroupRow(tuple(row for step in steps for row in _change(step)), name))
    for group in folded(rows):
        yield from _together("~", "yellow", "topic", group.names)
        yield from _table(group.what)


def _change(step: TopicChange) -> Iterator[tuple[str, str, str]]:
    match step:
        case AddPartitions():
            yield "partitions", f"{step.found} → {step.topic.partitions}", "as at the source"
        case AlterConfig():
            for change in step.changes:
                yield change.key, f"{_value(change.old)} → {_value(change.new)}", CHANGE_REASONS[change.reason]
        case RecordOwnership():
            yield "ownership", "recorded", OWNERSHIP_REASONS[step.reason]


def _changes(changes: Sequence[Change]) -> Iterator[Line]:
    """Yield what changes against the declaration that is in force, of flows and of its other parts."""
    for group in folded(GroupRow((one.subject, one.fate, fate(one), one.fields), one.name) for one in changes):
        subject, does, said, fields = group.what
        if said:
            mark, style = ("+", "green") if does == "begins" else ("-", "red")
            for name in group.names:
                yield _head(mark, style, subject, f"{name} {said}")
        elif fields:
            yield from _together("~", "yellow", subject, group.names)
            yield from _table([(one.field, field_change(one), "") for one in fields])
    for change in changes:
        for what, copy in map(stopped, change.stops):
            yield _head("-", "red", change.subject, f"{change.name} {what}").aside(f"   {copy}")


def _acls(cluster: ClusterPlan) -> Iterator[Line]:
    """Yield new permissions and denials of principals; equal ones are printed together."""
    groups = access_groups(step for step in cluster.steps if isinstance(step, AclChange))
    made = new_topics(cluster.steps).get(cluster.alias, frozenset())
    whom = [", ".join(shown(one, WIDEST) for one in group.dims[1]) for group in groups]
    width = max((len(one) for one in whom if len(one) <= WIDEST), default=0)
    for group, principals in zip(groups, whom, strict=True):
        what = group.what
        mark, style = ("+", "green") if what.grants else ("-", "red")
        said = f"{principals:<{width}}   {', '.join(what.operations)} on"
        is_new = what.kind == "topic" and len(made) > 1 and made == set(group.names)
        if is_new:
            said += f" each of the {counted(len(made), 'topic')} that are new here"
        elif len(group.names) == 1:
            said += f" {what.kind} {group.names[0]}"
        else:
            said += f" {counted(len(group.names), what.kind)}"
        yield _head(mark, style, "acl", f"{said}{what.place}").aside(f"   {what.reason(group.dims[2])}")
        if len(group.names) > 1 and not is_new:
            yield from _names(group.names)


def _removals(steps: Sequence[Removal]) -> Iterator[Line]:
    """Yield what is taken away, and apart from it what the declaration would not have made."""
    width = max((len(step.name) for step in steps), default=0)
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


def _table(rows: Sequence[tuple[str, str, str]]) -> Iterator[Line]:
    """Yield rows in columns: name to the left, value to the right, reason."""
    rows = [(shown(name, WIDEST), shown(value, WIDEST), reason) for name, value, reason in rows]
    names = max((len(name) for name, _, _ in rows), default=0)
    values = max((len(value) for _, value, _ in rows), default=0)
    for name, value, reason in rows:
        line = Line(f"{_DETAIL}{name:<{names}}  {value:>{values}}", hang=len(_DETAIL) + 2)
        yield line.aside(f"   {reason}") if reason else line


def _flows(cluster: ClusterPlan) -> Iterator[Line]:
    """Yield each flow, and behind those that copy in the same way how they do."""
    rows = []
    for flow in cluster.flows:
        how = [("offsets", flow.offsets, flow.offsets_reason), ("fill", flow.fill, flow.fill_reason)]
        how += [("padding", *padding(flow))] if flow.padding.offsets else []
        named = "" if flow.name == f"{flow.source}-{flow.target}" else f"   ({flow.name})"
        facts = f"{counted(flow.tasks, 'task')}, {counted(flow.topics, 'topic')}{named}"
        rows.append(GroupRow((becomes(cluster, flow) != "", tuple(how)), f"{flow.source} → {flow.target}   {facts}"))
    for group in folded(rows):
        is_news, details = group.what
        for said in group.names:
            yield _head(*(("▶", "cyan") if is_news else ("=", "dim")), "flow", said)
        for name, value, why in details:
            line = Line(f"{_DETAIL}{name:<8} {value}", hang=len(_DETAIL) + 2)
            yield line.aside(f"   {why}") if why else line


def _not_started(topics: Sequence[NotStarted]) -> Iterator[Line]:
    for group in folded(GroupRow(one.why, f"{one.remote}   {one.source}'s {one.topic}") for one in topics):
        if len(group.names) == 1:
            yield _head("✗", "red", "skip", f"{group.names[0]}, {group.what}")
        else:
            yield _head("✗", "red", "skip", f"{counted(len(group.names), 'topic')}, {group.what}")
            yield from (Line(f"{_DETAIL}{name}", hang=len(_DETAIL) + 2) for name in group.names)


def _notices(mark: str, style: str, kind: str, notices: Sequence[Notice]) -> Iterator[Line]:
    """Yield notices; those with the same text are one, with all their subjects."""
    for group in notice_groups(("", one) for one in notices):
        if len(group.names) == 1:
            yield _head(mark, style, kind, f"{group.names[0]}   {group.what}")
        else:
            yield _head(mark, style, kind, f"{len(group.names):,} alike   {group.what}")
            yield from _names(group.names)


def _together(mark: str, style: str, kind: str, names: Sequence[str]) -> Iterator[Line]:
    """Yield the heading of some things: their name, or their number and names."""
    yield _head(mark, style, kind, names[0] if len(names) == 1 else counted(len(names), kind))
    if len(names) > 1:
        yield from _names(names)


def _names(names: Sequence[str]) -> Iterator[Line]:
    """Yield names in lines that are not long, also where nothing is wrapped."""
    told = [shown(name, WIDEST) for name in names]
    line = ""
    for number, name in enumerate(told):
        piece = name if number == len(told) - 1 else f"{name}, "
        if line and len(line) + len(piece) > _WIDE:
            yield Line(f"{_DETAIL}{line.rstrip()}", hang=len(_DETAIL))
            line = ""
        line += piece
    yield Line(f"{_DETAIL}{line}", hang=len(_DETAIL))


def _head(mark: str, style: str, kind: str, rest: str) -> Line:
    line = Line(" " * _MARK, hang=_HANG)
    line.append(mark, style).append(f" {kind:<6} {rest}")
    return line
