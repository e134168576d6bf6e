"""What stands against a failover or a failback, as its record or its plan alone tells it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from shlex import quote

from reconciler.failover.logs import remaining
from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.failover import EVERY, Allowance, Crossing, FailbackPlan, Returning, WithoutPlace, total

_MOST_NAMED = 10
_MOST_WHY = 3


def bad_rebuilds(plan: FailbackPlan, rebuild: Collection[str]) -> Iterator[Problem]:
    """Yield what is wrong with the originals that are to be made anew (AB704).

    Args:
        plan: as it was looked at.
        rebuild: their names, as somebody gave them.
    """
    known = {one.topic: one for one in plan.topics}
    for name in sorted(rebuild):
        where = f"flow {plan.flow}, topic {name}"
        if name not in known:
            message = f"it is none of its originals: {', '.join(sorted(known))}"
            yield Problem("AB704", where, message, "correct --rebuild")
        elif not (known[name].is_diverged or plan.cuts[name].anew or plan.cuts[name].is_handed):
            # Who wrote to one into which is copied back leaves no other way to end it.
            message = "it has not diverged: there is nothing to rebuild"
            yield Problem("AB704", where, message, "leave it out of --rebuild")


def bad_leave_outs(plan: FailbackPlan, named: Collection[str], there: Collection[str]) -> Iterator[Problem]:
    """Yield what is wrong with the originals that are to be left out (AB704).

    Args:
        plan: as it was looked at.
        named: their names, as somebody gave them.
        there: topics of the cluster that everybody returns to.
    """
    for name in sorted(named):
        where = f"flow {plan.flow}, topic {name}"
        if name not in plan.state.cuts:
            message = f"it is none of its originals: {', '.join(sorted(plan.state.cuts))}"
            yield Problem("AB704", where, message, "correct --leave-out")
        elif name in there:
            yield Problem("AB704", where, f"it is there at {plan.source}", "take it out of --leave-out")


def diverged(plan: FailbackPlan, cluster: str) -> Iterator[Problem]:
    """Yield the originals that have diverged and that nobody asked to be made anew (AB705).

    Args:
        plan: as it was looked at.
        cluster: how messages name the cluster that everybody returns to.
    """
    for one in plan.topics:
        if one.is_diverged and not one.is_rebuilt:
            remedy = f"--rebuild {one.topic} makes it again from its copy, after its own records are exported"
            if not one.diverged and one.mode != "translated":
                remedy = f"--rebuild {one.topic} makes it again from its copy: no record is lost, as all were copied"
            yield Problem("AB705", f"{cluster}, topic {one.topic}", _parted(one), remedy)


def _parted(one: Returning) -> str:
    """Say why an original and its copy cannot become one without the original being made anew."""
    came = f"its copy {one.remote} has {one.new:,} new {'ones' if one.diverged else 'records'}"
    if not one.new:
        came = f"beyond the cut, its copy {one.remote} has transaction markers or deleted records"
    if one.diverged:
        return f"it has {one.diverged:,} records that were never copied, and {came}: the two have diverged"
    if one.mode == "translated":
        return f"what it holds is not what was copied, and {came}: the two have diverged"
    stands = "beyond its copied records it has only transaction markers or deleted records"
    return f"{stands}, and {came}: these would get offsets that are taken"


def is_returning(flow: str, cluster: Cluster) -> Problem:
    """Return the problem that a flow cannot be failed over as it is being failed back (AB701).

    Args:
        flow: its name.
        cluster: its target.
    """
    message = "it is being failed back: consumers and producers are moving to the source"
    remedy = "finish that first: run `anabranch failback`; if the source is lost again, --source-lost aborts it"
    return Problem("AB701", f"{cluster.where}, flow {flow}", message, remedy)


def left_behind(
    found: Sequence[Crossing], where: str, source: str, allowed: Allowance, *, ended: bool = False
) -> list[Problem]:
    """Return why records may not be left behind (AB729, AB731); nothing where so many may be.

    Args:
        found: how far each partition was copied.
        where: how messages name the flow.
        source: alias of the side that is left.
        allowed: what may be left.
        ended: whether the flow has ended already.
    """
    count = total(one.left for one in found)
    is_known = count is not None
    if is_known and allowed.records is None and not ended:
        # Who says that the number is unknown has not seen it.
        allowed = replace(allowed, records=0)
    if allowed.covers(count):
        return []
    then = (
        "; the flow has ended, and no offsets were committed: `anabranch failback` cancels the failover"
        if ended
        else ""
    )
    if count is None:
        message = f"how many records of {source} would be left behind is unknown"
        away = [f"{one.topic}/{one.partition}" for one in found if one.left is None and one.source_end is None]
        named = f" ({', '.join(away[:_MOST_NAMED])}{_more(away)})" if source and away else ""
        problem = Problem("AB729", where, f"{message}{named}{then}", "`--leave-behind unknown` goes on without them")
    else:
        are = "record" if count == 1 else "records"
        said = f"{count:,} {are} of {source} would be left behind: consumers at the target do not get them"
        limit = f", more than the {allowed.records:,} that may be left" if allowed.records else ""
        remedy = f"`--leave-behind {count}` leaves them; `--until-caught-up` waits until they are copied"
        problem = Problem("AB729", where, f"{said}{limit}{then}", remedy)
    return [problem, *_held(found, where)]


def _held(found: Iterable[Crossing], where: str) -> Iterator[Problem]:
    """Yield what waits for the end of a transaction: no waiting for the flow copies that (AB731)."""
    held = [one for one in found if one.held]
    for one in held[:_MOST_NAMED]:
        message = f"{one.held:,} of its records stand behind {one.held_by}: they are copied when that has ended"
        remedy = "end its producer, or wait until it times out (transaction.timeout.ms); `--leave-behind` counts them"
        yield Problem("AB731", f"{where}, topic {one.topic}, partition {one.partition}", message, remedy)
    if more := held[_MOST_NAMED:]:
        count = sum(one.held for one in more)
        yield Problem(
            "AB731",
            where,
            f"{count:,} records of {len(more):,} more partitions wait for transactions too",
            "see the plan",
        )


def without_place(found: Iterable[WithoutPlace], where: str, there: str, allowed: Allowance) -> Iterator[Problem]:
    """Yield the groups that would be without their place and were not named (AB730).

    Args:
        found: groups without a place.
        where: how messages name the flow.
        there: alias of the side that they go to.
        allowed: what may be left.
    """
    reasons: dict[str, list[str]] = {}
    for one in found:
        if not allowed.takes(one.group):
            reasons.setdefault(one.group, []).append(one.why)
    for group, why in sorted(reasons.items()):
        more = f", and {len(why) - _MOST_WHY:,} more such positions" if len(why) > _MOST_WHY else ""
        message = f"it would have no position at {there}: {'; '.join(why[:_MOST_WHY])}{more}"
        if group == EVERY:
            message = "; ".join(why)
        remedy = f"`--without-group {quote(group)}` goes on without it; positions that can be translated are committed"
        yield Problem("AB730", f"{where}, group {group}", message, remedy)


def not_caught_up(left: Collection[Crossing], where: str, when: str, *, ended: bool) -> Problem:
    """Return the problem that not everything is copied (AB707).

    Args:
        left: what is not.
        where: how messages name the flow.
        when: after how long, in words that stand in front.
        ended: whether the flow has ended already.
    """
    then = "no offsets were committed" if ended else "nothing was changed"
    count = total(one.left for one in left)
    leaves = f"`--leave-behind {'unknown' if count is None else count}` leaves that"
    if ended:
        back = "`anabranch failback` cancels or reverts the failover"
        remedy = f"run it again without --until-caught-up: {leaves} behind; {back}"
    else:
        remedy = f"stop the producers at the source, and make sure that `replicate` runs; {leaves} behind"
    return Problem("AB707", where, f"{when} {remaining.named(left)}: {then}", remedy)


def still_copied(holders: Sequence[str], where: str, patience: float) -> Problem:
    """Return the problem that a flow does not end (AB702).

    Args:
        holders: what copies it still.
        where: how messages name the flow.
        patience: for how many seconds it was waited for.
    """
    runs = ", ".join(holders)
    message = f"it is still copied by {runs} {patience:g} s after it was stopped: no offsets were committed"
    remedy = "stop that `replicate` (older releases do not react to a failover), and run failover again"
    return Problem("AB702", where, message, remedy)


def unsettled(left: Sequence[str], where: str, patience: float) -> Problem:
    """Return the problem that it is not settled where copies end (AB718); the arguments are those of `still_copied`."""
    named = "; ".join(left[:_MOST_NAMED])
    message = (
        f"the ends of its copies are not final after {patience:g} s: {named}{_more(left)}: no offsets were committed"
    )
    remedy = "wait until brokers are up and transactions have timed out, and run failover again"
    return Problem("AB718", where, message, remedy)


def _more(named: Sequence[str]) -> str:
    return f", and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
