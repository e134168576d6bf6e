"""Drift: what is on record of the last apply against what is there, field by field, and its three printers."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from reconciler.model.base.errors import Problem
from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.drift import Drift, Drifted
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.copies.settings import DEAD_LETTERS, FLOORS, settings_of
from reconciler.plan.findings.drift import drift_of
from reconciler.report.plan.drift import drift_json, drift_markdown, drift_text
from tests.unit.plan.facts import EAST, WEST, cluster, flow, made, plan_of, record, topic, topology

ORIGINAL = topic("orders", 3, configs={"retention.ms": "1000", "max.message.bytes": "2000"})
REMOTE = "us-east.orders"


def applied(change: Callable[[ObservedTopic], ObservedTopic | None], *more: ObservedTopic) -> ObservedCluster:
    """The target after an apply, with the one remote topic changed since, or gone."""
    declared, source = topology(), cluster(EAST, ORIGINAL)
    (wanted,) = desired_topics(declared, {EAST: source, WEST: cluster(WEST)}, [WEST])
    now = change(made(wanted))
    topics = [one for one in (now, *more) if one is not None]
    return cluster(WEST, *topics, owned=[record(wanted, declared)])


def with_configs(**changes: str | None) -> Callable[[ObservedTopic], ObservedTopic]:
    keys = {key.replace("_", "."): value for key, value in changes.items()}

    def change(one: ObservedTopic) -> ObservedTopic:
        configs = {**one.configs, **keys}
        return replace(one, configs={key: value for key, value in configs.items() if value is not None})

    return change


def found(
    target: ObservedCluster, declared: Topology | None = None
) -> list[tuple[str, str, str, str | None, str | None]]:
    return [
        (one.kind, one.topic, one.field, one.desired, one.found)
        for one in drift_of(declared or topology(), {WEST: target})
    ]


def test_right_after_an_apply_nothing_has_drifted() -> None:
    assert found(applied(lambda one: one)) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda one: None, ("missing", REMOTE, "topic", "3 partitions", None)),
        (
            lambda one: replace(one, topic_id="another"),
            ("changed", REMOTE, "topic id", f"id-of-{REMOTE}", "another"),
        ),
        (lambda one: replace(one, partitions=5), ("changed", REMOTE, "partitions", "3", "5")),
        (with_configs(retention_ms="5"), ("changed", REMOTE, "retention.ms", "1000", "5")),
        (with_configs(retention_ms=None), ("changed", REMOTE, "retention.ms", "1000", None)),
        (with_configs(max_message_bytes="1999"), ("changed", REMOTE, "max.message.bytes", "2000", "1999")),
        (with_configs(flush_ms="7"), ("unmanaged", REMOTE, "flush.ms", None, "7")),
    ],
)
def test_each_change_is_one_difference(
    change: Callable[[ObservedTopic], ObservedTopic | None], expected: tuple[str, ...]
) -> None:
    assert found(applied(change)) == [expected]


def test_more_than_a_floor_is_as_good() -> None:
    assert found(applied(with_configs(max_message_bytes="2001"))) == []


def test_every_setting_with_a_floor_is_known_to_drift() -> None:
    # Brokers have no bound of that kind by default: it follows only from an original that has one.
    bounded = replace(ORIGINAL, configs={**ORIGINAL.configs, "max.decompressed.message.bytes": "5"})
    floors = {setting.key for setting in settings_of(bounded, cluster(WEST), 3, ConfigRules()) if setting.floor}
    assert floors == FLOORS


def test_what_follows_the_source_is_no_drift() -> None:
    """The source is not even asked: what changed there is the next plan's."""
    assert found(applied(lambda one: one), topology(flow(include=["orders", "users"]))) == []


def test_a_copy_that_nobody_asks_for_any_more_is_not_missing() -> None:
    assert found(applied(lambda one: None), topology(flow(include=["users"]))) == []


def test_what_another_topology_made_is_its_own_affair() -> None:
    target = applied(with_configs(retention_ms="5"))
    owned = {name: replace(one, topology="other") for name, one in target.owned.items()}
    assert found(replace(target, owned=owned)) == []


def test_what_an_interrupted_apply_meant_is_left_to_the_next_one() -> None:
    target = applied(with_configs(retention_ms="5"))
    owned = {name: replace(one, topic_id=None) for name, one in target.owned.items()}
    assert found(replace(target, owned=owned)) == []


OF_CLUSTERS = {
    "follower.replication.throttled.replicas": "0:1,0:2",
    "leader.replication.throttled.replicas": "*",
    "remote.storage.enable": "true",
    "local.retention.ms": "5",
}


