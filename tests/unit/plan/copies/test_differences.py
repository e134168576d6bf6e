"""Differences of settings: three sides are compared, what is wanted, what is there, and what was applied last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.planning.desired import DesiredTopic, TopicSetting, same_configs
from reconciler.model.planning.steps import ConfigChange
from reconciler.plan.copies.differences import config_changes
from tests.unit.plan.facts import EAST, WEST, made, record, topology

DECLARED = topology()
WANTED = DesiredTopic(
    cluster=WEST,
    name="us-east.orders",
    flow="us-east-eu-west",
    source=EAST,
    source_topic="orders",
    source_topic_id="id",
    partitions=1,
    replication_factor=1,
    offsets="identical",
    settings=(
        TopicSetting("cleanup.policy", "compact,delete", "source"),
        TopicSetting("max.message.bytes", "1000", "source", floor=True),
        TopicSetting("retention.ms", "5", "source"),
    ),
)


def changes(now: dict[str, str], last: dict[str, str] | None = None) -> tuple[ConfigChange, ...]:
    """Changes of WANTED when the topic has the settings `now`, and `last` were applied last."""
    found = {WANTED.name: replace(made(WANTED), configs=now)}
    owned = {WANTED.name: replace(record(WANTED, DECLARED), configs=WANTED.configs if last is None else last)}
    result = config_changes([WANTED], found, owned)
    assert set(result) <= {WANTED.name}
    return result.get(WANTED.name, ())


def test_nothing_differs() -> None:
    assert changes(dict(WANTED.configs)) == ()


def test_a_value_changed_at_the_target() -> None:
    now = dict(WANTED.configs) | {"retention.ms": "1"}
    assert changes(now) == (ConfigChange("retention.ms", "1", "5", "target-change"),)


def test_a_value_changed_at_the_source() -> None:
    now = dict(WANTED.configs) | {"retention.ms": "1"}
    assert changes(now, last=now) == (ConfigChange("retention.ms", "1", "5", "source-change"),)


def test_a_value_that_was_never_applied() -> None:
    now = {key: value for key, value in WANTED.configs.items() if key != "retention.ms"}
    assert changes(now, last=now) == (ConfigChange("retention.ms", None, "5", "missing"),)


def test_a_value_that_the_source_no_longer_sets_returns_to_the_default() -> None:
    now = dict(WANTED.configs) | {"segment.bytes": "9"}
    assert changes(now, last=now) == (ConfigChange("segment.bytes", "9", None, "obsolete"),)


def test_what_others_set_at_the_target_is_theirs() -> None:
    assert changes(dict(WANTED.configs) | {"segment.bytes": "9"}) == ()


def test_what_others_changed_after_us_is_theirs_once_the_source_no_longer_sets_it() -> None:
    now = dict(WANTED.configs) | {"segment.bytes": "9"}
    assert changes(now, last=dict(WANTED.configs) | {"segment.bytes": "8"}) == ()


def test_a_larger_limit_at_the_target_stays() -> None:
    assert changes(dict(WANTED.configs) | {"max.message.bytes": "2000"}) == ()
    lower = changes(dict(WANTED.configs) | {"max.message.bytes": "999"})
    assert [change.key for change in lower] == ["max.message.bytes"]


def test_the_order_of_a_list_is_no_difference() -> None:
    assert changes(dict(WANTED.configs) | {"cleanup.policy": "delete,compact"}) == ()


@pytest.mark.parametrize(
    ("declared", "answered", "is_same"),
    [
        ("0.50", "0.5", True),
        ("1e-05", "1.0E-5", True),
        ("1", "1.0", True),
        ("0", "-0.0", True),
        ("TRUE", "true", True),
        ("+7", "7", True),
        ("Delete , COMPACT", "COMPACT,Delete", True),
        ("9223372036854775807", "9223372036854775806", False),
        ("0.5", "0.51", False),
        ("true", "1", False),
        ("CreateTime", "createtime", False),
        ("1:0", "1:00", False),
    ],
)
def test_values_are_compared_as_brokers_read_them(declared: str, answered: str, is_same: bool) -> None:
    """They answer with the value in their own spelling, which no plan must take for another one."""
    assert TopicSetting("segment.jitter.ms", declared, "declared").accepts(answered) is is_same
    assert same_configs({"x": declared}, {"x": answered}) is is_same
    now, last = (dict(WANTED.configs) | {"segment.bytes": value} for value in (answered, declared))
    assert bool(changes(now, last)) is is_same, "what nothing asks for is taken away where it stands as we left it"


def test_a_topic_whose_every_value_differs_is_still_compared_key_by_key() -> None:
    now = {key: "0" for key in WANTED.configs}
    assert [change.key for change in changes(now)] == ["cleanup.policy", "max.message.bytes", "retention.ms"]


def test_names_with_quotes_and_brackets_are_told_apart() -> None:
    wanted = [replace(WANTED, name=name) for name in ("a.b-c_d", "root['x']", 'x"y')]
    found = {topic.name: replace(made(topic), configs={}) for topic in wanted}
    owned = {topic.name: record(topic, DECLARED) for topic in wanted}
    assert sorted(config_changes(wanted, found, owned)) == sorted(topic.name for topic in wanted)
