"""A failover, step by step: what is there, the end of the flow, where its copies were cut, and everybody's new place.

Each step may be done again: whoever died in the middle runs the command once more, and nothing is done twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover import objections
from reconciler.failover.groups import group_commits, group_positions
from reconciler.failover.groups.readers import Readers
from reconciler.failover.logs import cuts, remaining
from reconciler.failover.logs.flow_end import FlowEnd
from reconciler.failover.logs.quiesce import Quiesce
from reconciler.failover.logs.shared_copies import shared_copies
from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Problem, Refused, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.failover import Allowance, Carried, Crossing, FailedOver, FailoverPlan, total
from reconciler.state.failovers import Failovers
from reconciler.state.journals.user import user

_TICK = 0.25

Beat = Callable[[], None]
"""Called again and again during a wait; raises when the lock is lost, or the process is to stop."""


@dataclass(frozen=True)
class FailoverOptions:
    """How a failover is to go.

    Attributes:
        groups: names and regular expressions; None means those that the flow takes along, all where it names none.
        source_lost: whether the source is taken for gone.
        only_forward: whether groups that stand further at the target stay where they are.
    """

    groups: Sequence[str] | None = None
    source_lost: bool = False
    only_forward: bool = False


@dataclass(frozen=True)
class MovedGroups:
    """What became of positions.

    Attributes:
        count: how many were committed.
        problems: why others were not.
        further: those that were left as their groups stand further at the target.
    """

    count: int
    problems: tuple[Problem, ...]
    further: tuple[Carried, ...]


class Failover:
    """The failover of one flow.

    Args:
        topology: the declaration.
        flow: one of its flows.
        options: how it is to go.

    Raises:
        Unreachable: AB310, the target does not answer, or the source does not and is not taken for gone.
        EnvironmentFault: what `clients.make` raises.
        Refused: AB423, it is another cluster than the declared one.
    """

    def __init__(self, topology: Topology, flow: Flow, options: FailoverOptions) -> None:
        self._topology = topology
        self._flow = flow
        self._options = options
        self._target = Groups(topology.clusters[flow.target])
        self._source = None if options.source_lost else _source(topology.clusters[flow.source])
        self._failovers = Failovers(self._target.cluster, topology.name)
        self._originals = remaining.Originals()
        self._readers = Readers(topology, flow, self._source, self._target, options.groups)

    def close(self) -> None:
        """Close the connections."""
        self._failovers.close()
        self._target.close()
        if self._source is not None:
            self._source.close()

    @property
    def _where(self) -> str:
        return f"{self._target.cluster.where}, flow {self._flow.name}"

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
            raise Refused(objections.is_returning(self._flow.name, self._target.cluster))
        if state is None and (problems := shared_copies(self._topology, self._flow, self._target)):
            raise Refused(problems)
        found = self.crossings()
        groups = self.carried(found)
        return FailoverPlan(
            self._flow.name,
            self._flow.source,
            self._flow.target,
            state,
            self._source is None,
            tuple(found),
            tuple(groups),
            tuple(self._notices(found)),
            tuple(self._readers.without(found, groups)),
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
            remedy = "`anabranch apply` makes copies, `anabranch replicate` fills them"
            raise DeclaredInputError(
                Problem("AB700", self._where, "the flow has no copies: there is nothing to move groups to", remedy)
            )
        state = self.state
        if state is not None and state.phase != "ending":
            found = [cuts.as_cut(one, state.cuts.get(one.topic)) for one in found]
        if self._source is None:
            return found
        # Topics and partitions may have come since anybody looked.
        self._source.refresh()
        missing = cuts.without_copy(self._flow, self._topology.aliases, found, self._source.partitions)
        found += [*cuts.not_begun(found, self._source.partitions), *missing]
        self._originals = remaining.Originals.of(self._source, found)
        return remaining.counted(self._source, found, remaining.SourceView(self._originals, self._flow))

    def carried(self, found: Iterable[Crossing]) -> list[Carried]:
        """Return where groups go on.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        states = self._states()
        known = [cut for state in states for cut in state.cuts.values()]
        some = [cuts.before(one, known) for one in self._readers.carried(found)]
        further = {
            (one.group, one.topic, one.partition) for one in group_positions.further(some) if self._stays(one, states)
        }
        why = f"left as it is: it stands further at {self._flow.target}"
        return [
            replace(one, why=why, stays=True) if (one.group, one.topic, one.partition) in further else one
            for one in some
        ]

    def _states(self) -> list[FailedOver]:
        """Return the flows between the two clusters that are on record: groups read copies of several."""
        pair = self._flow.source, self._flow.target
        names = {flow.name for flow in self._topology.flows if (flow.source, flow.target) == pair}
        return [state for name, state in self._failovers.current().items() if name in names]

    def _stays(self, one: Carried, states: Iterable[FailedOver]) -> bool:
        """Tell whether a group is not to be taken back: it may have read on, or checkpoints alone tell of it."""
        if self._source is None or self._options.only_forward:
            return True
        return any(group_commits.may_have_read_on(one, state.moved) for state in states)

    def _notices(self, found: Sequence[Crossing]) -> Iterable[str]:
        for one in found:
            if one.copied < 0 < one.remote_end:
                log = f"{one.remote}/{one.partition}"
                yield f"how far {log} was copied is unknown: all records of its original count as not copied"
        if self._source is None:
            yield f"{self._flow.source} is treated as lost: records that were not copied cannot be counted"
        yield from self._originals.notices(self._flow)
        yield from self._readers.notices(found)

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
            FlowEnd(self._target.cluster, self._topology.name, self._flow.name),
        )
        try:
            while holders := ending.holders():
                beat()
                if time.monotonic() > deadline:
                    raise EnvironmentFault(objections.still_copied(holders, self._where, patience))
                time.sleep(_TICK)
        finally:
            ending.close()

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
        settling = Quiesce(self._target.cluster, self._topology.name, self._flow.name)
        try:
            while left := settling.left(logs.keys(), translated):
                beat()
                if time.monotonic() > deadline:
                    raise EnvironmentFault(objections.unsettled(left, self._where, patience))
                time.sleep(_TICK)
        finally:
            settling.close()

    def check_allowed(self, plan: FailoverPlan, allowed: Allowance, *, until_caught_up: bool) -> None:
        """Make sure that what would be left was said to be left.

        Raises:
            Refused: AB729, records would stay behind; AB730, a group would be without its place; AB731, records wait
                for the end of a transaction.
        """
        is_cut = plan.state is not None and plan.state.phase == "over"
        problems = list(objections.without_place(plan.without, self._where, plan.target, allowed))
        if not is_cut and not until_caught_up:
            problems[:0] = objections.left_behind(plan.crossings, self._where, plan.source, allowed)
        if problems:
            raise Refused(problems)

    def wait_until_caught_up(self, patience: float, beat: Beat, allowed: Allowance) -> None:
        """Wait until everything is copied that the source has, but what may be left.

        Raises:
            EnvironmentFault: AB707, it is not, or some of it could not be asked; nothing was changed.
        """
        deadline = time.monotonic() + patience
        while True:
            found = self.crossings()
            if allowed.covers(total(one.left for one in found)):
                return
            beat()
            if time.monotonic() > deadline:
                left = remaining.left(found)
                raise EnvironmentFault(
                    objections.not_caught_up(left, self._where, f"after {patience:g} s", ended=False)
                )
            time.sleep(_TICK)

    def check_left(self, allowed: Allowance, *, until_caught_up: bool) -> None:
        """Make sure that a flow that has ended has left nothing behind but what may be left.

        Raises:
            EnvironmentFault: AB707, it was to catch up before, and has not; this moves no group.
            Refused: AB729 or AB731, as `check_allowed` says.
        """
        if self._source is None:
            return
        found = self.crossings()
        if allowed.covers(total(one.left for one in found)):
            return
        if until_caught_up:
            left = remaining.left(found)
            raise EnvironmentFault(objections.not_caught_up(left, self._where, "the flow has ended, and", ended=True))
        raise Refused(objections.left_behind(found, self._where, self._flow.source, allowed, ended=True))

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

    def move(self, state: FailedOver, found: Iterable[Carried]) -> MovedGroups:
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
        done, wrong = group_commits.commit(
            self._target, (exact, stays), state.moved, lambda known: self._failovers.put_moved(state, known)
        )
        return MovedGroups(done, tuple(dict.fromkeys(wrong.values())), tuple(group_positions.further(stays)))


def _source(cluster: Cluster) -> Groups:
    try:
        return Groups(cluster)
    except Unreachable as error:
        remedy = (
            "wait until it answers; if it is lost, or away for too long, go on with --source-lost: groups then go on "
            "at their last checkpoints"
        )
        raise Unreachable([replace(problem, remedy=remedy) for problem in error.problems]) from None
