"""Status of running flows, summed up by flow and as lines of text; `status`, `replicate` and the demo print it.

Everything here comes from `TaskStatus` values; nothing is asked of a cluster. `status_json` writes the same as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import LastLook
from reconciler.model.recorded.declaration import DESTROYED, InForce
from reconciler.model.recorded.failed_flows import failed_flows, why_resting
from reconciler.model.recorded.failover import FailedOver
from reconciler.model.recorded.pauses import Pauses, PauseScope
from reconciler.model.tasks.latency import Latency, merged
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus, words
from reconciler.report.status.states import PARTITION_STYLES, STYLES, FlowState, state_of, unheard, waiting_for
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line
from reconciler.report.text.measures import bytes_per_second, count, milliseconds, seconds
from reconciler.report.text.words import counted

_AT_QUOTA = 0.75  # of it: what it holds back is let go in steps
_NOT_RUN: frozenset[FlowState] = frozenset({"not running", "stopped", "lost"})
# Titles of what `standing` returns.
STANDING = ("state", "position", "end", "lag", "behind", "p50", "p99")
_TITLES = ("remote", *STANDING, "copied", "retries", "filled", "shifted", "reason")


@dataclass(frozen=True)
class GroupsSummary:
    """How the consumer groups of a flow are looked after.

    Attributes:
        count: how many were there at the last look; None while that is not known.
        seconds: since the last run of the checkpoint service; None if there was none, or it cannot be read.
        late: whether that is longer than it should be, or there was no run while the flow ran that long.
    """

    count: int | None = None
    seconds: float | None = None
    late: bool = False


@dataclass(frozen=True)
class FlowSummary:
    """One flow, all its tasks together.

    Attributes:
        name: the flow's name.
        source: alias.
        target: alias.
        state: `degraded` when a partition is parked, a task is silent or none can be kept alive, `opening` when nothing
            is copied yet or a task has never reported, `waiting` when it has no partition that it may copy, `paused`
            when all are, `failed over` when it is and nothing of it runs, `lost` when all tasks fell silent without a
            last word.
        records_per_second: of all tasks.
        bytes_per_second: likewise.
        records: copied since its tasks' processes began.
        lag: offsets still to copy, or None while no position is known.
        unknown: of how many partitions it is not known: these are not in `lag`.
        lag_seconds: age of the oldest record still to copy, or None while none is known.
        latency: of what its tasks copied in the last half minute; None when that was nothing.
        parked: how many partitions are.
        paused: likewise.
        troubled: partitions with a reason not to run, and those that are paused while others are not.
        waiting: what it waits for, if it has no partitions.
        failing: why its process cannot keep its tasks alive, if it cannot.
        silent_seconds: since its last word.
        tasks: number of tasks that report.
        silent_tasks: how many fell silent without a last word.
        unheard_tasks: number of tasks of live runs that have not reported yet.
        partitions: all of them, with their status.
        in_force: which declaration is in force at the target; None if there is none, or it was not read.
        digests: of the declarations that live processes have, by run.
        is_failed_over: whether it is failed over, by its file or by a record at the target.
        failed_over: that record; None if there is none, or it was not read.
        groups: how its groups are looked after; None if it declares none, or it was not read.
        is_enabled: whether its file enables it.
        pauses: what is paused of it where nothing runs it, with the user that paused it and when.
        quota: the most that all its tasks together copy, in bytes per second; None for no limit.
    """

    name: str
    source: str
    target: str
    state: FlowState
    records_per_second: float
    bytes_per_second: float
    records: int
    lag: int | None
    unknown: int
    lag_seconds: float | None
    latency: Latency | None
    parked: int
    paused: int
    troubled: tuple[PartitionStatus, ...]
    waiting: str | None
    failing: str | None
    silent_seconds: float | None
    tasks: int
    silent_tasks: int
    unheard_tasks: int
    partitions: tuple[PartitionStatus, ...]
    in_force: InForce | None
    digests: Mapping[str, str]
    is_failed_over: bool = False
    failed_over: FailedOver | None = None
    groups: GroupsSummary | None = None
    is_enabled: bool = True
    pauses: tuple[tuple[PauseScope, str], ...] = ()
    quota: int | None = None

    @property
    def is_at_quota(self) -> bool:
        """Whether it copies as much as its quota allows, and there is more to copy."""
        return self.quota is not None and self.bytes_per_second > _AT_QUOTA * self.quota and bool(self.lag)


def summarise(
    flows: Iterable[Flow],
    statuses: Sequence[TaskStatus],
    now: float,
    in_force: Mapping[str, InForce] | None = None,
    last_looks: Mapping[str, LastLook | None] | None = None,
    failed_over: Mapping[str, Mapping[str, FailedOver]] | None = None,
) -> list[FlowSummary]:
    """Put the tasks' words together, flow by flow, in the order of `flows`.

    Args:
        flows: the flows to report.
        statuses: the newest word of each task; several runs of one flow are counted together.
        now: seconds since 1970.
        in_force: by target, which declaration is in force there.
        last_looks: by flow, when its groups were last copied, None where that cannot be read; None where it
            was not read.
        failed_over: by target, which flows are on record there as failed over.
    """
    here, records = in_force or {}, failed_over or {}
    found = []
    for flow in flows:
        one = _summary(flow, [s for s in statuses if s.flow == flow.name], now, here.get(flow.target))
        if last_looks is not None and flow.groups.include:
            one = replace(one, groups=_groups(flow, last_looks, _ran_for(flow, statuses, now), now))
        found.append(_at_rest(_resting(one, flow, records.get(flow.target, {})), flow))
    return found


def with_pauses(summaries: Iterable[FlowSummary], pauses: Mapping[str, Pauses]) -> list[FlowSummary]:
    """Add what is paused of flows that nothing runs; the partitions of the others show it.

    Args:
        summaries: of flows.
        pauses: by target.
    """
    return [
        replace(one, pauses=pauses[one.target].of(one.name)) if not one.tasks and one.target in pauses else one
        for one in summaries
    ]


def _at_rest(summary: FlowSummary, flow: Flow) -> FlowSummary:
    """Add to a summary whether the flow is enabled; where nothing runs it, that, or that its copies were destroyed."""
    one = replace(summary, is_enabled=flow.enabled)
    if one.tasks or one.failing or one.waiting or one.is_failed_over:
        return one
    if not flow.enabled:
        return replace(one, state="disabled")
    is_gone = one.in_force is not None and one.in_force.digest == DESTROYED
    return replace(one, state="destroyed") if is_gone else one


def _resting(summary: FlowSummary, flow: Flow, records: Mapping[str, FailedOver]) -> FlowSummary:
    """Add to a summary whether the flow is failed over; while its tasks still drain, their state is shown."""
    resting = failed_flows([flow], records)
    if flow.name not in resting:
        return summary
    state: FlowState = summary.state if summary.tasks or summary.failing else "failed over"
    return replace(summary, state=state, is_failed_over=True, failed_over=resting[flow.name])


def _ran_for(flow: Flow, statuses: Iterable[TaskStatus], now: float) -> float:
    """Return for how many seconds a flow's tasks have run; 0 where none does, or none reports it."""
    live = (word for word in statuses if word.flow == flow.name and not word.is_held and word.is_live(now))
    return max((now - word.since for word in live if word.since), default=0.0)


