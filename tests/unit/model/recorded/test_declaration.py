"""Which declaration is which, and how one stands to the one in force."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.clients import ROLES, AdminSettings, Clients, ConsumerSettings, ProducerSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules
from reconciler.model.declared.limits import Limits
from reconciler.model.declared.start import Start
from reconciler.model.declared.topology import Topology
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.declaration import (
    DeclarationHistory,
    DeclarationStanding,
    Declared,
    InForce,
    digest_into,
)
from tests.unit.declare.declaring import load

FLOW = Flow("east-west", "east", "west", Selection(("orders", "users"), ("a", "b")))
CLUSTERS = {alias: Cluster(alias, (f"{alias}-1:9092", f"{alias}-2:9092")) for alias in ("east", "west", "north")}
TOPOLOGY = Topology("payments", CLUSTERS, (FLOW, Flow("west-east", "west", "east", Selection((".*",)))))
# Every release must come to the same, or neighbouring ones would not run side by side.
KNOWN = "134bcff13a27840b"

# Another value of each field that decides how a flow runs.
CHANGED: dict[str, Any] = {
    "name": "other",
    "source": "north",
    "topics": Selection(("orders",), ("a", "b")),
    "policy": ReplicationPolicy("identity"),
    "offsets": "translated",
    "delivery": "at-least-once",
    "start": Start("latest"),
    "isolation_level": "read_uncommitted",
    "fill": "markers",
    "on_data_loss": "continue",
    "on_recreate": "restart",
    "quota": 1000,
    "batch_size": 0,
    "largest_batch": 1_000_000,
    "compression": "zstd",
    "linger": 0.001,
    "commit_interval": 1.0,
    "dlq": "dead",
    "tasks": 2,
    "partitions": 12,
    "replication_factor": 2,
    "refresh_interval": 1.0,
    "limits": Limits(growth=0),
    "configs": ConfigRules(set=(("retention.ms", "1"),)),
    "acls": False,
    "groups": GroupRules(("readers",)),
    "heartbeats": 10.0,
    "enabled": False,
    "failed_over": True,
    "create": False,
    "target": "north",
}


def with_flow(**changes: Any) -> Topology:
    return replace(TOPOLOGY, flows=(replace(FLOW, **changes), *TOPOLOGY.flows[1:]))


def with_cluster(alias: str, **changes: Any) -> Topology:
    return replace(TOPOLOGY, clusters=CLUSTERS | {alias: replace(CLUSTERS[alias], **changes)})


def test_it_is_the_same_in_every_release() -> None:
    assert digest_into(TOPOLOGY, "west") == KNOWN


def test_every_field_of_a_flow_is_tried() -> None:
    assert CHANGED.keys() | {"origin"} == {field.name for field in fields(Flow)}


@pytest.mark.parametrize("field", CHANGED)
def test_every_field_of_a_flow_counts(field: str) -> None:
    assert digest_into(with_flow(**{field: CHANGED[field]}), "west") != KNOWN


@pytest.mark.parametrize(
    "other",
    [
        replace(TOPOLOGY, name="other"),
        replace(TOPOLOGY, clusters=CLUSTERS | {"south": CLUSTERS["north"]}),
        with_cluster("east", bootstrap=("elsewhere:9092",)),
        with_cluster("west", bootstrap=("elsewhere:9092",)),
        with_flow(topics=Selection(("orders", "users"), ("a", "b"), required=True)),
    ],
)
def test_what_else_counts(other: Topology) -> None:
    assert digest_into(other, "west") != KNOWN


def other_settings(role: str) -> list[Any]:
    """Return settings of one role, each with one field that is not as it is built in."""
    kind: Any = ROLES[role]
    return [kind(**{one.name: "x" if one.name == "client_id" else 7}) for one in fields(kind)]


@pytest.mark.parametrize("settings", other_settings("consumer"), ids=str)
def test_how_a_source_is_read_counts(settings: ConsumerSettings) -> None:
    assert digest_into(with_cluster("east", clients=Clients(consumer=settings)), "west") != KNOWN


@pytest.mark.parametrize("settings", other_settings("producer"), ids=str)
def test_how_a_target_is_written_counts(settings: ProducerSettings) -> None:
    assert digest_into(with_cluster("west", clients=Clients(producer=settings)), "west") != KNOWN


@pytest.mark.parametrize("settings", other_settings("admin"), ids=str)
def test_what_changes_plans_files_counts_for_them(settings: AdminSettings) -> None:
    assert with_cluster("north", clients=Clients(admin=settings)).digest != TOPOLOGY.digest
    somewhere = with_cluster("north", clients=Clients(places=(("admin.client.id", "shop.yaml:3:4"),)))
    assert somewhere.digest == TOPOLOGY.digest


SECURED = Security("SASL_PLAINTEXT", "PLAIN", "mirror", Reference("env", "PASSWORD"))


@pytest.mark.parametrize(
    "same",
    [
        replace(TOPOLOGY, flows=TOPOLOGY.flows[::-1]),
        replace(TOPOLOGY, flows=TOPOLOGY.flows[:1]),
        replace(TOPOLOGY, flows=(*TOPOLOGY.flows, replace(FLOW, name="idle", enabled=False))),
        replace(TOPOLOGY, clusters=dict(reversed(CLUSTERS.items()))),
        with_cluster("north", bootstrap=("elsewhere:9092",)),
        with_cluster("west", bootstrap=CLUSTERS["west"].bootstrap[::-1]),
        with_cluster("west", datacenter="dc2"),
        with_cluster("west", security=SECURED),
        with_cluster("west", clients=Clients(ConsumerSettings("x"), admin=AdminSettings("x", 5_000))),
        with_cluster("east", clients=Clients(producer=ProducerSettings("x"), admin=AdminSettings("x", 5_000))),
        with_cluster("east", clients=Clients(places=(("consumer.client.id", "shop.yaml:3:4"),))),
        with_cluster("north", clients=Clients(ConsumerSettings("x"), ProducerSettings("x"))),
        with_flow(origin="flows[7]", policy=ReplicationPolicy(place="payments.yaml:1:1")),
        with_flow(topics=Selection(("users", "orders", "users"), ("b", "a"))),
    ],
)
def test_what_does_not_count(same: Topology) -> None:
    assert digest_into(same, "west") == KNOWN


@pytest.mark.parametrize(
    ("field", "one", "other", "are_same"),
    [
        (
            "start",
            Start("offsets", 0, (("a", (1, 2)), ("b", (3,)))),
            Start("offsets", 0, (("b", (3,)), ("a", (1, 2)))),
            True,
        ),
        ("start", Start("offsets", 0, (("a", (1, 2)),)), Start("offsets", 0, (("a", (2, 1)),)), False),
        ("policy", *(ReplicationPolicy("class", options=(("k", "v"), ("a", "b"))[::step]) for step in (1, -1)), True),
        (
            "policy",
            *(
                ReplicationPolicy("rename", rules=(RenameRule("a", "x"), RenameRule(".*", "y"))[::step])
                for step in (1, -1)
            ),
            False,
        ),
        (
            "policy",
            *(ReplicationPolicy("rename", rules=(RenameRule("a", "x", place),)) for place in ("here", "there")),
            True,
        ),
    ],
)
def test_order_counts_where_it_means_something(field: str, one: object, other: object, are_same: bool) -> None:
    digests = {digest_into(with_flow(**{field: value}), "west") for value in (one, other)}
    assert (len(digests) == 1) is are_same


WRITTEN = """\
version: 1
name: payments
clusters:
  east: {bootstrap: ["e1:9092", "e2:9092"]}
  west: {bootstrap: ["w:9092"]}
