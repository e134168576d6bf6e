"""Rounds: translate the committed offsets of a flow's groups to the copies, again and again.

Each round writes checkpoints in MirrorMaker 2's format, where something moved, and commits the same positions at the
target where the flow declares so. `service` runs them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.checkpoints.groups.bounds import TopicRefused
from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.groups.retention import retention_seconds
from reconciler.checkpoints.mirrormaker.formats import Checkpoint, CheckpointKey
from reconciler.checkpoints.service.emit import CheckpointWriter, HeartbeatWriter
from reconciler.checkpoints.service.syncing import GroupStanding, SyncedOffsets
from reconciler.checkpoints.translation.translate import Translator
from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import LastLook, SyncedGroup
from reconciler.model.offsets.committed import Committed, Move
from reconciler.model.offsets.translation import Translated
from reconciler.state.ownership import Ownership
from reconciler.state.status import LookWriter

HAS_MEMBERS = "AB626"
_OFTEN = 24 * 3600.0
_PER_RETENTION = 3


@dataclass(frozen=True)
class RoundResult:
    """What one round did.

    Attributes:
        groups: the number of groups read.
        positions: the number of positions translated.
        unknown: why others were not, by original topic, each once.
        written: checkpoints that were written.
        taken_back: checkpoints of groups and positions that are gone.
        committed: offsets that were committed at the target.
        present: groups with members at the target, which are left alone.
        problems: what failed, for each group.
    """

    groups: int = 0
    positions: int = 0
    unknown: Mapping[str, str] = field(default_factory=dict)
    written: int = 0
    taken_back: int = 0
    committed: int = 0
    present: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class Rounds:
    """The rounds of one flow.

    Args:
        source: the flow's source cluster.
        target: its target cluster.
        flow: which one.
        topology: name of its topology.
        aliases: the clusters of the topology.
    """

    def __init__(self, source: Cluster, target: Cluster, flow: Flow, topology: str, aliases: Collection[str]) -> None:
        self._source = source
        self._target = target
        self._flow = flow
        self._topology = topology
        self._aliases = aliases
        self._translator = Translator(source, target, flow, topology, one_by_one=True)
        self._writer = CheckpointWriter(target, flow.source, flow.checkpoints_separator)
        self._heart = HeartbeatWriter(target, flow.source, flow.target, whose=(topology, flow.name))
        self._look = LookWriter(target, topology, flow.name)
        # By alias; made in the first round that needs them.
        self._groups: dict[str, Groups] = {}
        self._synced = SyncedOffsets()
        # When an offset was last committed, by this process.
        self._committed_at: dict[CheckpointKey, float] = {}
        self._renew_after: float | None = None
        self._round_of: dict[str, float] = {}

    def close(self) -> None:
        """Close the connections."""
        self._translator.close()
        self._writer.close()
        for one in self._groups.values():
            one.close()

    def round(self) -> RoundResult:
        """Translate all groups of the flow once.

        Raises:
            AnabranchError: a cluster does not answer, or refuses something that all groups need.
        """
        there = self._groups_of(self._source)
        kinds = there.kinds()
        taken = [name for name in kinds if self._flow.groups.takes(name)]
        against = {name: problem for name in taken if (problem := there.against(name, kinds, may_create=True))}
        told, hidden = there.told([name for name in taken if name not in against])
        groups = [name for name in taken if name not in against and name not in hidden]
        checkpoints, unknown, closed = self._translated([one for one in told if self._takes(one.topic)])
        # Another process may have been the leader, or count itself so; other flows write there, too.
        known, standing = self._writer.known, self._writer.refresh()
        self._synced.forget(known, standing)
        self._synced.learn(standing)
        written = self._writer.emit(checkpoints)
        taken_back, unseen = self._take_back(there, kinds.keys(), {one.key for one in checkpoints}, unknown, hidden)
        standing = self._writer.standing()
        self._synced.forget(standing, standing)
        alone, shared = self._not_shared(checkpoints)
        done, present, failed = self._commit(alone)
        now = time.time()
        self._heart.beat(int(now * 1_000), len(groups))
        self._look.write(LastLook(now, len(groups), self._by_group(now, groups, against | hidden)))
        return RoundResult(
            groups=len(groups),
            positions=len(checkpoints),
            unknown=unknown,
            written=written,
            taken_back=taken_back,
            committed=done,
            present=present,
            problems=tuple(dict.fromkeys([*against.values(), *hidden.values(), *unseen, *closed, *shared, *failed])),
        )

    def _by_group(self, now: float, synced: Iterable[str], refused: Mapping[str, Problem]) -> tuple[SyncedGroup, ...]:
        """Return when each group was last synced by this process; refused ones first, with their codes."""
        # A group that is gone and comes back begins anew.
        before = {name: self._round_of[name] for name in refused if name in self._round_of}
        self._round_of = before | dict.fromkeys(synced, now)
        waiting = [SyncedGroup(name, before.get(name, 0.0), one.code) for name, one in sorted(refused.items())]
        return (*waiting, *(SyncedGroup(name, now) for name in sorted(synced)))

    def _groups_of(self, cluster: Cluster) -> Groups:
        """Return the groups of one side, with its topics and brokers read anew."""
        if cluster.alias in self._groups:
            self._groups[cluster.alias].refresh()
        else:
            self._groups[cluster.alias] = Groups(cluster)
        return self._groups[cluster.alias]

    def _takes(self, topic: str) -> bool:
        return self._flow.takes(topic, self._aliases)

    def _translated(
        self, committed: Iterable[Committed]
    ) -> tuple[list[Checkpoint], dict[str, str], Collection[Problem]]:
        """Return positions as checkpoints, why other topics have none at the target, and what is refused to us."""
        found: list[Checkpoint] = []
        unknown: dict[str, str] = {}
        all_of_them = list(committed)
        # A topic without committed offsets is not looked up: it may be gone, with the permission to read it.
        self._translator.refresh({(one.topic, one.partition) for one in all_of_them}, only=True)
        topics = {one.topic for one in all_of_them}
        closed = {topic: problem for topic, problem in self._translator.closed.items() if topic in topics}
        for one in all_of_them:
            try:
                there = self._translator.downstream(one.topic, one.partition, one.offset)
            except TopicRefused as error:
                # DESCRIBE may be allowed, and READ refused where both logs must be read.
                (closed[one.topic],) = error.problems
                there = Translated(None, "unknown", closed[one.topic].message)
            if there.offset is None:
                unknown.setdefault(one.topic, f"{one.topic}/{one.partition} of group {one.group}: {there.why}")
                continue
            remote = self._flow.remote_topic(one.topic)
            found.append(Checkpoint(one.group, remote, one.partition, one.offset, there.offset, one.metadata))
        return found, unknown, closed.values()

    def _not_shared(self, checkpoints: Sequence[Checkpoint]) -> tuple[list[Checkpoint], list[Problem]]:
        """Leave out positions in copies that other flows fill, too.

        Records before a group's offset may be of a source of which it has read nothing yet.
        """
        if not self._flow.groups.sync_offsets:
            return [], []
        shared = self._translator.shared()
        alone: list[Checkpoint] = []
        problems: dict[str, Problem] = {}
        for one in checkpoints:
            if not (names := shared.get((one.topic, one.partition))):
                alone.append(one)
                continue
            message = f"flow {' and flow '.join(names)} fills it as well: offsets of groups are not committed there"
            remedy = "let flows fill topics of their own (policy), or commit by hand: `anabranch offsets translate`"
            problems[one.topic] = Problem("AB716", f"{self._target.where}, topic {one.topic}", message, remedy)
        return alone, list(problems.values())

    def _take_back(
        self,
        there: Groups,
        listed: Collection[str],
        now: Collection[CheckpointKey],
        unknown: Mapping[str, str],
        hidden: Collection[str],
    ) -> tuple[int, Collection[Problem]]:
        """Withdraw checkpoints of groups that are gone, and of positions that groups of this flow have no longer.

        Other flows from the same source write into the same topic: theirs are left to them.

        Returns:
            How many, and the errors of groups that may or may not be gone.
        """
        ours = {key.group for key in self._writer.standing() if self._flow.groups.takes(key.group)}
        missing = ours.difference(listed)
        # Some are only refused to our user: theirs stay. Others were not listed just now, as where their coordinator is
        # moving.
        told, unseen = there.told(sorted(missing))
        unlisted = {one.group for one in told}.union(hidden, unseen)
        missing -= unlisted
        remotes = {self._flow.remote_topic(topic) for topic in there.partitions if self._takes(topic)}
        # A position that cannot be translated just now keeps its checkpoint.
        remotes -= {self._flow.remote_topic(topic) for topic in unknown}

        def is_gone(key: CheckpointKey) -> bool:
            is_taken = key not in now and key.group not in unlisted and self._flow.groups.takes(key.group)
            return is_taken and (key.topic in remotes or key.group in missing)

        others = self._of_others({key.topic for key in self._writer.standing() if is_gone(key)})
        return self._writer.take_back(lambda key: is_gone(key) and key.topic not in others), unseen.values()

    def _of_others(self, remotes: Collection[str]) -> set[str]:
        """Return which remote topics are on record as copies of other flows, of this topology or another.

        The topic of checkpoints is named after the source's alias, which another topology may have for a cluster of its
        own: its groups are never missing here.
        """
        if not remotes:
            return set()
        names = self._groups_of(self._target).partitions
        records = Ownership(self._target, self._topology).read_everywhere(names).topics
        mine = self._topology, self._flow.name
        return {name for name in remotes if name in records and (records[name].topology, records[name].flow) != mine}

    # --- committing at the target ------------------------------------------------------------------------------------

    def _commit(self, checkpoints: Collection[Checkpoint]) -> tuple[int, tuple[str, ...], tuple[Problem, ...]]:
        """Commit positions at the target; return how many, the groups with members there, and what failed."""
        if not self._flow.groups.sync_offsets:
            return 0, (), ()
        here = self._groups_of(self._target)
        told, hidden = here.told(sorted({one.group for one in checkpoints}))
        checkpoints = [one for one in checkpoints if one.group not in hidden]
        committed = {CheckpointKey(one.group, one.topic, one.partition): one.offset for one in told}
        moves: dict[str, list[Move]] = {}
        lacking: set[CheckpointKey] = set()
        for one in checkpoints:
            standing = GroupStanding(one.upstream, one.downstream, self._synced.before(one.key), committed.get(one.key))
            if standing.is_to_move:
                lacking.add(one.key)
            if standing.is_to_move or self._is_to_renew(one, standing):
                move = Move(
                    one.group,
                    one.topic,
                    one.partition,
                    standing.committed,
                    one.downstream,
                    one.downstream,
                    one.metadata,
                )
                moves.setdefault(one.group, []).append(move)
        failed = here.commit(moves)
        now = time.monotonic()
        done = [move for some in moves.values() for move in some if move not in failed]
        keys = {CheckpointKey(one.owner, one.topic, one.partition) for one in done}
        self._committed_at |= dict.fromkeys(keys, now)
        lacking -= keys
        for one in checkpoints:
            self._synced.note(one.key, one.upstream, is_in_line=one.key not in lacking)
        present = tuple(sorted({move.owner for move, problem in failed.items() if problem.code == HAS_MEMBERS}))
        others = (problem for problem in failed.values() if problem.code != HAS_MEMBERS)
        return len(done), present, (*hidden.values(), *dict.fromkeys(others))

    def _is_to_renew(self, one: Checkpoint, standing: GroupStanding) -> bool:
        """Return whether an unchanged offset is committed again: brokers expire those of groups without members."""
        if standing.committed != one.downstream:
            return False
        if self._renew_after is None:
            self._renew_after = min(_OFTEN, retention_seconds(self._target) / _PER_RETENTION)
        last = self._committed_at.get(one.key)
        return last is None or time.monotonic() - last > self._renew_after
