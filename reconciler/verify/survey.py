"""Determines the partitions of one flow to compare, and their bounds, fixed once for the whole comparison.

The target is read before the source, so that the source holds all records that the target does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import lease_group, syncs_topic
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.copy.transaction_holders import holders
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition.place import differ
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.transfer.pace import Quota
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import in_words, is_refusal, refused, unreachable
from reconciler.state.copies import Copies
from reconciler.state.ownership import Ownership
from reconciler.verify.comparison.pairing import is_of_another
from reconciler.verify.cut import CutPoint, Cuts, up_to
from reconciler.verify.ends import LogEnds, Number
from reconciler.verify.known_syncs import known_syncs
from reconciler.verify.patience import PATIENCE, RETRY, patiently
from reconciler.verify.slices import SliceBounds
from reconciler.wire import COORDINATOR_NOT_READY, BrokerError, ConnectionLost, ErrorCode, Loop, Wire

_TIMEOUT = 10.0
_NOTHING = CopyRecord(None, None)


@dataclass(frozen=True)
class VerifyFilter:
    """The part of the flows to compare.

    Attributes:
        topics: originals; empty means all.
        remotes: remote topics; empty means all.
        since: first timestamp, in ms since 1970; None means from the beginning.
    """

    topics: tuple[str, ...] = ()
    remotes: tuple[str, ...] = ()
    since: int | None = None

    def takes(self, place: Place) -> bool:
        """Return whether a partition is in this part."""
        named = not self.topics or place.topic in self.topics
        return bool(place.remote) and named and (not self.remotes or place.remote in self.remotes)


@dataclass(frozen=True)
class Found:
    """Partitions of one flow.

    Attributes:
        bounds: of each partition with a copy.
        without: the partitions without a copy.
        unreadable: why others cannot be read.
        notices: whether the flow is failed over.
    """

    bounds: tuple[SliceBounds, ...]
    without: tuple[Place, ...]
    unreadable: tuple[Problem, ...]
    notices: tuple[Problem, ...] = ()


class Survey:
    """Reads both clusters of a flow.

    Args:
        spec: the flow.
        wanted: the part of it to compare.
        warn: called with problems that make the comparison less complete.
        rate: bytes per second that are read at most; None means no limit.
    """

    def __init__(
        self, spec: FlowSpec, wanted: VerifyFilter, warn: Callable[[Problem], None], rate: float | None = None
    ) -> None:
        self._quota = Quota(rate)
        self._spec = spec
        self._wanted = wanted
        self._warn = warn

    def look(self) -> Found:
        """Read everything.

        Raises:
            Unreachable: AB310, a cluster does not answer.
            EnvironmentFault: a login is refused, or READ on a journal.
        """
        spec = self._spec
        owned = Ownership(spec.target, spec.topology).read_all()
        cuts = Cuts(spec, owned.others)
        listed = discovery.matching(spec)
        wanted = [self._with_mode(place, owned.topics) for place in listed if self._wanted.takes(place)]
        anew = dict.fromkeys(problem for place in wanted if (problem := cuts.made_anew(place)))
        hidden = (*self._hidden({place.topic for place in listed}), *anew)
        places = [place for place in wanted if cuts.made_anew(place) is None]
        if not places:
            return Found((), (), hidden, cuts.notices)
        # Before the target's ends, so that committed positions are below them.
        copied_to = self._positions([place for place in places if place.offsets == "translated"])
        syncs: dict[Number, tuple[tuple[int, int], ...]] = {}
        loop = Loop()
        wires: list[Wire] = []
        try:
            wires = [Wire(loop, cluster, "anabranch-verify", _TIMEOUT) for cluster in (spec.source, spec.target)]
            source, target = (LogEnds(loop, wire) for wire in wires)
            loop.run(lambda: self._ask(loop, wires[1], places, (source, target), syncs))
        finally:
            for wire in wires:
                wire.close()
            loop.close()
        ends = {place: cuts.at(place, target.id_of(place.remote)) for place in places}
        found = self._with_holders(self._found(ends, (source, target), copied_to, syncs))
        return replace(found, unreadable=(*hidden, *found.unreadable), notices=cuts.notices)

    def _with_holders(self, found: Found) -> Found:
        """Return it with the transactions that hold back records."""
        held = {(one.topic, one.partition): one.source_end for one in found.bounds if one.held}
        whose = holders(self._spec.source, held)
        ended = "a transaction that has just ended"
        named = {log: str(whose.get(log, ended)) for log in held}
        bounds = tuple(replace(one, held_by=named.get((one.topic, one.partition), "")) for one in found.bounds)
        return replace(found, bounds=bounds)

    def _hidden(self, listed: Collection[str]) -> tuple[Problem, ...]:
        """Return a problem for each declared original that this user may not describe: it must not count as equal."""
        flow = self._spec.flow
        places = [
            Place(name, 0, "" if flow.nameless(name) else flow.remote_topic(name)) for name in flow.topics.literals()
        ]
        others = {place.topic for place in places if not self._wanted.takes(place)}
        return tuple(discovery.hidden(self._spec, {*listed, *others}))

    def _with_mode(self, place: Place, owned: Mapping[str, object]) -> Place:
        """Return a partition with the mode of its offsets, which `apply` has recorded."""
        mode = getattr(owned.get(place.remote), "offsets", place.offsets)
        return place._replace(offsets=mode)

    def _commits(self, place: Place) -> bool:
        """Return whether only committed records of the source are copied."""
        return place.offsets == "identical" or self._spec.flow.isolation_level == "read_committed"

    async def _ask(
        self,
        loop: Loop,
        wire: Wire,
        places: Sequence[Place],
        sides: tuple[LogEnds, LogEnds],
        syncs: dict[Number, tuple[tuple[int, int], ...]],
    ) -> None:
        source, target = sides
        since = self._wanted.since
        uncommitted = {(place.topic, place.partition) for place in places if not self._commits(place)}
        try:
            remotes = [(place.remote, place.partition) for place in places]
            await target.look(remotes, (), None)
            if any(place.offsets == "translated" for place in places):
                syncs |= await patiently(loop, partial(self._syncs, loop, wire))
        except (ConnectionLost, BrokerError) as error:
            raise unreachable(self._spec.target, error) from None
        try:
            await source.look([(place.topic, place.partition) for place in places], uncommitted, since)
        except (ConnectionLost, BrokerError) as error:
            raise unreachable(self._spec.source, error) from None

    async def _syncs(self, loop: Loop, wire: Wire) -> dict[Number, tuple[tuple[int, int], ...]]:
        """Return the offset syncs; they only help to find a beginning, so a refused READ is a warning."""
        topic = syncs_topic(self._spec.flow.source)
        try:
            return await known_syncs(loop, wire, topic, self._quota)
        except BrokerError as error:
            if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise
        what = f"offset syncs cannot be read: {refused(self._spec.target, 'READ', f'topic {topic}').message}"
        remedy = "where copies begin is then found from their records alone; grant READ on the topic"
        self._warn(Problem("AB612", self._spec.target.where, what, remedy))
        return {}

    def _found(
        self,
        places: Mapping[Place, CutPoint | None],
        sides: tuple[LogEnds, LogEnds],
        copied_to: Mapping[Number, int],
        syncs: Mapping[Number, tuple[tuple[int, int], ...]],
    ) -> Found:
        spec = self._spec
        source, target = sides
        known = [place for place in places if target.has_bounds(place.remote, place.partition)]
        records, shared = self._records(known, sides)
        compacts = {
            "source": self._compacted(spec.source, {place.topic for place in places}),
            "target": self._compacted(spec.target, {place.remote for place, _ in records.items()}),
        }
        bounds, without, unreadable = [], [], []
        for place, cut in places.items():
            for side, cluster, topic in ((target, spec.target, place.remote), (source, spec.source, place.topic)):
                info = side.topics[topic]
                if side.has_bounds(topic, place.partition):
                    continue
                is_there = info.error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and (
                    info.error or place.partition in info.partitions
                )
                if info.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    unreadable.append(refused(cluster, "READ", f"topic {topic}"))
                elif side is target and not is_there:
                    without.append(place)
                else:
                    unreadable.append(_no_leader(cluster, topic, place.partition))
                break
            else:
                copied = None if place.offsets == "identical" else copied_to.get((place.remote, place.partition))
                one = self._bounds(place, (source, target), records[place], cut)
                number = place.topic, place.partition
                one = replace(
                    one,
                    source_compacts=place.topic in compacts["source"],
                    target_compacts=place.remote in compacts["target"],
                    is_shared=place in shared,
                    copied_to=copied if cut is None else one.copied_to,
                )
                bounds.append(one if one.is_identical else _with_sync(one, syncs.get(number, ()), self._wanted.since))
        return Found(tuple(bounds), tuple(without), tuple(unreadable))

    def _bounds(
        self, place: Place, sides: tuple[LogEnds, LogEnds], record: CopyRecord | None, cut: CutPoint | None
    ) -> SliceBounds:
        source, target = sides
        flow, number = self._spec.flow, place.partition
        source_id, target_id = source.id_of(place.topic), target.id_of(place.remote)
        if record is None or differ(record.target_id, target_id) or differ(record.source_id, source_id):
            record = _NOTHING
        first, copy = source.first[place.topic, number], target.first[place.remote, number]
        since = self._wanted.since
        if since is not None:
            at = source.since.get((place.topic, number), -1)
            first = max(first, at) if at >= 0 else source.end[place.topic, number]
        one = SliceBounds(
            *(place.topic, number, place.remote, place.offsets, source_id, target_id),
            *(first, source.end[place.topic, number], copy, target.end[place.remote, number]),
            record=record,
            committed=self._commits(place),
            repeats=flow.repeats and place.offsets == "translated",
            held=source.held(place.topic, number),
        )
        one = up_to(one, cut)
        if one.is_identical:
            return _from_where_both_have(one)
        has_first = copy == 0 and since is None and not flow.start.moves(place.topic)
        return replace(one, has_first=has_first)

    def _records(
        self, places: Sequence[Place], sides: tuple[LogEnds, LogEnds]
    ) -> tuple[dict[Place, CopyRecord | None], set[Place]]:
        """Return the copy records, and the copies that other flows fill as well.

        These are read after the ends of copies, so that they cover all records below them.
        """
        source, target = sides
        name = self._spec.flow.name
        copies = Copies(self._spec.target, self._spec.topology)
        try:
            copies.refresh()
            records = {place: copies.get(name, place.remote, place.partition) for place in places}
            shared = {
                place
                for place in places
                if place.offsets == "translated"
                and any(
                    is_of_another(one, source.id_of(place.topic), target.id_of(place.remote))
                    for one in copies.of_others(name, place.remote, place.partition).values()
                )
            }
        finally:
            copies.close()
        return records, shared

    def _positions(self, places: Sequence[Place]) -> dict[Number, int]:
        """Return the source offsets up to which partitions are copied, from the flow's group; empty if it has none."""
        if not places:
            return {}
        group = lease_group(self._spec.topology, self._spec.flow.name)
        admin = clients.make(AdminClient, self._spec.target)
        try:
            answer = self._offsets(admin, group)
        except KafkaException as error:
            why = _why(self._spec.target, error.args[0], "DESCRIBE", f"group {group}")
            what = f"the positions of group {group} cannot be read: {why}"
            remedy = "what is missing at the end of copies counts as not copied yet; grant DESCRIBE on the group"
            self._warn(Problem("AB612", self._spec.target.where, what, remedy))
            return {}
        return {(one.topic, one.partition): one.offset for one in answer.topic_partitions or () if one.offset >= 0}

    def _offsets(self, admin: AdminClient, group: str) -> ConsumerGroupTopicPartitions:
        """Return the offsets of a group; a coordinator that is loading is waited for."""
        began = time.monotonic()
        while True:
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=_TIMEOUT)
            try:
                return asked[group].result()
            except KafkaException as error:
                if error.args[0].code() not in COORDINATOR_NOT_READY or time.monotonic() - began > PATIENCE:
                    raise
            time.sleep(RETRY)

    def _compacted(self, cluster: Cluster, topics: Collection[str]) -> set[str]:
        """Return the topics that are compacted."""
        if not topics:
            return set()
        admin = clients.make(AdminClient, cluster)
        resources = [ConfigResource("topic", topic) for topic in sorted(topics)]
        found: set[str] = set()
        for resource, answer in admin.describe_configs(resources, request_timeout=_TIMEOUT).items():
            try:
                policy = answer.result()["cleanup.policy"].value or ""
            except KafkaException as error:
                why = _why(cluster, error.args[0], "DESCRIBE_CONFIGS", f"topic {resource.name}")
                what = f"cleanup.policy cannot be read: {why}"
                remedy = "what compaction took counts as lost; grant DESCRIBE_CONFIGS on the topic"
                self._warn(Problem("AB612", f"{cluster.where}, topic {resource.name}", what, remedy))
                continue
            if "compact" in policy.split(","):
                found.add(resource.name)
        return found


