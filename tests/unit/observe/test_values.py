"""Settings that flows declare, held against what a target knows and takes: once each, at their place, with a remedy."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from reconciler.declare import load
from reconciler.model.base.errors import Problem, Refused
from reconciler.model.base.setting_values import meant
from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.planning.observed import ObservedCluster, RefusedValue
from reconciler.model.recorded.declaration import digest_into
from reconciler.observe.values import refused_values
from tests.unit.declare.declaring import refused as declared_refused
from tests.unit.plan.facts import EAST, WEST, cluster, flow, plan_of, topic, topology

SOURCE = cluster(EAST, topic("orders"))


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "7 days", "604800000"),
        ("segment.ms", "1h", "3600000"),
        ("retention.ms", "90s", "90000"),
        ("max.message.bytes", "10MiB", "10485760"),
        ("retention.bytes", "5GB", "5000000000"),
        ("max.message.bytes", "1_000_000", "1000000"),
        ("max.message.bytes", "1,048,588", "1048588"),
        ("preallocate", "yes", "true"),
        ("preallocate", "Off", "false"),
        ("cleanup.policy", "compact;delete", "compact,delete"),
        ("cleanup.policy", "[compact, delete]", "compact,delete"),
        # Whoever writes this may mean either.
        ("max.message.bytes", "10M", None),
        ("retention.ms", "5MiB", None),
        ("max.message.bytes", "7d", None),
        ("retention.ms", "long", None),
        ("segment.index.bytes", "", None),
    ],
)
def test_what_was_meant_is_told_where_there_is_one_meaning(key: str, value: str, expected: str | None) -> None:
    assert meant(key, value) == expected


def knowing(alias: str, *refused: RefusedValue, **fields: Any) -> ObservedCluster:
    keys = frozenset({"retention.ms", "retention.bytes", "cleanup.policy"})
    return replace(cluster(alias), topic_keys=keys, refused_values=refused, **fields)


def rules(**values: str) -> ConfigRules:
    pairs = tuple((key.replace("_", "."), value) for key, value in values.items())
    return ConfigRules(set=pairs, places=tuple((key, f"a.yaml:9:3 (defaults.{key})") for key, _ in pairs))


def problems(declared: Any, *clusters: ObservedCluster) -> list[Problem]:
    with pytest.raises(Refused) as refused:
        plan_of(declared, *clusters)
    return list(refused.value.problems)


def test_one_value_of_many_flows_and_targets_is_one_problem() -> None:
    third = "ap-south"
    declared = topology(*(flow(EAST, to, configs=rules(retention_ms="7d")) for to in (WEST, third)))
    told = RefusedValue("retention.ms", "7d", "Not a number")
    (problem,) = problems(declared, SOURCE, knowing(WEST, told), knowing(third, told))
    assert (problem.code, problem.where) == ("AB453", "a.yaml:9:3 (defaults.retention.ms)")
    assert problem.message == "expected a value of retention.ms that eu-west and ap-south take; found 7d: Not a number"
    assert problem.remedy == "write retention.ms: 604800000"


def test_an_unknown_key_is_told_without_asking_and_with_the_one_that_was_meant() -> None:
    (problem,) = problems(topology(flow(configs=rules(retention_msx="5"))), SOURCE, knowing(WEST))
    assert (problem.message, problem.remedy) == (
        "eu-west has no setting retention.msx of topics",
        "did you mean retention.ms?",
    )
    (problem,) = problems(topology(flow(configs=rules(colour="red"))), SOURCE, knowing(WEST))
    assert problem.remedy == "correct its name, or leave it out"


def test_a_cluster_that_was_not_asked_is_noted() -> None:
    plan = plan_of(topology(), SOURCE, knowing(WEST, unasked_values="Topic authorization failed."))
    (notice,) = plan.clusters[0].warnings
    assert notice.subject == "cluster eu-west"
    assert notice.message.endswith("was not checked: Topic authorization failed.")


def test_places_are_no_part_of_a_declaration() -> None:
    """A line more above must not put another declaration in force."""
    one = topology(flow(configs=rules(retention_ms="7")))
    other = topology(flow(configs=replace(rules(retention_ms="7"), places=())))
    assert digest_into(one, WEST) == digest_into(other, WEST)
    assert one.digest == other.digest
    assert one == other


class Asked:
    """A connection to a cluster that answers for each setting with a code."""

    def __init__(self, there: tuple[str, ...] = (), **codes: int) -> None:
        self.metadata = SimpleNamespace(topics=dict.fromkeys(there))
        self.codes = codes
        self.asked: list[tuple[str, ...]] = []

    def _answer(self, key: str) -> Future[Any]:
        future: Future[Any] = Future()
        if code := self.codes.get(key.replace(".", "_")):
            future.set_exception(KafkaException(KafkaError(code, f"Invalid value x for configuration {key}: so")))
        else:
            future.set_result(None)
        return future

    def validate_topic(self, new: Any) -> Future[Any]:
        ((key, value),) = new.config.items()
        self.asked.append(("new", new.topic, key, value))
        return self._answer(key)

    def validate_setting(self, name: str, key: str, value: str) -> Future[Any]:
        self.asked.append(("there", name, key, value))
        return self._answer(key)


def test_each_value_is_asked_about_once_on_a_copy() -> None:
    """On one that is yet to be made, else on one of ours that is there, else on one that a flow could have."""
    values = ConfigRules(set=(("retention.ms", "x"), ("segment.ms", "5")))
    flows = [flow(configs=values), flow(name="again", configs=values)]
    codes = {"retention_ms": KafkaError.INVALID_CONFIG}
    told = (RefusedValue("retention.ms", "x", "so"),)
    for there, taken, ours, kind, name in (
        (("us-east.a",), ("us-east.a", "us-east.b"), ("us-east.a",), "new", "us-east.b"),
        (("us-east.a",), ("us-east.a",), ("us-east.a",), "there", "us-east.a"),
        (("us-east.a",), ("us-east.a",), (), "new", "us-east.anabranch-asks"),
        ((), (), (), "new", "us-east.anabranch-asks"),
    ):
        asked: Any = Asked(there, **codes)
        assert refused_values(asked, flows, taken, ours) == (told, "")
        assert asked.asked == [(kind, name, "retention.ms", "x"), (kind, name, "segment.ms", "5")]


@pytest.mark.parametrize(
    ("code", "is_noted"),
    [
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, True),
        # A policy, a quota or too few brokers say nothing of the value.
        (KafkaError.POLICY_VIOLATION, False),
        (KafkaError.INVALID_REPLICATION_FACTOR, False),
        (KafkaError.TOPIC_ALREADY_EXISTS, False),
    ],
)
def test_what_is_refused_for_lack_of_rights_is_a_note_and_no_error(code: int, is_noted: bool) -> None:
    asked: Any = Asked(retention_ms=code)
    refused, unasked = refused_values(asked, [flow(configs=ConfigRules(set=(("retention.ms", "x"),)))], (), ())
    assert (refused, bool(unasked)) == ((), is_noted)


def test_the_json_form_comes_back_with_what_was_refused() -> None:
    there = knowing(WEST, RefusedValue("retention.ms", "7d", "no number"), unasked_values="so")
    assert ObservedCluster.from_json(there.to_json()) == there


def test_values_know_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "version: 1\nname: t\nclusters: {a: {bootstrap: a:1}, b: {bootstrap: b:1}}\n"
        "defaults:\n  configs:\n    set:\n      retention.ms: 7d\nflows:\n- {from: a, to: b}\n"
    )
    (one,) = load((path,)).flows
    assert one.configs.place_of("retention.ms") == f'{path}:7:21 (defaults.configs.set["retention.ms"])'
    assert one.configs.place_of("segment.ms") == ""


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("cleanup.policy: [compact, delete]", "write cleanup.policy: compact,delete"),
        ("retention.ms: [7]", "write retention.ms: 7"),
        ("cleanup.policy: {a: b}", "for example: cleanup.policy: compact,delete"),
        ("retention.bytes: {a: b}", "for example: retention.bytes: 1048576"),
    ],
)
def test_a_value_that_is_no_value_is_answered_with_one_of_that_setting(
    tmp_path: Path, written: str, remedy: str
) -> None:
    said = declared_refused(
        tmp_path,
        "version: 1\nname: t\nclusters: {a: {bootstrap: a:1}, b: {bootstrap: b:1}}\n"
        f"flows:\n- from: a\n  to: b\n  configs: {{set: {{{written}}}}}\n",
    )
    assert [problem.remedy for problem in said] == [remedy]
