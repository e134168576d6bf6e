"""Three data centres of two clusters each, on six brokers: waves, hops, locality, every pattern and every setting."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.datacenters import ALIASES, REPLICATION, Clusters, declared, six_running
from tests.support.clusters.kafka import admin, create, topic_configs
from tests.support.commands.command import anabranch

CHANGES, REFUSED, UNREACHABLE = 3, 4, 6
FILE = """\
version: 1
name: shop
{clusters}datacenters:
  east: {{wave: 1}}
  west: {{wave: 2}}
{replication}flows:
  - {{from: north-1, to: north-2, tasks: 1}}
"""


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    with six_running() as started:
        yield started


@pytest.fixture(scope="module")
def file(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("xdcr") / "shop.yaml"
    path.write_text(FILE.format(clusters=declared(clusters), replication=REPLICATION))
    return path


def copies(clusters: Clusters) -> dict[str, set[str]]:
    """The remote topics of each cluster."""
    found = {alias: admin(one).list_topics(timeout=30).topics for alias, one in clusters.items()}
    return {alias: {name for name in topics if name.endswith((".orders", ".users"))} for alias, topics in found.items()}


def expected() -> dict[str, set[str]]:
    """Where `orders` of each cluster and `users` of west-2 come, gateway by gateway, each cluster once on a way."""
    gateways = {alias: alias.replace("2", "1") for alias in ALIASES}
    found: dict[str, set[str]] = {alias: set() for alias in ALIASES}
    ways = [([alias], "orders") for alias in ALIASES] + [(["west-2"], "users")]
    while ways:
        way, topic = ways.pop()
        here = way[0]
        for there in ALIASES:
            inside = gateways[here] == gateways[there]
            between = here == gateways[here] and there == gateways[there]
            if there not in way and (inside or between):
                found[there].add(".".join((*way, topic)))
                ways.append(([there, *way], topic))
    return found


def test_a_plan_is_carried_out_in_waves_over_all_hops_at_once(clusters: Clusters, file: Path) -> None:
    for number, alias in enumerate(ALIASES, 1):
        create(clusters[alias], "orders", number, {"retention.ms": str(number * 3_600_000)})
    create(clusters["west-2"], "users", 2)

    planned = anabranch("plan", file, "--detailed-exitcode")
    assert (planned.code, planned.stderr) == (CHANGES, ""), planned
    assert "east-1 (east, wave 1 of 3)" in planned.stdout
    assert "north-2 (north, wave 3 of 3)" in planned.stdout
    applied = anabranch("apply", file, "--yes", limit=300)
    assert applied.code == 0, applied
    assert applied.stderr.splitlines() == [
        "wave 1 of 3: east-1, east-2",
        "wave 2 of 3: west-1, west-2",
        "wave 3 of 3: north-1, north-2",
    ]
    assert copies(clusters) == expected()
    far = "west-1.west-2.orders"
    assert topic_configs(clusters["east-1"], far)["retention.ms"] == str(2 * 3_600_000)

    again = anabranch("plan", file, "--detailed-exitcode")
    assert (again.code, "Nothing to do" in again.stdout) == (0, True), again


def test_copies_are_taken_away_in_the_opposite_order(file: Path, clusters: Clusters) -> None:
    # Nobody allows it: it is only shown.
    shown = anabranch("destroy", file, "--yes")
    assert (shown.code, "north-1 (north, wave 1 of 3)" in shown.stdout) == (REFUSED, True), shown
    count = sum(map(len, copies(clusters).values()))
    ended = anabranch("destroy", file, "--yes", "--allow-delete", f"topic={count}", limit=300)
    assert ended.code == 0, ended
    assert ended.stderr.splitlines() == [
        "wave 1 of 3: north-1, north-2",
        "wave 2 of 3: west-1, west-2",
        "wave 3 of 3: east-1, east-2",
    ]
    assert copies(clusters) == {alias: set() for alias in ALIASES}
    assert anabranch("apply", file, "--yes", limit=300).code == 0
    assert copies(clusters) == expected()


def test_one_line_of_the_file_is_one_line_of_the_plan(file: Path, clusters: Clusters) -> None:
    before = anabranch("plan", file).stdout
    file.write_text(file.read_text().replace("to: north-2, tasks: 1", "to: north-2, tasks: 3"))
    after = anabranch("plan", file).stdout
    changed = [line[1:].split() for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    # The flow itself with what changes of it, and that another declaration is put in force where it ends; which signs
    # there are, the sum and what comes next are at the beginning and the end of the plan.
    assert [line[:3] for line in changed if line[:2] == ["=", "flow"]][:1] == [["=", "flow", "north-1"]]
    assert [line[:3] for line in changed if line[:2] == ["▶", "flow"]] == [["▶", "flow", "north-1"]]
    assert [line[1] for line in changed if line[:1] == ["~"]].count("flow") == 1
    assert [line for line in changed if line[:1] == ["tasks"]] == [["tasks", "1", "→", "3"]]
    assert {line[1] for line in changed if len(line) > 1 and line[1] in ("flow", "force")} == {"flow", "force"}
    assert len([line for line in changed if line[1:2] == ["force"]]) == 2
    steps = json.loads(anabranch("plan", file, "--format", "json").stdout)["clusters"]
    assert not any(cluster["steps"] for cluster in steps)
    assert anabranch("apply", file, "--yes").code == 0


# A value of every setting of topics that nobody defaults to.
EVERY = {
    "cleanup.policy": "compact,delete",
    "compression.gzip.level": "9",
    "compression.lz4.level": "12",
    "compression.type": "gzip",
    "compression.zstd.level": "5",
    "delete.retention.ms": "86400001",
    "errors.deadletterqueue.group.enable": "true",
    "file.delete.delay.ms": "60001",
    "flush.messages": "100000",
    "flush.ms": "100000",
    "follower.replication.throttled.replicas": "0:1",
    "index.interval.bytes": "4097",
    "leader.replication.throttled.replicas": "0:1",
    "max.compaction.lag.ms": "1000000000",
    "max.decompressed.message.bytes": "100000000",
    "max.message.bytes": "2000000",
    "message.timestamp.after.max.ms": "3600001",
    "message.timestamp.before.max.ms": "3600001",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.6",
    "min.compaction.lag.ms": "1000",
    "min.insync.replicas": "2",
    "preallocate": "true",
    "retention.bytes": "1000000000",
    "retention.ms": "86400001",
    "segment.bytes": "104857600",
    "segment.index.bytes": "1048576",
    "segment.jitter.ms": "1000",
    "segment.ms": "86400001",
    "unclean.leader.election.enable": "true",
}
# Brokers without a tier of old segments take none of these but their defaults.
TIERED = {"local.retention.bytes", "local.retention.ms", "remote.storage.enable"}
TIERED |= {"remote.log.copy.disable", "remote.log.delete.on.disable", "remote.copy.lag.bytes", "remote.copy.lag.ms"}
ANY_PATTERN = """\
version: 1
name: {name}
clusters: {{{clusters}}}
replication:
  - {pattern}
    topics: {{include: ["{name}.*"]}}
    configs: {configs}
