"""Reasons to refuse a failover or a failback, from its record or its plan alone. Pure."""

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
    """Yield a problem (AB704) for each name that cannot be rebuilt.

    Args:
        plan: of the failback.
        rebuild: names of originals (`--rebuild`).
    """
    known = {one.topic: one for one in plan.topics}
    for name in sorted(rebuild):
        where = f"flow {plan.flow}, topic {name}"
        if name not in known:
            message = f"it is none of its originals: {', '.join(sorted(known))}"
            yield Problem("AB704", where, message, "correct --rebuild")
        elif not (known[name].is_diverged or plan.cuts[name].anew or plan.cuts[name].is_handed):
            # If an original was written to while records were copied back into it, only a rebuild ends that.
            message = "it has not diverged: there is nothing to rebuild"
            yield Problem("AB704", where, message, "leave it out of --rebuild")


def bad_leave_outs(plan: FailbackPlan, named: Collection[str], there: Collection[str]) -> Iterator[Problem]:
    """Yield a problem (AB704) for each name that cannot be left out.

    Args:
        plan: of the failback.
        named: names of originals (`--leave-out`).
        there: topics of the source.
    """
    for name in sorted(named):
        where = f"flow {plan.flow}, topic {name}"
        if name not in plan.state.cuts:
            message = f"it is none of its originals: {', '.join(sorted(plan.state.cuts))}"
            yield Problem("AB704", where, message, "correct --leave-out")
        elif name in there:
            yield Problem("AB704", where, f"it is there at {plan.source}", "take it out of --leave-out")


def diverged(plan: FailbackPlan, cluster: str) -> Iterator[Problem]:
    """Yield a problem (AB705) for each original that has diverged and is not to be rebuilt.

    Args:
        plan: of the failback.
        cluster: the source, as messages name it.
    """
    for one in plan.topics:
        if one.is_diverged and not one.is_rebuilt:
            remedy = f"--rebuild {one.topic} makes it again from its copy, after its own records are exported"
            if not one.diverged and one.mode != "translated":
                remedy = f"--rebuild {one.topic} makes it again from its copy: no record is lost, as all were copied"
            yield Problem("AB705", f"{cluster}, topic {one.topic}", _parted(one), remedy)


def _parted(one: Returning) -> str:
    """Return why the new records of a copy cannot be copied back without a rebuild."""
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
    """Return the problem (AB701) of a failover while the flow is being failed back.

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
    """Return why records may not be left behind (AB729, AB731); empty if that many are allowed.

    Args:
        found: how far each partition was copied.
        where: the flow, as messages name it.
        source: alias of the source.
        allowed: what may be left.
        ended: whether the flow has ended already.
    """
    count = total(one.left for one in found)
    is_known = count is not None
    if is_known and allowed.records is None and not ended:
        # `unknown` allows nothing where the number is known: the user has not read it.
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
    """Yield a problem (AB731) for records that wait for the end of a transaction, as the flow does not copy them."""
    held = [one for one in found if one.held]
    for one in held[:_MOST_NAMED]:
        stands = "stands" if one.held == 1 else "stand"
        message = f"{one.held:,} of its records {stands} behind {one.held_by}: they are copied when that has ended"
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
    """Yield a problem (AB730) for each group that would have no position and is not allowed to have none.

    Args:
        found: groups without a position, with reasons.
        where: the flow, as messages name it.
        there: alias of the side that groups move to.
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
    """Return the problem (AB707) that records are not copied.

    Args:
        left: the partitions that they are in.
        where: the flow, as messages name it.
        when: the beginning of the message, such as `after 60 s`.
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
    """Return the problem (AB702) that a flow does not end.

    Args:
        holders: the runs and group members that still copy it.
        where: the flow, as messages name it.
        patience: how long the command waited, in seconds.
    """
    runs = ", ".join(holders)
    message = f"it is still copied by {runs} {patience:g} s after it was stopped: no offsets were committed"
    remedy = "stop that `replicate` (older releases do not react to a failover), and run failover again"
    return Problem("AB702", where, message, remedy)


def unsettled(left: Sequence[str], where: str, patience: float) -> Problem:
    """Return the problem (AB718) that ends of copies are not final; arguments as in `still_copied`, `left` in words."""
    named = "; ".join(left[:_MOST_NAMED])
    message = (
        f"the ends of its copies are not final after {patience:g} s: {named}{_more(left)}: no offsets were committed"
    )
    remedy = "wait until brokers are up and transactions have timed out, and run failover again"
    return Problem("AB718", where, message, remedy)


def _more(named: Sequence[str]) -> str:
    return f", and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