def test_what_is_a_clusters_own_affair_is_drift_only_for_who_asks() -> None:
    """Throttles come and go with each rebalance, and no plan looks at them."""
    target = applied(lambda one: replace(one, configs={**one.configs, **OF_CLUSTERS, "flush.ms": "7"}))
    assert found(target) == [("unmanaged", REMOTE, "flush.ms", None, "7")]
    everything = drift_of(topology(), {WEST: target}, all_settings=True)
    assert {one.field for one in everything} == {*OF_CLUSTERS, "flush.ms"}
    remedies = {one.field: one.remedy for one in everything}
    assert "set it on the original" in remedies["flush.ms"]
    assert all("original" not in remedies[key] for key in OF_CLUSTERS), "no copy gets it from there"


def test_a_copy_into_which_brokers_may_write_is_drift_for_all() -> None:
    target = applied(lambda one: replace(one, configs={**one.configs, DEAD_LETTERS: "true"}))
    (drifted,) = drift_of(topology(), {WEST: target})
    assert (drifted.field, drifted.found) == (DEAD_LETTERS, "true")
    assert drifted.remedy == "it is not declared, and it is left alone: remove it there"


def test_what_a_flow_copies_all_the_same_is_drift() -> None:
    target = applied(lambda one: replace(one, configs={**one.configs, **OF_CLUSTERS}))
    including = topology(flow(configs=ConfigRules(include=("local.retention.ms",))))
    assert found(target, including) == [("unmanaged", REMOTE, "local.retention.ms", None, "5")]
    assert found(target, topology(flow(name="another"))) == [], "of a flow that is declared no more"


def test_a_bound_for_timestamps_is_told_whoever_sets_it() -> None:
    """No copy gets it from its original, as identical offsets need another: records would be refused."""
    key = "message.timestamp.difference.max.ms"
    assert found(applied(lambda one: replace(one, configs={**one.configs, key: "9"}))) == [
        ("unmanaged", REMOTE, key, None, "9")
    ]


def test_a_topic_with_a_copys_name_that_nobody_made_is_told() -> None:
    target = applied(lambda one: one, topic("us-east.users"), topic("theirs"), topic("eu-west.us-east.users"))
    assert found(target) == [("unmanaged", "us-east.users", "topic", None, "there")]


def test_where_names_say_nothing_no_topic_is_a_stranger() -> None:
    target = cluster(WEST, topic("users"))
    assert found(target, topology(flow(policy=ReplicationPolicy("identity")))) == []


def test_partitions_that_were_added_are_noted_by_the_next_apply() -> None:
    target = applied(lambda one: replace(one, partitions=5))
    (step,) = plan_of(topology(), cluster(EAST, ORIGINAL), target).steps
    assert (step.reason, step.topic.partitions) == ("grown", 5)  # type: ignore[union-attr]
    owned = {REMOTE: replace(target.owned[REMOTE], partitions=5)}
    assert plan_of(topology(), cluster(EAST, ORIGINAL), replace(target, owned=owned)).is_empty
    assert found(replace(target, owned=owned)) == []


# --- printers --------------------------------------------------------------------------------------------------------

ONE = Drifted(WEST, "changed", REMOTE, "retention.ms", "1000", None, "`anabranch apply` sets it back")
UNSEEN = Problem("AB310", "cluster far (b:1)", "does not answer", "check it")


def printed(drift: Drift) -> str:
    console = Console(file=io.StringIO(), width=200, soft_wrap=True)
    console.print(drift_text(drift))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_text_shows_the_field_and_both_values() -> None:
    text = printed(Drift("payments", (WEST,), (ONE,)))
    assert "~ changed   us-east.orders   retention.ms: 1000 → not there" in text
    assert "`anabranch apply` sets it back" in text
    assert text.endswith("0 missing, 1 changed, 0 unmanaged\n")


def test_markdown_is_a_table() -> None:
    text = drift_markdown(Drift("payments", (WEST,), (ONE,)))
    assert text.startswith("### payments: 0 missing, 1 changed, 0 unmanaged\n")
    assert "| eu-west | changed | `us-east.orders` | `retention.ms` | `1000` |  |" in text


def test_json_says_whether_it_is_clean() -> None:
    assert drift_json(Drift("payments", (WEST,)))["clean"] is True
    assert drift_json(Drift("payments", (WEST,), (ONE,)))["clean"] is False
    assert drift_json(Drift("payments", (WEST,), (ONE,)))["drift"][0]["field"] == "retention.ms"
    assert drift_json(Drift("payments", (), (), (UNSEEN,)))["clean"] is None


def test_what_did_not_answer_is_never_clean() -> None:
    drift = Drift("payments", (), (), (UNSEEN,))
    for text in (printed(drift), drift_markdown(drift)):
        assert "no drift, incomplete: 1 cluster did not answer" in text
