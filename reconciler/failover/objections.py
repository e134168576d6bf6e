"""What stands against a failover or a failback, as its record or its plan alone tells it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.cluster import Cluster
from reconciler.model.errors import Problem
from reconciler.model.failover import FailbackPlan, Returning


def against_wishes(plan: FailbackPlan, rebuild: Collection[str]) -> Iterator[Problem]:
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


def left_out_in_vain(plan: FailbackPlan, named: Collection[str], there: Collection[str]) -> Iterator[Problem]:
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
