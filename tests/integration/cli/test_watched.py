"""Three data centres of two clusters each, copied by Spark, scraped by a real Prometheus: what both say, and alerts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.consumers import join_share_group, leave_behind
from tests.support.clusters.datacenters import ALIASES, REPLICATION, Clusters, declared, six_running
from tests.support.clusters.kafka import create, set_config
from tests.support.commands.command import anabranch
from tests.support.commands.scraping import exporter, firing, prometheus, queried, value
from tests.support.replicator.replicating import Replicator
from tests.support.replicator.trickles import Trickle
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(2_400)]

PARTITIONS = 2
SECONDS = 1_200
WATCHED_SECONDS = 60
# Readings of an exporter are up to two seconds old, scrapes one, and a status is looked at somewhere between.
AROUND_SECONDS = 5
FILE = """\
version: 1
name: watched
{clusters}defaults:
  tasks: 1
  groups: {{include: [billing, shared], sync-offsets: true, interval: 5s}}
{replication}"""


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    with six_running() as started:
        yield started


def status_of(file: Path) -> Mapping[str, Any]:
    return dict(json.loads(anabranch("status", file, "--format", "json", limit=SECONDS).stdout))


@dataclass
class Comparison:
    """Values of `status` beside those that were scraped around the moment when it was asked.

    Attributes:
        compared: how many there were.
        equal: how many of them a scrape had exactly.
        off: those that lie outside of what was scraped by more than their tolerance.
    """

    compared: int = 0
    equal: int = 0
    off: tuple[str, ...] = ()

    def add(self, where: str, said: float, scraped: list[float], tolerance: float) -> None:
        # Between two readings the greatest may have passed; none is off where nothing moves.
        tolerance += 0.2 * said if tolerance else 0.0
        self.compared += 1
        self.equal += said in scraped
        if not scraped or not min(scraped) - tolerance <= said <= max(scraped) + tolerance:
            self.off += (f"{where}: status has {said}, scrapes {scraped}",)


def samples(server: str, metric: str, more: str = "") -> dict[tuple[str, ...], list[float]]:
    """Return the samples of the last seconds, by flow, and topic and partition where it has them."""
    found: dict[tuple[str, ...], list[float]] = {}
    for one in queried(server, f"{metric}{more}[{3 * AROUND_SECONDS}s]"):
        labels = one["metric"]
        place = tuple(labels[name] for name in ("flow", "topic", "partition") if name in labels)
        found.setdefault(place, []).extend(float(number) for _, number in one["values"])
    return found


def compare(file: Path, server: str, into: dict[str, Comparison], is_exact: bool = False) -> None:
    """Ask `status` once, and compare all it says with what is scraped around then; all must be had once it is still."""
    status = status_of(file)
    # On a starved machine a word may be late; what is said of such a flow are its last words, and no sample has them.
    running = [flow for flow in status["flows"] if flow["state"] == "running"]
    time.sleep(AROUND_SECONDS)
    of_flows = {
        "lag": ("anabranch_flow_lag_records", 40.0),
        "lagSeconds": ("anabranch_flow_lag_seconds", 3.0),
        "recordsPerSecond": ("anabranch_flow_records_per_second", 5.0),
        "bytesPerSecond": ("anabranch_flow_bytes_per_second", 500.0),
    }
    for name, (metric, tolerance) in of_flows.items():
        scraped = samples(server, metric)
        comparison = into.setdefault(name, Comparison())
        for flow in running:
            comparison.add(flow["name"], flow[name], scraped.get((flow["name"],), []), 0 if is_exact else tolerance)
    lags = samples(server, "anabranch_partition_lag_records")
    latencies = samples(server, "anabranch_partition_latency_seconds", '{stat="p99"}')
    for flow in running:
        for one in flow["partitions"]:
            place = (flow["name"], one["topic"], str(one["partition"]))
            tolerance = 0.0 if is_exact else 40.0
            into.setdefault("partition lag", Comparison()).add(str(place), one["lag"], lags.get(place, []), tolerance)
            if one["latencyMs"] is not None:
                p99 = one["latencyMs"]["p99"] / 1_000
                tolerance = 1e-6 if is_exact else 0.5 * p99 + 0.1
                into.setdefault("p99", Comparison()).add(str(place), p99, latencies.get(place, []), tolerance)


@contextmanager
def replicated(file: Path, folder: Path) -> Iterator[Replicator]:
    one = Replicator(file, folder)
    try:
        yield one
    finally:
        one.end()


def produce_large(cluster: EmbeddedCluster, topic: str) -> None:
    producer = Producer(cluster.client_config())
    producer.produce(topic, value=bytes(range(256)) * 40, partition=0)
    assert producer.flush(SECONDS) == 0


def test_what_prometheus_has_is_what_status_says_and_each_trouble_fires(tmp_path: Path, clusters: Clusters) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(FILE.format(clusters=declared(clusters), replication=REPLICATION))
    for one in clusters.values():
        create(one, "orders", PARTITIONS)
    create(clusters["west-2"], "users", PARTITIONS)
    applied = anabranch("apply", file, "--yes", limit=SECONDS)
    assert applied.code == 0, applied.stderr
    leave_behind(clusters["west-1"], "billing", {("orders", 0): 0})
    with replicated(file, tmp_path / "state") as replicator, exporter(file) as url:
        server = tmp_path / "prometheus"
        server.mkdir()
        with prometheus(server, url.split("/")[2]) as watched:
            watch(file, clusters, watched, replicator)


def watch(file: Path, clusters: Clusters, server: str, replicator: Replicator) -> None:
    def states() -> set[str]:
        return {flow["state"] for flow in status_of(file)["flows"]}

    eventually("all flows run", states, lambda found: found == {"running"}, seconds=SECONDS, detail=replicator.said)
    moving: dict[str, Comparison] = {}
    with ExitStack() as traffic:
        for one in clusters.values():
            traffic.enter_context(Trickle(one, ["orders"], PARTITIONS, per_second=20))
        eventually("all copy", lambda: queried(server, "anabranch_flow_records_per_second == 0"), lambda one: not one)
        until = time.monotonic() + WATCHED_SECONDS
        while time.monotonic() < until:
            compare(file, server, moving)
    print(*(f"{name}: {one.compared} compared, {one.equal} equal" for name, one in moving.items()), sep="\n")
    # What lasts for less than the time between two scrapes is in none of them; once all is still they must be equal.
    seen = [one.compared and len(one.off) <= one.compared // 20 for one in moving.values()]
    assert all(seen), [one.off[:3] for one in moving.values()]
    eventually("a scrape succeeds", lambda: value(server, "count(up == 1)"), lambda one: one == 1)
    copied = "min(kafka_connect_mirror_mirrorsourceconnector_record_count{topic=~'.*orders'})"
    assert (value(server, copied) or 0) > 0
    assert (value(server, "count(kafka_connect_plugins_record_count)") or 0) > 0
    assert firing(server) <= {"AnabranchLatency", "AnabranchLag"}
    eventually("nothing is behind", lambda: value(server, "sum(anabranch_flow_lag_records)"), lambda one: one == 0)
    eventually("nothing is copied", lambda: value(server, "max(anabranch_flow_records_per_second)"), lambda n: n == 0)
    still: dict[str, Comparison] = {}
    time.sleep(3 * AROUND_SECONDS)
    compare(file, server, still, is_exact=True)
    print(*(f"{name}: {one.compared} compared, {one.equal} equal" for name, one in still.items()), sep="\n")
    assert not any(one.off for one in still.values()), [one.off[:3] for one in still.values()]
    have_trouble(file, clusters, server, replicator)


def have_trouble(file: Path, clusters: Clusters, server: str, replicator: Replicator) -> None:
    """Let a partition be refused, a topic paused, a group no consumer group, a cluster away, and a run killed."""

    def fires(name: str, series: str) -> None:
        eventually(series, lambda: queried(server, series), seconds=SECONDS, detail=replicator.said)
        eventually(name, lambda: name in firing(server), seconds=SECONDS)

    set_config(clusters["east-1"], "west-1.orders", "max.message.bytes", "2000")
    produce_large(clusters["west-1"], "orders")
    place = "flow='west-1-east-1',topic='orders',partition='0'"
    fires("AnabranchParked", f"anabranch_partition_state{{{place},state='parked'}} == 1")
    fires("AnabranchParked", f"anabranch_partition_trouble{{{place},code='AB212'}} == 1")
    assert not queried(server, "anabranch_partition_state{flow='west-1-west-2',topic='orders',state='parked'} == 1")

    paused = anabranch("pause", file, "--flow", "west-2-west-1", "--topic", "users", limit=SECONDS)
    assert paused.code == 0, paused
    place = "flow='west-2-west-1',topic='users'"
    series = f"count(anabranch_partition_state{{{place},state='paused'}} == 1) == {PARTITIONS}"
    fires("AnabranchPaused", series)
    assert value(server, "anabranch_flow_partitions{flow='west-2-west-1',state='paused'}") == PARTITIONS

    join_share_group(clusters["north-1"], "shared", "orders")
    fires("AnabranchGroupStale", "anabranch_group_refused{source='north-1',group='shared',code='AB629'} == 1")

    clusters["north-2"].stop_broker()
    fires("AnabranchClusterAway", "anabranch_cluster_up{cluster='north-2'} == 0")
    assert value(server, "count(anabranch_cluster_up == 1)") == len(ALIASES) - 1

    replicator.end()
    fires("AnabranchFlowDown", "anabranch_flow_state{flow='east-1-west-1',state='lost'} == 1")
    assert not queried(server, "anabranch_flow_lag_seconds{flow='east-1-west-1'}")
    print("fired:", *sorted(firing(server)))
