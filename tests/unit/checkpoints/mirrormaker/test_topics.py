"""What names of topics say about checkpoints, heartbeats and ways, with and without known clusters."""

from __future__ import annotations

import pytest

from reconciler.checkpoints.mirrormaker.topics import MirrorTopicNames, checkpoints_topic, hops
from reconciler.model.names.renames import RenameRule
from reconciler.model.policies.policy import ReplicationPolicy

UNDERSCORE = ReplicationPolicy(separator="_")
IDENTITY = ReplicationPolicy("identity")
KNOWN = ("a", "b", "us-east")


@pytest.mark.parametrize(
    ("topic", "sources"),
    [
        ("orders", ()),
        ("a.orders", ("a",)),
        ("b.a.orders", ("b", "a")),
        ("payments.eu", ("payments",)),
        (".orders", ()),
        ("orders.", ()),
        ("a.b.a.heartbeats", ("a", "b")),
    ],
)
def test_any_prefix_is_a_cluster_where_none_are_known(topic: str, sources: tuple[str, ...]) -> None:
    assert MirrorTopicNames().sources(topic) == sources


def test_only_known_clusters_are_hops() -> None:
    names = MirrorTopicNames(clusters=KNOWN)
    assert names.sources("payments.eu") == ()
    assert names.sources("b.a.payments.eu") == ("b", "a")


@pytest.mark.parametrize("policy", [IDENTITY, ReplicationPolicy("rename", rules=(RenameRule("x", "y"),))])
def test_under_other_policies_heartbeats_alone_have_a_way(policy: ReplicationPolicy) -> None:
    names = MirrorTopicNames((policy,))
    assert names.sources("a.orders") == ()
    assert names.sources("b.a.heartbeats") == ("b", "a")


def test_of_several_policies_the_one_that_finds_a_way_counts() -> None:
    names = MirrorTopicNames((IDENTITY, UNDERSCORE), clusters=KNOWN)
    assert names.sources("b_a_orders") == ("b", "a")
    assert names.sources("b.orders") == ()


@pytest.mark.parametrize(
    ("names", "topic", "expected"),
    [
        (MirrorTopicNames(), "heartbeats", True),
        (MirrorTopicNames(), "b.a.heartbeats", True),
        (MirrorTopicNames(), "a.b.a.heartbeats", True),
        (MirrorTopicNames(), "my.own.heartbeats", True),
        (MirrorTopicNames(clusters=KNOWN), "my.own.heartbeats", False),
        (MirrorTopicNames(clusters=KNOWN), "b.a.heartbeats", True),
        (MirrorTopicNames(clusters=()), "a.heartbeats", False),
        (MirrorTopicNames(), "a_heartbeats", False),
        (MirrorTopicNames((UNDERSCORE,)), "a_heartbeats", True),
        (MirrorTopicNames((IDENTITY,)), "a.heartbeats", True),
        (MirrorTopicNames(), "heartbeats.of.mine", False),
    ],
)
def test_heartbeats_are_known_by_their_names(names: MirrorTopicNames, topic: str, expected: bool) -> None:
    assert names.is_heartbeats(topic) is expected


def test_checkpoints_and_internal_topics_are_known_under_the_policys_separator_and_the_dot() -> None:
    assert checkpoints_topic("a") == "a.checkpoints.internal"
    assert checkpoints_topic("a", "_") == "a_checkpoints_internal"
    assert MirrorTopicNames((UNDERSCORE,)).checkpoints_topics("a") == (
        "a_checkpoints_internal",
        "a.checkpoints.internal",
    )
    assert MirrorTopicNames().is_checkpoints("a.checkpoints.internal")
    assert not MirrorTopicNames().is_checkpoints("a_checkpoints_internal")
    assert MirrorTopicNames((UNDERSCORE,)).is_checkpoints("a_checkpoints_internal")
    internal = [
        "__consumer_offsets",
        ".hidden",
        "mm2-offsets.a.internal",
        "connect-internal",
        "anabranch-owned.internal",
        "anabranch.payments.owned.internal",
    ]
    assert all(MirrorTopicNames().is_internal(topic) for topic in internal)
    assert not MirrorTopicNames().is_internal("internal_orders")
    assert MirrorTopicNames((UNDERSCORE,)).is_internal("mm2-offset-syncs_a_internal")
    assert not MirrorTopicNames().is_internal("mm2-offset-syncs_a_internal")


def test_the_shortest_way_counts() -> None:
    ways = [("b", "a"), ("c",), ("c", "b", "a"), ("d", "c", "a")]
    assert [hops(ways, one) for one in ("a", "b", "c", "d", "e")] == [2, 1, 1, 1, None]
    assert hops([], "a") is None