def _why(cluster: Cluster, error: KafkaError, operation: str, resource: str) -> str:
    """Return in words why a request failed: the missing permission, or the error."""
    return refused(cluster, operation, resource).message if is_refusal(error) else in_words(error)


def _no_leader(cluster: Cluster, topic: str, number: int) -> Problem:
    where = f"{cluster.where}, {topic}/{number}"
    return Problem(
        "AB609", where, "cannot be read: it has no leader, or we may not see it", "check it, and run it again"
    )


def _from_where_both_have(one: SliceBounds) -> SliceBounds:
    """Return bounds of identical offsets from the first offset that both sides hold."""
    runs = one.record.runs
    target = max(one.target_first, one.record.origin)
    source = max(one.source_first, target - runs.at_target(target).shift)
    return replace(one, source_first=source, target_first=max(target, runs.to_target(source)))


def _with_sync(one: SliceBounds, syncs: Sequence[tuple[int, int]], since: int | None) -> SliceBounds:
    """Return bounds of translated offsets with a pair to begin at, if an offset sync holds one."""
    if since is None:
        usable = [pair for pair in syncs if pair[0] >= one.source_first and pair[1] >= one.target_first]
        return replace(one, sync=min(usable, default=None))
    before = [pair for pair in syncs if pair[0] <= one.source_first and pair[1] >= one.target_first]
    if before:
        pair = max(before)
        return replace(one, source_first=pair[0], target_first=pair[1], sync=pair)
    return one
