"""A failback, step by step: what is there, what diverged, copying back, and everybody's old place.

Each step may be done again: whoever died in the middle runs the command once more, and nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.checkpoints.groups import Groups
from reconciler.failover import backward, carry
from reconciler.failover.carry import Path
from reconciler.failover.cuts import TRANSLATED
from reconciler.failover.diverged import Part, counted
from reconciler.failover.handing import Bequest, hand_over, stands
from reconciler.failover.rebuild import made_anew
from reconciler.model.committed import Bounds, Log
from reconciler.model.errors import DeclaredInputError, EnvironmentFault, Problem, Refused
from reconciler.model.failover import Carried, Cut, FailbackPlan, FailedOver, Returning
from reconciler.model.flow import Flow
from reconciler.model.names import lease_group
from reconciler.model.spec import FlowSpec
from reconciler.model.topology import Topology
from reconciler.replicator.note import Note
from reconciler.state.failovers import Failovers
from reconciler.state.ownership import Ownership

REBUILT = "rebuilt"
"""The mode of a cut whose original was made anew, for its copy to be copied back into as a whole."""


@dataclass(frozen=True)
class Wishes:
    """How a failback is to go.

    Attributes:
        groups: names and regular expressions; None means those that the flow takes along, all where it names none.
        rebuild: originals that are made anew where they have diverged.
    """

    groups: tuple[str, ...] | None = None
    rebuild: frozenset[str] = field(default_factory=frozenset)


class Coming:
    """The failback of one flow.

    Args:
        topology: the declaration.
        flow: one of its flows.
        wishes: how it is to go.

    Raises:
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: what `clients.make` raises.
        Refused: AB423, it is another cluster than the declared one.
    """

    def __init__(self, topology: Topology, flow: Flow, wishes: Wishes) -> None:
        self._topology = topology
        self._flow = flow
        self._wishes = wishes
        self._source = Groups(topology.clusters[flow.source])
        self._target = Groups(topology.clusters[flow.target])
        self._failovers = Failovers(self._target.cluster, topology.name)

    def close(self) -> None:
        """Close the connections."""
        self._failovers.close()
        self._source.close()
        self._target.close()

    @property
    def state(self) -> FailedOver:
        """How far it has come.

        Raises:
            Refused: AB703, the flow is not failed over.
        """
        state = self._failovers.current().get(self._flow.name)
        if state is None:
            where = f"{self._target.cluster.where}, flow {self._flow.name}"
            raise Refused(Problem("AB703", where, "it is not failed over", "there is nothing to be taken back"))
        return state

    # --- looking -----------------------------------------------------------------------------------------------------

    def plan(self) -> FailbackPlan:
        """Look at everything.

        Raises:
            Refused: AB703, the flow is not failed over.
            DeclaredInputError: AB704, a topic is to be rebuilt that the flow does not copy, or that has not diverged.
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        state = self.state
        topics = tuple(self._returning(state))
        self._check_wishes(topics)
        found = self.carried(state, topics)
        notice = f"stop who writes and reads at {self._flow.target} first: what they do later is not taken along"
        return FailbackPlan(
            self._flow.name, self._flow.source, self._flow.target, state, topics, tuple(found), (notice,)
        )

    def _returning(self, state: FailedOver) -> Iterable[Returning]:
        cuts = state.cuts
        at_source = self._bounds(self._source, ((cut.topic, cut) for cut in cuts.values()))
        at_target = self._bounds(self._target, ((cut.remote, cut) for cut in cuts.values()))
        new = [part for cut in cuts.values() for part in self._new_parts(cut, at_target)]
        # Once records come back, what stands behind the cuts of the original is theirs; the tasks watch over the rest.
        is_back = state.phase == "returning"
        behind = [] if is_back else [part for cut in cuts.values() for part in self._behind(cut, at_source)]
        new_counts, behind_counts = counted(self._target.cluster, new), counted(self._source.cluster, behind)
        for topic, cut in sorted(cuts.items()):
            came = [part for part in new if part.topic == cut.remote]
            stayed = [part for part in behind if part.topic == topic]
            is_rebuilt = cut.mode == REBUILT
            yield Returning(
                topic,
                cut.remote,
                cut.mode,
                len(cut.ends),
                sum(new_counts[part] for part in came),
                sum(behind_counts[part] for part in stayed),
                bool(came),
                bool(came and stayed) and not is_rebuilt,
                is_rebuilt or topic in self._wishes.rebuild,
            )

    @staticmethod
    def _bounds(groups: Groups, topics: Iterable[tuple[str, Cut]]) -> dict[Log, Bounds]:
        logs = {(name, number) for name, cut in topics for number in range(len(cut.ends))}
        found = groups.bounds(logs)
        if missing := sorted(logs - found.keys()):
            raise EnvironmentFault([_not_there(groups, log) for log in missing])
        if is_open := sorted(log for log, one in found.items() if one.stable < one.end):
            raise EnvironmentFault([_is_open(groups, log, found[log]) for log in is_open])
        return found

    @staticmethod
    def _new_parts(cut: Cut, ends: Mapping[Log, Bounds]) -> Iterable[Part]:
        for number, (_, at_target) in enumerate(cut.ends):
            bounds = ends[cut.remote, number]
            first = max(at_target, bounds.start)
            if first < bounds.end:
                yield Part(cut.remote, number, first, bounds.end)

    @staticmethod
    def _behind(cut: Cut, ends: Mapping[Log, Bounds]) -> Iterable[Part]:
        for number, (at_source, _) in enumerate(cut.ends):
            bounds = ends[cut.topic, number]
            first = max(at_source, bounds.start)
            if first < bounds.end:
                yield Part(cut.topic, number, first, bounds.end)

    def _check_wishes(self, topics: Collection[Returning]) -> None:
        known = {one.topic: one for one in topics}
        problems = []
        for name in sorted(self._wishes.rebuild):
            where = f"flow {self._flow.name}, topic {name}"
            if name not in known:
                message = f"it is none of its originals: {', '.join(sorted(known))}"
                problems.append(Problem("AB704", where, message, "correct --rebuild"))
            elif not (known[name].is_diverged or known[name].mode == REBUILT):
                message = "it has not diverged: it need not be made anew"
                problems.append(Problem("AB704", where, message, "leave it out of --rebuild"))
        if problems:
            raise DeclaredInputError(problems)

    def check_divergence(self, plan: FailbackPlan) -> None:
        """Make sure that everything that came to the copies can be copied back.

        Raises:
            Refused: AB705, originals have diverged and nobody asked for them to be made anew.
        """
        problems = [
            Problem(
                "AB705",
                f"{self._source.cluster.where}, topic {one.topic}",
                f"it has {one.diverged:,} records that never crossed, and its copy {one.remote} has {one.new:,} new "
                "ones: the two have diverged",
                f"--rebuild {one.topic} makes it anew as the copy is, after its records are exported",
            )
            for one in plan.topics
            if one.is_diverged and not one.is_rebuilt
        ]
        if problems:
            raise Refused(problems)

    def diverged(self, plan: FailbackPlan) -> list[Part]:
        """Return the records of originals that are about to be made anew, which exist nowhere else."""
        rebuilt = {one.topic for one in plan.topics if one.is_rebuilt and one.mode != REBUILT}
        cuts = [cut for topic, cut in plan.state.cuts.items() if topic in rebuilt]
        ends = self._bounds(self._source, ((cut.topic, cut) for cut in cuts))
        return [part for cut in cuts for part in self._behind(cut, ends)]

    # --- copying back ------------------------------------------------------------------------------------------------

    def begin(self, plan: FailbackPlan) -> FailedOver:
        """Say that the failback has begun; logs that are copied back into are handed over before.

        Raises:
            AnabranchError: a cluster does not answer, or refuses.
        """
        if plan.state.phase == "returning":
            return plan.state
        for way, cuts in self._by_way(plan, [one for one in plan.topics if one.is_new and not one.is_rebuilt]).items():
            there = stands(self._target.cluster, _logs_of_copies(cuts))
            flow = backward.backward(self._flow, way, cuts)
            if way == "identical":
                backward.hand_originals(self._topology, flow, cuts, there)
            else:
                backward.place_translated(self._topology, flow, cuts, self._source, there)
        state = replace(plan.state, phase="returning")
        self._failovers.put(state)
        return state

    def rebuild(self, plan: FailbackPlan) -> list[str]:
        """Make originals anew that have diverged; return which.

        Raises:
            AnabranchError: a cluster does not answer, or refuses.
        """
        names = [one.topic for one in plan.topics if one.is_rebuilt and one.mode != REBUILT]
        for name in names:
            made_anew(self._source.cluster, self._topology.name, name)
            state = self.state
            cuts = {**state.cuts, name: replace(state.cuts[name], mode=REBUILT)}
            self._failovers.put(replace(state, cuts=cuts))
        return names

    def specs(self, plan: FailbackPlan, run: str) -> list[FlowSpec]:
        """Return the flows that copy back; none where nothing came."""
        copied = [one for one in plan.topics if one.is_copied]
        return [
            backward.spec(self._topology, backward.backward(self._flow, way, cuts), run)
            for way, cuts in self._by_way(plan, copied).items()
        ]

    def not_back(self, plan: FailbackPlan) -> list[Log]:
        """Return the partitions of copies that hold something which is not copied back yet.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        left: list[Log] = []
        for way, cuts in self._by_way(plan, [one for one in plan.topics if one.is_copied]).items():
            ends = self._bounds(self._target, ((cut.remote, cut) for cut in cuts))
            name = backward.backward(self._flow, way, cuts).name
            back = self._ends_of_copies(cuts) if way == "identical" else self._positions(name, cuts)
            left += [log for log, end in sorted(ends.items()) if back.get(log, -1) < end.stable]
        return left

    def _ends_of_copies(self, cuts: Collection[Cut]) -> dict[Log, int]:
        """Return up to where copies are back whose originals get the same offsets."""
        found: dict[Log, int] = {}
        ends = self._bounds(self._source, ((cut.topic, cut) for cut in cuts))
        for cut in cuts:
            for number, (source, target) in enumerate(cut.ends):
                shift = 0 if self._is_anew(cut) else target - source
                found[cut.remote, number] = ends[cut.topic, number].end + shift
        return found

    def _positions(self, flow: str, cuts: Collection[Cut]) -> dict[Log, int]:
        """Return up to where copies are back whose originals have offsets of their own."""
        committed = self._source.committed([lease_group(self._topology.name, flow)])
        remotes = {cut.topic: cut.remote for cut in cuts}
        return {(remotes[one.topic], one.partition): one.offset for one in committed if one.topic in remotes}

    def _is_anew(self, cut: Cut) -> bool:
        return cut.mode == REBUILT or cut.topic in self._wishes.rebuild

    def _by_way(self, plan: FailbackPlan, topics: Iterable[Returning]) -> dict[backward.Way, list[Cut]]:
        found: dict[backward.Way, list[Cut]] = {}
        for one in topics:
            cut = plan.state.cuts[one.topic]
            found.setdefault(backward.way_of(cut, one.is_rebuilt), []).append(cut)
        return found

    # --- handing the flow its copies back ----------------------------------------------------------------------------

    def hand_back(self, plan: FailbackPlan) -> None:
        """Have the flow go on behind what came meanwhile, on both sides.

        Raises:
            AnabranchError: a cluster does not answer, or refuses.
        """
        owned = Ownership(self._target.cluster).read()
        bequests: dict[Log, Bequest] = {}
        positions: dict[Log, tuple[int, Note]] = {}
        for one in plan.topics:
            cut, record = plan.state.cuts[one.topic], owned[one.remote]
            here = stands(self._source.cluster, [(cut.topic, number) for number in range(len(cut.ends))])
            there = stands(self._target.cluster, _logs_of_copies([cut]))
            if one.is_rebuilt and self._flow.offsets != TRANSLATED:
                record = replace(record, offsets="identical")
            for (_, number), stand in sorted(here.items()):
                log = cut.remote, number
                if record.offsets == TRANSLATED:
                    position = stand.end if one.is_copied else cut.ends[number][0]
                    if position >= 0:
                        positions[log] = position, Note(stand.topic_id, there[log].topic_id)
                elif one.is_copied:
                    bequests[log] = Bequest(stand.topic_id, there[log], there[log].end if one.is_rebuilt else None)
            if one.is_rebuilt:
                anew = next(iter(here.values())).topic_id or record.source_topic_id
                Ownership(self._target.cluster).write([replace(record, source_topic_id=anew)])
        hand_over(self._target.cluster, self._flow.name, bequests)
        backward.commit(self._target, lease_group(self._topology.name, self._flow.name), positions)

    # --- groups ------------------------------------------------------------------------------------------------------

    def carried(self, state: FailedOver, topics: Collection[Returning]) -> list[Carried]:
        """Return where groups go on at the source.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        ways: dict[str, list[Path]] = dict(carry.paths(self._topology, self._target, self._source))
        remotes = {cut.remote for cut in state.cuts.values()}
        read = carry.logical(self._flow, self._topology, ways, remotes)
        groups = carry.groups_that_read(self._target, read, self._wishes.groups, self._flow)
        if state.phase == "returning":
            for one in topics:
                cut = state.cuts[one.topic]
                if one.is_rebuilt or (one.is_new and cut.mode == TRANSLATED):
                    ways[cut.remote] = [self._path_back(cut, one), *ways.get(cut.remote, ())]
        return carry.carried(self._topology, self._target, self._source, self._target.committed(groups), ways)

    def _path_back(self, cut: Cut, one: Returning) -> Path:
        """Return how positions get back that are in what came to a copy after it was cut."""
        way = backward.way_of(cut, one.is_rebuilt)
        ends = self._bounds(self._target, [(cut.remote, cut)])
        # Where nothing came the flow itself tells.
        begins = {
            number: 0 if one.is_rebuilt else end
            for number, (_, end) in enumerate(cut.ends)
            if one.is_rebuilt or ends[cut.remote, number].end > end
        }
        flow = backward.backward(self._flow, way, [cut])
        return Path(flow, "downstream", cut.remote, cut.topic, begins)

    def move(self, found: Iterable[Carried]) -> tuple[int, list[Problem]]:
        """Commit positions at the source; return how many, and why others were not."""
        moves = carry.moves_of(found)
        wrong = self._source.commit(moves)
        return sum(map(len, moves.values())) - len(wrong), list(dict.fromkeys(wrong.values()))

    def end(self) -> None:
        """Say that the flow is not failed over any more: it goes on.

        Raises:
            EnvironmentFault: AB311, the target does not take it.
        """
        self._failovers.forget(self.state)


def _logs_of_copies(cuts: Iterable[Cut]) -> list[Log]:
    return [(cut.remote, number) for cut in cuts for number in range(len(cut.ends))]


def _not_there(groups: Groups, log: Log) -> Problem:
    where = f"{groups.cluster.where}, topic {log[0]}, partition {log[1]}"
    return Problem("AB630", where, "it is not there, or has no leader now", "wait until its brokers are up")


def _is_open(groups: Groups, log: Log, bounds: Bounds) -> Problem:
    where = f"{groups.cluster.where}, topic {log[0]}, partition {log[1]}"
    message = f"a transaction is open from offset {bounds.stable} on: what it holds cannot be told apart yet"
    return Problem("AB706", where, message, "end who writes there, or wait until the transaction has timed out")
