"""`replicate` and `status` as users run them: waiting, following, stopping, and clusters that fail them."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from reconciler.demo.compare import compare
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from tests.conftest import MakeClusters
from tests.support.clusters.consumers import leave_behind, offsets_of
from tests.support.clusters.kafka import create, declared, grow, partitions
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import fill
from tests.support.replicator.replicating import Replicator, wait_until_copying
from tests.support.security.acls import allow
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

# A stopped broker may come back quickly: its session at the controller ends sooner than by default.
QUICK_SESSIONS = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}
UNREACHABLE = 6
# The promise is 10 seconds; a busy machine gets much longer.
STOP_SECONDS = 400

BOTH_WAYS = """\
version: 1
name: both-ways
clusters:
  east: {{bootstrap: ["{east}"], datacenter: dc1}}
  west: {{bootstrap: ["{west}"], datacenter: dc2}}
policy:
  type: rename
  rules:
    - {{from: '^orders-(l.*)$', to: 'dc1-\\1'}}
defaults:
  topics: {{include: ["orders.*"]}}
  refresh-interval: 2s
  tasks: 2
  groups: {{include: [readers], sync-offsets: true, interval: 1s}}
replication:
  - active-active: [east, west]
"""

SECURED = """\
version: 1
name: secured
clusters:
  east: {{bootstrap: ["{east}"]}}
  west:
    bootstrap: ["{west}"]
    security: {{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: {user}, password: "env:WEST_PASSWORD"}}
flows:
  - {{from: east, to: west, topics: {{include: ["{topic}.*"]}}}}
"""


def flows(file: Path, *options: str) -> dict[str, dict[str, Any]]:
    answer = anabranch("status", file, "--format", "json", *options)
    assert answer.code == 0, answer.stderr
    return {flow["name"]: flow for flow in json.loads(answer.stdout)["flows"]}


def ledger(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all runs, as Spark wrote them."""
    return [json.loads(line) for file in sorted(folder.glob("*/part-*.json")) for line in file.read_text().splitlines()]


def it_grows_and_is_paused_within_the_round(
    file: Path, east: EmbeddedCluster, west: EmbeddedCluster, running: Replicator
) -> None:
    """Add partitions and a topic, pause some and resume them, within one round of 300 s."""

    def each(what: str) -> list[Any]:
        found = flows(file)["east-west"]["partitions"]
        return [one[what] for one in sorted(found, key=lambda one: (one["topic"], one["partition"]))]

    grow(east, "orders", 6)
    create(east, "orders-late", 2)
    for topic, count in (("orders", 6), ("orders-late", 2)):
        fill(east, topic, 600, count)
    eventually("it takes what is new", lambda: each("lag") == [0] * 8)
    assert "enlarged east.orders, 6 partitions" in running.said()
    assert (partitions(west, "east.orders"), partitions(west, "dc1-late")) == (6, 2)

    paused = anabranch("pause", file, "--flow", "east-west", "--topic", "orders/0", "--topic", "dc1-late")
    confirmed = "paused orders/0, orders-late; confirmed by 2 running tasks"
    assert (paused.code, confirmed in paused.stdout) == (0, True), paused
    for topic, count in (("orders", 6), ("orders-late", 2)):
        fill(east, topic, 600, count)
    eventually("all others go on", lambda: each("lag")[1:6] == [0] * 5)
    assert each("state") == ["paused", *["running"] * 5, "paused", "paused"]
    assert "paused 3" in anabranch("status", file).stdout
    for wrong, named in (("orders/6", "has 0 to 5"), ("ordres", "orders, orders-late")):
        refused = anabranch("pause", file, "--topic", wrong)
        assert (refused.code, named in " ".join(refused.stderr.split())) == (2, True), refused
    resumed = anabranch("resume", file)
    counted = [resumed.stdout.count(words) for words in ("confirmed by 2", "nothing runs now")]
    assert (resumed.code, counted) == (0, [1, 1]), resumed
    assert anabranch("restart", file, "--flow", "east-west", "--topic", "orders/1").code == 0
    eventually("all go on", lambda: each("lag") == [0] * 8)