def _groups(flow: Flow, last_looks: Mapping[str, LastLook | None], ran_for: float, now: float) -> GroupsSummary:
    last = last_looks.get(flow.name)
    if last is None:
        # Unknown if it cannot be read.
        return GroupsSummary(late=flow.name not in last_looks and ran_for > flow.groups.longest_silence)
    silent = max(0.0, now - last.time)
    return GroupsSummary(last.groups, silent, silent > flow.groups.longest_silence)


def _summary(flow: Flow, said: Sequence[TaskStatus], now: float, in_force: InForce | None) -> FlowSummary:
    held = [word for word in said if word.is_held and word.is_live(now)]
    failing = next((word.failing for word in held if word.failing), None)
    tasks = [word for word in said if not word.is_held]
    partitions = tuple(partition for _, partition in words(tasks, now))
    lags = [partition.lag for partition in partitions if partition.lag is not None]
    live = [task for task in tasks if task.is_live(now)]
    state = state_of(held, tasks, partitions, now)
    # A report of its process is not one of a task.
    spoke = tasks if state == "lost" else [*held, *tasks]
    histogram = merged(task.latency for task in live)
    return FlowSummary(
        name=flow.name,
        source=flow.source,
        target=flow.target,
        state=state,
        records_per_second=sum(task.records_per_second for task in live),
        bytes_per_second=sum(task.bytes_per_second for task in live),
        records=sum(task.records for task in tasks),
        lag=sum(lags) if lags else None,
        unknown=len(partitions) - len(lags),
        lag_seconds=max((p.metrics.lag_seconds for p in partitions if p.metrics.lag_seconds is not None), default=None),
        latency=histogram.summary() if histogram else None,
        parked=sum(partition.state is PartitionState.PARKED for partition in partitions),
        paused=sum(partition.state is PartitionState.PAUSED for partition in partitions),
        troubled=_troubled(partitions, state),
        waiting=waiting_for(state, tasks if live else [*held, *tasks], partitions),
        failing=failing,
        silent_seconds=max(0.0, now - max(word.time for word in spoke)) if spoke else None,
        tasks=len(live),
        silent_tasks=sum(not task.stopped and not task.is_live(now) for task in tasks),
        unheard_tasks=unheard(tasks, now),
        partitions=partitions,
        in_force=in_force,
        digests={word.run: word.digest for word in (*live, *held) if word.digest and not word.starting},
        quota=flow.quota,
    )


