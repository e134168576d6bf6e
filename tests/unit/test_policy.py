"""How remote topics are named, and what a name tells of a topic's way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.policy import PolicyKind, ReplicationPolicy

plain_names = st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)
ALIASES = ("us-east", "eu-west", "eu", "ap")


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