flows:
  - {from: east, to: west, tasks: 2, topics: {include: [orders, users]}}
"""
REWRITTEN = """\
# The same, written by somebody else.
name: payments
version: 1
defaults:
  tasks: 2   # for each
  offsets: auto
clusters:
  west:
    bootstrap: "w:9092"
    datacenter: dc9
  east:
    bootstrap: "e2:9092,e1:9092"
replication:
  - fan-out: {from: east, to: [west]}
    topics:
      include:
        - users
        - orders
"""


def test_how_it_is_written_does_not_count(tmp_path: Path) -> None:
    one, other = load(tmp_path, WRITTEN), load(tmp_path, REWRITTEN)
    assert digest_into(one, "west") == digest_into(other, "west")
    assert digest_into(one, "west") != digest_into(load(tmp_path, WRITTEN.replace("tasks: 2", "tasks: 3")), "west")


def history(*digests: str) -> DeclarationHistory:
    made = DeclarationHistory()
    for since, digest in enumerate(digests):
        made = made.followed_by(InForce(digest, since, "ops@host"))
    return made


@pytest.mark.parametrize(
    ("digests", "expected"),
    [
        ((), DeclarationStanding.ALONE),
        (("mine",), DeclarationStanding.IN_FORCE),
        (("one", "mine"), DeclarationStanding.IN_FORCE),
        (("mine", "two"), DeclarationStanding.OLDER),
        (("mine", "two", "mine"), DeclarationStanding.IN_FORCE),
        (("mine", "two", "mine", "three"), DeclarationStanding.OLDER),
        (("one", "two"), DeclarationStanding.NEWER),
    ],
)
def test_how_a_digest_stands_to_the_one_in_force(digests: tuple[str, ...], expected: DeclarationStanding) -> None:
    assert history(*digests).standing("mine") is expected


def test_a_history_is_bounded() -> None:
    long = history(*(f"digest-{number}" for number in range(60)))
    assert [entry.digest for entry in long.entries] == [f"digest-{number}" for number in range(10, 60)]
    assert long.standing("digest-10") is DeclarationStanding.OLDER
    assert long.standing("digest-9") is DeclarationStanding.NEWER


def test_what_is_in_force_is_told_with_when_and_whose_it_is() -> None:
    entry = InForce("abc", 1_800_000_000.0, "ops@host")
    assert str(entry) == "digest abc is in force since 2027-01-15 08:00:00 UTC, applied by ops@host"
    told = [Declared("abc", entry), Declared("abd", entry), Declared("abc")]
    assert [one.is_in_force for one in told] == [True, False, False]
