"""A failover, step by step: what is there, the end of the flow, where its copies were cut, and everybody's new place.

Each step may be done again: whoever died in the middle runs the command once more, and nothing is done twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.checkpoints.groups import Groups
from reconciler.checkpoints.heartbeats import LastLooks
from reconciler.failover import carry, cuts, placing, waiting
from reconciler.failover.ending import Ending
from reconciler.failover.objections import is_returning
from reconciler.failover.settling import Settling
from reconciler.failover.sharing import shared_copies
from reconciler.model.cluster import Cluster
from reconciler.model.errors import DeclaredInputError, EnvironmentFault, Problem, Refused, Unreachable
from reconciler.model.failover import Carried, Crossing, FailedOver, FailoverPlan
from reconciler.model.flow import Flow
from reconciler.model.topology import Topology
from reconciler.state.failovers import Failovers
from reconciler.state.user import user

_TICK = 0.25
_MOST_NAMED = 10

Beat = Callable[[], None]
"""Called while something is waited for: raises where the lock is lost, or somebody asks us to end."""


@dataclass(frozen=True)
class Wishes:
    """How a failover is to go.

    Attributes:
        groups: names and regular expressions; None means those that the flow takes along, all where it names none.
        source_lost: whether the source is taken for gone.
    """

    groups: Sequence[str] | None = None
    source_lost: bool = False


@dataclass(frozen=True)
class Moved:
    """What became of positions.

    Attributes:
        count: how many were committed.
        problems: why others were not.
        further: those that were left as their groups stand further at the target.
    """

    count: int
    problems: tuple[Problem, ...]
    further: tuple[Carried, ...]


class Leaving:
    """The failover of one flow.

    Args:
        topology: the declaration.
        flow: one of its flows.
        wishes: how it is to go.

    Raises:
        Unreachable: AB310, the target does not answer, or the source does not and is not taken for gone.
        EnvironmentFault: what `clients.make` raises.
        Refused: AB423, it is another cluster than the declared one.
    """

    def __init__(self, topology: Topology, flow: Flow, wishes: Wishes) -> None:
        self._topology = topology
        self._flow = flow
        self._wishes = wishes
        self._target = Groups(topology.clusters[flow.target])
        self._source = None if wishes.source_lost else _source(topology.clusters[flow.source])
        self._failovers = Failovers(self._target.cluster, topology.name)
        self._has_checkpoints = True
        self._originals = waiting.Originals()
        self._not_taken: set[str] = set()

    def close(self) -> None:
        """Close the connections."""
        self._failovers.close()
        self._target.close()
        if self._source is not None:
            self._source.close()

    @property
    def state(self) -> FailedOver | None:
        """How far it has come; None where nobody has begun."""
        return self._failovers.current().get(self._flow.name)

    def plan(self) -> FailoverPlan:
        """Look at everything.

        Raises:
            DeclaredInputError: AB700, the flow has no copies; or a group that is named cannot be moved.
            Refused: AB701, it is being failed back, and its source is not lost; AB716, other flows fill its copies.
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        state = self.state
        if state is not None and state.phase == "returning" and self._source is not None:
            raise Refused(is_returning(self._flow.name, self._target.cluster))
        if state is None and (problems := shared_copies(self._topology, self._flow, self._target)):
            raise Refused(problems)
        found = self.crossings()
        return FailoverPlan(
            self._flow.name,
            self._flow.source,
            self._flow.target,
            state,
            self._source is None,
            tuple(found),
            tuple(self.carried(found)),
            tuple(self._notices(found)),
        )

    def crossings(self) -> list[Crossing]:
        """Return how far each partition was copied, and how many records of its original were not, as of today.

        Where the copies are cut already their cuts tell: what stands behind these was written later, by others. Of a
        backlog of more than a million the offsets are told, which may be more than its records.

        Raises:
            DeclaredInputError: AB700, the flow has no copies.
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        found = cuts.crossings(self._topology, self._flow, self._target)
        if not found:
            where = f"{self._target.cluster.where}, flow {self._flow.name}"
            remedy = "`anabranch apply` makes copies, `anabranch replicate` fills them"
            raise DeclaredInputError(Problem("AB700", where, "the flow has no copies: nobody can be moved", remedy))
        state = self.state
        if state is not None and state.phase != "ending":
            found = [cuts.as_cut(one, state.cuts.get(one.topic)) for one in found]
        if self._source is None:
            return found
        # Topics and partitions may have come since anybody looked.
        self._source.refresh()
        missing = cuts.without_copy(self._flow, self._topology.aliases, found, self._source.partitions)
        found += [*cuts.not_begun(found, self._source.partitions), *missing]
        self._originals = waiting.Originals.of(self._source, found)
        return waiting.counted(self._source, found, self._originals)

    def carried(self, found: Iterable[Crossing]) -> list[Carried]:
        """Return where groups go on.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        states = self._states()
        known = [cut for state in states for cut in state.cuts.values()]
        some = [cuts.before(one, known) for one in self._carried(found)]
        further = {(one.group, one.topic, one.partition) for one in carry.further(some) if self._stays(one, states)}
        why = f"left as it is: it stands further at {self._flow.target}"
        return [replace(one, why=why) if (one.group, one.topic, one.partition) in further else one for one in some]

    def _states(self) -> list[FailedOver]:
        """Return the flows between the two clusters that are on record: groups read copies of several."""
        pair = self._flow.source, self._flow.target
        names = {flow.name for flow in self._topology.flows if (flow.source, flow.target) == pair}
        return [state for name, state in self._failovers.current().items() if name in names]

    def _stays(self, one: Carried, states: Iterable[FailedOver]) -> bool:
        """Tell whether a group is not to be taken back: it may have read on, or checkpoints alone tell of it."""
        return self._source is None or any(placing.may_have_read_on(one, state.moved) for state in states)

    def _carried(self, found: Iterable[Crossing]) -> list[Carried]:
        if self._source is None:
            try:
                return carry.by_checkpoints(self._topology, self._flow, self._target, self._wishes.groups)
            except EnvironmentFault as error:
                # Producers may be all that moves.
                self._has_checkpoints = not carry.without_checkpoints(error)
                if carry.without_checkpoints(error) and not carry.demanded(self._wishes.groups):
                    return []
                raise
        ways = self._ways(self._source)
        topics = self._read(found, ways)
        groups = carry.groups_that_read(self._source, topics, self._wishes.groups, self._flow)
        return carry.carried(self._topology, self._source, self._target, self._source.committed(groups), ways)

    def _ways(self, source: Groups) -> carry.Paths:
        """Return the ways from the source; none leads into a copy of what its flow takes no longer."""
        aliases, found = self._topology.aliases, dict[str, list[carry.Path]]()
        for topic, some in carry.paths(self._topology, source, self._target).items():
            kept = [one for one in some if one.way == "upstream" or one.flow.takes(one.original, aliases)]
            if kept:
                found[topic] = kept
            self._not_taken.update(one.to_topic for one in some if one not in kept and one.flow == self._flow)
        return found

    def _read(self, found: Iterable[Crossing], ways: carry.Paths) -> set[str]:
        """Return the topics of the source whose readers move."""
        return carry.logical(self._flow, self._topology, ways, self._copied(found, ways))

    def _copied(self, found: Iterable[Crossing], ways: carry.Paths) -> set[str]:
        return carry.copied(self._flow, ways, found, self._target.partitions)

    def _notices(self, found: Sequence[Crossing]) -> Iterable[str]:
        source, target = self._flow.source, self._flow.target
        for one in found:
            if one.copied < 0 < one.remote_end:
                log = f"{one.remote}/{one.partition}"
                yield f"nobody tells how far {log} was copied: all of its original counts as not copied"
        if self._source is not None:
            yield from self._originals.said(self._flow)
            yield f"stop the consumers at {source} first: what they commit later is not taken along"
            ways = self._ways(self._source)
            topics, groups = self._read(found, ways), self._wishes.groups
            for remote in sorted(self._not_taken):
                yield f"the flow takes the original of {remote} no longer: that copy stays as it is, as do its readers"
            yield from carry.not_moved(self._source, topics, groups, self._flow)
            without = {one.topic for one in found} - self._copied(found, ways)
            yield from carry.left_behind(self._source, without, groups, self._flow)
            return
        yield f"{source} is taken for gone: what was not copied cannot be counted"
        if not self._has_checkpoints:
            yield f"there are no checkpoints at {target}, so no group is moved: `anabranch offsets write` does that"
            return
        yield f"groups go on where their last checkpoints tell: {self._looked()}; what they read since they read again"
        if any((one.source, one.target) == (target, source) for one in self._topology.flows if one.enabled):
            yield f"where they stood at {source} in copies of {target}'s topics nobody tells: see to these by hand"

    def _looked(self) -> str:
        """Say when groups were last looked at."""
        looks = LastLooks(self._target.cluster, self._topology.name)
        try:
            last = looks.current().get(self._flow.name)
        finally:
            looks.close()
        return "nobody knows of when" if last is None else f"{max(0, time.time() - last.time):.0f} s old"

    # --- doing it ----------------------------------------------------------------------------------------------------

    def check_same(self, plan: FailoverPlan) -> None:
        """Make sure that nobody has gone on with it since it was looked at; errors are those of `Failovers`."""
        self._failovers.check_same(plan.flow, plan.state)

    def begin(self) -> FailedOver:
        """Say that the flow is to end; whoever runs it hears of it within a second.

        A failback whose source is lost again is broken off: what it has brought back another one finds there.

        Raises:
            EnvironmentFault: AB311, the target does not take it.
        """
        state = self.state or FailedOver(self._flow.name, "ending", time.time(), user())
        if state.phase == "returning":
            # The next failback takes groups to where they are by then, be that forward or back.
            self._failovers.forget_returned(state)
            state = replace(state, phase="over", returned={})
        self._failovers.put(state)
        return state

    def wait_until_ended(self, patience: float, beat: Beat) -> None:
        """Wait until nobody copies the flow any more.

        Raises:
            EnvironmentFault: AB702, somebody still does; everything stays as it is, and the flow is to end still.
        """
        deadline, ending = (
            time.monotonic() + patience,
            Ending(self._target.cluster, self._topology.name, self._flow.name),
        )
        try:
            while holders := ending.holders():
                beat()
                if time.monotonic() > deadline:
                    raise EnvironmentFault(self._still_copied(holders, patience))
                time.sleep(_TICK)
        finally:
            ending.close()

    def _still_copied(self, holders: Sequence[str], patience: float) -> Problem:
        where = f"{self._target.cluster.where}, flow {self._flow.name}"
        runs = ", ".join(holders)
        message = f"it was asked to end, and is still copied by {runs} after {patience:g} s: nobody was moved"
        remedy = "end that `replicate` (releases before this one do not hear of it), and run failover again"
        return Problem("AB702", where, message, remedy)

    def wait_until_settled(self, state: FailedOver, patience: float, beat: Beat) -> None:
        """Wait until nothing changes any more of what the flow has written; what its dead tasks left open is aborted.

        Raises:
            EnvironmentFault: AB718, something still may; nobody was moved, and the flow is to end still.
            AnabranchError: the target does not answer, or refuses.
        """
        if state.phase != "ending":
            return
        deadline = time.monotonic() + patience
        found = cuts.crossings(self._topology, self._flow, self._target)
        logs = {(one.remote, one.partition): one.mode for one in found}
        translated = [log for log, mode in logs.items() if mode == cuts.TRANSLATED]
        settling = Settling(self._target.cluster, self._topology.name, self._flow.name)
        try:
            while left := settling.left(logs.keys(), translated):
                beat()
                if time.monotonic() > deadline:
                    raise EnvironmentFault(self._unsettled(left, patience))
                time.sleep(_TICK)
        finally:
            settling.close()

    def _unsettled(self, left: Sequence[str], patience: float) -> Problem:
        where = f"{self._target.cluster.where}, flow {self._flow.name}"
        more = f", and {len(left) - _MOST_NAMED:,} more" if len(left) > _MOST_NAMED else ""
        named = "; ".join(left[:_MOST_NAMED])
        message = f"where its copies end is not settled after {patience:g} s: {named}{more}: nobody was moved"
        remedy = "wait until brokers are up and transactions have timed out, and run failover again"
        return Problem("AB718", where, message, remedy)

    def wait_until_caught_up(self, patience: float, beat: Beat) -> None:
        """Wait until everything is copied that the source has.

        Raises:
            EnvironmentFault: AB707, it is not, or some of it could not be asked; nothing was changed.
        """
        deadline = time.monotonic() + patience
        while left := waiting.left(self.crossings()):
            beat()
            if time.monotonic() > deadline:
                remedy = "stop who writes at the source, see that `replicate` runs, or go without --until-caught-up"
                raise EnvironmentFault(
                    self._not_caught_up(left, f"after {patience:g} s", "nothing was changed", remedy)
                )
            time.sleep(_TICK)

    def check_caught_up(self) -> None:
        """Make sure that nothing was left behind by a flow that has ended.

        Raises:
            EnvironmentFault: AB707, something was, or some of it could not be asked; nobody was moved by this.
        """
        if left := waiting.left(self.crossings()):
            remedy = (
                "go without --until-caught-up and leave that behind; `anabranch failback` calls it off or takes back"
            )
            raise EnvironmentFault(self._not_caught_up(left, "the flow has ended, and", "nobody was moved", remedy))

    def _not_caught_up(self, left: Sequence[Crossing], when: str, then: str, remedy: str) -> Problem:
        where = f"{self._target.cluster.where}, flow {self._flow.name}"
        return Problem("AB707", where, f"{when} {waiting.named(left)}: {then}", remedy)

    def cut(self, state: FailedOver) -> FailedOver:
        """Say where the copies stand now that the flow has ended, and that it is failed over.

        Raises:
            AnabranchError: the target does not answer, or refuses.
        """
        if state.phase != "ending":
            return state
        found = cuts.crossings(self._topology, self._flow, self._target)
        state = replace(state, phase="over", cuts=cuts.cuts(found))
        self._failovers.put(state)
        return state

    def move(self, state: FailedOver, found: Iterable[Carried]) -> Moved:
        """Commit positions at the target, and remember whose.

        Nobody is taken back who was moved before, as they may have read on there, nor where checkpoints alone tell.

        Args:
            state: the failover.
            found: where groups go on.

        Raises:
            EnvironmentFault: AB311, the target does not take it that they were moved.
        """
        some, states = list(found), self._states()
        stays = [one for one in some if self._stays(one, states)]
        exact = [one for one in some if not self._stays(one, states)]
        done, wrong = placing.commit(
            self._target, (exact, stays), state.moved, lambda known: self._failovers.put_moved(state, known)
        )
        return Moved(done, tuple(dict.fromkeys(wrong.values())), tuple(carry.further(stays)))


def _source(cluster: Cluster) -> Groups:
    try:
        return Groups(cluster)
    except Unreachable as error:
        remedy = (
            "wait until it answers; if it is gone for good, or for too long, go on with --source-lost: groups then go "
            "on where their last checkpoints tell"
        )
        raise Unreachable([replace(problem, remedy=remedy) for problem in error.problems]) from None
