"""How remote topics are named, and what a name tells of a topic's way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.names.renames import RenameRule
from reconciler.model.names.topic_names import name_fault
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.policies.types import PolicyKind

plain_names = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
ALIASES = ("us-east", "eu-west", "eu", "ap")
RULES = (
    RenameRule("users", "dc1-users"),
    RenameRule(r"^orders\.(.*)$", r"dc1-\1"),
    RenameRule(r"(?P<a>.*)-(b)?.*", r"\g<a>\2"),
)
RENAMING = ReplicationPolicy("rename", rules=RULES)
KEEPING = ReplicationPolicy("rename", rules=RULES, otherwise="identity")


@pytest.mark.parametrize(
    ("topic", "hops"),
    [
        ("orders", ()),
        ("us-east.orders", ("us-east",)),
        ("eu-west.us-east.orders", ("eu-west", "us-east")),
        ("payments.eu", ()),  # a suffix is no hop
        ("eu-west-2.orders", ()),
        ("elsewhere.us-east.orders", ()),
        ("eu.", ("eu",)),
        ("eu", ()),
    ],
)
def test_hops_are_the_aliases_a_name_begins_with(topic: str, hops: tuple[str, ...]) -> None:
    assert ReplicationPolicy().hops(topic, ALIASES) == hops


def test_the_longest_alias_counts() -> None:
    assert ReplicationPolicy().hops("eu.west.orders", ("eu", "eu.west", "west")) == ("eu.west",)


def test_another_separator() -> None:
    policy = ReplicationPolicy(separator="--")
    assert policy.remote_topic("eu", "orders") == "eu--orders"
    assert policy.hops("eu--us-east--orders", ALIASES) == ("eu", "us-east")
    assert policy.hops("eu.orders", ALIASES) == ()


def test_identity_keeps_names_and_knows_no_hops() -> None:
    policy = ReplicationPolicy("identity")
    assert policy.remote_topic("eu", "eu.orders") == "eu.orders"
    assert policy.hops("eu.orders", ALIASES) == ()


@given(st.sampled_from(["default", "identity"]), st.sampled_from(ALIASES), plain_names)
def test_an_original_is_read_back_from_its_remote_topic(kind: PolicyKind, alias: str, topic: str) -> None:
    policy = ReplicationPolicy(kind)
    assert policy.original(alias, policy.remote_topic(alias, topic)) == topic


def test_a_name_of_another_source_has_no_original() -> None:
    assert ReplicationPolicy().original("eu", "us-east.orders") is None
    assert ReplicationPolicy().original("eu", "eu.") is None


@given(st.lists(st.sampled_from(ALIASES), max_size=5), plain_names)
def test_hops_read_back_what_remote_topics_wrote(path: list[str], topic: str) -> None:
    policy, name = ReplicationPolicy(), topic
    for alias in path:
        name = policy.remote_topic(alias, name)
    assert policy.hops(name, ALIASES) == tuple(reversed(path))


@pytest.mark.parametrize(
    ("topic", "prefixed", "kept"),
    [
        ("users", "dc1-users", "dc1-users"),
        ("users2", "us-east.users2", "users2"),
        ("orders.eu.all", "dc1-eu.all", "dc1-eu.all"),
        ("orders", "us-east.orders", "orders"),
        ("my-orders", "my", "my"),  # a group that took no part is nothing
        ("my-billing", "myb", "myb"),
        ("orders.a-b", "dc1-a-b", "dc1-a-b"),  # the first rule counts
    ],
)
def test_the_first_rule_that_matches_the_whole_name_gives_the_new_one(topic: str, prefixed: str, kept: str) -> None:
    assert RENAMING.remote_topic("us-east", topic) == prefixed
    assert KEEPING.remote_topic("us-east", topic) == kept


def test_of_renamed_topics_only_the_prefix_tells_the_way() -> None:
    assert RENAMING.hops("eu.us-east.payments", ALIASES) == ("eu", "us-east")
    assert KEEPING.hops("eu.us-east.payments", ALIASES) == ()
    assert RENAMING.original("eu", "eu.payments") == "payments"
    assert RENAMING.original("eu", "eu.users") is None  # users has another name
    assert RENAMING.original("eu", "dc1-users") is None


def test_a_name_may_be_the_copy_of_what_a_rule_could_have_renamed() -> None:
    rules = ReplicationPolicy("rename", rules=RULES[:2])
    assert [rules.may_name("eu", n) for n in ("dc1-users", "dc1-x", "eu.x", "users", "us.x")] == [
        *(True, True, True, False, False)
    ]
    assert KEEPING.may_name("eu", "anything")
    assert ReplicationPolicy("identity").may_name("eu", "anything")
    assert not ReplicationPolicy().may_name("eu", "anything")


policies = st.builds(
    ReplicationPolicy,
    st.sampled_from(["default", "identity", "rename"]),
    st.sampled_from([".", "--"]),
    st.just(RULES),
    st.sampled_from(["default", "identity"]),
)


@given(
    policies, st.sampled_from(ALIASES), st.from_regex(r"[a-z.-]{1,12}|(orders|heartbeats)[a-z.-]{0,6}", fullmatch=True)
)
def test_what_a_policy_names_it_may_name(policy: ReplicationPolicy, alias: str, topic: str) -> None:
    remote = policy.remote_topic(alias, topic)
    assert policy.may_name(alias, remote)
    assert policy.original(alias, remote) in (topic, None) or policy.kind == "rename"


@pytest.mark.parametrize("policy", [ReplicationPolicy("identity"), KEEPING, RENAMING])
def test_heartbeats_have_their_prefix_under_every_policy(policy: ReplicationPolicy) -> None:
    """As under MirrorMaker 2's IdentityReplicationPolicy: every cluster has heartbeats of its own."""
    assert policy.remote_topic("eu", "heartbeats") == "eu.heartbeats"
    assert policy.remote_topic("ap", "eu.heartbeats") == "ap.eu.heartbeats"
    assert policy.hops("ap.eu.heartbeats", ALIASES) == ("ap", "eu")
    assert policy.original("eu", "eu.heartbeats") == "heartbeats"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "is empty"),
        (".", "is ., which Kafka refuses"),
        ("..", "is .., which Kafka refuses"),
        ("...", None),
        ("a b", "has the character ' ' in it"),
        ("größe", "has the character 'ö' in it"),
        ("a\n", "has the character '\\n' in it"),
        ("x" * 249, None),
        ("x" * 250, "has 250 characters, Kafka allows 249"),
        ("Az09._-", None),
    ],
)
def test_names_are_held_against_kafkas_rules(name: str, fault: str | None) -> None:
    found = name_fault(name)
    assert found is None if fault is None else found is not None and found.startswith(fault)


@pytest.mark.parametrize("to", ["__x", "a-internal", "a.replica", "..", "a:b"])
def test_a_rule_must_not_give_a_name_that_may_not_be(to: str) -> None:
    policy = ReplicationPolicy("rename", rules=(RenameRule("orders", to),))
    assert policy.fault("eu", "orders")
    assert policy.fault("eu", "users") is None
    assert any(word in str(policy.fault("eu", "orders")) for word in ("internal topic", "its name"))
