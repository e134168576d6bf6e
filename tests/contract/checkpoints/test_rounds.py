"""Groups that are taken along: checkpoints and committed offsets at the target, by rounds, on real brokers."""

from __future__ import annotations

import itertools
import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.mirrormaker import reading
from reconciler.checkpoints.mirrormaker.formats import Checkpoint, newest
from reconciler.checkpoints.service.emit import CheckpointWriter
from reconciler.checkpoints.service.leadership import Leadership
from reconciler.checkpoints.service.rounds import RoundResult, Rounds
from reconciler.checkpoints.service.service import looking_after_groups
from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.declared.flow import Flow, OffsetsMode
from reconciler.model.declared.groups import GroupRules
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.gaps.fill import Filler
from reconciler.replicator.partition.shares import Place
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from reconciler.wire import TopicInfo
from tests.support.clusters.consumers import Committed, join_share_group, leave_behind, member_of, offsets_of, places_of
from tests.support.clusters.kafka import ANSWER_SECONDS, admin, create, declared
from tests.support.clusters.traffic import Transactions
from tests.support.replicator.copying import REMOTE, all_running, copy, fill, log_end, spec_of
from tests.support.replicator.translated import assert_translated, committed, runs_of
from tests.support.waiting import eventually

SECONDS = 300.0
RECORDS = 100


class Pair:
    """A flow whose topic is copied, and a group of its source."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, offsets: OffsetsMode) -> None:
        self.source, self.target = source, target
        self.id = uuid.uuid4().hex[:8]
        # Topics of checkpoints are called after the source.
        self.alias = f"east{self.id}"
        self.topic, self.group = f"groups-{self.id}", f"readers-{self.id}"
        create(source, self.topic, 2)
        create(target, self.remote, 2, REMOTE)
        spec = spec_of(declared(self.alias, source), declared("west", target), self.topic)
        rules = GroupRules((f"readers-{self.id}.*",), sync_offsets=True, interval=1.0)
        self.spec: FlowSpec = replace(spec, flow=replace(spec.flow, offsets=offsets, groups=rules))
        create(target, syncs_topic(self.alias), 1, {"cleanup.policy": "compact"})
        fill(source, self.topic, 2 * RECORDS, 2)
        copy(self.spec)

    @property
    def remote(self) -> str:
        return f"{self.alias}.{self.topic}"

    @property
    def flow(self) -> Flow:
        return self.spec.flow

    @property
    def topology(self) -> Topology:
        clusters = {self.alias: self.spec.source, "west": self.spec.target}
        return Topology(f"groups-{self.id}", clusters, (self.flow,))

    def rounds(self, **changes: object) -> Rounds:
        rules = replace(self.flow.groups, **changes)  # type: ignore[arg-type]
        return Rounds(
            self.spec.source,
            self.spec.target,
            replace(self.flow, groups=rules),
            self.spec.topology,
            (self.alias, "west"),
        )

    def commit(self, *offsets: int, metadata: str = "", epoch: int | None = None) -> None:
        """Let the group have read so far in each partition, and say which leader's epoch it read last."""
        places = {(self.topic, number): one for number, one in enumerate(offsets)}
        leave_behind(self.source, self.group, places, metadata, epoch)

    def checkpoints(self) -> Collection[Checkpoint]:
        topic = f"{self.alias}.checkpoints.internal"
        return newest(reading.records(self.spec.target, topic, SECONDS)).values()

    def there(self) -> list[int]:
        """What the group has committed for the copies."""
        found = offsets_of(self.target, self.group)
        return [found[self.remote, number] for number in range(2)]


def moved(done: RoundResult) -> tuple[int, int, int]:
    assert done.problems == ()
    return done.written, done.committed, done.taken_back


