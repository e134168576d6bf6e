"""The steps of a failback. `cli/failback` runs them in order.

Each step is idempotent: a command that died is run again and goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover import objections
from reconciler.failover.groups import group_commits, group_positions
from reconciler.failover.logs import offset_lookup, reverse_flows
from reconciler.failover.logs.cuts import TRANSLATED
from reconciler.failover.logs.divergence import Divergence, grown_since_export
from reconciler.failover.logs.handover import Handover, hand_over, log_states
from reconciler.failover.logs.progress_back import ProgressBack, by_way
from reconciler.failover.logs.source_losses import lowered
from reconciler.failover.logs.topic_identity import TopicIdentity, lookalikes
from reconciler.failover.options import FailbackOptions
from reconciler.failover.return_paths import paths_back
from reconciler.failover.topics.diverged import Part, by_topic
from reconciler.failover.topics.recreation import recreate
from reconciler.model.base.errors import DeclaredInputError, Problem, Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import lease_group
from reconciler.model.offsets.committed import Log
from reconciler.model.recorded.failover import Allowance, Carried, Cut, FailbackPlan, FailedOver, WithoutPlace
from reconciler.model.recorded.ownership import kafka_id
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.state.failovers import Failovers
from reconciler.state.ownership import Ownership


class Failback:
    """The failback of one flow.

    1. `plan` reads both clusters: new records of copies, records that were never copied, group positions.
    2. `check_divergence` and `check_places` refuse what the options do not allow.
    3. `dropped` counts the records that rebuilt originals would lose; the caller exports them.
    4. `begin` records the phase `returning`, and hands logs of originals to the flows that copy back.
    5. `rebuild` deletes and makes again the originals that are named.
    6. `look`, `begin`, `not_back` and the flows of `specs` are repeated until all is copied back.
    7. `hand_back` lets the flow go on after the new records, on both sides; if a copy has grown, step 6 again.
    8. `uncrossed` reports records that were written at the source meanwhile.
    9. `carried` translates group positions; `move` commits them at the source.
    10. `end` deletes the record: the flow runs again.

    Args:
        topology: the declaration.
        flow: one of its flows.
        options: how it is done.

    Raises:
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: what `clients.make` raises.
        Refused: AB423, a cluster is not the declared one.
    """

    def __init__(self, topology: Topology, flow: Flow, options: FailbackOptions) -> None:
        self._topology = topology
        self._flow = flow
        self._options = options
        self._source = Groups(topology.clusters[flow.source])
        self._target = Groups(topology.clusters[flow.target])
        self._divergence = Divergence(self._source, self._target, options.rebuild, options.leave_out)
        self._identity = TopicIdentity(topology.name, flow, self._source, self._target)
        self._progress = ProgressBack(topology.name, flow, self._source, self._target)
        self._failovers = Failovers(self._target.cluster, topology.name)

    def close(self) -> None:
        """Close the connections."""
        self._failovers.close()
        self._source.close()
        self._target.close()

    @property
    def state(self) -> FailedOver:
        """The recorded state of the failover.

        Raises:
            Refused: AB703, the flow is not failed over.
        """
        state = self._failovers.current().get(self._flow.name)
        if state is None:
            where = f"{self._target.cluster.where}, flow {self._flow.name}"
            raise Refused(Problem("AB703", where, "it is not failed over", "there is nothing to fail back"))
        return state

    # --- reading -----------------------------------------------------------------------------------------------------

    def plan(self) -> FailbackPlan:
        """Read both clusters, and return what the failback would do.

        Raises:
            Refused: AB703, the flow is not failed over.
            DeclaredInputError: AB704, a topic to rebuild is not copied by the flow, or has not diverged;
                AB711, an original lacks partitions; AB715, one is gone.
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        plan = self.look()
        wrong = objections.bad_leave_outs(plan, self._options.leave_out, self._source.partitions)
        if problems := [*objections.bad_rebuilds(plan, self._options.rebuild), *wrong]:
            raise DeclaredInputError(problems)
        if plan.state.phase == "ending":
            # No offsets were committed, and no producer may write to the copies: the failover is cancelled.
            return replace(plan, notices=())
        dropped = by_topic(self.dropped(plan))
        ours = Ownership(self._target.cluster, self._topology.name).read()
        groups = tuple(self.carried(plan))
        return replace(
            plan,
            topics=tuple(replace(one, dropped=dropped.get(one.topic, 0)) for one in plan.topics),
            groups=groups,
            without=tuple(self._without(plan, groups)),
            notices=(*plan.notices, *lookalikes(self._flow, self._topology.aliases, self._target.partitions, ours)),
        )

    def look(self) -> FailbackPlan:
        """Return the plan for topics alone; errors are those of `plan`, but AB704."""
        self._source.refresh()
        self._target.refresh()
        state = self.state
        there, left_out = self._divergence.cuts(state.cuts)
        cuts, others, notes = self._identity.checked(there)
        same = {topic: cut for topic, cut in cuts.items() if topic not in others}
        whole = lowered(self._topology.name, self._flow, self._source, self._target, same, self._options.rebuild)
        cuts, mixed = self._progress.checked(cuts | whole.cuts)
        topics = tuple(self._divergence.topics(cuts, whole.parted | others))
        first = f"stop the producers and consumers at {self._flow.target} first"
        notice = f"{first}: what they write and commit later is not taken along"
        names = self._flow.name, self._flow.source, self._flow.target
        notices = notice, *left_out, *notes, *whole.notices, *mixed
        return FailbackPlan(*names, state, topics, (), notices, cuts)

    def check_divergence(self, plan: FailbackPlan) -> None:
        """Check that all new records of copies can be copied back.

        Raises:
            Refused: AB705, originals have diverged, and `--rebuild` does not name them.
        """
        if problems := list(objections.diverged(plan, self._source.cluster.where)):
            raise Refused(problems)

    def check_places(self, plan: FailbackPlan, allowed: Allowance) -> None:
        """Check that the groups that would have no position are allowed to have none.

        Raises:
            Refused: AB730, a group is not.
        """
        where = f"{self._source.cluster.where}, flow {plan.flow}"
        if problems := list(objections.without_place(plan.without, where, plan.source, allowed)):
            raise Refused(problems)

    def check_same(self, plan: FailbackPlan) -> None:
        """Check that the recorded state is still that of the plan; errors are those of `Failovers`."""
        self._failovers.check_same(plan.flow, plan.state)

    def dropped(self, plan: FailbackPlan) -> dict[Part, int]:
        """Return the parts of originals to rebuild whose records their copies do not have, with the number of records.

        These were never copied, or the copies have lost them.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        cuts = [plan.cuts[one.topic] for one in plan.topics if one.is_rebuilt]
        there = [
            replace(cut, ends=cut.ends[: self._source.partitions[cut.topic]])
            for cut in cuts
            if cut.anew != "made" and cut.topic in self._source.partitions
        ]
        if not there:
            return {}
        starts = self._divergence.bounds(self._target, ((cut.remote, cut) for cut in there))
        clusters = self._source.cluster, self._target.cluster
        begins = offset_lookup.begins(self._topology.name, clusters, self._flow, there, starts)
        return self._divergence.dropped(there, begins)

    # --- copying back ------------------------------------------------------------------------------------------------

    def begin(self, plan: FailbackPlan) -> None:
        """Record that the failback has begun; before, logs of originals are handed to the flows that copy back.

        Raises:
            AnabranchError: a cluster does not answer, or refuses.
        """
        fresh = [one for one in plan.topics if one.is_new and not one.is_rebuilt and not plan.cuts[one.topic].is_handed]
        for way, cuts in by_way(plan, fresh).items():
            there = log_states(self._target.cluster, _logs_of(cuts, "remote"))
            flow = reverse_flows.backward(self._flow, way, cuts)
            if way == "identical":
                reverse_flows.hand_originals(self._topology, flow, cuts, there)
            else:
                reverse_flows.place_translated(self._topology, flow, cuts, self._source, there)
        state = self.state
        cuts_now = dict(state.cuts)
        for one in fresh:
            cuts_now[one.topic] = replace(plan.cuts[one.topic], is_handed=True)
        for one in plan.topics:
            if one.is_rebuilt:
                # An earlier attempt may have made it again already.
                cut = plan.cuts[one.topic]
                cuts_now[one.topic] = replace(cut, anew=cut.anew or "wanted")
        after = replace(state, phase="returning", cuts=cuts_now)
        if after != state:
            self._failovers.put(after)

    def rebuild(self, plan: FailbackPlan, kept: Mapping[Log, int]) -> list[str]:
        """Delete originals that are to be rebuilt, and make them again; return their names.

        Args:
            plan: what is copied back: an original whose copy is gone is not deleted.
            kept: the log ends of originals when their records were exported.

        Raises:
            Refused: AB712, an original has grown since.
            AnabranchError: a cluster does not answer, or refuses.
        """
        wanted = [cut for topic, cut in self.state.cuts.items() if cut.anew == "wanted" and topic in plan.cuts]
        self._check_grown(wanted, kept)
        for cut in wanted:
            # Rebuilding the others may have taken long.
            self._check_grown([cut], kept)
            self._forget_returned(cut.topic)
            recreate(self._source.cluster, self._topology.name, cut.topic)
            state = self.state
            self._failovers.put(replace(state, cuts={**state.cuts, cut.topic: replace(cut, anew="made")}))
        return [cut.topic for cut in wanted]

    def _check_grown(self, cuts: Iterable[Cut], kept: Mapping[Log, int]) -> None:
        if grown := sorted(log for log, end in self._divergence.ends(cuts).items() if end > kept.get(log, 0)):
            raise Refused([grown_since_export(self._source, log) for log in grown])

    def _forget_returned(self, topic: str) -> None:
        """Forget offsets committed in an original that is made again: its new log has other offsets."""
        state = self.state
        known = {group: placed.without(topic) for group, placed in state.returned.items()}
        self._failovers.put_returned(
            state, {group: placed for group, placed in known.items() if placed != state.returned[group]}
        )

    def ends(self, plan: FailbackPlan) -> dict[Log, int]:
        """Return the log ends of the originals that are to be rebuilt."""
        return self._divergence.ends(plan.cuts[one.topic] for one in plan.topics if one.is_rebuilt)

    def specs(self, plan: FailbackPlan, run: str) -> list[FlowSpec]:
        """Return the flows that copy back; empty if no copy has new records."""
        copied = [one for one in plan.topics if one.is_copied]
        return [
            reverse_flows.spec(self._topology, reverse_flows.backward(self._flow, way, cuts), run)
            for way, cuts in by_way(plan, copied).items()
        ]

    def not_back(self, plan: FailbackPlan) -> list[Log]:
        """Return the partitions of copies with records that are not copied back yet.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        return self._progress.left(plan)

    # --- handing the flow its copies back ----------------------------------------------------------------------------

    def hand_back(self, plan: FailbackPlan) -> list[Log]:
        """Hand the flow its copies, so that it goes on after the new records on both sides.

        Returns:
            The partitions of copies with records that are not at the source; if there are any, nothing was handed over.

        Raises:
            AnabranchError: a cluster does not answer, or refuses.
        """
        # The flow stops at records that reach a copy after this: they are beyond the end that it was handed.
        here = log_states(self._source.cluster, _logs_of(plan.cuts.values(), "topic"))
        there = log_states(self._target.cluster, _logs_of(plan.cuts.values(), "remote"))
        if left := self._progress.left_at(plan, here, there):
            return left
        owned = Ownership(self._target.cluster, self._topology.name).read()
        handovers: dict[Log, Handover] = {}
        positions = reverse_flows.expired(self._topology.name, self._flow, self._target, plan)
        same = by_way(plan, [one for one in plan.topics if one.is_copied]).get("identical", [])
        back = reverse_flows.backward(self._flow, "identical", same)
        runs = reverse_flows.runs_back(self._topology.name, self._source, back, same) if same else {}
        for one in plan.topics:
            cut, record = plan.cuts[one.topic], owned[one.remote]
            if one.is_rebuilt and self._flow.offsets != TRANSLATED:
                record = replace(record, offsets="identical")
            for number, (_, cut_at) in enumerate(cut.ends):
                log, stand = (cut.remote, number), here[cut.topic, number]
                if not one.is_rebuilt and there[log].end <= cut_at:
                    # No new records: the flow goes on where it was.
                    continue
                end = stand.end if one.is_rebuilt else None
                handovers[log] = Handover(stand.topic_id, there[log], end, runs.get((cut.topic, number)))
                if record.offsets == TRANSLATED:
                    epoch = stand.epoch if stand.epoch >= 0 else None
                    positions[log] = stand.end, OffsetMetadata(stand.topic_id, there[log].topic_id, epoch=epoch)
            if one.is_rebuilt:
                anew = kafka_id(here[cut.topic, 0].topic_id) or record.source_topic_id
                Ownership(self._target.cluster, self._topology.name).write([replace(record, source_topic_id=anew)])
        hand_over(self._target.cluster, self._topology.name, self._flow.name, handovers)
        reverse_flows.commit(self._target, lease_group(self._topology.name, self._flow.name), positions)
        return []

    def uncrossed(self, plan: FailbackPlan) -> list[Problem]:
        """Return a problem for each original that was written to while its copy, with translated offsets, came back.

        These records are never copied.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        copied = [one for one in plan.topics if one.is_copied]
        if not (cuts := by_way(plan, copied).get("translated", [])):
            return []
        clusters = self._target.cluster, self._source.cluster
        return self._divergence.uncrossed(
            self._topology.name, clusters, reverse_flows.backward(self._flow, "translated", cuts), cuts
        )

    # --- groups ------------------------------------------------------------------------------------------------------

    def carried(self, plan: FailbackPlan) -> list[Carried]:
        """Return the position of each group at the source.

        Raises:
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        ways: group_positions.Paths = group_positions.paths(self._topology, self._target, self._source)
        remotes = {cut.remote for cut in plan.cuts.values()}
        read = group_positions.logical(self._flow, self._topology, ways, remotes)
        groups = group_positions.groups_that_read(self._target, read, self._options.groups, self._flow)
        if plan.state.phase == "returning":
            ways = paths_back(ways, plan, self._flow, self._target)
        found = group_positions.carried(
            self._topology, self._target, self._source, self._target.committed(groups), ways
        )
        anew = {one.remote for one in plan.topics if one.is_rebuilt and plan.cuts[one.topic].anew != "made"}
        # Offsets committed in a topic are deleted with it.
        found = [replace(one, before=None) if one.topic in anew else one for one in found]
        is_new, why = self._new(plan), f"left as it is: it stands further at {self._flow.source}"
        stays = {one for one in group_positions.further(found) if not is_new(one)}
        return [replace(one, why=why, stays=True) if one in stays else one for one in found]

    def _without(self, plan: FailbackPlan, found: Iterable[Carried]) -> Iterator[WithoutPlace]:
        """Yield the groups that get no position, as far as that is known before records are copied back."""
        copied = {one.remote for one in plan.topics if one.is_copied}
        yield from group_positions.without_place((one for one in found if one.topic not in copied), self._flow.source)
        remotes = {cut.remote for cut in plan.cuts.values()}
        ways = group_positions.paths(self._topology, self._target, self._source)
        read = group_positions.logical(self._flow, self._topology, ways, remotes)
        yield from group_positions.not_moved(self._target, read, self._options.groups, self._flow)

    def _new(self, plan: FailbackPlan) -> Callable[[Carried], bool]:
        """Return a predicate: whether a position is committed exactly, even backwards; others only move forward."""
        returned = self.state.returned
        rebuilt = {one.remote for one in plan.topics if one.is_rebuilt}
        ends = {(cut.remote, number): end for cut in plan.cuts.values() for number, (_, end) in enumerate(cut.ends)}

        def is_new(one: Carried) -> bool:
            log = one.topic, one.partition
            is_behind = one.topic in rebuilt or (log in ends and one.offset > ends[log])
            return is_behind and not self._options.only_forward and not group_commits.may_have_read_on(one, returned)

        return is_new

    def move(self, plan: FailbackPlan, found: Iterable[Carried]) -> tuple[int, list[Problem]]:
        """Commit group offsets at the source; return their number, and why others were not committed.

        A group does not go back if it was further on at the source when the copy was cut, has read on there since, or
        was moved there by an earlier attempt, as it may have read on.
        """
        state, is_new, some = self.state, self._new(plan), list(found)
        exact = [one for one in some if is_new(one)]
        forward = [one for one in some if not is_new(one)]
        done, wrong = group_commits.commit(
            self._source, (exact, forward), state.returned, lambda known: self._failovers.put_returned(state, known)
        )
        return done, [
            group_commits.refused(self._source.cluster.alias, move, problem) for move, problem in wrong.items()
        ]

    def end(self) -> None:
        """Delete the record of the failover: the flow runs again.

        Raises:
            EnvironmentFault: AB311, the record cannot be deleted at the target.
        """
        self._failovers.forget(self.state)


def _logs_of(cuts: Iterable[Cut], side: Literal["topic", "remote"]) -> list[Log]:
    return [(getattr(cut, side), number) for cut in cuts for number in range(len(cut.ends))]