def _troubled(partitions: Sequence[PartitionStatus], state: FlowState) -> tuple[PartitionStatus, ...]:
    if state == "stopped":
        # Its run has ended as it was asked to: nothing waits any more.
        partitions = [partition for partition in partitions if partition.state is not PartitionState.WAITING]
    # A flow that is paused as a whole has one line.
    names_paused = any(partition.state is not PartitionState.PAUSED for partition in partitions)
    return tuple(p for p in partitions if p.reason or (names_paused and p.state is PartitionState.PAUSED))


def status_lines(summaries: Sequence[FlowSummary], whole: bool = False, start: str = "") -> list[Line]:
    """Return one line for each flow, and one below it for each partition that does not run.

    Args:
        summaries: the flows.
        whole: list every partition, with its figures, instead.
        start: the command that runs the flows, shown where nothing does.
    """
    width = max((len(_route(summary)) for summary in summaries), default=0)
    lines: list[Line] = []
    for summary in summaries:
        line = _flow_line(summary, width)
        if start and summary.state in _NOT_RUN:
            line.append(f"   start it: {start}", style="dim")
        lines.append(line)
        lines += [_pause_line(scope, said) for scope, said in summary.pauses]
        if summary.failing:
            lines.append(Line(f"  failing: {summary.failing}", style="red"))
        if summary.is_failed_over and summary.state != "failed over":
            why = why_resting(summary.name, summary.failed_over)
            lines.append(Line(f"  {why}; its tasks are drained", style="yellow"))
        if not summary.is_enabled and summary.state != "disabled":
            lines.append(Line("  enabled: false in these files; `anabranch apply` ends it", style="yellow"))
        lines += _digest_lines(summary)
        if whole:
            rows = [_cells(partition) for partition in summary.partitions]
            lines += aligned(_TITLES, rows, right=_TITLES[2:-1], indent=2)
        else:
            lines += [_partition_line(partition) for partition in summary.troubled]
    return lines


def _route(summary: FlowSummary) -> str:
    return f"{summary.source} → {summary.target}"


