"""Settings of remote topics: what is copied, what is pinned, and what identical offsets need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.planning.desired import TopicSetting, canonical
from reconciler.model.planning.observed import OLD_TIMESTAMP_KEYS, ObservedCluster
from reconciler.plan.copies.settings import settings_of, unknown_keys
from tests.unit.plan.facts import WEST, cluster, topic

DEFAULT = ConfigRules()
NO_BOUND = "9223372036854775807"


def settings_for(
    configs: dict[str, str],
    target: ObservedCluster | None = None,
    replication: int = 1,
    rules: ConfigRules = DEFAULT,
) -> dict[str, TopicSetting]:
    found = settings_of(topic("orders", configs=configs), target or cluster(WEST), replication, rules)
    assert [setting.key for setting in found] == sorted(setting.key for setting in found)
    return {setting.key: setting for setting in found}


def test_what_is_set_on_the_original_is_set_on_the_copy() -> None:
    found = settings_for({"retention.ms": "5", "segment.bytes": "1048576"})
    assert found["retention.ms"] == TopicSetting("retention.ms", "5", "source")
    assert found["segment.bytes"] == TopicSetting("segment.bytes", "1048576", "source")


def test_what_decides_which_records_are_kept_never_comes_from_the_targets_defaults() -> None:
    found = settings_for({})
    assert found["retention.ms"] == TopicSetting("retention.ms", "604800000", "source-default")
    assert found["retention.bytes"] == TopicSetting("retention.bytes", "-1", "source-default")
    assert found["cleanup.policy"] == TopicSetting("cleanup.policy", "delete", "source-default")
    assert found["max.message.bytes"] == TopicSetting("max.message.bytes", "1048588", "source-default", floor=True)


def test_identical_offsets_need_batches_of_any_age_unchanged() -> None:
    found = settings_for({"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"})
    needed = {key: setting.value for key, setting in found.items() if setting.reason == "identical-offsets"}
    assert needed == {
        "compression.type": "producer",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": NO_BOUND,
        "message.timestamp.after.max.ms": NO_BOUND,
        "unclean.leader.election.enable": "false",
    }


def test_two_replicas_must_have_a_record_where_there_are_three() -> None:
    assert settings_for({}, replication=3)["min.insync.replicas"].value == "2"
    assert "min.insync.replicas" not in settings_for({"min.insync.replicas": "1"}, replication=2)


def test_brokers_before_3_6_have_another_bound_for_timestamps() -> None:
    found = settings_for({}, replace(cluster(WEST), timestamp_keys=OLD_TIMESTAMP_KEYS))
    assert found["message.timestamp.difference.max.ms"].value == NO_BOUND
    assert "message.timestamp.before.max.ms" not in found


@pytest.mark.parametrize(
    "key",
    [
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "remote.storage.enable",
        "message.format.version",
        "local.retention.ms",
        "errors.deadletterqueue.group.enable",
    ],
)
def test_what_belongs_to_the_cluster_is_not_copied(key: str) -> None:
    assert key not in settings_for({key: "1"})


def test_keys_that_the_target_does_not_know_are_left_out_and_named() -> None:
    target = replace(cluster(WEST), topic_keys=frozenset({"retention.ms", "segment.bytes"}))
    original = topic("orders", configs={"preallocate": "true", "segment.bytes": "1"})
    assert "preallocate" not in {setting.key for setting in settings_of(original, target, 1, ConfigRules())}
    assert unknown_keys(original, target, ConfigRules()) == ("preallocate",)
    assert unknown_keys(original, cluster(WEST), ConfigRules()) == ()


@pytest.mark.parametrize(
    ("setting", "found", "accepted"),
    [
        (TopicSetting("retention.ms", "5", "source"), "5", True),
        (TopicSetting("retention.ms", "5", "source"), "6", False),
        (TopicSetting("retention.ms", "5", "source"), None, False),
        (TopicSetting("max.message.bytes", "5", "source", floor=True), "6", True),
        (TopicSetting("max.message.bytes", "5", "source", floor=True), "4", False),
        (TopicSetting("cleanup.policy", "compact,delete", "source"), "delete, compact", True),
    ],
)
def test_which_value_at_the_target_will_do(setting: TopicSetting, found: str | None, accepted: bool) -> None:
    assert setting.accepts(found) is accepted


def test_lists_have_one_spelling() -> None:
    assert canonical("delete,compact") == canonical("compact, delete") == "compact,delete"


def test_what_a_flow_excludes_is_left_to_the_targets_brokers() -> None:
    found = settings_for({"retention.ms": "5", "segment.ms": "6"}, rules=ConfigRules(exclude=("retention[.].*",)))
    assert "segment.ms" in found
    assert not {"retention.ms", "retention.bytes"} & found.keys()


def test_what_a_flow_includes_is_copied_although_it_usually_is_not() -> None:
    configs = {"min.insync.replicas": "3", "local.retention.ms": "7", "message.timestamp.type": "LogAppendTime"}
    rules = ConfigRules(include=(".*",), exclude=("local.retention.ms",))
    found = settings_for(configs, replication=3, rules=rules)
    assert found["min.insync.replicas"] == TopicSetting("min.insync.replicas", "3", "source", floor=True)
    assert "local.retention.ms" not in found, "exclude wins"
    assert found["message.timestamp.type"].value == "CreateTime", "batches must pass unchanged, whoever asks"
    weaker = settings_for({"min.insync.replicas": "1"}, replication=3, rules=rules)
    assert weaker["min.insync.replicas"].value == "2", "what is acknowledged must stay"


def test_what_a_flow_sets_wins() -> None:
    rules = ConfigRules(set=(("retention.ms", "9"), ("segment.ms", "8"), ("compression.type", "zstd")))
    found = settings_for({"retention.ms": "5"}, rules=rules)
    assert found["retention.ms"] == TopicSetting("retention.ms", "9", "declared")
    assert found["segment.ms"] == TopicSetting("segment.ms", "8", "declared")
    assert found["compression.type"].value == "producer"


def test_copies_of_a_flow_that_does_not_follow_keep_what_they_were_made_with() -> None:
    original = topic("orders", configs={"retention.ms": "5", "segment.ms": "6"})
    rules = ConfigRules(sync=False, set=(("segment.bytes", "1048576"),))
    made = {one.key: one for one in settings_of(original, cluster(WEST), 1, rules)}
    assert made["retention.ms"] == TopicSetting("retention.ms", "5", "source")
    applied = {"retention.ms": "1", "max.message.bytes": "2"}
    later = {one.key: one for one in settings_of(original, cluster(WEST), 1, rules, applied)}
    assert later["retention.ms"] == TopicSetting("retention.ms", "1", "kept")
    assert "segment.ms" not in later
    assert later["segment.bytes"].reason == "declared"
    assert later["compression.type"].reason == "identical-offsets"
