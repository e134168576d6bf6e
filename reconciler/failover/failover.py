"""The steps of a failover. `cli/failover` runs them in order.

Each step is idempotent: a command that died is run again and goes on where it stopped.
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
from reconciler.failover.options import FailoverOptions
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
class MovedGroups:
    """Outcome of committing group offsets at the target.

    Attributes:
        count: the number of committed offsets.
        problems: why others were not committed.
        further: positions that were left unchanged, as their groups are further on at the target.
    """

    count: int
    problems: tuple[Problem, ...]
    further: tuple[Carried, ...]


class Failover:
    """The failover of one flow.

    1. `plan` reads both clusters: records not copied, group positions, groups without a position at the target.
    2. `check_allowed` refuses what the options do not allow to be left behind.
    3. `wait_until_caught_up` waits for the flow to copy everything (`--until-caught-up` alone).
    4. `begin` writes the phase `ending` to the journal at the target; every `replicate` drains the flow.
    5. `wait_until_ended` waits until the flow's group has no members.
    6. `wait_until_settled` aborts transactions of dead tasks, and waits until copies are fully replicated.
    7. `check_left` checks once more what would be left behind, now that the flow has ended.
    8. `cut` records where each copy ends, and the phase `over`.
    9. `carried` translates group positions; `move` commits them at the target.

    Args:
        topology: the declaration.
        flow: one of its flows.
        options: how it is done.

    Raises:
        Unreachable: AB310, the target does not answer, or the source does not and is not treated as lost.
        EnvironmentFault: what `clients.make` raises.
        Refused: AB423, a cluster is not the declared one.
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
        """The recorded state of the failover; None if it has not begun."""
        return self._failovers.current().get(self._flow.name)

    def plan(self) -> FailoverPlan:
        """Read both clusters, and return what the failover would do.

        Raises:
            DeclaredInputError: AB700, the flow has no copies; or a named group cannot be moved.
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
        """Return how far each partition was copied, and how many records of its original were not.

        Copies that are already cut count up to their cuts: later records are not the flow's. A backlog of more than a
        million offsets is not read; its offsets are counted, which may be more than its records.

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
        # Topics and partitions may have been added since the last refresh.
        self._source.refresh()
        missing = cuts.without_copy(self._flow, self._topology.aliases, found, self._source.partitions)
        found += [*cuts.not_begun(found, self._source.partitions), *missing]
        self._originals = remaining.Originals.of(self._source, found)
        return remaining.counted(self._source, found, remaining.SourceView(self._originals, self._flow))

    def carried(self, found: Iterable[Crossing]) -> list[Carried]:
        """Return the position of each group at the target.

        Args:
            found: what `crossings` returned.

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
        """Return the recorded states of all flows between the two clusters, as a group may read copies of several."""
        pair = self._flow.source, self._flow.target
        names = {flow.name for flow in self._topology.flows if (flow.source, flow.target) == pair}
        return [state for name, state in self._failovers.current().items() if name in names]

    def _stays(self, one: Carried, states: Iterable[FailedOver]) -> bool:
        """Return whether a group must not go back: it may have read on, or its position is from a checkpoint alone."""
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
        """Check that the recorded state is still that of the plan; errors are those of `Failovers`."""
        self._failovers.check_same(plan.flow, plan.state)

    def begin(self) -> FailedOver:
        """Record that the flow is ending; every `replicate` reads this within a second and drains the flow.

        A failback whose source is lost again is aborted: records that it copied back stay, and the next failback finds
        them.

        Raises:
            EnvironmentFault: AB311, the record cannot be written at the target.
        """
        state = self.state or FailedOver(self._flow.name, "ending", time.time(), user())
        if state.phase == "returning":
            # The next failback commits exact positions, forward or back.
            self._failovers.forget_returned(state)
            state = replace(state, phase="over", returned={})
        self._failovers.put(state)
        return state

    def wait_until_ended(self, patience: float, beat: Beat) -> None:
        """Wait until no task copies the flow.

        Args:
            patience: seconds to wait at most.
            beat: called during the wait.

        Raises:
            EnvironmentFault: AB702, the flow is still copied; nothing was changed, and its phase stays `ending`.
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
        """Wait until the ends of copies are final; transactions that dead tasks of the flow left open are aborted.

        Args:
            state: the failover.
            patience: seconds to wait at most.
            beat: called during the wait.

        Raises:
            EnvironmentFault: AB718, an end may still change; no offsets were committed, and the phase stays `ending`.
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
        """Check that everything that would be left behind is allowed to be.

        Raises:
            Refused: AB729, records would stay behind; AB730, a group would have no position; AB731, records wait
                for the end of a transaction.
        """
        is_cut = plan.state is not None and plan.state.phase == "over"
        problems = list(objections.without_place(plan.without, self._where, plan.target, allowed))
        if not is_cut and not until_caught_up:
            problems[:0] = objections.left_behind(plan.crossings, self._where, plan.source, allowed)
        if problems:
            raise Refused(problems)

    def wait_until_caught_up(self, patience: float, beat: Beat, allowed: Allowance) -> None:
        """Wait until all records of the source are copied, but those that may be left behind.

        Args:
            patience: seconds to wait at most.
            beat: called during the wait.
            allowed: what may be left behind.

        Raises:
            EnvironmentFault: AB707, records are not copied, or cannot be counted; nothing was changed.
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
        """Check that a flow that has ended has left nothing behind but what may be left.

        Raises:
            EnvironmentFault: AB707, it was to catch up, and has not; no offsets were committed.
            Refused: AB729 or AB731, as in `check_allowed`.
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
        """Record where the copies end, and that the flow is failed over.

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
        """Commit group offsets at the target, and record which.

        A group that an earlier attempt moved never goes back, as it may have read on; nor does a group whose position
        is from a checkpoint alone.

        Args:
            state: the failover.
            found: what `carried` returned.

        Raises:
            EnvironmentFault: AB311, the record cannot be written at the target.
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
