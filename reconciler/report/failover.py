"""Plans and outcomes of failover and failback, as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from reconciler.model.base.errors import Problem
from reconciler.model.planning.steps import AclChange, GrantAcl, Plan
from reconciler.model.recorded.failed_flows import since
from reconciler.model.recorded.failover import (
    EVERY,
    Carried,
    Crossing,
    FailbackPlan,
    FailoverPlan,
    Returning,
    WithoutPlace,
)
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line
from reconciler.report.text.measures import UNKNOWN
from reconciler.report.text.words import counted

_CAPITAL = re.compile(r"_([a-z])")
_PHASES = {
    "ending": "a failover has begun: the flow is stopping, and no offsets were committed yet",
    "over": "is failed over",
    "returning": "a failback has begun: what came to the target is copied back",
}


def failover_lines(plan: FailoverPlan) -> Iterator[Line]:
    """Yield what a failover would do."""
    yield Line(
        f"failover of flow {plan.flow}: consumers and producers move from {plan.source} to {plan.target}", style="bold"
    )
    if plan.state is not None:
        yield Line(f"  begun by {plan.state.by}: {_PHASES[plan.state.phase]}; the remaining steps are done", "dim")
    yield Line("")
    yield from _crossings(plan)
    yield Line("")
    yield from groups_lines(plan.groups, plan.source, plan.target)
    yield from _without_lines(plan.without)
    for notice in plan.notices:
        yield Line(f"  ! {notice}", style="yellow")


def _without_lines(without: Iterable[WithoutPlace]) -> Iterator[Line]:
    """Yield the groups that get no position."""
    for one in without:
        why = one.why if one.group == EVERY else f"group {one.group}: {one.why}"
        yield Line(f"  ! {why}", style="red")


def _crossings(plan: FailoverPlan) -> Iterator[Line]:
    by_topic: dict[str, list[Crossing]] = {}
    for one in plan.crossings:
        by_topic.setdefault(one.topic, []).append(one)
    rows = [
        [topic, some[0].remote, str(len(some)), some[0].mode, _sum(one.left for one in some)]
        for topic, some in sorted(by_topic.items())
    ]
    titles = ("topic", "copy", "partitions", "offsets", "records not copied")
    yield from aligned(titles, rows, right=("partitions", "records not copied"), indent=2)
    for one in plan.crossings:
        if one.held:
            more = f"{counted(one.held, 'record')} of {one.topic}/{one.partition}"
            stands = "stands" if one.held == 1 else "stand"
            yield Line(f"  ! {more} {stands} behind {one.held_by}: they are not copied before it ends", style="red")
    if plan.left:
        behind = counted(plan.left, "record")
        left = f"{behind} of {plan.source} would be left behind: consumers at {plan.target} do not get them"
        yield Line(f"  {left}", style="red")


def failback_lines(plan: FailbackPlan) -> Iterator[Line]:
    """Yield what a failback would do."""
    yield Line(
        f"failback of flow {plan.flow}: consumers and producers move from {plan.target} back to {plan.source}",
        style="bold",
    )
    begun = "" if plan.state.phase == "over" else f"; {_PHASES[plan.state.phase]}"
    yield Line(f"  failed over {since(plan.state)}{begun}", "dim")
    if plan.state.phase == "ending":
        yield Line(f"  the failover is cancelled: consumers and producers stay at {plan.source}, and the flow goes on")
        return
    yield Line("")
    rows = [
        [one.remote, f"{one.new:,}", one.topic, f"{one.diverged:,}", _becomes(plan, one)]
        for one in plan.topics
        if one.is_copied or one.diverged
    ]
    titles = ("copy", "new records", "original", "never copied", "")
    found = aligned(titles, rows, right=("new records", "never copied"), indent=2)
    nothing = "the copies have no new records, and the originals have none that were not copied"
    yield from found or [Line(f"  {nothing if plan.topics else 'no original exists to copy back into'}")]
    yield Line("")
    yield from groups_lines(plan.groups, plan.target, plan.source)
    yield from _without_lines(plan.without)
    for notice in plan.notices:
        yield Line(f"  ! {notice}", style="yellow")


def _becomes(plan: FailbackPlan, one: Returning) -> str | Line:
    if plan.cuts[one.topic].anew == "made":
        return f"{one.topic} was made again: its whole copy is copied back"
    if one.is_diverged and not one.is_rebuilt:
        return Line(f"diverged: refused without --rebuild {one.topic}", style="red")
    if one.is_rebuilt:
        away = f"{counted(one.dropped, 'record')} of {plan.source} exported and deleted"
        return Line(f"{away}; then made again from its whole copy", style="red")
    if one.is_copied:
        return "copied back"
    return f"copied when the flow goes on, as {one.remote} has no new records"


def groups_lines(groups: Sequence[Carried], here: str, there: str) -> Iterator[Line]:
    """Yield the position of each group on the other side, and which groups go back."""
    rows = [
        [
            one.group,
            f"{one.topic}/{one.partition}",
            f"{one.offset:,}",
            UNKNOWN if one.lag is None else f"{one.lag:,}",
            f"{one.to_topic}/{one.partition}",
            UNKNOWN if one.before is None else f"{one.before:,}",
            UNKNOWN if one.to_offset is None else f"{one.to_offset:,}",
            one.why or ("as it is" if not one.moves and one.to_offset is not None else ""),
        ]
        for one in groups
    ]
    titles = ("group", f"at {here}", "offset", "lag", f"at {there}", "now", "goes on at", "")
    found = aligned(titles, rows, right=("offset", "lag", "now", "goes on at"), indent=2)
    yield from found or [Line("  no group has a position to move")]
    for one in groups:
        if one.back:
            goes = f"group {one.group} goes back by {one.back:,} in {one.to_topic}/{one.partition}"
            stands = f"its offset at {there} is {one.before:,}, and it reads again from {one.to_offset:,} on"
            yield Line(f"  ! {goes}: {stands}; --only-forward keeps it", style="yellow")


def further_lines(left: Iterable[Carried], there: str) -> Iterator[Line]:
    """Yield the positions that were left unchanged on the other side, as their groups are further on there."""
    for one in left:
        place = f"group {one.group}: {one.to_topic}/{one.partition} stays at {one.before:,} at {there}"
        yield Line(f"{place}, it would go on at {one.to_offset:,}", style="yellow")


def _sum(counts: Iterable[int | None]) -> str:
    known = list(counts)
    return UNKNOWN if any(one is None for one in known) else f"{sum(one or 0 for one in known):,}"


def failover_json(plan: FailoverPlan) -> dict[str, Any]:
    """Return a failover's plan as JSON types."""
    return {
        "flow": plan.flow,
        "source": plan.source,
        "target": plan.target,
        "phase": plan.state.phase if plan.state else None,
        "sourceLost": plan.is_source_lost,
        "recordsNotCopied": plan.waiting,
        "recordsHeldBack": plan.held,
        "partitions": [_json(one) for one in plan.crossings],
        "groups": [_json(one) for one in plan.groups],
        "withoutPlace": [{"group": one.group, "why": one.why} for one in plan.without],
        "notices": list(plan.notices),
    }


