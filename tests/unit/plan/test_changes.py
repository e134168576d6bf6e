"""What a plan says of a declaration that changes: each field with both values, what ends, and what stops."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from reconciler.model.declared.clients import Clients, ConsumerSettings, ProducerSettings
from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules
from reconciler.model.declared.limits import Limits
from reconciler.model.declared.start import Start
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.planning.changes import Change, FieldChange, StoppedTopic
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.declaration import (
    DESTROYED,
    Declaration,
    DeclarationHistory,
    Declared,
    InForce,
    declaration_into,
)
from reconciler.plan.changes import changes
from reconciler.plan.findings.moved import moved
from reconciler.plan.removal.prune import pruned
from reconciler.report.plan.to_json import plan_json
from reconciler.report.plan.to_markdown import plan_markdown
from reconciler.report.text.words import summary
from reconciler.state.journals.encoding import encoded
from reconciler.state.journals.topics import LARGEST_WHOLE
from tests.support.commands.reports import check
from tests.unit.plan.facts import EAST, WEST, cluster, flow, plan_of, topology
from tests.unit.plan.inforce import PAYMENTS, SOURCE, applied, history, in_force, text


def changed(was: Flow, now: Flow) -> dict[str, tuple[str | None, str | None]]:
    """Return what is said of a flow whose fields change, by field."""
    (one,) = plan_of(topology(now), SOURCE, applied(topology(was))).clusters[0].changes
    assert (one.subject, one.name, one.fate) == ("flow", was.name, "changes")
    return {field.field: (field.old, field.new) for field in one.fields}


def test_each_field_is_told_with_both_values_and_counted() -> None:
    was = flow(linger=0.007)
    now = replace(was, tasks=4, quota=1_000_000, linger=0.0, on_data_loss="continue")
    before = applied(topology(was))
    planned = plan_of(topology(now), SOURCE, before)
    assert changed(was, now) == {
        "on-data-loss": ("park", "continue"),
        "quota": ("none", "1MB/s"),
        "linger": ("7ms", "0ms"),
        "tasks": ("1", "4"),
    }
    assert (planned.to_add, planned.to_change, planned.to_delete, planned.to_end) == (0, 1, 0, 0)
    assert summary(planned) == "0 to add, 1 to change, 0 to delete."
    said = text(planned)
    at = said.index("  ~ flow   us-east-eu-west")
    assert [line.split() for line in said[at + 1 : at + 5]] == [
        ["on-data-loss", "park", "→", "continue"],
        ["quota", "none", "→", "1MB/s"],
        ["linger", "7ms", "→", "0ms"],
        ["tasks", "1", "→", "4"],
    ]
    assert "    no changes" not in said
    markdown = plan_markdown(planned)
    assert "flow `us-east-eu-west`" in markdown
    assert "`on-data-loss` `park → continue`; `quota` `none → 1MB/s`" in markdown
    report = json.loads(json.dumps(plan_json(planned)))
    check("plan", report)
    assert report["clusters"][0]["changes"][0]["fields"][3] == {"field": "tasks", "old": "1", "new": "4"}
    assert report["clusters"][0]["declared"]["recorded"]


# Each field of a flow with another value, and what is said of it.
TOLD: dict[str, tuple[Any, dict[str, tuple[str | None, str | None]]]] = {
    "topics": (
        Selection(("orders", "p.*"), ("x",), required=True),
        {"topics.include": (None, "p.*"), "topics.exclude": (None, "x"), "topics.required": ("false", "true")},
    ),
    "policy": (ReplicationPolicy("identity"), {"policy.type": ("default", "identity")}),
    "offsets": ("translated", {"offsets": ("auto", "translated")}),
    "delivery": ("at-least-once", {"delivery": ("exactly-once", "at-least-once")}),
    "start": (
        Start("timestamp", 1_800_000_000_000),
        {"start": ("earliest", "timestamp"), "start.timestamp": ("none", "2027-01-15T08:00:00Z")},
    ),
    "isolation_level": ("read_uncommitted", {"isolation-level": ("read_committed", "read_uncommitted")}),
    "fill": ("transactions", {"fill": ("auto", "transactions")}),
    "on_data_loss": ("continue", {"on-data-loss": ("park", "continue")}),
    "on_recreate": ("restart", {"on-recreate": ("park", "restart")}),
    "quota": (1024, {"quota": ("none", "1KiB/s")}),
    "batch_size": (0, {"batch-size": ("256KiB", "0B")}),
    "largest_batch": (1_000_000, {"largest-batch": ("128MiB", "1MB")}),
    "compression": ("zstd", {"compression": ("source", "zstd")}),
    "linger": (0.001, {"linger": ("7ms", "1ms")}),
    "commit_interval": (1.0, {"commit-interval": ("500ms", "1000ms")}),
    "dlq": ("dead", {"dlq": ("none", "dead")}),
    "tasks": (2, {"tasks": ("1", "2")}),
    "partitions": (12, {"partitions": ("as at the source", "12")}),
    "replication_factor": (2, {"replication-factor": ("as at the source", "2")}),
    "refresh_interval": (1.0, {"refresh-interval": ("60s", "1s")}),
    "limits": (Limits(growth=0), {"limits.growth": ("1000", "0")}),
    "configs": (
        ConfigRules(False, ("a",), ("b",), (("retention.ms", "1"),)),
        {
            "configs.sync": ("true", "false"),
            "configs.include": (None, "a"),
            "configs.exclude": (None, "b"),
            "configs.set.retention.ms": ("none", "1"),
        },
    ),
    "create": (False, {"create": ("true", "false")}),
    "acls": (False, {"acls": ("true", "false")}),
    "groups": (
        GroupRules(("readers",), ("__.*", "connect-.*"), True, 5.0),
        {
            "groups.include": (None, "readers"),
            "groups.exclude": ("console-consumer-.*", None),
            "groups.sync-offsets": ("false", "true"),
            "groups.interval": ("60s", "5s"),
        },
    ),
    "heartbeats": (10.0, {"heartbeats": ("none", "10s")}),
    "failed_over": (True, {"failed-over": ("false", "true")}),
    "source": ("north", {"from": (EAST, "north")}),
}


def told_of(was: Flow, now: Flow) -> dict[str, tuple[str | None, str | None]]:
    """Return what is said of a flow, whatever a plan would refuse."""
    former, coming = (
        Declaration("payments", WEST, (EAST, WEST), {}, declaration_into(topology(one), WEST).flows)
        for one in (was, now)
    )
    declared = Declared(coming.digest, InForce(former.digest, 0, "ops"), coming, former)
    (one,) = changes(declared, topology(now), cluster(WEST), ())
    return {field.field: (field.old, field.new) for field in one.fields}


@pytest.mark.parametrize("field", TOLD)
def test_every_field_is_told_as_files_call_and_write_it(field: str) -> None:
    value, expected = TOLD[field]
    was = flow(include=("orders",), name="f")
    assert told_of(was, replace(was, **{field: value})) == expected
    back = {name: (new, old) for name, (old, new) in expected.items()}
    assert told_of(replace(was, **{field: value}), was) == back


def test_no_field_of_a_flow_is_missing_here() -> None:
    elsewhere = {"name", "target", "enabled", "origin"}
    assert TOLD.keys() | elsewhere == {one.name for one in fields(Flow)}


def test_rules_options_offsets_and_orders_are_told_one_by_one() -> None:
    was = flow(policy=ReplicationPolicy("rename", rules=(RenameRule("a", "b"), RenameRule("c.*", "d"))))
    turned = replace(was, policy=replace(was.policy, rules=was.policy.rules[::-1]))
    assert told_of(was, turned) == {"policy.rules": ("a → b, c.* → d", "c.* → d, a → b")}
    fewer = replace(was, policy=replace(was.policy, rules=was.policy.rules[:1]))
    assert told_of(was, fewer) == {"policy.rules": ("c.* → d", None)}
    named = replace(was, policy=ReplicationPolicy("class", entry_point="x", options=(("k", "v"),)))
    assert told_of(named, replace(named, policy=replace(named.policy, options=(("k", "w"),)))) == {
        "policy.options.k": ("v", "w")
    }
    begun = flow(start=Start("offsets", 0, (("orders", (1, 2)),)))
    assert told_of(begun, replace(begun, start=Start("offsets", 0, (("orders", (1, 3)),)))) == {
        "start.offsets.orders": ("[1, 2]", "[1, 3]")
    }


def test_what_another_release_knows_is_told_in_its_own_words() -> None:
    one = declaration_into(topology(), WEST)
    (name,) = one.flows
    former = replace(one, flows={name: {**one.flows[name], "new_field": {"deep": [1, True]}}})
    declared = Declared(one.digest, InForce(former.digest, 0, "ops"), one, former)
    (change,) = changes(declared, topology(), cluster(WEST), ())
    assert [(field.field, field.old, field.new) for field in change.fields] == [
        ("new-field.deep", "1", None),
        ("new-field.deep", "true", None),
    ]


def test_addresses_clients_and_aliases_are_told_too() -> None:
    was = topology()
    east = was.clusters[EAST]
    here = replace(east, bootstrap=("other:9092",), clients=Clients(ConsumerSettings(client_id="reader")))
    west = replace(was.clusters[WEST], clients=Clients(producer=ProducerSettings(max_request_size=9)))
    now = replace(was, clusters={EAST: here, WEST: west, "north": replace(east, alias="north")})
    assert plan_of(now, SOURCE, applied(was)).clusters[0].changes == (
        Change("topology", "payments", "changes", (FieldChange("clusters", None, "north"),)),
        Change("cluster", WEST, "changes", (FieldChange("clients.producer.max.request.size", "none", "9"),)),
        Change(
            "cluster",
            EAST,
            "changes",
            (
                FieldChange("bootstrap", "us-east.example:9092", None),
                FieldChange("bootstrap", None, "other:9092"),
                FieldChange("clients.consumer.client.id", "none", "reader"),
            ),
        ),
    )


def test_topics_taken_out_are_named_with_what_their_copies_hold() -> None:
    was = topology(flow(include=("orders", "payments")))
    now = topology(flow(include=("payments",)))
    planned = plan_of(now, SOURCE, applied(was, held=22_531))
    (change,) = planned.clusters[0].changes
    assert change.fields == (FieldChange("topics.include", "orders", None),)
    assert change.stops == (StoppedTopic("orders", "us-east.orders", 135_186),)
    said = (
        "  - flow   us-east-eu-west stops copying orders   135,186 records stay in us-east.orders, "
        "which follows no longer"
    )
    assert said in text(planned)
    # Once that is in force it has stopped, and is left.
    after = in_force(now, applied(was))
    (cluster_plan,) = plan_of(now, SOURCE, after).clusters
    assert (cluster_plan.changes, [one.subject for one in cluster_plan.left_alone]) == ((), ["us-east.orders"])


@pytest.mark.parametrize(
    "now",
    [
        flow(topics=Selection((".*",), ("orders",))),
        flow(include=("payments",)),
        flow(policy=ReplicationPolicy("default", "-")),
    ],
    ids=["excluded", "not included", "renamed"],
)
def test_every_way_to_stop_a_copy_is_seen(now: Flow) -> None:
    (cluster_plan,) = plan_of(topology(now), SOURCE, applied(topology())).clusters
    (change,) = cluster_plan.changes
    assert "us-east.orders" in [stop.remote for stop in change.stops]


def test_a_copy_whose_original_is_gone_has_not_stopped() -> None:
    was = topology(flow())
    (change,) = plan_of(topology(flow(tasks=2)), cluster(EAST, PAYMENTS), applied(was)).clusters[0].changes
    assert change.stops == ()


def test_flows_that_begin_and_end_are_counted() -> None:
    was = topology(flow(include=("orders",), name="one"), flow(include=("payments",), name="two"))
    now = topology(was.flows[0], flow(include=("payments",), name="three"))
    planned = plan_of(now, SOURCE, applied(was, held=1))
    ends, begins = sorted(planned.clusters[0].changes, key=lambda one: one.fate, reverse=True)
    assert (ends.name, ends.fate, ends.why, ends.stops) == ("two", "ends", "no file declares it any more", ())
    assert (begins.name, begins.fate) == ("three", "begins")
    assert summary(planned) == "1 to add, 1 to change, 0 to delete. 1 flow ends.", "the copy has another flow now"
    disabled = topology(was.flows[0], replace(was.flows[1], enabled=False))
    planned = plan_of(disabled, SOURCE, applied(was, held=1))
    (change,) = planned.clusters[0].changes
    assert (change.why, [stop.remote for stop in change.stops]) == ("enabled: false", ["us-east.payments"])
    assert "  - flow   two ends   enabled: false" in text(planned)
    assert "flow `two` ends: enabled: false" in plan_markdown(planned).replace("**", "")


def test_what_a_former_release_put_in_force_is_said_to_be_unknown_and_counted() -> None:
    was, now = topology(), topology(flow(tasks=3))
    planned = plan_of(now, SOURCE, applied(was, recorded=False))
    assert planned.clusters[0].changes == ()
    assert summary(planned) == "0 to add, 1 to change, 0 to delete."
    (line,) = [line for line in text(planned) if line.startswith("  ~ force")]
    assert "what it declares is not recorded there, so what changes against it is not known" in line
    assert not json.loads(json.dumps(plan_json(planned)))["clusters"][0]["declared"]["recorded"]
    # Without a change nothing is amiss.
    assert plan_of(was, SOURCE, applied(was, recorded=False)).changes_nothing


@pytest.mark.parametrize("digest", ["", DESTROYED])
def test_a_first_apply_changes_nothing_that_is_in_force(digest: str) -> None:
    entry = InForce(digest, 1_800_000_000.0, "ops@host") if digest else None
    planned = plan_of(topology(), SOURCE, replace(cluster(WEST), in_force=entry))
    assert (planned.clusters[0].changes, planned.to_change, planned.to_end) == ((), 0, 0)


def test_a_topic_that_is_deleted_with_it_is_not_said_to_stay() -> None:
    was, now = topology(flow(include=("orders", "payments"))), topology(flow(include=("payments",)))
    after = applied(was)
    planned = pruned(plan_of(now, SOURCE, after), now, {EAST: SOURCE, WEST: after})
    assert planned.to_delete == 1
    assert [change.stops for change in planned.clusters[0].changes] == [()]


def test_a_plan_file_holds_as_long_as_the_same_is_in_force() -> None:
    was, now = topology(), topology(flow(tasks=3))
    made = plan_json(plan_of(now, SOURCE, applied(was)))
    assert moved(made, plan_json(plan_of(now, SOURCE, applied(was)))) == ()
    other = plan_json(plan_of(now, SOURCE, applied(topology(flow(tasks=5)))))
    (said,) = moved(made, other)
    assert said.startswith("eu-west: declaration in force: digest was ")


# --- what is kept for that -------------------------------------------------------------------------------------------


def test_a_declaration_is_kept_with_its_history() -> None:
    kept = history(topology(flow(tasks=3, start=Start("offsets", 0, (("orders", (1,)),)))))
    value = json.loads(encoded({"kind": "declaration"} | kept.to_json()) or b"")
    assert DeclarationHistory.from_json(value) == kept


@pytest.mark.parametrize(
    "wrong", [None, 7, {}, {"form": 2}, {"aliases": [1]}, {"flows": {"x": 3}}, {"target": "other"}]
)
def test_what_cannot_be_read_leaves_the_digest_in_force(wrong: Any) -> None:
    value = json.loads(json.dumps(history(topology()).to_json()))
    value["declared"] = {**value["declared"], **wrong} if isinstance(wrong, dict) and wrong else wrong
    read = DeclarationHistory.from_json(value)
    assert (read.declaration, read.in_force) == (None, history(topology()).in_force)


def test_a_former_release_that_applies_leaves_no_declaration_of_another_digest() -> None:
    value = json.loads(json.dumps(history(topology()).to_json()))
    value["history"].append({"digest": "0123456789abcdef", "since": 2.0, "by": "ops"})
    assert DeclarationHistory.from_json(value).declaration is None


def test_a_mesh_of_thirty_clusters_and_a_thousand_names_fits() -> None:
    names = tuple(f"team-{number % 37}.domain.events.v{number}.{'x' * 200}" for number in range(1000))
    flows = [flow(f"cluster-{number}", WEST, names) for number in range(29)]
    value = encoded({"kind": "declaration"} | history(topology(*flows)).to_json())
    assert value is not None
    assert len(value) < LARGEST_WHOLE