def test_positions_are_taken_along_and_nothing_is_said_twice(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    pair.commit(30, RECORDS, metadata="so far", epoch=0)
    assert {place.leader_epoch for place in places_of(source_cluster, pair.group).values()} == {0}
    rounds = pair.rounds()
    first = rounds.round()
    assert (first.groups, first.positions, moved(first)) == (1, 2, (2, 2, 0))
    # The source's epochs would have readers look for them in another cluster's log.
    expected = {(pair.remote, 0): Committed(30, "so far", -1), (pair.remote, 1): Committed(RECORDS, "so far", -1)}
    assert places_of(target_cluster, pair.group) == expected
    assert set(pair.checkpoints()) == {
        Checkpoint(pair.group, pair.remote, 0, 30, 30, "so far"),
        Checkpoint(pair.group, pair.remote, 1, RECORDS, RECORDS, "so far"),
    }
    assert moved(rounds.round()) == (0, 0, 0)
    # Another process has nothing to write either; it commits once more what brokers might be about to forget.
    other = pair.rounds()
    assert moved(other.round()) == (0, 2, 0)
    assert moved(other.round()) == (0, 0, 0)
    other.close()

    # Who has members at the target is left to them, until they have gone.
    pair.commit(40, RECORDS)
    with member_of(target_cluster, pair.group, [pair.remote]):
        shared = rounds.round()
        assert (shared.present, moved(shared)) == ((pair.group,), (2, 0, 0))
    deadline = time.monotonic() + SECONDS
    while pair.there() != [40, RECORDS]:
        assert time.monotonic() < deadline
        rounds.round()

    # Who reads on at the target is not thrown back; who goes back at the source goes back there.
    leave_behind(target_cluster, pair.group, {(pair.remote, 0): 90})
    pair.commit(50, RECORDS)
    assert (moved(rounds.round()), pair.there()) == ((1, 0, 0), [90, RECORDS])
    pair.commit(10, RECORDS)
    assert (moved(rounds.round()), pair.there()) == ((1, 1, 0), [10, RECORDS])

    client: AdminClient = admin(source_cluster)
    client.delete_consumer_groups([pair.group])[pair.group].result(ANSWER_SECONDS)
    assert moved(rounds.round()) == (0, 0, 2)
    assert list(pair.checkpoints()) == []
    # What it had at the target is nobody's to take away.
    assert pair.there() == [10, RECORDS]
    rounds.close()


def test_who_went_back_while_it_had_members_at_the_target_goes_back_there_when_they_have_left(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    pair.commit(40, 60)
    rounds = pair.rounds()
    assert (moved(rounds.round()), pair.there()) == ((2, 2, 0), [40, 60])
    with member_of(target_cluster, pair.group, [pair.remote]):
        pair.commit(10, 70)
        shared = rounds.round()
        assert (shared.present, moved(shared)) == ((pair.group,), (2, 0, 0))
        # Nothing has moved since at the source, and it is looked at once more.
        assert (rounds.round().present, pair.there()) == ((pair.group,), [40, 60])
    # What the members had read by the time they left: partition 0 is further than it is at the source.
    leave_behind(target_cluster, pair.group, {(pair.remote, 0): 90, (pair.remote, 1): 90})
    eventually("no topic is present", lambda: rounds.round().present == ())
    # The one went back, the other did not.
    assert pair.there() == [10, 90]
    assert moved(rounds.round()) == (0, 0, 0)
    rounds.close()


def test_what_others_wrote_or_took_back_is_written_again(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    pair.commit(30, 40)
    rounds = pair.rounds()
    assert moved(rounds.round()) == (2, 2, 0)
    expected = set(pair.checkpoints())
    # One that stood still since it had looked writes what it saw then.
    other = CheckpointWriter(pair.spec.target, pair.alias)
    assert other.emit([Checkpoint(pair.group, pair.remote, 0, 5, 5)]) == 1
    assert (moved(rounds.round()), set(pair.checkpoints())) == ((1, 0, 0), expected)
    # Another flow takes them for those of a group that is gone.
    other.refresh()
    assert other.take_back(lambda key: key.group == pair.group) == 2
    other.close()
    assert (moved(rounds.round()), set(pair.checkpoints())) == ((2, 0, 0), expected)
    client: AdminClient = admin(target_cluster)
    client.delete_topics([other.topic])[other.topic].result(ANSWER_SECONDS)
    eventually("two groups are moved", lambda: moved(rounds.round()), lambda found: found == (2, 0, 0))
    assert (moved(rounds.round()), set(pair.checkpoints())) == ((0, 0, 0), expected)
    rounds.close()


def test_groups_of_another_topology_are_not_gone_where_it_has_the_same_alias(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    pair.commit(30, 40)
    rounds = pair.rounds(sync_offsets=False)
    assert moved(rounds.round()) == (2, 0, 0)
    owner = f"groups-{pair.id}"
    Journal(pair.spec.target, own(owner).owned).ensure()
    record = OwnedTopic(pair.remote, None, owner, "", pair.flow.name, pair.alias, pair.topic, "", 2, "identical", {})
    Ownership(pair.spec.target, owner).write([record])
    # By this alias another topology knows another cluster, which has no such group.
    there = declared(pair.alias, target_cluster)
    others = Rounds(there, pair.spec.target, pair.flow, f"others-{pair.id}", (pair.alias, "west"))
    assert moved(others.round()) == (0, 0, 0)
    assert len(pair.checkpoints()) == 2
    # What nobody has on record it takes for its own flow's of former days.
    Ownership(pair.spec.target, owner).forget([pair.remote])
    assert moved(others.round()) == (0, 0, 2)
    others.close()
    rounds.close()


def test_who_is_not_listed_for_a_moment_is_not_gone(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    pair.commit(30, 40)
    rounds = pair.rounds()
    assert moved(rounds.round()) == (2, 2, 0)
    with monkeypatch.context() as patched:
        # Its coordinator has just moved, and its new broker is asked for the list before it has read the group.
        patched.setattr(Groups, "kinds", lambda self: {})
        assert moved(rounds.round()) == (0, 0, 0)
    assert len(pair.checkpoints()) == 2
    assert moved(rounds.round()) == (0, 0, 0)
    rounds.close()


def test_rounds_notice_new_topics_over_the_client_that_they_keep(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    pair.commit(30, 40)
    rounds = pair.rounds()
    assert moved(rounds.round()) == (2, 2, 0)
    known = dict(rounds._groups)
    assert known.keys() == {pair.alias, "west"}
    later = f"later-{pair.id}"
    create(source_cluster, later)
    rounds.round()
    assert rounds._groups == known
    assert known[pair.alias].partitions[later] == 1
    rounds.close()


def test_translated_positions_stand_at_the_same_records(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "translated")
    pair.commit(30, 2 * RECORDS)
    rounds = pair.rounds(sync_offsets=False)
    done = rounds.round()
    assert (done.positions, done.committed) == (2, 0)
    assert {(one.partition, one.upstream): one.downstream for one in pair.checkpoints()} == {
        (0, 30): 30,
        # It is further than anything is: so it gets the end of the copy, behind the marker of its last transaction.
        (1, 2 * RECORDS): log_end(pair.spec.target, pair.remote, 1),
    }
    assert offsets_of(target_cluster, pair.group) == {}
    rounds.close()


def test_groups_inside_of_shifted_runs_go_on_at_the_same_record(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a broker wrote a marker twice, records of copies with identical offsets stand a little further back."""
    pair = Pair(source_cluster, target_cluster, "identical")
    whole = Filler.fill
    calls: defaultdict[Place, Iterator[int]] = defaultdict(itertools.count)

    async def sometimes_too_long(self: Filler, place: Place, info: TopicInfo, start: int, count: int) -> int:
        # By different numbers: what follows is filled so much less, and the same one again would be the same shift.
        number = next(calls[place])
        overrun = 2 + number % 2 if number % 3 == 0 else 0
        return await whole(self, place, info, start, count + overrun)

    monkeypatch.setattr(Filler, "fill", sometimes_too_long)
    transactions = Transactions(source_cluster, pair.topic, 2, per_second=1_000)
    transactions.start()
    transactions.finish(at_least=30)
    again = replace(pair.spec, run=uuid.uuid4().hex)
    assert all_running(copy(again).status.partitions)
    source, target = pair.spec.source, pair.spec.target
    runs = runs_of(target, pair.flow.name, pair.remote, 2)
    assert assert_translated(source, pair.topic, target, runs) > 0
    theirs, ours = committed(source, pair.topic), committed(target, pair.remote)
    places = [(one.offset() or 0, other.offset() or 0) for one, other in zip(theirs, ours, strict=True)]
    shifted = [place for place in places if place[0] != place[1]]
    assert len({there - here for here, there in shifted}) > 1
    rounds = pair.rounds()
    for here, there in (shifted[0], shifted[len(shifted) // 2], shifted[-1]):
        pair.commit(here, RECORDS, epoch=0)
        assert rounds.round().problems == ()
        assert places_of(target_cluster, pair.group)[pair.remote, 0] == Committed(there, "", -1)
        assert Checkpoint(pair.group, pair.remote, 0, here, there) in pair.checkpoints()
    rounds.close()


def test_only_what_the_flow_names_is_taken_along(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    other, another = f"groups-other-{pair.id}", f"elsewhere-{pair.id}"
    create(source_cluster, other)
    fill(source_cluster, other, RECORDS)
    pair.commit(30, 40)
    leave_behind(source_cluster, pair.group, {(other, 0): 3})
    leave_behind(source_cluster, another, {(pair.topic, 0): 3})
    share = f"readers-{pair.id}-share"
    join_share_group(source_cluster, share, pair.topic)
    rounds = pair.rounds()
    done = rounds.round()
    assert (done.groups, done.positions, done.written, done.committed) == (1, 2, 2, 2)
    (problem,) = done.problems
    assert (problem.code, share in problem.where) == ("AB629", True)
    assert {one.group for one in pair.checkpoints()} == {pair.group}
    assert offsets_of(target_cluster, another) == {}
    rounds.close()


def test_of_several_processes_one_has_the_turn(target_cluster: EmbeddedCluster) -> None:
    target = declared("west", target_cluster)
    name = f"turns-{uuid.uuid4().hex[:8]}"
    Journal(target, own(name).control).ensure()
    first, second = Leadership(target, name, "flow"), Leadership(target, name, "flow")

    def look() -> int:
        return sum((first.look(0.05), second.look(0.05)))

    eventually("one process has the turn", lambda: look() == 1)
    eventually("one process keeps the turn", lambda: look() == 1 and look() == 1)
    leaving, staying = (first, second) if first.is_ours else (second, first)
    leaving.close()
    eventually("the other process has the turn", lambda: staying.look(0.05))
    staying.close()


def test_the_service_follows_the_groups_and_one_process_after_the_other_does_it(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    pair = Pair(source_cluster, target_cluster, "identical")
    Journal(pair.spec.target, own(pair.topology.name).control).ensure()
    warned: list[str] = []
    pair.commit(5, 6)
    with looking_after_groups(pair.topology, [pair.flow], warned.append):
        with looking_after_groups(pair.topology, [pair.flow], warned.append):
            eventually(
                "offsets are committed", lambda: offsets_of(target_cluster, pair.group) and pair.there() == [5, 6]
            )
        pair.commit(7, 8)
        eventually("the group moves on", pair.there, lambda found: found == [7, 8])
    assert warned == []
    pair.commit(9, 10)
    # A flow that takes none along writes signs of life all the same, where it says so.
    alone = replace(pair.flow, groups=GroupRules(), heartbeats=1.0)
    before = log_end(pair.spec.target, "heartbeats")
    with looking_after_groups(pair.topology, [alone], warned.append):
        eventually("heartbeats are written", lambda: log_end(pair.spec.target, "heartbeats") >= before + 2)
    assert (pair.there(), warned) == ([7, 8], [])


@pytest.mark.long
def test_synced_offsets_outlive_what_brokers_forget(source_cluster: EmbeddedCluster) -> None:
    quick = ClusterOptions(overrides={"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"})
    with running(EmbeddedCluster("forgetful", quick)) as (forgetful,):
        pair = Pair(source_cluster, forgetful, "identical")
        pair.commit(30, 40)
        leave_behind(forgetful, "forgotten", {(pair.remote, 0): 3})
        rounds = pair.rounds()
        rounds.round()
        until_forgotten = time.monotonic() + 2 * SECONDS
        while offsets_of(forgetful, "forgotten"):
            assert time.monotonic() < until_forgotten
            time.sleep(1)
            assert pair.there() == [30, 40]
            rounds.round()
        time.sleep(5)
        rounds.round()
        assert pair.there() == [30, 40]
        rounds.close()