def groups_are_taken_along(east: EmbeddedCluster, west: EmbeddedCluster, read: int) -> None:
    """Let a group commit how far it has read at the source, and see it stand at the same records of the copy."""
    leave_behind(east, "readers", {("orders", number): read + number for number in range(4)})
    there = {("east.orders", number): read + number for number in range(4)}
    eventually("the group stands there too", lambda: offsets_of(west, "readers") == there)


def a_task_waits(flow: dict[str, Any]) -> bool:
    """Whether a task says that it waits; before it speaks the process waits for Spark."""
    return (flow["state"], bool(flow["tasks"])) == ("waiting", True)


def test_it_waits_for_a_topic_follows_survives_its_source_and_stops_in_order(
    make_clusters: MakeClusters, tmp_path: Path
) -> None:
    east, west = make_clusters("east", "west", options=ClusterOptions(overrides=QUICK_SESSIONS))
    file = tmp_path / "both-ways.yaml"
    file.write_text(BOTH_WAYS.format(east=east.bootstrap, west=west.bootstrap))
    running = Replicator(file, tmp_path, "--clusters", "west", "--ledger", str(tmp_path / "ledger"))
    try:
        eventually("it warns", lambda: "no topic of east matches yet" in running.said())
        eventually("it waits", lambda: a_task_waits(flows(file)["east-west"]))

        create(east, "orders", 4)
        traffic = Traffic(east, "orders", 4, records=20_000, backlog=20_000)
        traffic.start()
        traffic.finish()
        wait_until_copying(declared("west", west), running, time.time())
        assert "made east.orders, 4 partitions" in running.said()
        left = json.loads(anabranch("plan", file, "--clusters", "west", "--format", "json").stdout)
        assert left["clusters"][0]["steps"] == [], "the loop made it as apply does"
        assert flows(file)["west-east"]["state"] == "not running"
        groups_are_taken_along(east, west, 100)
        it_grows_and_is_paused_within_the_round(file, east, west, running)

        east.stop_broker()
        incomplete = anabranch("status", file)
        assert incomplete.code == UNREACHABLE
        assert "east → west" in incomplete.stdout, "what the other cluster says is still told"

        def loss_is_named() -> bool:
            return east.bootstrap in str(flows(file, "--clusters", "west")["east-west"]["partitions"])

        eventually("the lost source is named", loss_is_named)
        assert "AB220" in anabranch("status", file, "--clusters", "west").stdout
        east.start_broker()
        eventually("it goes on", lambda: flows(file)["east-west"]["state"] == "running")
        eventually("it catches up", lambda: flows(file)["east-west"]["lag"] == 0)
        groups_are_taken_along(east, west, 200)

        running.interrupt()
        assert running.wait(STOP_SECONDS) == 0, running.said()
        assert flows(file)["east-west"]["state"] == "stopped"
        assert not list((tmp_path / "state").glob("*/*")), "a clean end leaves nothing behind"
    finally:
        running.end()
    found = compare(declared("east", east), "orders", declared("west", west), "east.orders")
    assert found.is_identical
    assert found.records == 21_200
    rows = ledger(tmp_path / "ledger" / "east-west")
    assert {(row["topic"], row["remote"], row["shift"]) for row in rows} == {
        ("orders", "east.orders", 0),
        ("orders-late", "dc1-late", 0),
    }
    assert all(row["last_offset"] - row["first_offset"] + 1 == row["records"] for row in rows)
    # A row is missing where an answer was: on a busy machine that may be.
    assert 0 < sum(row["records"] for row in rows if row["topic"] == "orders") <= found.records


