"""Records on both sides of a flow since its copies were cut: new ones of copies, and never copied ones of originals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.logs import offset_lookup
from reconciler.failover.logs.cuts import TRANSLATED
from reconciler.failover.topics.diverged import Part, about, counted
from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.recorded.failover import Cut, Returning
from reconciler.replicator.copy.transaction_holders import TransactionHolder, holders
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import differ


class Divergence:
    """Compares both sides of a flow with its cuts.

    Args:
        source: the source.
        target: the target.
        wanted: originals that are to be rebuilt.
        without: originals that no longer exist, whose copies may keep their new records.
    """

    def __init__(self, source: Groups, target: Groups, wanted: Collection[str], without: Collection[str] = ()) -> None:
        self._source = source
        self._target = target
        self._wanted = wanted
        self._without = without

    def cuts(self, cuts: Mapping[str, Cut]) -> tuple[dict[str, Cut], list[str]]:
        """Return the cuts of topics that exist on both sides, and notices about the others.

        Partitions that were added to a copy since hold no copied records: their cut is at offset 0.

        Raises:
            DeclaredInputError: AB711, an original lacks partitions that its copy has; AB714, a copy was made again;
                AB715, an original is gone, and its copy has new records.
            AnabranchError: a cluster does not answer, or something there is refused.
        """
        found: dict[str, Cut] = {}
        left_out: list[str] = []
        problems: list[Problem] = []
        others = self._made_anew(cuts)
        for topic, cut in sorted(cuts.items()):
            here, there = self._source.partitions.get(topic, 0), self._target.partitions.get(cut.remote, 0)
            # An original that is being rebuilt may be gone at this moment.
            if not there or not (here or cut.anew == "wanted"):
                missing = self._target.cluster.alias if not there else self._source.cluster.alias
                name = cut.remote if not there else topic
                what = f"topic {name} does not exist at {missing}, or is not visible: {cut.remote} is not copied back"
                came = self._came(cut, there) if cut.remote not in others else 0
                if came and topic not in self._without:
                    problems.append(_original_gone(self._source, cut, there, came))
                left_out.append(f"{what}, and its {came:,} new offsets stay there" if came else what)
                continue
            if cut.remote in others:
                if (count := self._held(cut.remote)) == 0:
                    left_out.append(f"{cut.remote} was made anew at {self._target.cluster.alias}, and holds nothing")
                else:
                    problems.append(_made_anew(self._target, cut, count))
                continue
            if here < there and cut.anew != "wanted":
                where = f"{self._source.cluster.where}, topic {topic}"
                message = f"it has {here} partitions, and its copy {cut.remote} has {there} by now"
                problems.append(Problem("AB711", where, message, "add partitions to it, then run failback again"))
            found[topic] = replace(cut, ends=(*cut.ends, *((0, 0),) * (there - len(cut.ends))))
        if problems:
            raise DeclaredInputError(problems)
        return found, left_out

    def _made_anew(self, cuts: Mapping[str, Cut]) -> set[str]:
        """Return the copies that were deleted and made again since they were cut, by topic id."""
        names = {cut.remote for cut in cuts.values()}
        there = self._target.ids(name for name in names if name in self._target.partitions)
        return {
            cut.remote
            for cut in cuts.values()
            if any(differ(OffsetMetadata.parse(note).target_id, there.get(cut.remote)) for note in cut.notes)
        }

    def _came(self, cut: Cut, partitions: int) -> int:
        """Return the number of offsets of a copy after its cut, including those of added partitions."""
        whole = replace(cut, ends=(*cut.ends, *((0, 0),) * (partitions - len(cut.ends)))[:partitions])
        found = self.bounds(self._target, [(cut.remote, whole)])
        return sum(part.end - part.first for part in _behind(cut.remote, _targets(whole), found))

    def _held(self, remote: str) -> int:
        """Return the number of offsets of a copy."""
        logs = [(remote, number) for number in range(self._target.partitions[remote])]
        found = self._target.bounds(logs)
        if missing := sorted(set(logs) - found.keys()):
            raise EnvironmentFault([self._target.without_leader(log) for log in missing])
        return sum(one.end - one.start for one in found.values())

    def topics(self, cuts: Mapping[str, Cut], parted: Collection[str] = ()) -> Iterator[Returning]:
        """Yield what a failback does with each topic.

        Args:
            cuts: by original.
            parted: originals that have diverged even without records after their cuts.

        Raises:
            EnvironmentFault: AB630, a partition has no leader; AB706, a transaction is open; AB313, READ is refused.
            Unreachable: AB310, a cluster does not answer.
        """
        # Once records are copied back, those after the cut of an original are its copy's.
        untouched = [cut for cut in cuts.values() if not (cut.is_handed or cut.anew)]
        at_source = self.bounds(self._source, ((cut.topic, cut) for cut in untouched))
        at_target = self.bounds(self._target, ((cut.remote, cut) for cut in cuts.values()))
        new = [part for cut in cuts.values() for part in _behind(cut.remote, _targets(cut), at_target)]
        behind = [part for cut in untouched for part in _behind(cut.topic, _sources(cut), at_source)]
        new_counts, behind_counts = about(self._target.cluster, new), counted(self._source.cluster, behind)
        for topic, cut in sorted(cuts.items()):
            came = [part for part in new if part.topic == cut.remote]
            stayed = [part for part in behind if part.topic == topic]
            records = sum(behind_counts[part] for part in stayed)
            # Transaction markers and deleted records are in the way of identical offsets alone.
            is_in_the_way = bool(records or (stayed and cut.mode != TRANSLATED))
            yield Returning(
                topic,
                cut.remote,
                cut.mode,
                len(cut.ends),
                sum(new_counts[part] for part in came),
                records,
                bool(came),
                bool(came and (is_in_the_way or topic in parted)),
                bool(cut.anew) or topic in self._wanted,
            )

    def dropped(self, cuts: Iterable[Cut], begins: Mapping[Log, int]) -> dict[Part, int]:
        """Return the parts of originals that their copies do not hold, with the number of records.

        Args:
            cuts: of originals that are to be rebuilt.
            begins: by partition of the original, the first offset that its copy holds.
        """
        # Partitions that were added to an original since were never copied.
        some = [replace(cut, ends=(*cut.ends, *((0, 0),) * self._added(cut))) for cut in cuts]
        ends = self.bounds(self._source, ((cut.topic, cut) for cut in some))
        behind = [part for cut in some for part in _behind(cut.topic, _sources(cut), ends)]
        before = [Part(*log, ends[log].start, begin) for log, begin in begins.items() if ends[log].start < begin]
        return {part: count for part, count in counted(self._source.cluster, [*before, *behind]).items() if count}

    def uncrossed(
        self, topology: str, clusters: offset_lookup.Clusters, flow: Flow, cuts: Collection[Cut]
    ) -> list[Problem]:
        """Return a problem (AB713) for each original with more records after its cut than were copied back.

        Args:
            topology: name of the topology.
            clusters: source and target of the flow that copies back.
            flow: that flow.
            cuts: of copies with translated offsets that are copied back.
        """
        here = self.bounds(self._source, ((cut.topic, cut) for cut in cuts))
        there = self.bounds(self._target, ((cut.remote, cut) for cut in cuts))
        pairs = list(offset_lookup.came_back(topology, clusters, flow, cuts, there, here))
        came_counts = counted(self._target.cluster, [old for old, _ in pairs])
        counts = counted(self._source.cluster, [new for _, new in pairs])
        return [
            Problem(
                "AB713",
                f"{self._source.cluster.where}, topic {new.topic}, partition {new.partition}",
                f"of {counts[new]:,} records from offset {new.first} on {came_counts[old]:,} came back: the others "
                "were written there during the failover, and are never copied",
                f"produce them again: {old.topic} lacks them, and `verify` names them",
            )
            for old, new in pairs
            # Without new records the flow goes on where it was.
            if old.first < old.end and counts[new] > came_counts[old]
        ]

    def ends(self, cuts: Iterable[Cut]) -> dict[Log, int]:
        """Return the log ends of originals, with all partitions that they have now; missing topics are left out."""
        self._source.refresh()
        topics = {cut.topic: self._source.partitions.get(cut.topic, 0) for cut in cuts}
        logs = {(topic, number) for topic, count in topics.items() for number in range(count)}
        return {log: one.end for log, one in self._source.bounds(logs).items()}

    def _added(self, cut: Cut) -> int:
        return self._source.partitions[cut.topic] - len(cut.ends)

    @staticmethod
    def bounds(groups: Groups, topics: Iterable[tuple[str, Cut]]) -> dict[Log, LogBounds]:
        """Return the bounds of the partitions of some topics.

        Raises:
            EnvironmentFault: AB630, one has no leader; AB706, a transaction is open.
        """
        logs = {(name, number) for name, cut in topics for number in range(len(cut.ends))}
        found = groups.bounds(logs)
        if missing := sorted(logs - found.keys()):
            raise EnvironmentFault([groups.without_leader(log) for log in missing])
        if is_open := sorted(log for log, one in found.items() if one.stable < one.end):
            whose = holders(groups.cluster, {log: found[log].stable for log in is_open})
            raise EnvironmentFault([_is_open(groups, log, found[log], whose.get(log)) for log in is_open])
        return found


def _targets(cut: Cut) -> list[int]:
    return [target for _, target in cut.ends]


def _sources(cut: Cut) -> list[int]:
    return [max(source, 0) for source, _ in cut.ends]


def _behind(topic: str, froms: Iterable[int], ends: Mapping[Log, LogBounds]) -> Iterator[Part]:
    """Yield the parts from some offsets to the log ends; if their records were deleted since, the part is empty."""
    for number, first in enumerate(froms):
        bounds = ends[topic, number]
        if first < bounds.end:
            yield Part(topic, number, min(max(first, bounds.start), bounds.end), bounds.end)


def grown_since_export(groups: Groups, log: Log) -> Problem:
    """Return the problem (AB712) that an original has grown since its records were exported."""
    where = f"{groups.cluster.where}, topic {log[0]}, partition {log[1]}"
    message = "it was written to after its records were exported: it was not deleted"
    return Problem("AB712", where, message, "stop its producers, and run failback again with another export")


def _original_gone(groups: Groups, cut: Cut, partitions: int, came: int) -> Problem:
    message = f"it does not exist, or is not visible, and its copy {cut.remote} has {came:,} new offsets"
    remedy = (
        f"create it, empty, with {partitions} partitions, and the whole copy is copied back; or grant DESCRIBE on it; "
        f"or --leave-out {cut.topic}: the new records stay in the copy"
    )
    return Problem("AB715", f"{groups.cluster.where}, topic {cut.topic}", message, remedy)


def _made_anew(groups: Groups, cut: Cut, count: int) -> Problem:
    message = f"it was deleted and made again since its cut: which of its {count:,} records are new is unknown"
    remedy = "copy its records to where they are needed, delete it, and run failback again: it is left out then"
    return Problem("AB714", f"{groups.cluster.where}, topic {cut.remote}", message, remedy)


def _is_open(groups: Groups, log: Log, bounds: LogBounds, holder: TransactionHolder | None) -> Problem:
    where = f"{groups.cluster.where}, topic {log[0]}, partition {log[1]}"
    held = f"{bounds.end - bounds.stable:,} offsets from {bounds.stable} on stand behind"
    message = f"{held} {holder or 'a transaction that has just ended'}: whether they are committed is not known yet"
    return Problem("AB706", where, message, "end its producer, or wait until the transaction has timed out")
