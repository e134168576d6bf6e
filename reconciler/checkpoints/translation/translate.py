"""Translates offsets of consumers to the other side of a flow, exactly: nothing repeated, nothing left out.

A source offset becomes that of the first copied record whose own source offset is at or behind it (`downstream`), a
target offset the source offset of the first record at or behind it (`upstream`, for failback). Copies with identical
offsets have the same ones, except in shifted runs, which the copy records hold. For translated copies the offset syncs
hold them (`history`); where syncs are missing, both logs are read and their records paired.

All answers are as of the last `refresh`; each costs a search among the topic's runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import TracebackType

from reconciler.checkpoints.translation.history import SyncHistory
from reconciler.checkpoints.translation.other_writers import fillers
from reconciler.checkpoints.translation.runs import Behind, Between, Found, Point, RunPoint
from reconciler.checkpoints.translation.sides import LogSides
from reconciler.checkpoints.translation.unsynced import UnsyncedGaps
from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.offsets.translation import How, Question, Translated, Way
from reconciler.replicator.partition.place import differ
from reconciler.state.copies import Copies
from reconciler.state.ownership import Ownership

_SECONDS = 10.0
_MOST_RECORDS = 2_000_000


class Translator:
    """Translates offsets of one flow.

    Args:
        source: the flow's source cluster; None where it is not available, as in a failover: then an offset that needs
            it is `unknown`, and one behind all that was copied is `ahead`.
        target: its target cluster.
        flow: which one.
        topology: name of its topology.
        most: the most records of one partition that are read where syncs are missing.
        one_by_one: whether a topic that is refused to our user is `unknown` and in `closed`, instead of an error for
            all.
    """

    def __init__(
        self,
        source: Cluster | None,
        target: Cluster,
        flow: Flow,
        topology: str,
        *,
        most: int = _MOST_RECORDS,
        one_by_one: bool = False,
    ) -> None:
        self._flow = flow
        self._most = most
        self._sides = LogSides(source, target, flow, _SECONDS, one_by_one=one_by_one)
        reads_committed = flow.isolation_level == "read_committed"
        self._originals = None if source is None else RecordReader(source, committed=reads_committed, seconds=_SECONDS)
        self._remotes = RecordReader(target, committed=True, seconds=_SECONDS)
        self._gaps = UnsyncedGaps(flow, self._originals, self._remotes, most)
        self._history = SyncHistory(target, flow.source, _SECONDS)
        self._copies = Copies.shared(target, topology)
        self._ownership = Ownership(target, topology, _SECONDS)
        self._wanted: set[Log] = set()
        self._modes: dict[str, str] = {}
        self._of_others: dict[Log, str] = {}
        # The ends of copies that hold less than their syncs cover.
        self._lost_from: dict[Log, int] = {}
        # What was read since the last look, so that it is read once: the first record behind a position at the source,
        # and answers for partitions that were never copied.
        self._next: dict[tuple[Log, int], int | None] = {}
        self._uncopied: dict[tuple[Log, Way], Behind | None] = {}

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        for one in (self._sides, self._originals, self._remotes, self._history):
            if one is not None:
                one.close()

    # --- looking at the clusters -------------------------------------------------------------------------------------

    def refresh(self, logs: Collection[Log] = (), *, only: bool = False) -> None:
        """Read both clusters: answers are as of this call.

        Args:
            logs: the partitions to translate, by their originals' names; earlier ones are read again. A partition that
                is not named here costs a look of its own.
            only: whether to drop the earlier ones.

        Raises:
            Unreachable: AB310, a cluster does not answer.
            EnvironmentFault: something there is refused; or what `clients.make` raises.
        """
        self._wanted = set(logs) if only else self._wanted | set(logs)
        self._look(self._wanted)

    def _look(self, logs: Collection[Log]) -> None:
        topics = {topic for topic, _ in logs}
        if topics - self._modes.keys():
            owned = self._ownership.read()
            owners = {topic: owned.get(self._flow.remote_topic(topic)) for topic in topics}
            # A mode that is not decided yet is read again: it may be decided by then.
            self._modes |= {topic: one.offsets for topic, one in owners.items() if one is not None}
        self._next.clear()
        self._uncopied.clear()
        self._gaps.look_again()
        wanted = self._sides.look(logs)
        self._copies.refresh()
        if any(self._mode(topic) != "identical" for topic in topics):
            self._history.refresh()
        ends = {log: end.target for log in wanted if (end := self._history.runs(log).end) is not None}
        lost = self._sides.lost(ends)
        for log in logs:
            self._lost_from.pop(log, None)
        self._lost_from |= lost
        self._see_what_is_told_of_others(wanted)

    def _see_what_is_told_of_others(self, logs: Collection[Log]) -> None:
        """Find the partitions whose syncs do not apply, as one side's topic was recreated under the same name.

        A partition without syncs, as a recreated topic may have more than the former, is judged by the others.
        """
        for log in logs:
            self._of_others.pop(log, None)
            topic, remote = log[0], self._flow.remote_topic(log[0])
            source_id, target_id = self._sides.ids[topic]
            own = [ids for ids in self._ids_told(log) if ids != (None, None)]
            # Copy records of a former remote topic of that name do not count.
            others = [ids for ids in self._copies.ids(self._flow.name, remote) if not differ(ids[1], target_id)]
            for told_source, told_target in own or others:
                if differ(told_source, source_id):
                    self._of_others[log] = f"{remote} holds records of another topic {topic}, which was made anew"
                if differ(told_target, target_id):
                    self._of_others[log] = f"{remote} was recreated, and has no offset syncs yet"

    def _ids_told(self, log: Log) -> Iterable[tuple[str | None, str | None]]:
        record = self._record(log)
        if record is not None:
            yield record.source_id, record.target_id
        note = self._history.note(log)
        yield note.source_id, note.target_id

    def _record(self, log: Log) -> CopyRecord | None:
        return self._copies.get(self._flow.name, self._flow.remote_topic(log[0]), log[1])

    @property
    def closed(self) -> Mapping[str, Problem]:
        """Why topics are refused to our user, by their names at the source, as of the last `refresh`."""
        return self._sides.closed

    def shared(self) -> dict[Log, list[str]]:
        """Return the remote partitions that other flows have copied into, too, and these flows, as of the last look."""
        remotes = {
            (self._flow.remote_topic(topic), number): self._sides.ids.get(topic) for topic, number in self._wanted
        }
        found = {
            remote: fillers(self._copies, self._flow.name, remote, ids[1])
            for remote, ids in remotes.items()
            if ids is not None
        }
        return {remote: names for remote, names in found.items() if names}

    # --- answering ---------------------------------------------------------------------------------------------------

    def answers(self, questions: Collection[Question]) -> list[Translated]:
        """Return the translations of some offsets, in order, as of one look at the clusters.

        Raises:
            AnabranchError: as `refresh`.
        """
        self.refresh({(one.topic, one.partition) for one in questions})
        return [self._answer((one.topic, one.partition), one.offset, one.way) for one in questions]

    def downstream(self, topic: str, partition: int, offset: int) -> Translated:
        """Return the target offset for a consumer of the source that has read up to `offset`.

        Args:
            topic: the original.
            partition: on both sides.
            offset: of the source, the next to be read: 0 or more.

        Raises:
            AnabranchError: as `refresh`.
        """
        return self._answer((topic, partition), offset, "downstream")

    def upstream(self, topic: str, partition: int, offset: int) -> Translated:
        """Return the source offset for a consumer of the target that has read up to `offset`.

        Raises:
            AnabranchError: as `refresh`.
        """
        return self._answer((topic, partition), offset, "upstream")

    def _answer(self, log: Log, offset: int, way: Way) -> Translated:
        if log not in self._wanted:
            self._wanted.add(log)
            self._look({log})
        if (why := self._sides.why_not.get(log[0]) or self._of_others.get(log)) is not None:
            return Translated(None, "unknown", why)
        if log not in self._sides.at_source or log not in self._sides.at_target:
            why = f"there is no partition {log[1]} of {log[0]} on both sides, or it has no leader"
            return Translated(None, "unknown", why)
        if self._is_identical(log):
            record = self._record(log)
            if record is None and self._originals is None and self._mode(log[0]) != "identical":
                return Translated(None, "unknown", self._nothing_tells(log))
            return self._by_record(log, offset, way, record or CopyRecord(None, None))
        found = self._found(log, offset, way)
        if way == "downstream" and (lost := self._lost_from.get(log)) is not None and _needed(found) > lost:
            why = f"{self._other_side(log, way)[1]} ends at {lost}, and has lost what it held behind that"
            return Translated(lost, "ahead", why)
        if isinstance(found, RunPoint):
            return self._checked(log, found.offset, "record", way)
        if isinstance(found, Behind):
            return self._behind(log, offset, way, found)
        return Translated(None, "unknown", self._nothing_tells(log))

    def _mode(self, topic: str) -> str:
        return self._modes.get(topic, self._flow.offsets)

    def _is_identical(self, log: Log) -> bool:
        mode = self._mode(log[0])
        if mode == "auto" and not self._flow.repeats and not self._history.is_behind:
            # The mode is not decided yet, or the topic is not ours: offset syncs decide, if they come with the records.
            return not len(self._history.runs(log))
        return mode == "identical"

    def _checked(self, log: Log, offset: int, how: How, way: Way, why: str = "") -> Translated:
        """Return an answer, unless what stood there is deleted."""
        bounds, name = self._other_side(log, way)
        if offset >= bounds.start:
            return Translated(offset, how, why)
        why = f"offset {offset} of {name} is deleted: its log begins at {bounds.start}"
        return Translated(None, "expired", why)

    def _other_side(self, log: Log, way: Way) -> tuple[LogBounds, str]:
        if way == "downstream":
            return self._sides.at_target[log], f"{self._flow.remote_topic(log[0])}/{log[1]}"
        return self._sides.at_source[log], f"{log[0]}/{log[1]}"

    # --- identical offsets -------------------------------------------------------------------------------------------

    def _by_record(self, log: Log, offset: int, way: Way, record: CopyRecord) -> Translated:
        if way == "upstream" and offset < record.origin:
            name = f"{self._flow.remote_topic(log[0])}/{log[1]}"
            why = f"{name} holds records of a topic {log[0]} that is deleted before {record.origin}"
            return Translated(None, "expired", why)
        found = record.runs.to_target(offset) if way == "downstream" else record.runs.to_source(offset)
        here, there = self._sides.at_source[log], self._other_side(log, way)[0]
        here = here if way == "downstream" else self._sides.at_target[log]
        if way == "upstream" and self._originals is None:
            # Only the end of the copy shows up to where the source is copied.
            copied = record.runs.to_source(here.stable)
            there = LogBounds(0, copied, copied)
        if found < there.stable:
            return self._checked(log, found, "record", way)
        if found == there.stable:
            return Translated(found, "end")
        if way == "upstream" and self._originals is not None:
            why = f"{log[0]}/{log[1]} ends at {there.stable}, and its copy has more"
        else:
            copied = record.runs.to_source(there.stable) if way == "downstream" else there.stable
            why = f"{self._flow.remote_topic(log[0])}/{log[1]} has copied up to {copied}"
        return Translated(there.stable, "ahead", self._past(offset, here.stable) or why)

    @staticmethod
    def _past(offset: int, end: int) -> str:
        return f"it is {offset - end:,} past the log's end" if offset > end else ""

    # --- offsets of their own ----------------------------------------------------------------------------------------

    def _found(self, log: Log, offset: int, way: Way) -> Found:
        runs = self._history.runs(log)
        look = runs.downstream if way == "downstream" else runs.upstream
        found = look(offset)
        if isinstance(found, Behind) and self._is_handed(log, found):
            # Other producers wrote to the copy behind that, and it was copied back: both logs hold it.
            found = Between(Point(found.position, found.end), None)
        if not isinstance(found, Between):
            return found
        if found.low is None and found.high is None:
            if (log, way) not in self._uncopied:
                self._uncopied[log, way] = self._before_all(log, way)
            return self._uncopied[log, way] or found
        if found.high is None and self._history.is_behind:
            return found
        pairs = self._gaps.read(log, found, (self._sides.at_source[log].start, self._sides.at_target[log].start))
        if pairs is None:
            return found
        runs.fill(found, pairs)
        return look(offset)

    def _is_handed(self, log: Log, found: Behind) -> bool:
        """Return whether a copy holds records that came while its flow was failed over, behind all syncs."""
        record = self._record(log)
        return record is not None and record.handed is not None and found.end < record.handed.end

    def _before_all(self, log: Log, way: Way) -> Behind | None:
        """Return the answer for a partition of which nothing was ever copied; None where that is not certain."""
        here, there = self._sides.at_source[log], self._sides.at_target[log]
        remote = self._flow.remote_topic(log[0]), log[1]
        if self._history.is_behind or not self._remotes.is_empty(remote, (there.start, there.stable)):
            return None
        # The flow declares where its copy will begin, which does not matter for an empty log.
        if way == "upstream" and (
            self._originals is None or not self._originals.is_empty(log, (here.start, here.stable))
        ):
            return None
        return Behind(here.start if way == "downstream" else here.stable, there.stable)

    def _nothing_tells(self, log: Log) -> str:
        if self._history.is_behind:
            return f"a transaction in {self._history.topic} is not ended yet; ask again"
        without = "not known without the source: " if self._originals is None else ""
        if not len(self._history.runs(log)):
            return f"{without}no offset sync in {self._history.topic} covers {log[0]}/{log[1]}"
        if without:
            return f"{without}the offset syncs for it are gone from {self._history.topic}"
        return (
            f"the offset syncs for it are gone from {self._history.topic}, and both logs hold more there "
            f"than {self._most:,} records, or different ones"
        )

    def _behind(self, log: Log, offset: int, way: Way, found: Behind) -> Translated:
        """Return the answer for an offset behind all that was copied."""
        if self._history.is_behind:
            return Translated(None, "unknown", self._nothing_tells(log))
        here, there = self._sides.at_source[log], self._sides.at_target[log]
        # From before the look at the syncs, which cover what came since, if they come in time.
        end = found.end if self._history.runs(log).may_repeat else max(there.stable, found.end)
        if way == "upstream":
            how: How = "ahead" if offset > end else "end"
            return self._checked(log, min(found.position, here.stable), how, way, self._past(offset, end))
        if offset > here.stable:
            return Translated(end, "ahead", self._past(offset, here.stable))
        first = self._first_behind(log, found.position) if offset > found.position else None
        if first is None or first >= offset:
            return Translated(end, "end")
        name = f"{self._flow.remote_topic(log[0])}/{log[1]}"
        return Translated(end, "ahead", f"{name} has copied up to {found.position}")

    def _first_behind(self, log: Log, position: int) -> int | None:
        """Return the offset of the first record at the source that is not copied; None where there is none yet."""
        if self._originals is None:
            return position
        if position >= self._sides.at_source[log].stable:
            return None
        if (log, position) not in self._next:
            self._next[log, position] = self._originals.first(*log, position)
        return self._next[log, position]


def _needed(found: Found) -> int:
    """Return the least end of a copy for which an answer is valid; 0 where that is not known."""
    return found.offset + 1 if isinstance(found, RunPoint) else found.end if isinstance(found, Behind) else 0
