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
            message = "it has not diverged: it need not be made anew"
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
            remedy = f"--rebuild {one.topic} makes it anew as the copy is, after its records are exported"
            if not one.diverged and one.mode != "translated":
                remedy = f"--rebuild {one.topic} makes it anew as the copy is: no record that never crossed is dropped"
            yield Problem("AB705", f"{cluster}, topic {one.topic}", _parted(one), remedy)


def _parted(one: Returning) -> str:
    """Say why an original and its copy cannot become one without the original being made anew."""
    came = f"its copy {one.remote} has {one.new:,} new {'ones' if one.diverged else 'records'}"
    if not one.new:
        came = f"behind the cut of its copy {one.remote} are ends of transactions, or records that were deleted"
    if one.diverged:
        return f"it has {one.diverged:,} records that never crossed, and {came}: the two have diverged"
    if one.mode == "translated":
        return f"what it holds is not what was copied, and {came}: the two have diverged"
    stands = "ends of transactions, or records that were deleted, alone stand behind what was copied of it"
    return f"{stands}, and {came}: these would get offsets that are taken"


def is_returning(flow: str, cluster: Cluster) -> Problem:
    """Return the problem that a flow cannot be failed over as it is being failed back (AB701).

    Args:
        flow: its name.
        cluster: its target.
    """
    message = "it is being failed back: everybody is on the way to the source"
    remedy = "end that first: run `anabranch failback`; if the source is lost again, --source-lost breaks it off"
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
    then = "; the flow has ended, and nobody was moved: `anabranch failback` calls it off" if ended else ""
    if count is None:
        message = f"how many records of {source} would stay behind is not known"
        away = [f"{one.topic}/{one.partition}" for one in found if one.left is None and one.source_end is None]
        named = f" ({', '.join(away[:_MOST_NAMED])}{_more(away)})" if source and away else ""
        problem = Problem(
            "AB729", where, f"{message}{named}{then}", "`--leave-behind unknown` leaves them all the same"
        )
    else:
        are = "record" if count == 1 else "records"
        said = f"{count:,} {are} of {source} would stay behind: nobody sees them at the target"
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
            "AB731", where, f"{count:,} records of {len(more):,} partitions more wait likewise", "see the plan"
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
        more = f", and {len(why) - _MOST_WHY:,} more such places" if len(why) > _MOST_WHY else ""
        message = f"it would be without its place at {there}: {'; '.join(why[:_MOST_WHY])}{more}"
        if group == EVERY:
            message = "; ".join(why)
        remedy = f"`--without-group {quote(group)}` goes on without it; what of it can be told is committed"
        yield Problem("AB730", f"{where}, group {group}", message, remedy)


def not_caught_up(left: Collection[Crossing], where: str, when: str, *, ended: bool) -> Problem:
    """Return the problem that not everything is copied (AB707).

    Args:
        left: what is not.
        where: how messages name the flow.
        when: after how long, in words that stand in front.
        ended: whether the flow has ended already.
    """
    then = "nobody was moved" if ended else "nothing was changed"
    count = total(one.left for one in left)
    leaves = f"`--leave-behind {'unknown' if count is None else count}` leaves that"
    if ended:
        remedy = f"go without --until-caught-up: {leaves} behind; `anabranch failback` calls it off or takes back"
    else:
        remedy = f"stop who writes at the source, see that `replicate` runs; {leaves} behind"
    return Problem("AB707", where, f"{when} {remaining.named(left)}: {then}", remedy)


def still_copied(holders: Sequence[str], where: str, patience: float) -> Problem:
    """Return the problem that a flow does not end (AB702).

    Args:
        holders: what copies it still.
        where: how messages name the flow.
        patience: for how many seconds it was waited for.
    """
    runs = ", ".join(holders)
    message = f"it was asked to end, and is still copied by {runs} after {patience:g} s: nobody was moved"
    remedy = "end that `replicate` (releases before this one do not hear of it), and run failover again"
    return Problem("AB702", where, message, remedy)


def unsettled(left: Sequence[str], where: str, patience: float) -> Problem:
    """Return the problem that it is not settled where copies end (AB718); the arguments are those of `still_copied`."""
    named = "; ".join(left[:_MOST_NAMED])
    message = f"where its copies end is not settled after {patience:g} s: {named}{_more(left)}: nobody was moved"
    remedy = "wait until brokers are up and transactions have timed out, and run failover again"
    return Problem("AB718", where, message, remedy)


def _more(named: Sequence[str]) -> str:
    return f", and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
