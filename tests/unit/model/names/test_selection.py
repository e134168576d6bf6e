"""Which topics a flow takes: full matches, literals, what is never taken, and no echo to the target."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.declared.flow import Flow
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import ALWAYS_EXCLUDED, Selection, is_literal, is_reserved
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.policies.types import PolicyKind

topic_names = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("include", "name", "taken"),
    [
        ("payments.eu", "payments.eu", True),
        ("payments.eu", "payments-eu", False),  # the dot of a literal is a dot
        ("payments.eu", "paymentsXeu", False),
        ("payments.*", "payments.eu", True),
        ("orders.*", "us-east.orders", False),  # a full match
        ("orders", "orders2", False),
        ("orders", "xorders", False),
        ("orders", "orders\n", False),
        ("a|b", "b", True),
        ("a|b", "ab", False),
        ("ORDERS", "orders", False),
    ],
)
def test_an_item_must_match_fully(include: str, name: str, taken: bool) -> None:
    assert Selection((include,)).matches(name) is taken


@pytest.mark.parametrize(
    "name",
    [
        "__consumer_offsets",
        "__transaction_state",
        "anabranch-status.internal",
        "anabranch-owned.internal",
        "anabranch.payments.owned.internal",
        "mm2-offset-syncs.west.internal",
        *("mm2-configs.west.internal", "east.mm2-status.west.internal", "east.anabranch.shop.status.internal"),
        *("checkpoints.internal", "west.checkpoints.internal"),
    ],
)
def test_internal_topics_are_never_taken(name: str) -> None:
    for item in (".*", name, ".*internal", re.escape(name)):
        assert not Selection((item,)).matches(name)
    assert not Selection((".*",)).leaves_behind(name)
    assert str(Selection((".*",)).against(name)).startswith("never taken: ")


@pytest.mark.parametrize("name", ["streams-app-internal", "orders.replica", "app.internal", "east.app.internal"])
def test_topics_of_applications_that_are_called_like_internal_ones_are_taken_where_they_are_named(name: str) -> None:
    for item in (".*", f"{name[:3]}.*", ".*l|.*a", f"{re.escape(name)}|.*", "[a-z.-]*"):
        assert not Selection((item,)).matches(name)
    assert Selection((".*",)).leaves_behind(name)
    assert str(Selection((".*",)).against(name)).endswith("; name it in include to take it")
    said = r".*[.-]internal|.*\.replica"
    for item in (name, said, f"({said})$", f".*({'internal' if 'internal' in name else 'replica'})?"):
        chosen = Selection((".*", item))
        assert (chosen.matches(name), chosen.leaves_behind(name), chosen.against(name)) == (True, False, None)
    assert not Selection((name,), (name,)).matches(name) and not Selection((".*",), (name,)).leaves_behind(name)


@given(
    st.from_regex(r"(east\.|x)?(__|mm2|anabranch|checkpoints)?[-.a]{0,2}(checkpoints)?[.-]?internal?", fullmatch=True)
)
def test_what_is_never_taken_is_what_is_said(name: str) -> None:
    assert is_reserved(name) == any(re.fullmatch(item, name) for item in ALWAYS_EXCLUDED)


@pytest.mark.parametrize("name", ["_schemas", "internal", "replica", "internal-orders", "ordersinternal"])
def test_names_that_only_look_internal_are_taken(name: str) -> None:
    assert Selection((".*",)).matches(name)


def test_exclude_wins() -> None:
    chosen = Selection(("orders.*", "audit"), exclude=("orders-test.*", "audit"))
    assert [name for name in ("orders", "orders-test1", "audit", "orders-2") if chosen.matches(name)] == [
        "orders",
        "orders-2",
    ]


def test_nothing_included_is_nothing_taken() -> None:
    assert not Selection(()).matches("orders")


@given(topic_names)
def test_a_literal_takes_itself_and_nothing_else(name: str) -> None:
    assert is_literal(name)
    chosen = Selection((name,))
    never = name.startswith("__") or name.endswith((".replica", ".internal", "-internal"))
    assert chosen.matches(name) is not never
    assert not chosen.matches(f"{name}x")
    assert not chosen.matches(f"x{name}")
    assert chosen.literals() == (name,)


def test_literals_are_the_plain_names_alone() -> None:
    assert Selection(("orders", "pay.*", "payments.eu")).literals() == ("orders", "payments.eu")


ALIASES = ("us-east", "eu-west", "ap")


@pytest.mark.parametrize(
    ("topic", "taken"),
    [
        ("orders", True),
        ("eu-west.orders", False),  # it came from the target
        ("ap.eu-west.orders", False),  # it came through the target
        ("ap.orders", True),
        ("us-east.orders", True),
        ("__consumer_offsets", False),
    ],
)
def test_a_flow_sends_nothing_back_to_its_target(topic: str, taken: bool) -> None:
    flow = Flow("us-east-eu-west", "us-east", "eu-west", Selection((".*",)))
    assert flow.takes(topic, ALIASES) is taken


@pytest.mark.parametrize(
    ("topic", "taken"),
    [
        ("a_checkpoints_internal", False),
        ("mm2-offset-syncs_a_internal", False),
        ("mm2-offset-syncs_internal", False),
        ("checkpoints_internal", False),
        ("orders_internal", True),
        ("xcheckpoints_internal", True),
        ("a_checkpoints_internals", True),
    ],
)
@pytest.mark.parametrize("kind", ["default", "identity", "rename"])
def test_what_mirror_maker_keeps_is_not_taken_under_any_separator(kind: PolicyKind, topic: str, taken: bool) -> None:
    under = Flow("f", "us-east", "eu-west", Selection((".*",)), ReplicationPolicy(kind, "_"))
    assert under.takes(topic, ALIASES) is taken
    assert Flow("f", "us-east", "eu-west", Selection((".*",))).takes(topic, ALIASES)
    renamed = ReplicationPolicy("rename", "_", (RenameRule("orders", topic),))
    assert (renamed.fault("us-east", "orders") is None) is taken


def test_a_flow_names_its_remote_topics_after_its_source() -> None:
    assert Flow("f", "us-east", "eu-west", Selection((".*",))).remote_topic("orders") == "us-east.orders"
