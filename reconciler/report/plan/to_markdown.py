"""A plan as Markdown, made to be read in a pull request: dangerous changes first, equal ones printed once.

Everything that is taken away, allowed or changed comes before what is new, whatever the cluster: where a comment is
full, names of new topics are what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from reconciler.model.planning.desired import TopicSetting
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic
from reconciler.model.planning.steps import (
    AclChange,
    AddPartitions,
    AlterConfig,
    ConfigChange,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Notice,
    Plan,
    PlannedFlow,
    RecordOwnership,
    Step,
)
from reconciler.report.plan.deployments import deployment_entries
from reconciler.report.plan.grouping import GroupRow, access_groups, becomes, folded, new_topics, notice_groups
from reconciler.report.text.markdown import code, plain
from reconciler.report.text.sections import FEW, Section, SectionEntry, within
from reconciler.report.text.words import (
    CHANGE_REASONS,
    IN_DOUBT,
    OWNERSHIP_REASONS,
    REMOVAL_REASONS,
    SETTING_REASONS,
    counted,
    field_change,
    in_force,
    padding,
    place,
    summary,
)

SHORTEST = 10_000
"""Characters; no plan is made shorter, so that there is room for what is left out of each section."""
_COMMAND = "anabranch plan FILE..."
# Around the sections, where something is left out.
_LOUD = 800
_LONGEST_COMMAND = 200

_Kind = TypeVar("_Kind", bound=Step)


def plan_markdown(plan: Plan, longest: int | None = None, command: str = _COMMAND) -> str:
    """Return the plan as GitHub-flavoured Markdown that ends with a newline.

    Args:
        plan: what would be done.
        longest: characters, at least `SHORTEST`; what has no room is left out from the end, and counted in its place.
        command: what shows the whole of it.
    """
    head = f"### {plain(plan.topology)}: {plain(summary(plan))}\n"
    sections = [section for printed in _KINDS if (section := printed(plan)).entries]
    if longest is None:
        return head + "".join(section.whole for section in sections)
    command = command if len(command) <= _LONGEST_COMMAND else _COMMAND
    fitted = list(within(sections, longest - len(head) - _LOUD, command))
    vital = [one.title for one, (_, is_whole) in zip(sections, fitted, strict=True) if one.is_vital and not is_whole]
    loud = ""
    if vital:
        loud = (
            f"\n⚠ **Not all that must be looked at has room here. Something is left out of: {', '.join(vital)}. "
            f"Read the whole plan before it is applied:** {code(command)}\n"
        )
    return head + loud + "".join(text for text, _ in fitted)


_Printer = Callable[[Plan], Section]


def _deleted(plan: Plan) -> Section:
    deleted = [
        _Copy(one.name, one.source_topic, one.cluster, one.flow, (one.source, one.reason, one.doubt))
        for one in _of(plan, DeleteTopic)
    ]
    entries = []
    for group in sorted(_by_flow(deleted), key=lambda group: bool(group.what[2])):
        source, reason, doubt = group.what
        doubted = f" **{IN_DOUBT}**: {plain(doubt)}; it takes `--target`;" if doubt else ""
        after = f"{group.which} **deleted, with all records**;{doubted} {REMOVAL_REASONS[reason]} (from {plain(source)}"
        entries.append(group.entry("-", f"{after}, by {group.flows})"))
    return Section(_title("Deleted", len(deleted), "topic"), tuple(entries))


def _flows_changed(plan: Plan) -> Section:
    changes = [(cluster.alias, change) for cluster in plan.clusters for change in cluster.changes]
    # A flow has one target, so its changes are grouped with those of others without it.
    places: dict[str, dict[str, None]] = {}
    for alias, change in changes:
        places.setdefault(change.name, {})[alias] = None
    told = [GroupRow((one.subject, one.fate, one.why, one.fields), one.name) for _, one in changes]
    entries = []
    for group in sorted(folded(told), key=lambda group: ["ends", "changes", "begins"].index(group.what[1])):
        subject, does, why, fields = group.what
        at = _at(tuple(dict.fromkeys(alias for name in group.names for alias in places[name])))
        mark = {"ends": "-", "changes": "~", "begins": "+"}[does]
        said = {"ends": f" **ends**: {plain(why)}", "changes": "", "begins": " begins"}[does]
        if fields:
            said += ": " + "; ".join(f"{code(one.field)} {code(field_change(one))}" for one in fields)
        if said:
            names = tuple(map(code, group.names))
            entries.append(SectionEntry(f"`{mark}` {at}: ", said, names, subject, f"{subject} "))
    stops = [
        GroupRow(change.name, f"{code(stop.remote)} ({stop.records:,})", (alias,))
        for alias, change in changes
        for stop in change.stops
    ]
    for stopping in folded(stops):
        after = f" by flow {code(stopping.what)}; in brackets the records that stay"
        at = f"`-` {_at(stopping.dims[0])}: **no longer followed**: "
        entries.insert(0, SectionEntry(at, after, stopping.names, "topic"))
    title = f"Flows: {plan.to_end:,} end, {sum(one.fate == 'changes' for _, one in changes):,} change"
    return Section(title, tuple(entries))


def _access(plan: Plan) -> Section:
    steps = [step for step in plan.steps if isinstance(step, AclChange)]
    made = new_topics(plan.steps)
    entries = []
    for group in access_groups(steps):
        what, (clusters, principals, flows) = group.what, group.dims
        whom = ", ".join(map(code, principals))
        before = f"`{'+' if what.grants else '-'}` {_at(clusters)}: {whom} {', '.join(what.operations)} on "
        after = f"{plain(what.place)}; {plain(what.reason(flows))}"
        new = made.get(clusters[0], frozenset())
        if what.kind == "topic" and len(clusters) == 1 and len(new) > 1 and new == set(group.names):
            entries.append(
                SectionEntry(f"{before}each of the **{counted(len(new), 'topic')}** that are new there{after}")
            )
        else:
            entries.append(SectionEntry(before, after, tuple(map(code, group.names)), what.kind, f"{what.kind} "))
    granted = sum(isinstance(step, GrantAcl) for step in steps)
    return Section(f"Access: {counted(granted, 'ACL')} granted, {len(steps) - granted:,} revoked", tuple(entries))


def _warned(plan: Plan) -> Section:
    rows = [
        GroupRow(one.reason, f"{code(one.remote)} ({plain(one.source)}'s {code(one.topic)})", (cluster.alias,))
        for cluster in plan.clusters
        for one in cluster.not_started
    ]
    entries = [
        SectionEntry(f"✗ {_at(group.dims[0])}: ", f": **not started**: {plain(group.what)}", group.names)
        for group in folded(rows)
    ]
    told = [(cluster.alias, notice) for cluster in plan.clusters for notice in cluster.warnings]
    told += [("elsewhere", notice) for notice in plan.notices]
    entries += _notices("⚠ ", told)
    return Section(_title("Worth knowing", len(rows) + len(told), "note"), tuple(entries))


def _grown(plan: Plan) -> Section:
    rows = [
        GroupRow((one.found, one.topic.partitions), code(one.name), (one.cluster,)) for one in _of(plan, AddPartitions)
    ]
    entries = [
        SectionEntry(
            f"{_at(group.dims[0])}: ", f": partitions {group.what[0]} → {group.what[1]}, as at the source", group.names
        )
        for group in folded(rows)
    ]
    return Section(_title("Partitions that grow", len(rows), "topic"), tuple(entries))


def _changed(plan: Plan) -> Section:
    rows = [GroupRow(one.changes, code(one.name), (one.cluster,)) for one in _of(plan, AlterConfig)]
    entries = [
        SectionEntry(f"{_at(group.dims[0])}: ", f": {'; '.join(map(_change, group.what))}", group.names)
        for group in folded(rows)
    ]
    return Section(_title("Settings that change", len(rows), "topic"), tuple(entries))


def _recorded(plan: Plan) -> Section:
    rows = [
        GroupRow(f"ownership recorded, {OWNERSHIP_REASONS[one.reason]}", code(one.name), (one.cluster,))
        for one in _of(plan, RecordOwnership)
    ]
    rows += [
        GroupRow("ownership forgotten, it is not there any more", code(one.name), (one.cluster,))
        for one in _of(plan, ForgetTopic)
    ]
    entries = [SectionEntry(f"{_at(group.dims[0])}: ", f": {group.what}", group.names) for group in folded(rows)]
    return Section(_title("Ownership", len(rows), "topic"), tuple(entries))


def _deployed(plan: Plan) -> Section:
    entries = [SectionEntry(said) for one in plan.deployments for said in deployment_entries(one)]
    return Section(_title("Processes", len(plan.deployment_steps), "change"), tuple(entries))


def _put_in_force(plan: Plan) -> Section:
    told = [(cluster.alias, cluster.declared) for cluster in plan.clusters if cluster.declared is not None]
    entries = [SectionEntry(f"{_at([alias])}: {plain(in_force(one))}") for alias, one in told if not one.is_in_force]
    return Section(_title("Put in force", len(entries), "cluster"), tuple(entries))


def _left(plan: Plan) -> Section:
    told = [(cluster.alias, notice) for cluster in plan.clusters for notice in cluster.left_alone]
    return Section(_title("Left alone", len(told), "note"), tuple(_notices("", told)))


def _targets(plan: Plan) -> Section:
    entries = []
    for cluster in plan.clusters:
        alone = Plan(plan.topology, plan.digest, (cluster,))
        what = summary(alone) if cluster.steps else "no changes"
        same = f"; {plain(in_force(cluster.declared))}" if cluster.declared and cluster.declared.is_in_force else ""
        entries.append(SectionEntry(f"{_at([cluster.alias])} ({plain(place(plan, cluster))}): {plain(what)}{same}"))
    return Section(_title("Targets", len(plan.clusters), "cluster"), tuple(entries), is_vital=False)


def _flows(plan: Plan) -> Section:
    rows = [
        GroupRow(_about(flow, becomes(cluster, flow)), _named(flow))
        for cluster in plan.clusters
        for flow in cluster.flows
    ]
    entries = [SectionEntry("", f": {group.what}", group.names, "flow", "flow ") for group in folded(rows)]
    return Section(_title("All flows", len(rows), "flow"), tuple(entries), is_vital=False)


def _new(plan: Plan) -> Section:
    topics = [step.topic for step in _of(plan, CreateTopic)]
    alike = frozenset[TopicSetting]()
    if len(topics) > 1:
        alike = frozenset.intersection(*(frozenset(topic.settings) for topic in topics))
    made = []
    for one in topics:
        facts = f"{counted(one.partitions, 'partition')}, replication {one.replication_factor}, {one.offsets} offsets"
        settings = tuple(setting for setting in one.settings if setting not in alike)
        made.append(_Copy(one.name, one.source_topic, one.cluster, one.flow, (facts, settings)))
    entries = []
    for group in _by_flow(made):
        facts, settings = group.what
        entries.append(group.entry("+", f"{group.which}, by {group.flows}: {facts}{''.join(map(_setting, settings))}"))
    if alike:
        said = "".join(_setting(setting) for setting in topics[0].settings if setting in alike)
        entries.insert(0, SectionEntry(f"each of the {len(topics):,} copies below also gets{said[1:]}"))
    own = folded(GroupRow("", code(one.name), (one.cluster,)) for one in _of(plan, CreateInternalTopic))
    entries += [SectionEntry(f"`+` {_at(one.dims[0])}: ", ", for our own state", one.names) for one in own]
    return Section(_title("New", len(topics), "topic"), tuple(entries), is_vital=False)


_KINDS: tuple[_Printer, ...] = (
    *(_deleted, _flows_changed, _access, _deployed, _warned, _grown, _changed, _recorded, _put_in_force, _left),
    *(_targets, _flows, _new),
)


def _of(plan: Plan, kind: type[_Kind]) -> list[_Kind]:
    return [step for step in plan.steps if isinstance(step, kind)]


def _title(what: str, number: int, noun: str) -> str:
    return f"{what}: {counted(number, noun)}"


def _at(clusters: Sequence[str]) -> str:
    return ", ".join(map(plain, clusters))


@dataclass(frozen=True)
class _Copy:
    """A copy that is made or deleted.

    Attributes:
        name: of it.
        original: its name.
        cluster: alias.
        flow: name.
        what: its text, beside its flow.
    """

    name: str
    original: str
    cluster: str
    flow: str
    what: Any

    @property
    def front(self) -> str | None:
        """What stands in front of the original's name in the copy's; None where that is otherwise."""
        return self.name.removesuffix(self.original) if self.name.endswith(self.original) else None


@dataclass(frozen=True)
class _Copies:
    """Copies of the same originals by one flow or several, with the same text.

    Attributes:
        copies: all of them.
        originals: their names.
    """

    copies: tuple[_Copy, ...]
    originals: tuple[str, ...]

    @property
    def what(self) -> Any:
        """The text of all."""
        return self.copies[0].what

    @property
    def flows(self) -> str:
        """The flows, as Markdown; of several each with what its copies are called."""
        fronts = dict.fromkeys((copy.flow, copy.front) for copy in self.copies)
        if len(fronts) == 1:
            return f"flow {code(self.copies[0].flow)}"
        told = [f"{code(flow)} as {code(f'{front}<topic>')}" if front else code(flow) for flow, front in fronts]
        return f"each of **{len(fronts)} flows** ({', '.join(told)})"

    @property
    def which(self) -> str:
        """How many copies they are, where the names are those of originals."""
        return "" if len(self.copies) == len(self.originals) else f", their **{len(self.copies):,} copies**"

    def entry(self, mark: str, after: str) -> SectionEntry:
        """Return the line about them."""
        at = f"`{mark}` {_at(tuple(dict.fromkeys(copy.cluster for copy in self.copies)))}: "
        if self.which:
            return SectionEntry(at, after, tuple(map(code, self.originals)), "original", "original ")
        return SectionEntry(at, after, tuple(_copy(copy.name, copy.original) for copy in self.copies))


def _by_flow(copies: Sequence[_Copy]) -> list[_Copies]:
    """Return copies by their text; flows that do the same with the same originals are one group.

    The names of their originals stand for the copies then, so copies whose names do not end so are not included.
    """
    places: dict[tuple[str, str, str | None], str] = {}
    found: dict[tuple[Any, str, str], list[_Copy]] = {}
    for copy in copies:
        place = places.setdefault((copy.cluster, copy.flow, copy.front), str(len(places)))
        what = (copy.what, place if copy.front is None else "")
        found.setdefault((what, copy.name if copy.front is None else copy.original, place), []).append(copy)
    told = []
    for group in folded(GroupRow(what, name, (place,)) for what, name, place in found):
        # Names of copies are clearer, as long as they are few.
        alone = [(place,) for place in group.dims[0]] if len(group.names) <= FEW else [group.dims[0]]
        for some in alone:
            copies_of = (copy for place in some for name in group.names for copy in found[group.what, name, place])
            told.append(_Copies(tuple(copies_of), group.names))
    return told


def _copy(name: str, original: str) -> str:
    """Return a copy's name, and its original's if the one does not follow from the other."""
    return code(name) if name.endswith(original) else f"{code(name)} (of {code(original)})"


def _change(change: ConfigChange) -> str:
    old, new = (code(value) if value is not None else "(default)" for value in (change.old, change.new))
    return f"{code(change.key)} {old} → {new}, {CHANGE_REASONS[change.reason]}"


def _setting(setting: TopicSetting) -> str:
    return f"; {code(setting.key)} {code(setting.value)} ({SETTING_REASONS[setting.reason]})"


def _notices(mark: str, told: Sequence[tuple[str, Notice]]) -> Iterator[SectionEntry]:
    for group in notice_groups(told):
        names = tuple(map(code, group.names))
        yield SectionEntry(f"{mark}{_at(group.dims[0])}: ", f": {plain(group.what)}", names, "subject")


def _named(flow: PlannedFlow) -> str:
    named = "" if flow.name == f"{flow.source}-{flow.target}" else f" ({code(flow.name)})"
    return f"{code(f'{flow.source} → {flow.target}')}{named}"


def _about(flow: PlannedFlow, does: str) -> str:
    what = [does, counted(flow.tasks, "task"), counted(flow.topics, "topic")]
    what.append(f"{flow.offsets} offsets ({flow.offsets_reason})")
    what.append(f"fill: {flow.fill} ({flow.fill_reason})")
    if flow.padding.offsets:
        what.append("padding: {} ({})".format(*padding(flow)))
    return plain(", ".join(filter(None, what)))