"""


@pytest.mark.parametrize(
    ("pattern", "configs"),
    [
        pytest.param("fan-out: {from: west-1, to: [east-1, north-1]}", "{}", id="fan-out"),
        pytest.param("aggregation: {from: [west-1, east-1], to: north-1}", "{}", id="aggregation"),
        pytest.param("active-active: [west-1, east-1]", "{}", id="active-active"),
        pytest.param("active-active: [west-1, east-1]", '{include: [".*"]}', id="all"),
        pytest.param("active-active: [west-1, east-1]", '{exclude: [".*"]}', id="none"),
    ],
)
def test_a_plan_after_an_apply_is_empty_whatever_is_set_on_originals(
    pattern: str, configs: str, clusters: Clusters, tmp_path: Path, topic_name: str
) -> None:
    name = f"s{topic_name[-8:]}"
    used = {alias: one for alias, one in clusters.items() if alias in pattern}
    for number, one in enumerate(used.values()):
        create(one, f"{name}-{number}", 2, EVERY)
        create(one, f"{name}-plain-{number}", 1)
    known = topic_config_keys(clusters["west-1"], f"{name}-0")
    assert known - TIERED == EVERY.keys(), "the brokers know a setting that nobody thought of"
    file = tmp_path / "one.yaml"
    declared = ", ".join(f'{alias}: {{bootstrap: ["{one.bootstrap}"]}}' for alias, one in used.items())
    file.write_text(ANY_PATTERN.format(name=name, clusters=declared, pattern=pattern, configs=configs))
    applied = anabranch("apply", file, "--yes")
    assert (applied.code, "make west-1." in applied.stdout) == (0, True), applied
    again = anabranch("plan", file, "--detailed-exitcode")
    assert (again.code, "Nothing to do" in again.stdout) == (0, True), again


def topic_config_keys(broker: EmbeddedCluster, topic: str) -> set[str]:
    client = admin(broker)
    (described,) = client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return set(described.result(120))


def test_a_data_centre_plans_for_itself_without_what_it_does_not_need(file: Path, clusters: Clusters) -> None:
    # No flow into the west begins there.
    clusters["north-2"].stop_broker()
    near = anabranch("plan", file, "--clusters", "west-1,west-2", "--detailed-exitcode")
    assert near.code == 0, near
    assert "north-2" not in near.stdout
    assert "east-1 → west-1" in near.stdout
    whole = anabranch("plan", file)
    assert (whole.code, whole.stdout, "north-2" in whole.stderr) == (UNREACHABLE, "", True)
    drift = anabranch("drift", file, "--format", "json")
    found = json.loads(drift.stdout)
    assert (drift.code, found["clean"], found["drift"]) == (UNREACHABLE, None, [])
