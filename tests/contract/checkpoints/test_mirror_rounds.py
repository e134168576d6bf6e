"""What rounds of real flows have written, about groups and real copies, as Kafka's own client and ours read it."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from reconciler.checkpoints.service import rounds
from reconciler.checkpoints.service.rounds import Rounds
from reconciler.client import MirrorClient, translate_offsets
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.flow import Flow, OffsetsMode
from reconciler.model.names.selection import Selection
from reconciler.state.confluent import clients
from tests.contract.checkpoints.test_rounds import RECORDS, Pair
from tests.support.clusters.consumers import leave_behind, offsets_of
from tests.support.clusters.kafka import create
from tests.support.clusters.mirror_java import java_answers, our_answers
from tests.support.replicator.copying import REMOTE, all_running, copy, fill, log_end, spec_of
from tests.support.replicator.translated import committed


def copied_twice(source: EmbeddedCluster, target: EmbeddedCluster, offsets: OffsetsMode) -> Pair:
    """Make a pair whose topic was copied in two goes, so that a marker stands in copies with offsets of their own."""
    pair = Pair(source, target, offsets)
    fill(source, pair.topic, 2 * RECORDS, 2)
    assert all_running(copy(replace(pair.spec, run=uuid.uuid4().hex)).status.partitions)
    return pair


def carry_heartbeats(pair: Pair) -> None:
    """Let a round of the flow back write heartbeats at the source, and the flow carry them on to the target."""
    there, here = pair.spec.source, pair.spec.target
    back = Flow(f"west-{pair.alias}", "west", pair.alias, Selection(("nothing",)), groups=pair.flow.groups)
    backward = Rounds(here, there, back, pair.spec.topology, (pair.alias, "west"))
    assert backward.round().problems == ()
    backward.close()
    spec = spec_of(there, here, "heartbeats")
    create(pair.target, f"{pair.alias}.heartbeats", 1, REMOTE)
    assert copy(spec).records > 0


@pytest.mark.parametrize("offsets", ["identical", "translated"])
def test_what_rounds_write_is_read_by_the_java_client_and_by_ours(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, offsets: OffsetsMode
) -> None:
    pair = copied_twice(source_cluster, target_cluster, offsets)
    other = f"{pair.group}-other"
    # In the first go, in the second one, and at the end.
    pair.commit(30, RECORDS + 50, metadata="so far")
    leave_behind(source_cluster, other, {(pair.topic, 1): 2 * RECORDS})
    rounds = pair.rounds()
    done = rounds.round()
    rounds.close()
    assert (done.groups, done.written, done.problems) == (2, 3, ())
    carry_heartbeats(pair)

    theirs = java_answers(target_cluster, pair.alias, pair.group)
    client = MirrorClient(target_cluster.client_config())
    assert our_answers(client, pair.alias, pair.group) == theirs
    # Of partition n the record number k stands there; the copies hold all of them, in order.
    copies = [committed(pair.spec.target, pair.remote, number) for number in range(2)]
    assert [len(some) for some in copies] == [2 * RECORDS, 2 * RECORDS]
    expected = [copies[0][30].offset(), copies[1][RECORDS + 50].offset()]
    assert (expected == [30, RECORDS + 50]) is (offsets == "identical")
    found = [[pair.remote, 0, expected[0], "so far"], [pair.remote, 1, expected[1], "so far"]]
    assert theirs["translateOffsets"] == theirs["remoteConsumerOffsets"] == found
    assert offsets_of(target_cluster, pair.group) == {(pair.remote, number): expected[number] for number in range(2)}
    ours = [(one.topic, one.partition, one.offset) for one in translate_offsets(pair.spec.target, pair.alias, other)]
    assert ours == [(pair.remote, 1, log_end(pair.spec.target, pair.remote, 1))]
    assert offsets_of(target_cluster, other) == {ours[0][:2]: ours[0][2]}

    assert f"{pair.alias}.checkpoints.internal" in theirs["checkpointTopics"]
    assert {"heartbeats", f"{pair.alias}.heartbeats"} <= set(theirs["heartbeatTopics"])
    assert pair.alias in theirs["upstreamClusters"]
    assert (theirs["replicationHops"][pair.alias], theirs["replicationHopsByUtils"]) == (1, 1)
    assert theirs["replicationHops"]["nowhere"] == -1
    assert {pair.remote, f"{pair.alias}.heartbeats"} <= set(theirs["remoteTopicsOfSource"])
    assert set(theirs["remoteTopicsOfSource"]) <= set(theirs["remoteTopics"])
    beats = {(one.source, one.target) for one in client.heartbeats()}
    assert (pair.alias, "west") in beats


def test_rounds_of_further_flows_make_no_clients_of_their_own(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has threads and connections: those of a hundred flows took more than the flows."""
    pair = Pair(source_cluster, target_cluster, "identical")
    pair.commit(30, RECORDS)
    made: list[str] = []
    make = clients.make

    def counted(kind: type, *rest: Any, **options: Any) -> Any:
        made.append(kind.__name__)
        return make(kind, *rest, **options)

    several = [pair.rounds() for _ in range(4)]
    for one in several:
        # What is written and what is known settles.
        one.round()
    for one in several[1:]:
        one.close()
    monkeypatch.setattr(clients, "make", counted)
    # Each asks once for how long brokers keep offsets.
    monkeypatch.setattr(rounds, "retention_seconds", lambda _: 1_000_000.0)
    several += [pair.rounds() for _ in range(3)]
    for one in several:
        assert one.round().problems == ()
    # What each reads of the topic of checkpoints is read once, by a client that ends with it.
    assert set(made) <= {"Consumer"}
    for one in several:
        one.close()
