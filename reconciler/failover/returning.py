"""A failback, step by step: what is there, what diverged, copying back, and everybody's old place.

Each step may be done again: whoever died in the middle runs the command once more, and nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.checkpoints.groups import Groups
from reconciler.checkpoints.translate import Translator
from reconciler.failover import backward, carry
from reconciler.failover.carry import Path
from reconciler.failover.cuts import TRANSLATED
from reconciler.failover.diverged import Part
from reconciler.failover.handing import Bequest, hand_over, kafka_id, stands
from reconciler.failover.meanwhile import Meanwhile
from reconciler.failover.rebuild import made_anew
from reconciler.model.committed import Log, Move
from reconciler.model.errors import DeclaredInputError, Problem, Refused
from reconciler.model.failover import Carried, Cut, FailbackPlan, FailedOver, Returning
from reconciler.model.flow import Flow
from reconciler.model.names import lease_group
from reconciler.model.spec import FlowSpec
from reconciler.model.topology import Topology
from reconciler.replicator.note import Note
from reconciler.state.failovers import Failovers
from reconciler.state.ownership import Ownership


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
        self._meanwhile = Meanwhile(self._source, self._target, wishes.rebuild)
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
            DeclaredInputError: AB704, a topic is to be rebuilt that the flow does not copy, or that has not diverged;
                AB711, an original lacks partitions.
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        plan = self.look()
        self._check_wishes(plan)
        return replace(plan, groups=tuple(self.carried(plan)))

    def look(self) -> FailbackPlan:
        """Look at topics alone; errors are those of `plan`, but AB704."""
        self._source.refresh()
        self._target.refresh()
        state = self.state
        cuts, left_out = self._meanwhile.cuts(state.cuts)
        topics = tuple(self._meanwhile.topics(cuts))
        notice = f"stop who writes and reads at {self._flow.target} first: what they do later is not taken along"
        names = self._flow.name, self._flow.source, self._flow.target
        return FailbackPlan(*names, state, topics, (), (notice, *left_out), cuts)

    def _check_wishes(self, plan: FailbackPlan) -> None:
        known = {one.topic: one for one in plan.topics}
        problems = []
        for name in sorted(self._wishes.rebuild):
            where = f"flow {self._flow.name}, topic {name}"
            if name not in known:
                message = f"it is none of its originals: {', '.join(sorted(known))}"
                problems.append(Problem("AB704", where, message, "correct --rebuild"))
            elif not (known[name].is_diverged or plan.cuts[name].anew):
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

    def check_same(self, plan: FailbackPlan) -> None:
        """Make sure that nobody has gone on with it since it was looked at; errors are those of `Failovers`."""
        self._failovers.check_same(plan.flow, plan.state)

    def dropped(self, plan: FailbackPlan) -> dict[Part, int]:
        """Return the records of originals that are about to be made anew which their copies do not have, and how many.

        They never crossed, or the copies have lost them.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        cuts = [plan.cuts[one.topic] for one in plan.topics if one.is_rebuilt]
        there = [
            replace(cut, ends=cut.ends[: self._source.partitions[cut.topic]])
            for cut in cuts
            if cut.anew != "made" and cut.topic in self._source.partitions
        ]
        return self._meanwhile.dropped(there, self._begins(there)) if there else {}

    def _begins(self, cuts: Collection[Cut]) -> dict[Log, int]:
        """Return from which offset of an original on its copy has its records."""
        starts = self._meanwhile.bounds(self._target, ((cut.remote, cut) for cut in cuts))
        found: dict[Log, int] = {}
        clusters = self._topology.clusters
        with Translator(clusters[self._flow.source], clusters[self._flow.target], self._flow) as translator:
            translator.refresh({(cut.topic, number) for cut in cuts for number in range(len(cut.ends))})
            for cut in cuts:
                for number, (source, _) in enumerate(cut.ends):
                    told = translator.upstream(cut.topic, number, starts[cut.remote, number].start).offset
                    # Where nobody tells, everything is kept.
                    found[cut.topic, number] = max(source, 0) if told is None else min(told, max(source, 0))
        return found

    # --- copying back ------------------------------------------------------------------------------------------------

    def begin(self, plan: FailbackPlan) -> None:
        """Say that the failback has begun; logs that are copied back into are handed over before.

        Raises:
            AnabranchError: a cluster does not answer, or refuses.
        """
        fresh = [one for one in plan.topics if one.is_new and not one.is_rebuilt and not plan.cuts[one.topic].is_handed]
        for way, cuts in self._by_way(plan, fresh).items():
            there = stands(self._target.cluster, _logs_of_copies(cuts))
            flow = backward.backward(self._flow, way, cuts)
            if way == "identical":
                backward.hand_originals(self._topology, flow, cuts, there)
            else:
                backward.place_translated(self._topology, flow, cuts, self._source, there)
        state = self.state
        cuts_now = dict(state.cuts)
        for one in fresh:
            cuts_now[one.topic] = replace(cuts_now[one.topic], is_handed=True)
        for one in plan.topics:
            if one.is_rebuilt and not cuts_now[one.topic].anew:
                cuts_now[one.topic] = replace(cuts_now[one.topic], anew="wanted")
        after = replace(state, phase="returning", cuts=cuts_now)
        if after != state:
            self._failovers.put(after)

    def rebuild(self, kept: Mapping[Log, int]) -> list[str]:
        """Make originals anew that are wanted so; return which.

        Args:
            kept: where originals ended when their records were exported.

        Raises:
            Refused: AB712, one has grown since.
            AnabranchError: a cluster does not answer, or refuses.
        """
        wanted = [cut for cut in self.state.cuts.values() if cut.anew == "wanted"]
        if grown := sorted(log for log, end in self._meanwhile.ends(wanted).items() if end > kept.get(log, 0)):
            raise Refused([_grown(self._source, log) for log in grown])
        for cut in wanted:
            made_anew(self._source.cluster, self._topology.name, cut.topic)
            state = self.state
            self._failovers.put(replace(state, cuts={**state.cuts, cut.topic: replace(cut, anew="made")}))
        return [cut.topic for cut in wanted]

    def ends(self, plan: FailbackPlan) -> dict[Log, int]:
        """Return where originals end that are to be made anew."""
        return self._meanwhile.ends(plan.cuts[one.topic] for one in plan.topics if one.is_rebuilt)

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
            ends = self._meanwhile.bounds(self._target, ((cut.remote, cut) for cut in cuts))
            name = backward.backward(self._flow, way, cuts).name
            back = self._ends_of_copies(cuts) if way == "identical" else self._positions(name, cuts)
            left += [log for log, end in sorted(ends.items()) if back.get(log, -1) < end.stable]
        return left

    def _ends_of_copies(self, cuts: Collection[Cut]) -> dict[Log, int]:
        """Return up to where copies are back whose originals get the same offsets."""
        found: dict[Log, int] = {}
        ends = self._meanwhile.bounds(self._source, ((cut.topic, cut) for cut in cuts))
        for cut in cuts:
            for number, (source, target) in enumerate(cut.ends):
                shift = 0 if cut.anew else target - source
                found[cut.remote, number] = ends[cut.topic, number].end + shift
        return found

    def _positions(self, flow: str, cuts: Collection[Cut]) -> dict[Log, int]:
        """Return up to where copies are back whose originals have offsets of their own."""
        committed = self._source.committed([lease_group(self._topology.name, flow)])
        remotes = {cut.topic: cut.remote for cut in cuts}
        return {(remotes[one.topic], one.partition): one.offset for one in committed if one.topic in remotes}

    def _by_way(self, plan: FailbackPlan, topics: Iterable[Returning]) -> dict[backward.Way, list[Cut]]:
        found: dict[backward.Way, list[Cut]] = {}
        for one in topics:
            cut = plan.cuts[one.topic]
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
            cut, record = plan.cuts[one.topic], owned[one.remote]
            here = stands(self._source.cluster, [(cut.topic, number) for number in range(len(cut.ends))])
            there = stands(self._target.cluster, _logs_of_copies([cut]))
            if one.is_rebuilt and self._flow.offsets != TRANSLATED:
                record = replace(record, offsets="identical")
            for (_, number), stand in sorted(here.items()):
                log = cut.remote, number
                if one.is_copied:
                    end = there[log].end if one.is_rebuilt else None
                    bequests[log] = Bequest(stand.topic_id, there[log], end)
                position = stand.end if one.is_copied else cut.ends[number][0]
                if record.offsets == TRANSLATED and position >= 0:
                    positions[log] = position, Note(stand.topic_id, there[log].topic_id)
            if one.is_rebuilt:
                anew = kafka_id(next(iter(here.values())).topic_id) or record.source_topic_id
                Ownership(self._target.cluster).write([replace(record, source_topic_id=anew)])
        hand_over(self._target.cluster, self._flow.name, bequests)
        backward.commit(self._target, lease_group(self._topology.name, self._flow.name), positions)

    def uncrossed(self, plan: FailbackPlan) -> list[Problem]:
        """Return what was written at the source while copies with offsets of their own came back: it never crosses.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        copied = [one for one in plan.topics if one.is_copied]
        return self._meanwhile.uncrossed(self._by_way(plan, copied).get("translated", []))

    # --- groups ------------------------------------------------------------------------------------------------------

    def carried(self, plan: FailbackPlan) -> list[Carried]:
        """Return where groups go on at the source.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        ways: dict[str, list[Path]] = dict(carry.paths(self._topology, self._target, self._source))
        remotes = {cut.remote for cut in plan.cuts.values()}
        read = carry.logical(self._flow, self._topology, ways, remotes)
        groups = carry.groups_that_read(self._target, read, self._wishes.groups, self._flow)
        if plan.state.phase == "returning":
            for one in plan.topics:
                cut = plan.cuts[one.topic]
                if one.is_rebuilt or (one.is_new and cut.mode == TRANSLATED):
                    ways[cut.remote] = [self._path_back(cut, one), *ways.get(cut.remote, ())]
        return carry.carried(self._topology, self._target, self._source, self._target.committed(groups), ways)

    def _path_back(self, cut: Cut, one: Returning) -> Path:
        """Return how positions get back that are in what came to a copy after it was cut."""
        way = backward.way_of(cut, one.is_rebuilt)
        ends = self._meanwhile.bounds(self._target, [(cut.remote, cut)])
        # Where nothing came the flow itself tells.
        begins = {
            number: 0 if one.is_rebuilt else end
            for number, (_, end) in enumerate(cut.ends)
            if one.is_rebuilt or ends[cut.remote, number].end > end
        }
        flow = backward.backward(self._flow, way, [cut])
        return Path(flow, "downstream", cut.remote, cut.topic, begins)

    def move(self, plan: FailbackPlan, found: Iterable[Carried]) -> tuple[int, list[Problem]]:
        """Commit positions at the source; return how many, and why others were not.

        Who has read on at the source meanwhile, or stood further when the copy was cut, is not taken back.
        """
        rebuilt = {one.remote for one in plan.topics if one.is_rebuilt}
        ends = {(cut.remote, number): end for cut in plan.cuts.values() for number, (_, end) in enumerate(cut.ends)}

        def is_new(one: Carried) -> bool:
            log = one.topic, one.partition
            return one.topic in rebuilt or (log in ends and one.offset > ends[log])

        some = list(found)
        moves: dict[str, list[Move]] = carry.moves_of([one for one in some if is_new(one)])
        for group, old in carry.moves_of([one for one in some if not is_new(one)], only_forward=True).items():
            moves.setdefault(group, []).extend(old)
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


def _grown(groups: Groups, log: Log) -> Problem:
    where = f"{groups.cluster.where}, topic {log[0]}, partition {log[1]}"
    message = "it was written to after its records were exported: nothing was deleted"
    return Problem("AB712", where, message, "stop who writes there, and run failback again, exporting elsewhere")