def failback_json(plan: FailbackPlan) -> dict[str, Any]:
    """Return a failback's plan as JSON types."""
    return {
        "flow": plan.flow,
        "source": plan.source,
        "target": plan.target,
        "phase": plan.state.phase,
        "topics": [_json(one) for one in plan.topics],
        "groups": [_json(one) for one in plan.groups],
        "withoutPlace": [{"group": one.group, "why": one.why} for one in plan.without],
        "notices": list(plan.notices),
    }


def further_json(left: Iterable[Carried]) -> dict[str, Any]:
    """Return the positions that were left unchanged, as JSON types."""
    return {"further": [_json(one) for one in left]}


def _json(one: Crossing | Carried | Returning) -> dict[str, Any]:
    """Return a value as JSON types, with names in camel case."""
    return {
        _CAPITAL.sub(lambda found: found[1].upper(), name): value
        for name, value in asdict(one).items()
        if name != "note"
    }


def acls_lines(plan: Plan) -> Iterator[Line]:
    """Yield which ACLs of the copies change."""
    notices = [notice for cluster in plan.clusters for notice in cluster.warnings]
    steps = [step for step in plan.steps if isinstance(step, AclChange)]
    if steps:
        yield Line("")
    for step in steps:
        mark, style = ("+", "green") if isinstance(step, GrantAcl) else ("-", "red")
        yield Line.assemble((f"  {mark} acl  ", style), f"{step.binding.who}   {step.binding.what}")
    for notice in notices:
        yield Line(f"  ! {notice.subject}: {notice.message}", style="yellow")


def _acls_json(plan: Plan) -> dict[str, Any]:
    """Return which ACLs of the copies change, as JSON types."""
    steps = [step for step in plan.steps if isinstance(step, AclChange)]
    return {
        "granted": [_acl(step) for step in steps if isinstance(step, GrantAcl)],
        "revoked": [_acl(step) for step in steps if not isinstance(step, GrantAcl)],
        "notices": [f"{one.subject}: {one.message}" for cluster in plan.clusters for one in cluster.warnings],
    }


def _acl(step: AclChange) -> dict[str, str]:
    one = step.binding
    return {"principal": one.principal, "permission": one.permission, "what": one.what}


def outcome_json(
    plan: dict[str, Any], acls: Plan, committed: int | None, problems: Iterable[Problem]
) -> dict[str, Any]:
    """Return the outcome of a failover or a failback as JSON types.

    Args:
        plan: what `failover_json` or `failback_json` returned.
        acls: which ACLs change with it.
        committed: the number of committed positions; None with `--dry-run`.
        problems: what went wrong.
    """
    return {
        "dryRun": committed is None,
        "plan": {**plan, "acls": _acls_json(acls)},
        "committed": committed,
        "problems": [
            {"code": one.code, "where": one.where, "message": one.message, "remedy": one.remedy} for one in problems
        ],
    }
