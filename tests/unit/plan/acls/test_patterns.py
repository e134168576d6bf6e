"""Include lists as ACL resource patterns: nothing that a flow takes may be missing, and little else may be there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.acls.requirements import ALL, ResourcePattern
from reconciler.model.declared.flow import Flow
from reconciler.model.names.patterns import BadPattern, NotLinear
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.policies.types import Otherwise, PolicyKind
from reconciler.plan.acls.patterns import copies, narrowed, originals, patterns_of

ALIASES = ("a", "b")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("orders", "orders"),
        ("a.b", "a.b"),
        ("orders.*", "orders* (prefixed)"),
        ("^orders", "orders"),
        ("orders$", "orders"),
        (r"orders\.eu", "orders.eu"),
        (r"orders\.(eu|us)", "orders.* (prefixed)"),
        (r"v\d+", "v* (prefixed)"),
        ("orders?", "order* (prefixed)"),
        ("ab+", "ab* (prefixed)"),
        ("ab{0,2}", "a* (prefixed)"),
        ("a*", "* (all)"),
        (".*", "* (all)"),
        ("(?i)orders", "* (all)"),
        ("(orders|users)", "* (all)"),
        ("orders|users", "orders, users"),
        ("orders|order.*", "order* (prefixed)"),
        ("orders|.*-eu", "* (all)"),
        ("a[|]b|c", "a* (prefixed), c"),
        ("a[]|]b|[^]|]", "* (all)"),
        (r"a\|b", "a|b"),
    ],
)
def test_a_regular_expression_becomes_what_it_begins_with(item: str, expected: str) -> None:
    assert ", ".join(map(str, patterns_of(item))) == expected


@given(st.from_regex(r"[ab.\\|*+?()\[\]^$-]{1,8}", fullmatch=True), st.text("ab.-", min_size=1, max_size=5))
def test_whatever_an_expression_matches_is_covered(item: str, name: str) -> None:
    try:
        does_match = Selection((item,)).matches(name)
    except (BadPattern, NotLinear):
        return
    if does_match:
        assert any(pattern.covers(ResourcePattern(name)) for pattern in patterns_of(item)), (item, patterns_of(item))


def flow(include: tuple[str, ...], policy: ReplicationPolicy, exclude: tuple[str, ...] = ()) -> Flow:
    return Flow("a-b", "a", "b", Selection(include, exclude), policy)


@pytest.mark.parametrize(
    ("kind", "include", "expected"),
    [
        ("default", ("orders", "users.*"), "a.orders, a.users* (prefixed)"),
        ("default", (".*",), "a.* (prefixed)"),
        ("default", ("orders", "orders-tmp", "b.orders"), "a.orders"),
        ("identity", ("orders", "users.*"), "orders, users* (prefixed), a.users* (prefixed)"),
        ("identity", ("he.*",), "he* (prefixed), a.he* (prefixed)"),
        ("identity", ("heartbeats",), "a.heartbeats"),
        ("identity", (".*",), "* (all)"),
    ],
)
def test_copies_are_covered_under_their_own_names(kind: PolicyKind, include: tuple[str, ...], expected: str) -> None:
    one = flow(include, ReplicationPolicy(kind), (".*-tmp",))
    assert ", ".join(map(str, copies(one, ALIASES))) == expected


@pytest.mark.parametrize(
    ("otherwise", "include", "expected"),
    [
        ("default", ("orders.*",), "a.orders* (prefixed), dc1-* (prefixed), all-users"),
        ("identity", ("orders.*",), "orders* (prefixed), a.orders* (prefixed), dc1-* (prefixed), all-users"),
        ("default", ("users", "orders.eu"), "all-users, dc1-eu"),
    ],
)
def test_copies_of_renamed_topics_are_covered(otherwise: Otherwise, include: tuple[str, ...], expected: str) -> None:
    rules = (RenameRule(r"orders\.(.*)", r"dc1-\1"), RenameRule("other", "unused"), RenameRule("use.*", "all-users"))
    one = flow(include, ReplicationPolicy("rename", rules=rules, otherwise=otherwise))
    assert ", ".join(map(str, copies(one, ALIASES))) == expected


@pytest.mark.parametrize("policy", [ReplicationPolicy("identity"), ReplicationPolicy("rename", otherwise="identity")])
@pytest.mark.parametrize("item", [r"z\..*", "z.*", "h.*", ".*", "z.heartbeats"])
@given(name=st.text("hz.", min_size=1, max_size=4))
def test_copies_of_heartbeats_are_covered_under_their_prefix(policy: ReplicationPolicy, item: str, name: str) -> None:
    one = flow((item,), policy)
    for topic in (name, f"{name}.heartbeats", "z.heartbeats"):
        if one.takes(topic, ALIASES):
            covering = [
                pattern for pattern in copies(one, ALIASES) if pattern.covers(ResourcePattern(one.remote_topic(topic)))
            ]
            assert covering, topic


def test_a_rule_that_begins_with_a_group_may_give_any_name() -> None:
    one = flow(("orders.*",), ReplicationPolicy("rename", rules=(RenameRule("(.*)-x", r"\1"),)))
    assert copies(one, ALIASES) == (ALL,)


def test_what_is_never_taken_is_not_covered() -> None:
    one = flow(("orders", "b.users", "x-tmp", "__x"), ReplicationPolicy(), (".*-tmp",))
    assert originals(one, ALIASES) == (ResourcePattern("orders"),)


acl_patterns = st.lists(
    st.builds(ResourcePattern, st.text("ab", max_size=3), st.booleans())
    | st.just(ALL)
    | st.just(ResourcePattern("*", prefixed=True))
)


@given(acl_patterns)
def test_what_another_pattern_covers_is_left_out(patterns: list[ResourcePattern]) -> None:
    once = dict.fromkeys(patterns)
    expected = tuple(one for one in once if not any(other != one and other.covers(one) for other in once))
    assert narrowed(patterns) == expected


def test_patterns_are_not_held_against_each_other_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ResourcePattern] = []

    def seen(one: ResourcePattern, _other: ResourcePattern) -> bool:
        asked.append(one)
        return False

    monkeypatch.setattr(ResourcePattern, "covers", seen)
    names = [ResourcePattern(f"orders-{number}") for number in range(2000)]
    assert len(narrowed([*names, ResourcePattern("orders-1", prefixed=True)])) == 1 + 2000 - 1111
    assert len(asked) < 2000