def test_a_stop_before_spark_runs_ends_at_once(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    file = tmp_path / "both-ways.yaml"
    file.write_text(BOTH_WAYS.format(east=source_cluster.bootstrap, west=target_cluster.bootstrap))
    running = Replicator(file, tmp_path)
    try:
        eventually("it starts Spark", lambda: bool(running.jvm()))
        jvm = running.jvm()
        running.terminate()
        assert running.wait(STOP_SECONDS) == 0, running.said()
        assert "Traceback" not in running.said()
        eventually("its JVM ends with it", lambda: not any(process.is_running() for process in jvm))
    finally:
        running.end()


def test_wrong_addresses_are_named_in_seconds_and_all_at_once(tmp_path: Path) -> None:
    file = tmp_path / "nowhere.yaml"
    file.write_text(BOTH_WAYS.format(east="127.0.0.1:9", west="no-such-host.invalid:9092"))

    def refused(command: tuple[object, ...]) -> None:
        began = time.monotonic()
        answer = anabranch(*command)
        assert answer.code == UNREACHABLE, (command, answer)
        assert "127.0.0.1:9" in answer.stderr
        assert "the name no-such-host.invalid cannot be resolved" in " ".join(answer.stderr.split())
        assert f"({file}:" in answer.stderr
        assert "Traceback" not in answer.stderr
        # "In seconds": generously, for busy machines.
        assert time.monotonic() - began < 60

    commands = (("replicate", file), ("plan", file), ("apply", file, "--yes"), ("status", file))
    with ThreadPoolExecutor(len(commands)) as pool:
        list(pool.map(refused, commands))


def test_a_refused_acl_names_the_topic_and_what_to_grant(
    make_clusters: MakeClusters,
    source_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = {"admin": "admin-pw", "mirror": "mirror-pw"}
    (west,) = make_clusters("west", options=ClusterOptions(users=users))
    open_topic, closed_topic = f"{topic_name}-open", f"{topic_name}-closed"
    for topic in (open_topic, closed_topic):
        create(source_cluster, topic, 2)
        traffic = Traffic(source_cluster, topic, 2, records=1_000, backlog=1_000)
        traffic.start()
        traffic.finish()
    names = {"east": source_cluster.bootstrap, "west": west.bootstrap, "topic": topic_name}
    file = tmp_path / "secured.yaml"

    file.write_text(SECURED.format(**names, user="admin"))
    monkeypatch.setenv("WEST_PASSWORD", "wrong-pw")
    refused = anabranch("plan", file)
    assert refused.code == 1, refused
    assert "cluster west" in refused.stderr
    assert "wrong-pw" not in refused.stderr + refused.stdout
    monkeypatch.setenv("WEST_PASSWORD", users["admin"])
    assert anabranch("apply", file, "--yes").code == 0

    everything = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    allow(west, "mirror", ResourceType.TOPIC, "anabranch.", *everything)
    allow(west, "mirror", ResourceType.TOPIC, f"east.{open_topic}", *everything)
    allow(west, "mirror", ResourceType.TOPIC, f"east.{closed_topic}", *set(everything) - {AclOperation.WRITE})
    allow(west, "mirror", ResourceType.TRANSACTIONAL_ID, "anabranch.", AclOperation.WRITE, AclOperation.DESCRIBE)
    allow(west, "mirror", ResourceType.GROUP, "anabranch.", AclOperation.READ)
    file.write_text(SECURED.format(**names, user="mirror"))
    monkeypatch.setenv("WEST_PASSWORD", users["mirror"])
    running = Replicator(file, tmp_path, "--until-caught-up", "--no-reconcile")
    try:
        assert running.wait(400) == 1
    finally:
        running.end()
    said = running.said()
    assert f"WRITE on topic east.{closed_topic} is refused" in said
    assert "AB213" in said
    assert f"east.{open_topic}" not in said, "the other topic is not to blame, and was copied"
    assert users["mirror"] not in said
