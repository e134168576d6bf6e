"""A plan as Markdown, made to be read in a pull request: the summary first, settings folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.changes import Change
from reconciler.model.removals import DeleteTopic, ForgetTopic
from reconciler.model.steps import (
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Plan,
    PlannedFlow,
    RevokeAcl,
    Step,
)
from reconciler.report.markdown import code, plain
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
    stopped,
    summary,
)


def plan_markdown(plan: Plan) -> str:
    """Return the plan as GitHub-flavoured Markdown that ends with a newline."""
    lines = [f"### {plain(plan.topology)}: {plain(summary(plan))}"]
    for cluster in plan.clusters:
        lines += ["", *_cluster(cluster, place(plan, cluster))]
    if plan.notices:
        lines += ["", *(f"- ⚠ {code(notice.subject)}: {plain(notice.message)}" for notice in plan.notices)]
    return "\n".join(lines) + "\n"


def _cluster(cluster: ClusterPlan, where: str) -> Iterator[str]:
    yield f"#### {plain(cluster.alias)} ({plain(where)})"
    yield ""
    if cluster.steps:
        yield "| | topic | what | why |"
        yield "|---|---|---|---|"
        for step in cluster.steps:
            yield from _rows(step)
    elif not cluster.changes:
        yield "No changes."
    created = [step for step in cluster.steps if isinstance(step, CreateTopic)]
    if created:
        yield from ["", *_settings(created)]
    notes = [
        *(line for change in cluster.changes for line in _changes(change)),
        *(_flow(flow) for flow in cluster.flows),
        *(
            f"- ✗ {code(topic.remote)}, {plain(topic.source)}'s {code(topic.topic)}: {plain(topic.why)}"
            for topic in cluster.not_started
        ),
        *(f"- left alone: {code(notice.subject)}, {plain(notice.message)}" for notice in cluster.left_alone),
        *(f"- ⚠ {code(notice.subject)}: {plain(notice.message)}" for notice in cluster.warnings),
        *([f"- declaration: {plain(in_force(cluster.declared))}"] if cluster.declared else []),
    ]
    if notes:
        yield from ["", *notes]


def _changes(change: Change) -> Iterator[str]:
    name = f"{change.subject} {code(change.name)}"
    if said := fate(change):
        yield f"- {'+' if change.fate == 'begins' else '**-**'} {name} {plain(said)}"
    elif change.fields:
        told = "; ".join(f"{code(one.field)} {code(field_change(one))}" for one in change.fields)
        yield f"- ~ {name}: {told}"
    for what, copy in map(stopped, change.stops):
        yield f"- **-** {name} {plain(what)}: {plain(copy)}"


def _flow(flow: PlannedFlow) -> str:
    what = [f"{counted(flow.tasks, 'task')}, {counted(flow.topics, 'topic')}"]
    what.append(f"{flow.offsets} offsets ({flow.offsets_reason})")
    what.append(f"fill: {flow.fill} ({flow.fill_reason})")
    if flow.padding.offsets:
        what.append("padding: {} ({})".format(*padding(flow)))
    return f"- flow {code(f'{flow.source} → {flow.target}')}: {plain(', '.join(what))}"


def _rows(step: Step) -> Iterator[str]:
    name = code(step.name)
    match step:
        case CreateInternalTopic():
            yield f"| + | {name} | internal topic | our own state |"
        case GrantAcl() | RevokeAcl():
            mark = "+" if isinstance(step, GrantAcl) else "-"
            one, why = step.binding, acl_reason(step)
            yield f"| {mark} | {code(one.pattern.name)} | {code(one.principal)}: {plain(one.what)} | {plain(why)} |"
        case CreateTopic(topic):
            facts = f"{counted(topic.partitions, 'partition')}, replication {topic.replication_factor}"
            yield f"| + | {name} | {facts}, {topic.offsets} offsets | copy of {code(topic.source_topic)} |"
        case AddPartitions():
            yield f"| ~ | {name} | partitions {step.found} → {step.topic.partitions} | as at the source |"
        case AlterConfig():
            for change in step.changes:
                old, new = (code(value) if value is not None else "(default)" for value in (change.old, change.new))
                yield f"| ~ | {name} | {code(change.key)} {old} → {new} | {CHANGE_REASONS[change.reason]} |"
        case DeleteTopic():
            what = f"**deleted**, with all records; copy of {plain(step.source)}'s {code(step.source_topic)}"
            why = f"**{IN_DOUBT}**: {plain(step.doubt)}; " if step.doubt else ""
            yield f"| - | {name} | {what} | {why}{REMOVAL_REASONS[step.reason]} |"
        case ForgetTopic():
            yield f"| ~ | {name} | ownership forgotten | it is not there any more |"
        case _:
            yield f"| ~ | {name} | ownership recorded | {OWNERSHIP_REASONS[step.reason]} |"


def _settings(created: Sequence[CreateTopic]) -> Iterator[str]:
    yield f"<details><summary>Settings of {counted(len(created), 'new topic')}</summary>"
    yield ""
    yield "| topic | setting | value | why |"
    yield "|---|---|---|---|"
    for step in created:
        for setting in step.topic.settings:
            why = SETTING_REASONS[setting.reason]
            yield f"| {code(step.name)} | {code(setting.key)} | {code(setting.value)} | {why} |"
    yield ""
    yield "</details>"
