"""Translates group positions from one cluster of a pair to the other, through all flows between the two.

A group reads originals and copies alike. Where a flow leads from this side to the other, the position in an original
becomes one in its copy; where a flow leads here, the position in a copy becomes one in its original.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.mirrormaker.client import MirrorClient
from reconciler.checkpoints.translation.translate import Translator
from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import ALL, choosing
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import EVERYTHING
from reconciler.model.offsets.committed import Committed, Move
from reconciler.model.offsets.translation import Way
from reconciler.model.recorded.failover import Allowance, Carried, Crossing, WithoutPlace
from reconciler.model.recorded.ownership import copies_of
from reconciler.state.ownership import Ownership

_NO_CHECKPOINTS = "AB640"


@dataclass(frozen=True)
class Path:
    """How positions in one topic are translated to the other side.

    Attributes:
        flow: the flow that copied the records.
        way: `downstream`, along it, or `upstream`, against it.
        original: name of the flow's original.
        to_topic: name on the other side.
        begins: by partition, the first offset that this path covers; None means all offsets.
    """

    flow: Flow
    way: Way
    original: str
    to_topic: str
    begins: Mapping[int, int] | None = None

    def covers(self, partition: int, offset: int) -> bool:
        """Return whether this path translates an offset."""
        return self.begins is None or offset >= self.begins.get(partition, 2**63)


Paths = Mapping[str, Sequence[Path]]
"""Paths by topic on this side; the first path that covers an offset is used."""


def paths(topology: Topology, here: Groups, there: Groups) -> dict[str, list[Path]]:
    """Return the paths from one cluster to another, by topic.

    Raises:
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: AB311, the journal of one cannot be read.
    """
    found: dict[str, list[Path]] = {}
    records = {side.cluster.alias: Ownership(side.cluster, topology.name).read().values() for side in (here, there)}
    for flow in topology.flows:
        if not flow.enabled or {flow.source, flow.target} != {here.cluster.alias, there.cluster.alias}:
            continue
        along = flow.source == here.cluster.alias
        copies = copies_of(records[flow.target], topology.name, flow)
        for original, copy in copies.items():
            if along:
                path = Path(flow, "downstream", original, copy.name)
                found.setdefault(original, []).append(path)
            else:
                found.setdefault(copy.name, []).append(Path(flow, "upstream", original, original))
    return found


def logical(flow: Flow, topology: Topology, ways: Paths, topics: Iterable[str]) -> set[str]:
    """Return the topics on a side whose consumer groups move with a flow.

    These are the flow's own topics there, and, where two clusters replicate both ways, copies of the other side's
    topics with the same names: a consumer of one reads the other.

    Args:
        flow: the flow.
        topology: the declaration.
        ways: the paths from this side.
        topics: the flow's own topics on this side.
    """
    others = {
        name
        for name, some in ways.items()
        for path in some
        if path.flow.name != flow.name
        and path.flow.source == flow.target
        and flow.topics.matches(path.original)
        and flow.takes(path.original, topology.aliases)
    }
    return {*topics, *others}


def copied(flow: Flow, ways: Paths, found: Iterable[Crossing], there: Collection[str]) -> set[str]:
    """Return the originals of a flow that have copies.

    Args:
        flow: the flow.
        ways: the paths from its source.
        found: its partitions, including those of topics without a copy.
        there: topics that exist at its target: recorded copies may be gone.
    """
    return {
        one.topic
        for one in found
        if any(path.flow.name == flow.name and path.to_topic in there for path in ways.get(one.topic, ()))
    }


def groups_that_read(here: Groups, topics: Collection[str], chosen: Sequence[str] | None, flow: Flow) -> list[str]:
    """Return the chosen groups that have a position in one of some topics.

    Args:
        here: the cluster that they leave.
        topics: what `logical` returned.
        chosen: names and regular expressions; None means the groups that the flow declares, or all if it declares none.
        flow: the flow.

    Raises:
        DeclaredInputError: AB625, no group matches; AB629, a group that is named in full is of an unsupported kind;
            AB313, it is not visible.
        Unreachable: AB310, no answer.
    """
    names, _ = here.chosen(list(chosen) if chosen else [ALL])
    if not chosen and flow.groups.include:
        names = [name for name in names if flow.groups.takes(name)]
    reading = {one.group for one in here.committed(names) if one.topic in topics}
    return [name for name in names if name in reading]


def not_moved(
    here: Groups, topics: Collection[str], chosen: Sequence[str] | None, flow: Flow
) -> Iterator[WithoutPlace]:
    """Yield the chosen groups that cannot be moved, but read one of some topics or may read one.

    Errors are those of `groups_that_read`. Offsets of a group that is not visible may be in these topics.
    """
    for name, problem in here.others().items():
        if not _is_chosen(name, chosen, flow):
            continue
        try:
            committed = here.committed([name])
        except EnvironmentFault:
            committed = []
        # Share groups commit no offsets, so it is unknown which topics they read.
        if not committed or any(one.topic in topics for one in committed):
            verb = "reads" if committed else "may read"
            why = f"{verb} the flow's topics and is not moved: it {problem.message}; {problem.remedy}"
            yield WithoutPlace(name, why)


def readers_of(here: Groups, topics: Collection[str], chosen: Sequence[str] | None, flow: Flow) -> dict[str, list[str]]:
    """Return which chosen groups read each of some topics; errors are those of `groups_that_read`."""
    readers: dict[str, set[str]] = {topic: set() for topic in sorted(topics)}
    if topics:
        for one in here.committed(groups_that_read(here, topics, chosen, flow)):
            if one.topic in readers:
                readers[one.topic].add(one.group)
    return {topic: sorted(names) for topic, names in readers.items()}


def carried(
    topology: Topology, here: Groups, there: Groups, committed: Iterable[Committed], ways: Paths
) -> list[Carried]:
    """Return positions of one side translated to the other, with the offsets that groups have committed there.

    Args:
        topology: the declaration.
        here: the cluster that groups leave.
        there: the other cluster.
        committed: offsets that groups have committed here; those without a path are left out.
        ways: the paths from `here`.

    Raises:
        AnabranchError: a cluster does not answer, or something there is refused.
    """
    asked = [(one, path) for one in committed if (path := _path(ways, one)) is not None]
    bounds = here.bounds({(one.topic, one.partition) for one, _ in asked})
    found: dict[int, Carried] = {}
    for flow in dict.fromkeys(path.flow for _, path in asked):
        source, target = topology.clusters[flow.source], topology.clusters[flow.target]
        these = [(at, one, path) for at, (one, path) in enumerate(asked) if path.flow == flow]
        with Translator(source, target, flow, topology.name) as translator:
            translator.refresh({(path.original, one.partition) for _, one, path in these})
            for at, one, path in these:
                ask = translator.downstream if path.way == "downstream" else translator.upstream
                there_is = bounds.get((one.topic, one.partition))
                translated = ask(path.original, one.partition, one.offset)
                why = translated.why
                if there_is is not None and one.offset < there_is.start:
                    # Deleted on this side: the other may still have it; else the first record loses nothing.
                    first = ask(path.original, one.partition, there_is.start)
                    if translated.offset in (None, first.offset) and first.offset is not None:
                        translated = first
                        why = f"offset {one.offset} is deleted at {here.cluster.alias}: it goes on at the first record"
                found[at] = Carried(
                    one.group,
                    one.topic,
                    one.partition,
                    one.offset,
                    None if there_is is None else replace(one, bounds=there_is).lag,
                    path.to_topic,
                    translated.offset,
                    None,
                    one.metadata,
                    why,
                )
    return _with_what_is_there(there, [found[at] for at in sorted(found)])


def by_checkpoints(topology: Topology, flow: Flow, there: Groups, chosen: Sequence[str] | None) -> list[Carried]:
    """Return positions at the target from the newest checkpoints, for groups of a source that is lost.

    The checkpoint's source offset is translated with what is copied by now; if that fails, its target offset is used.

    Raises:
        DeclaredInputError: AB625, a group that is named in full has no checkpoint.
        EnvironmentFault: AB640, there are no checkpoints of the source; AB313, they cannot be read.
        Unreachable: AB310, the target does not answer.
    """
    records = Ownership(there.cluster, topology.name).read().values()
    names = {copy.name: original for original, copy in copies_of(records, topology.name, flow).items()}
    client = MirrorClient(there.cluster, flow.policy)
    checkpoints = [
        one for one in client.checkpoints(flow.source) if one.topic in names and _is_chosen(one.group, chosen, flow)
    ]
    found = []
    with Translator(None, topology.clusters[flow.target], flow, topology.name) as translator:
        translator.refresh({(names[one.topic], one.partition) for one in checkpoints})
        for one in checkpoints:
            original, why = names[one.topic], "from its last checkpoint"
            # More may have been copied since it was written.
            now = translator.downstream(original, one.partition, one.upstream)
            to_offset = one.downstream if now.how == "unknown" else now.offset
            why = f"{why}; {now.why}" if now.why and now.how != "unknown" else why
            place = (one.group, original, one.partition, one.upstream, None, one.topic, to_offset)
            found.append(Carried(*place, None, one.metadata, why))
    if unknown := choosing(demanded(chosen)).idle(one.group for one in found):
        raise DeclaredInputError([_no_checkpoint(there.cluster, flow, group) for group in unknown])
    return _with_what_is_there(there, found)


def demanded(chosen: Sequence[str] | None) -> list[str]:
    """Return the names and expressions that must match a group: all but those that choose all groups."""
    return [name for name in chosen or () if name not in (ALL, EVERYTHING)]


def _no_checkpoint(cluster: Cluster, flow: Flow, group: str) -> Problem:
    where = f"{cluster.where}, flow {flow.name}, group {group}"
    message = f"it has no checkpoint from cluster {flow.source} in the flow's topics"
    return Problem("AB625", where, message, "correct the name, or leave it out and set it by hand: `offsets write`")


def moves_of(found: Iterable[Carried], only_forward: bool = False) -> dict[str, list[Move]]:
    """Return the offsets to commit, by group.

    Args:
        found: translated positions.
        only_forward: whether to leave out groups that are further on already, as they may have read on there.
    """
    moves: dict[str, list[Move]] = {}
    for one in found:
        if one.to_offset is None or (only_forward and _is_further(one)):
            continue
        move = Move(one.group, one.to_topic, one.partition, one.before, one.to_offset, one.to_offset, one.metadata)
        moves.setdefault(one.group, []).append(move)
    return moves


def further(found: Iterable[Carried]) -> list[Carried]:
    """Return the positions whose groups are further on at the other side than the translated offset."""
    return [one for one in found if _is_further(one) and one.to_offset != one.before]


def _is_further(one: Carried) -> bool:
    return one.to_offset is not None and one.before is not None and one.before >= one.to_offset


def without_place(found: Iterable[Carried], alias: str) -> Iterator[WithoutPlace]:
    """Yield a group for each of its positions that cannot be translated to the other side."""
    for one in found:
        if one.to_offset is None:
            place = f"offset {one.offset} of {one.topic}/{one.partition}"
            why = f"{place} cannot be translated to {one.to_topic} on {alias}: {one.why}"
            yield WithoutPlace(one.group, why)


def untranslated(found: Iterable[Carried], alias: str, allowed: Allowance) -> list[Problem]:
    """Return a problem (AB710) for each position that cannot be translated, of groups that must have one."""
    remedy = "commit it with `offsets write` after the move, or leave the group out with --group"
    return [
        Problem(
            "AB710",
            f"group {one.group}, topic {one.topic}, partition {one.partition}",
            f"offset {one.offset} cannot be translated to {one.to_topic} on {alias}: {one.why}",
            remedy,
        )
        for one in found
        if one.to_offset is None and not allowed.takes(one.group)
    ]


def _path(ways: Paths, one: Committed) -> Path | None:
    return next((path for path in ways.get(one.topic, ()) if path.covers(one.partition, one.offset)), None)


def _is_chosen(group: str, chosen: Sequence[str] | None, flow: Flow) -> bool:
    if chosen is None:
        return not flow.groups.include or flow.groups.takes(group)
    return group in choosing(chosen)


def _with_what_is_there(there: Groups, found: Sequence[Carried]) -> list[Carried]:
    """Return positions with the offsets that the groups have committed on the other side."""
    groups = sorted({one.group for one in found})
    before = {(one.group, one.topic, one.partition): one.offset for one in there.committed(groups)}
    return [replace(one, before=before.get((one.group, one.to_topic, one.partition))) for one in found]


def without_checkpoints(error: EnvironmentFault) -> bool:
    """Return whether an error means that there are no checkpoints at all."""
    return all(problem.code == _NO_CHECKPOINTS for problem in error.problems)
