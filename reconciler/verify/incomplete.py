"""Reports records of originals that were not compared, as their copies lack them: not copied yet, or held back.

A copy with half of its records missing may contain no difference, so a comparison used as a gate must report these.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus
from reconciler.state.status import StatusReader, newest_runs
from reconciler.verify.ends import Number
from reconciler.verify.slices import SliceBounds, SliceProgress

_LATER = "run it again when they are copied; --copied-only checks copied records alone"


def reasons(spec: FlowSpec) -> dict[Number, str]:
    """Return why partitions of a flow are not being copied, from the last status of its tasks; empty if unknown.

    Args:
        spec: the flow.
    """
    reader = StatusReader(spec.target, spec.topology)
    try:
        words = [word for word in reader.current() if word.flow == spec.flow.name]
    except AnabranchError:
        # Missing records are reported without reasons.
        return {}
    finally:
        reader.close()
    partitions = (one for word in newest_runs(words, time.time()) for one in word.partitions)
    return {(one.topic, one.partition): why for one in partitions if (why := _why(one))}


def _why(one: PartitionStatus) -> str:
    if one.state is PartitionState.PARKED:
        return f"parked {one.reason.code}" if one.reason is not None else "parked"
    return "paused" if one.state is PartitionState.PAUSED else ""


def lacking(
    spec: FlowSpec, one: tuple[SliceBounds, SliceProgress], why: Mapping[Number, str], *, failed_over: bool
) -> tuple[Problem, ...]:
    """Return problems (AB651, AB652) for records of an original that its copy does not have.

    Args:
        spec: the flow.
        one: a partition and its progress.
        why: what `reasons` returned.
        failed_over: whether the flow is failed over: records of its source after the cuts are not copied.
    """
    bounds, progress = one
    found, behind = [], progress.findings.counts.behind
    log = f"{bounds.topic}/{bounds.partition}"
    where = f"{spec.source.where}, {log}"
    if behind:
        reason = why.get((bounds.topic, bounds.partition), "not copied yet")
        remedy = _LATER
        if failed_over:
            reason, remedy = "the flow is failed over", "`anabranch failback` ends that; --copied-only leaves them out"
        elif reason != "not copied yet":
            remedy = f"`anabranch status` shows what to do; {_LATER}"
        message = f"{_offsets(behind)} of {log} {'is' if behind == 1 else 'are'} not copied: {reason}"
        found.append(Problem("AB651", where, message, remedy))
    if bounds.held:
        held = f"{_offsets(bounds.held)} of {log} from {bounds.source_end:,} on"
        message = (
            f"{held} {'stands' if bounds.held == 1 else 'stand'} behind {bounds.held_by}: not copied, nor compared"
        )
        remedy = f"end its producer, or wait until the transaction has timed out; {_LATER}"
        found.append(Problem("AB652", where, message, remedy))
    return tuple(found)


def _offsets(count: int) -> str:
    return f"{count:,} offset{'' if count == 1 else 's'}"
