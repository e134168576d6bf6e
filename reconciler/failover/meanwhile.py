"""What happened on both sides of a flow since its copies were cut: what came to the copies, and what never crossed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.checkpoints.groups import Groups
from reconciler.failover.diverged import Part, about, counted
from reconciler.model.committed import Bounds, Log
from reconciler.model.errors import DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.failover import Cut, Returning


class Meanwhile:
    """Looks at the cuts of one flow.

    Args:
        source: the side that everybody returns to.
        target: the other one.
        wanted: originals that are to be made anew.
    """

    def __init__(self, source: Groups, target: Groups, wanted: Collection[str]) -> None:
        self._source = source
        self._target = target
        self._wanted = wanted

    def cuts(self, cuts: Mapping[str, Cut]) -> tuple[dict[str, Cut], list[str]]:
        """Return the cuts of topics that are there on both sides, and why the others are left out.

        Partitions that were added to a copy since were never copied: they are cut at their beginning.

        Raises:
            DeclaredInputError: AB711, an original lacks partitions that its copy has.
        """
        found: dict[str, Cut] = {}
        left_out: list[str] = []
        problems: list[Problem] = []
        for topic, cut in sorted(cuts.items()):
            here, there = self._source.partitions.get(topic, 0), self._target.partitions.get(cut.remote, 0)
            # One that is being made anew may be gone just now.
            if not there or not (here or cut.anew == "wanted"):
                missing = self._target.cluster.alias if not there else self._source.cluster.alias
                name = cut.remote if not there else topic
                left_out.append(f"topic {name} is not there at {missing}, or hidden: {cut.remote} is not copied back")
                continue
            if here < there and cut.anew != "wanted":
                where = f"{self._source.cluster.where}, topic {topic}"
                message = f"it has {here} partitions, and its copy {cut.remote} has {there} by now"
                problems.append(Problem("AB711", where, message, "add partitions to it, then run failback again"))
            found[topic] = replace(cut, ends=(*cut.ends, *((0, 0),) * (there - len(cut.ends))))
        if problems:
            raise DeclaredInputError(problems)
        return found, left_out

    def topics(self, cuts: Mapping[str, Cut]) -> Iterator[Returning]:
        """Yield what becomes of each topic.

        Raises:
            EnvironmentFault: AB630, a partition has no leader; AB706, a transaction is open; AB313, READ is refused.
            Unreachable: AB310, a cluster does not answer.
        """
        # What stands behind the cut of an original is its copy's once records come back.
        untouched = [cut for cut in cuts.values() if not (cut.is_handed or cut.anew)]
        at_source = self.bounds(self._source, ((cut.topic, cut) for cut in untouched))
        at_target = self.bounds(self._target, ((cut.remote, cut) for cut in cuts.values()))
        new = [part for cut in cuts.values() for part in _behind(cut.remote, _targets(cut), at_target)]
        behind = [part for cut in untouched for part in _behind(cut.topic, _sources(cut), at_source)]
        new_counts, behind_counts = about(self._target.cluster, new), counted(self._source.cluster, behind)
        for topic, cut in sorted(cuts.items()):
            came = [part for part in new if part.topic == cut.remote]
            stayed = [part for part in behind if part.topic == topic]
            yield Returning(
                topic,
                cut.remote,
                cut.mode,
                len(cut.ends),
                sum(new_counts[part] for part in came),
                sum(behind_counts[part] for part in stayed),
                bool(came),
                bool(came and stayed),
                bool(cut.anew) or topic in self._wanted,
            )

    def dropped(self, cuts: Iterable[Cut], begins: Mapping[Log, int]) -> dict[Part, int]:
        """Return what an original holds that its copy does not, with how many records that are.

        Args:
            cuts: of originals that are about to be made anew.
            begins: by original partition, from which offset on its copy has its records.
        """
        some = list(cuts)
        ends = self.bounds(self._source, ((cut.topic, cut) for cut in some))
        behind = [part for cut in some for part in _behind(cut.topic, _sources(cut), ends)]
        before = [Part(*log, ends[log].start, begin) for log, begin in begins.items() if ends[log].start < begin]
        return {part: count for part, count in counted(self._source.cluster, [*before, *behind]).items() if count}

    def uncrossed(self, cuts: Collection[Cut]) -> list[Problem]:
        """Return the originals that hold more behind their cuts than came back to them.

        Args:
            cuts: of copies with offsets of their own, which are back.
        """
        here = self.bounds(self._source, ((cut.topic, cut) for cut in cuts))
        there = self.bounds(self._target, ((cut.remote, cut) for cut in cuts))
        logs = [(cut, number, ends) for cut in cuts for number, ends in enumerate(cut.ends)]
        came = [Part(cut.remote, number, end, there[cut.remote, number].end) for cut, number, (_, end) in logs]
        now = [Part(cut.topic, number, max(end, 0), here[cut.topic, number].end) for cut, number, (end, _) in logs]
        came_counts, counts = counted(self._target.cluster, came), counted(self._source.cluster, now)
        return [
            Problem(
                "AB713",
                f"{self._source.cluster.where}, topic {new.topic}, partition {new.partition}",
                f"of {counts[new]:,} records from offset {new.first} on {came_counts[old]:,} came back: the others "
                "were written there meanwhile, and never cross",
                f"write them once more: {old.topic} lacks them, and `verify` names them",
            )
            for old, new in zip(came, now, strict=True)
            if counts[new] > came_counts[old]
        ]

    def ends(self, cuts: Iterable[Cut]) -> dict[Log, int]:
        """Return where originals end, each topic as far as it is there."""
        logs = {(cut.topic, number) for cut in cuts for number in range(len(cut.ends))}
        return {log: one.end for log, one in self._source.bounds(logs).items()}

    @staticmethod
    def bounds(groups: Groups, topics: Iterable[tuple[str, Cut]]) -> dict[Log, Bounds]:
        """Return the bounds of the partitions of some topics.

        Raises:
            EnvironmentFault: AB630, one has no leader; AB706, a transaction is open.
        """
        logs = {(name, number) for name, cut in topics for number in range(len(cut.ends))}
        found = groups.bounds(logs)
        if missing := sorted(logs - found.keys()):
            raise EnvironmentFault([_no_leader(groups, log) for log in missing])
        if is_open := sorted(log for log, one in found.items() if one.stable < one.end):
            raise EnvironmentFault([_is_open(groups, log, found[log]) for log in is_open])
        return found


def _targets(cut: Cut) -> list[int]:
    return [target for _, target in cut.ends]


def _sources(cut: Cut) -> list[int]:
    return [max(source, 0) for source, _ in cut.ends]


def _behind(topic: str, froms: Iterable[int], ends: Mapping[Log, Bounds]) -> Iterator[Part]:
    """Yield what stands behind some offsets; what was deleted there meanwhile is a part of nothing, but a part."""
    for number, first in enumerate(froms):
        bounds = ends[topic, number]
        if first < bounds.end:
            yield Part(topic, number, min(max(first, bounds.start), bounds.end), bounds.end)


def _no_leader(groups: Groups, log: Log) -> Problem:
    where = f"{groups.cluster.where}, topic {log[0]}, partition {log[1]}"
    return Problem("AB630", where, "it has no leader now", "wait until its brokers are up")


def _is_open(groups: Groups, log: Log, bounds: Bounds) -> Problem:
    where = f"{groups.cluster.where}, topic {log[0]}, partition {log[1]}"
    message = f"a transaction is open from offset {bounds.stable} on: what it holds cannot be told apart yet"
    return Problem("AB706", where, message, "end who writes there, or wait until the transaction has timed out")
