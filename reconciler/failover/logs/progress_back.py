"""How far new records of copies are copied back to their originals, by log ends and by the records there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.logs import reverse_flows
from reconciler.failover.logs.divergence import Divergence
from reconciler.failover.logs.handover import LogState
from reconciler.failover.logs.log_match import LogComparison, LogPair
from reconciler.model.declared.flow import Flow
from reconciler.model.names.own_names import lease_group
from reconciler.model.offsets.committed import Log
from reconciler.model.offsets.runs import Runs
from reconciler.model.recorded.failover import Cut, FailbackPlan, Returning

ByWay = dict[reverse_flows.Way, list[Cut]]
_END = 2**63 - 1


class ProgressBack:
    """Reads how far the copies of one flow are copied back.

    Args:
        topology: name of the topology.
        flow: the flow that is failed over.
        source: the source.
        target: the target.
    """

    def __init__(self, topology: str, flow: Flow, source: Groups, target: Groups) -> None:
        self._topology = topology
        self._flow = flow
        self._source = source
        self._target = target

    def left(self, plan: FailbackPlan) -> list[Log]:
        """Return the partitions of copies that are not copied back yet, by log ends.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        left: list[Log] = []
        for way, cuts in by_way(plan, [one for one in plan.topics if one.is_copied]).items():
            ends = Divergence.bounds(self._target, ((cut.remote, cut) for cut in cuts))
            here = Divergence.bounds(self._source, ((cut.topic, cut) for cut in cuts)) if way == "identical" else {}
            back = self._reached(way, cuts, {log: one.end for log, one in here.items()})
            left += [log for log, end in sorted(ends.items()) if back.get(log, -1) < end.stable]
        return left

    def left_at(self, plan: FailbackPlan, here: Mapping[Log, LogState], there: Mapping[Log, LogState]) -> list[Log]:
        """Return the partitions of copies with records that are not at the source, by the state of the logs.

        Args:
            plan: of the failback.
            here: state of the originals.
            there: state of the copies, read after `here`.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        untouched = [plan.cuts[one.topic] for one in plan.topics if not one.is_copied]
        left = [
            (cut.remote, number)
            for cut in untouched
            for number, (_, end) in enumerate(cut.ends)
            if there[cut.remote, number].end > end
        ]
        for way, cuts in by_way(plan, [one for one in plan.topics if one.is_copied]).items():
            back = self._reached(way, cuts, {log: one.end for log, one in here.items()})
            logs = {(cut.remote, number): (cut.topic, number) for cut in cuts for number in range(len(cut.ends))}
            short = [log for log in logs if there[log].is_open or back.get(log, -1) < there[log].end]
            if way == "identical":
                # Records of an open transaction cannot be compared yet.
                short = short or [log for log, original in logs.items() if here[original].is_open]
                short = short or self._unlike(cuts, {log: there[log].end for log in logs})
            left += short
        return sorted(left)

    def checked(self, cuts: Mapping[str, Cut]) -> tuple[dict[str, Cut], list[str]]:
        """Return corrected cuts, and notices about those that were corrected.

        If another client wrote to an original while its copy came back with identical offsets, nothing counts as copied
        back.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        coming = [
            cut
            for cut in cuts.values()
            if (cut.is_handed or cut.anew == "made") and reverse_flows.way_of(cut, bool(cut.anew)) == "identical"
        ]
        ends = Divergence.bounds(self._target, ((cut.remote, cut) for cut in coming))
        unlike = {topic for topic, _ in self._unlike(coming, {log: one.end for log, one in ends.items()})}
        found, notices = dict(cuts), []
        for cut in coming:
            if cut.remote in unlike:
                # A rebuilt original holds only records that were copied back.
                begun = ((0, 0),) * len(cut.ends) if cut.anew else cut.ends
                found[cut.topic] = replace(cut, is_handed=False, anew="", ends=begun)
                notices.append(
                    f"another client wrote to {cut.topic} at {self._source.cluster.alias} while {cut.remote} was "
                    "copied back: the records copied back count as never copied"
                )
        return found, notices

    # --- how far -----------------------------------------------------------------------------------------------------

    def _reached(self, way: reverse_flows.Way, cuts: Collection[Cut], here: Mapping[Log, int]) -> dict[Log, int]:
        """Return the offset up to which each copy is copied back.

        Args:
            way: how it is copied back.
            cuts: of the copies.
            here: log ends of the originals; used for identical offsets.
        """
        name = reverse_flows.backward(self._flow, way, cuts).name
        if way == "identical":
            shifts = self._shifts(cuts)
            remotes = {(cut.topic, number): (cut.remote, number) for cut in cuts for number in range(len(cut.ends))}
            return {remote: here[log] + shifts[remote] for log, remote in remotes.items()}
        committed = self._source.committed([lease_group(self._topology, name)])
        names = {cut.topic: cut.remote for cut in cuts}
        return {(names[one.topic], one.partition): one.offset for one in committed if one.topic in names}

    def _shifts(self, cuts: Collection[Cut]) -> dict[Log, int]:
        """Return by how much copies end above their originals, for records that come back with identical offsets."""
        known = reverse_flows.runs_back(
            self._topology, self._source, reverse_flows.backward(self._flow, "identical", cuts), cuts
        )
        found = {}
        for cut in cuts:
            for number, (source, target) in enumerate(cut.ends):
                runs = known.get((cut.topic, number))
                usual = 0 if cut.anew else target - source
                found[cut.remote, number] = usual if runs is None else -runs.shift
        return found

    def _unlike(self, cuts: Collection[Cut], there: Mapping[Log, int]) -> list[Log]:
        """Return the copies whose originals hold other records at their offsets, up to where both reach.

        Args:
            cuts: of copies that come back with identical offsets.
            there: log ends of the copies.
        """
        if not cuts:
            return []
        known = reverse_flows.runs_back(
            self._topology, self._source, reverse_flows.backward(self._flow, "identical", cuts), cuts
        )
        here = Divergence.bounds(self._source, ((cut.topic, cut) for cut in cuts))
        starts = Divergence.bounds(self._target, ((cut.remote, cut) for cut in cuts))
        pairs = []
        for cut in cuts:
            for number in range(len(cut.ends)):
                log, remote = (cut.topic, number), (cut.remote, number)
                for shift, begin, upto in _pieces(cut, number, known.get(log)):
                    first = max(begin, here[log].start, starts[remote].start - shift)
                    pairs.append(LogPair(log, remote, shift, first, min(upto, here[log].end, there[remote] - shift)))
        with LogComparison(self._source.cluster, self._target.cluster) as comparison:
            return list(dict.fromkeys(pair.remote for pair in pairs if not comparison.agree(pair)))


def _pieces(cut: Cut, number: int, runs: Runs | None) -> Iterator[tuple[int, int, int]]:
    """Yield the shift of a copy's offsets against its original's, with the first and end offset of each run.

    Args:
        cut: of the copy.
        number: of the partition.
        runs: shifted runs of the flow that copies back; None if nothing came back yet.
    """
    source, target = cut.ends[number]
    shift, begin = (0 if runs is not None or cut.anew else target - source), (0 if cut.anew else source)
    for run in runs.runs if runs is not None else ():
        next_begin = run.target
        if begin < next_begin:
            yield shift, begin, next_begin
        shift, begin = -run.shift, max(begin, next_begin)
    yield shift, begin, _END


def by_way(plan: FailbackPlan, topics: Iterable[Returning]) -> ByWay:
    """Return the cuts of some topics by the way in which their copies are copied back."""
    found: ByWay = {}
    for one in topics:
        cut = plan.cuts[one.topic]
        found.setdefault(reverse_flows.way_of(cut, one.is_rebuilt), []).append(cut)
    return found
