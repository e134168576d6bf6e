"""Policies in Python: found by entry point, and whatever they do wrong told in words."""

from __future__ import annotations

import sys

import pytest

from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.policies.custom import PolicyFault, policy_of
from reconciler.model.policies.policy import ReplicationPolicy
from tests.support.security.policy_classes import offer

ALIASES = ("east", "west", "south")


def policy(name: str, **options: str) -> ReplicationPolicy:
    return ReplicationPolicy("class", entry_point=name, options=tuple(sorted(options.items())))


def why_unusable(name: str, **options: str) -> str:
    with pytest.raises(PolicyFault) as caught:
        policy_of(name, tuple(options.items()))
    return str(caught.value)


def test_a_class_names_topics_and_says_where_they_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, by_region="Regional")
    emea = policy("by-region", region="emea")
    assert emea.remote_topic("east", "orders") == "emea.east.orders"
    assert emea.fault("east", "orders") is None
    assert emea.original("east", "emea.east.orders") == "orders"
    assert emea.original("west", "emea.east.orders") is None
    assert emea.hops("emea.west.emea.east.orders", ALIASES) == ("west", "east")
    assert emea.hops("emea.nowhere.orders", ALIASES) == ()
    assert policy("by-region", region="apac").remote_topic("east", "orders") == "apac.east.orders"


def test_with_upstream_what_came_through_the_target_goes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, by_region="Regional", silent="Silent")
    knowing = Flow("f", "west", "east", Selection((".*",)), policy("by-region", region="emea"))
    assert [t for t in ("orders", "emea.east.orders", "emea.south.orders") if knowing.takes(t, ALIASES)] == [
        "orders",
        "emea.south.orders",
    ]
    silent = Flow("f", "west", "east", Selection((".*",)), policy("silent"))
    assert silent.takes("emea.east.orders", ALIASES)


def test_a_class_without_upstream_may_have_made_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, by_region="Regional", silent="Silent", failing="Failing")
    assert policy("silent").original("east", "orders") is None
    assert policy("silent").may_name("east", "orders")
    assert policy("failing").may_name("east", "orders")
    regional = policy("by-region", region="emea")
    assert [regional.may_name("east", n) for n in ("emea.east.x", "emea.west.x", "x")] == [True, False, True]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "no_such_module_of_ours:X",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_of_ours'",
        ),
        ("tests.support.security.policy_classes:Missing", "cannot be imported: AttributeError"),
        ("A_TEXT", "is no class: str"),
        ("Nameless", "has no method remote_topic(source, topic)"),
        ("Regional", "cannot be made with options of none: KeyError: 'region'"),
        ("Silent|Choosy", "several packages have an entry point it in the group anabranch.policies"),
    ],
)
def test_a_class_that_cannot_be_used_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    offer(monkeypatch, it=value)
    assert said in why_unusable("it")


def test_a_module_that_ends_the_program_is_only_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, it="antigravity_of_ours:X")
    monkeypatch.setattr("importlib.metadata.EntryPoint.load", lambda _: sys.exit(3))
    assert "cannot be imported: SystemExit: 3" in why_unusable("it")


def test_what_is_installed_is_named_where_nothing_of_that_name_is(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, one="Silent", other="Choosy")
    assert why_unusable("tow") == "no entry point tow in the group anabranch.policies; there are one, other"
    offer(monkeypatch)
    assert why_unusable("tow").endswith("no installed package has any")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("Choosy", "fails at remote_topic('east', 'bad-1'): LookupError: no rule for bad-1"),
        ("Textless", "gives None for remote_topic('east', 'bad-1'), no text"),
        ("Fickle", "it must be the same always"),
        ("Contradicting", "gives 'bad-1' for remote_topic('east', 'bad-1'), and ('elsewhere', 'bad-1') for upstream"),
        ("Vague", "gives 'bad-1' for upstream('bad-1'), neither None nor a pair of texts"),
        ("Failing", "fails at upstream('bad-1'): ZeroDivisionError"),
    ],
)
def test_an_answer_that_cannot_be_used_leaves_one_topic_out(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    offer(monkeypatch, it=value)
    assert said in (policy("it").fault("east", "bad-1") or "")
    flow = Flow("f", "east", "west", Selection((".*",)), policy("it"))
    assert flow.wants("bad-1", ALIASES)
    assert not flow.takes("bad-1", ALIASES)
    assert policy("it").hops("bad-1", ALIASES) == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a/b", "would be called 'a/b': its name has the character '/' in it"),
        ("x" * 250, "its name has 250 characters, Kafka allows 249"),
        ("..", "its name is .., which Kafka refuses"),
        ("__consumer_offsets", "that is the name of an internal topic"),
        ("anabranch-owned.internal", "that is the name of an internal topic"),
        ("anabranch.payments.owned.internal", "that is the name of an internal topic"),
    ],
)
def test_a_name_that_must_not_be_is_no_name(monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    offer(monkeypatch, it="Silent")
    assert said in (policy("it", orders=name).fault("east", "orders") or "")
    assert policy("it", orders=name).fault("east", "users") is None


def test_heartbeats_have_their_prefix_whatever_a_class_says(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, it="Silent")
    renamed = policy("it", **{"*": "all"})
    assert renamed.remote_topic("east", "heartbeats") == "east.heartbeats"
    assert renamed.hops("west.east.heartbeats", ALIASES) == ("west", "east")
