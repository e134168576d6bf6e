"""Flows that are idle beyond what their target remembers of them: positions, transactional ids and producers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from reconciler.demo.compare import compare
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.traffic import WEEK_MS, Transactions
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import fill
from tests.support.replicator.replicating import Replicator, wait_until_copying
from tests.support.replicator.translated import assert_translated, contents, runs_of

pytestmark = pytest.mark.spark

PARTITIONS = 4
RECORDS = 2_000
# The least that a broker remembers positions for is a minute.
IDLE_SECONDS = 80
FORGETFUL = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
    "transactional.id.expiration.ms": "10000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    "producer.id.expiration.ms": "10000",
    "producer.id.expiration.check.interval.ms": "1000",
}

DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{source}"]}}
  west: {{bootstrap: ["{target}"]}}
replication:
  - {{from: east, to: west, name: {name}-i, offsets: identical, topics: {{include: ["{name}-i-.*"]}}}}
  - {{from: east, to: west, name: {name}-t, offsets: translated, topics: {{include: ["{name}-t-.*"]}}}}
  - {{from: east, to: west, name: {name}-f, fill: transactions, topics: {{include: ["{name}-f-.*"]}}}}
"""


@pytest.fixture
def forgetful() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("target", ClusterOptions(overrides=FORGETFUL)) as cluster:
        yield cluster


@pytest.mark.long
@pytest.mark.timeout(900)
def test_they_go_on_where_they_were(
    tmp_path: Path, source_cluster: EmbeddedCluster, forgetful: EmbeddedCluster, topic_name: str
) -> None:
    name = f"i{topic_name[-8:]}"
    source, target = declared("east", source_cluster), declared("west", forgetful)
    ages = {"fresh": 0, "old": WEEK_MS}
    plain = {f"{name}-{mode}-{age}": ms for mode in "it" for age, ms in ages.items()}
    transacted = {f"{name}-f-{age}": ms for age, ms in ages.items()}
    for topic in plain | transacted:
        create(source_cluster, topic, PARTITIONS)
    file = tmp_path / "topology.yaml"
    file.write_text(DECLARATION.format(name=name, source=source_cluster.bootstrap, target=forgetful.bootstrap))
    assert anabranch("apply", file, "--yes").code == 0

    def write() -> None:
        threads = [Transactions(source_cluster, topic, PARTITIONS, (age,)) for topic, age in transacted.items()]
        for thread in threads:
            thread.start()
        for topic, age in plain.items():
            fill(source_cluster, topic, RECORDS, PARTITIONS, age=age)
        for thread in threads:
            thread.finish(10)

    rounds = 0
    for _ in range(2):
        running = Replicator(file, tmp_path)
        try:
            write()
            wait_until_copying(target, running, time.time())
            time.sleep(IDLE_SECONDS)
            write()
            rounds += 2
            wait_until_copying(target, running, time.time())
            running.terminate()
            assert running.wait(400) == 0, running.said()
        finally:
            running.end()
        time.sleep(IDLE_SECONDS)
        assert _known(forgetful) == ([], {})
    last = Replicator(file, tmp_path, "--until-caught-up")
    try:
        assert last.wait(240) == 0, last.said()
    finally:
        last.end()
    for topic in plain:
        if topic.startswith(f"{name}-i"):
            found = compare(source, topic, target, f"east.{topic}")
            assert (found.is_identical, found.records) == (True, rounds * RECORDS), found.different
            continue
        theirs = [contents(source, topic, number) for number in range(PARTITIONS)]
        assert sum(map(len, theirs)) == rounds * RECORDS
        assert [contents(target, f"east.{topic}", number) for number in range(PARTITIONS)] == theirs
    for topic in transacted:
        runs = runs_of(target, f"{name}-f", f"east.{topic}", PARTITIONS, name)
        assert_translated(source, topic, target, runs)


def _known(cluster: EmbeddedCluster) -> tuple[list[object], dict[object, object]]:
    """Return the transactional ids and the positions that a cluster remembers."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    try:
        groups = [group["group_id"] for group in client.list_groups()]
        transactions = [one for found in client.list_transactions().values() for one in found]
        return transactions, {one: found for one in groups if (found := _positions(client, one))}
    finally:
        client.close()


def _positions(client: KafkaAdminClient, group: str) -> object:
    return client.list_group_offsets({group: None})[group]