def _flow_line(summary: FlowSummary, width: int) -> Line:
    line = Line(f"{_route(summary):<{width}}   ", style="bold")
    line.append(f"{summary.state:<9}", style=STYLES[summary.state])
    is_waited_for = summary.state == "lost" and summary.waiting is not None
    if summary.state in ("running", "degraded", "opening", "paused"):
        line.append(f"   {summary.records_per_second:,.0f} rec/s", style="none")
        line.append(f"   {bytes_per_second(summary.bytes_per_second)}", style="none")
        if summary.quota is not None and summary.lag:
            held = "   held at its quota of " if summary.is_at_quota else "   quota "
            line.append(held + bytes_per_second(summary.quota), style="yellow")
        line.append(f"   {_lag(summary)}", style="none")
        line.append(f"   p99 {milliseconds(summary.latency.p99)}" if summary.latency else "", style="none")
        line.append(f"   parked {summary.parked}" if summary.parked else "", style="red")
        line.append(f"   paused {summary.paused}" if summary.paused else "", style="yellow")
        line.append(f"   silent tasks {summary.silent_tasks}" if summary.silent_tasks else "", style="red")
        line.append(f"   unheard tasks {summary.unheard_tasks}" if summary.unheard_tasks else "", style="yellow")
        line.append(*_groups_part(summary.groups))
    elif summary.state == "failed over":
        why = why_resting(summary.name, summary.failed_over)
        line.append(f"   {why.removeprefix('failed over').lstrip(', ')}", style="none")
    elif summary.state == "waiting":
        line.append(f"   {summary.waiting}", style="none")
    elif summary.state == "disabled":
        line.append("   enabled: false", style="none")
    elif summary.state == "destroyed":
        line.append(f"   {summary.in_force}; `anabranch apply` makes the copies anew", style="none")
    elif summary.silent_seconds is not None:
        line.append(f"   last report {seconds(summary.silent_seconds)} ago", style="none")
        line.append(f"; its process waits for {summary.waiting}" if is_waited_for else "", style="none")
    return line


def flow_words(summary: FlowSummary) -> str:
    """Return the line of a flow after its name, as plain text."""
    return " ".join(_flow_line(summary, 0).plain.removeprefix(Line(_route(summary)).plain).split())


def _groups_part(groups: GroupsSummary | None) -> tuple[str, str]:
    """Return how groups are looked after, and the style of that."""
    if groups is None:
        return "", "none"
    if groups.seconds is None:
        return "   groups: no look known", "red" if groups.late else "yellow"
    count = "" if groups.count is None else f" {groups.count:,}" if groups.count else " 0, none matches groups.include"
    return f"   groups{count}, looked at {seconds(groups.seconds)} ago", "red" if groups.late else "none"


def _digest_lines(summary: FlowSummary) -> Iterator[Line]:
    """Yield a line for each run whose declaration is not the one in force."""
    for run, digest in summary.digests.items():
        if summary.in_force is not None and digest != summary.in_force.digest:
            yield Line(f"  run {run} has digest {digest}; {summary.in_force}", style="yellow")


def _lag(summary: FlowSummary) -> str:
    if summary.lag is None:
        return "lag unknown"
    age = "" if summary.lag_seconds is None else f", {seconds(summary.lag_seconds)}"
    unknown = f", of {counted(summary.unknown, 'partition')} unknown" if summary.unknown else ""
    return f"lag {counted(summary.lag, 'record')}{age}{unknown}"


def _pause_line(scope: PauseScope, said: str) -> Line:
    what = "all partitions" if scope.topic is None else str(scope)
    line = Line(f"  {what}  ", style="none").append("paused", style=PARTITION_STYLES[PartitionState.PAUSED])
    return line.append(f"  {said}" if said else "", style="none")


def _partition_line(partition: PartitionStatus) -> Line:
    line = Line(f"  {partition.remote}/{partition.partition}  ", style="none")
    line.append(f"{partition.state:<8}", style=PARTITION_STYLES[partition.state])
    line.append(f"  {partition.reason}" if partition.reason else "", style="none")
    return line


def standing(partition: PartitionStatus) -> list[str | Line]:
    """Return the cells under `STANDING`: where a partition stands and how well it does."""
    latency = partition.metrics.latency
    return [
        Line(partition.state.value, style=PARTITION_STYLES[partition.state]),
        count(partition.position),
        count(partition.end),
        count(partition.lag),
        seconds(partition.metrics.lag_seconds),
        milliseconds(latency.p50 if latency else None),
        milliseconds(latency.p99 if latency else None),
    ]


def _cells(partition: PartitionStatus) -> list[str | Line]:
    metrics = partition.metrics
    return [
        f"{partition.remote}/{partition.partition}",
        *standing(partition),
        f"{metrics.records:,}",
        f"{metrics.retries:,}" if metrics.retries else "",
        f"{metrics.fills:,}" if metrics.fills else "",
        f"{metrics.shifted:,}" if metrics.shifted else "",
        str(partition.reason or ""),
    ]
