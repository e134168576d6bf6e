"""Whether selections by regular expressions have a name in common: one that all take, or the proof of none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.names.overlap import TooManyStates, common_name
from reconciler.model.names.selection import Selection


def common(*items: str, exclude: tuple[str, ...] = ()) -> str | None:
    return common_name([Selection((item,), exclude if not at else ()) for at, item in enumerate(items)])


@pytest.mark.parametrize(
    ("items", "witness"),
    [
        (("dc1-.*", "dc2-.*"), None),
        (("dc1-.*", "dc[12]-.*"), "dc1-"),
        (("orders.*", ".*users"), "ordersusers"),
        (("[a-m].*", "[n-z].*"), None),
        (("(?i)ORDERS", "orders|x.*"), "orders"),
        (("a{3}", "a{2,5}", "(aa)+|a+"), "aaa"),
        (("^eu[.].+$", r"eu\.x?y"), "eu.y"),
        ((r"\w+", "[^a-z]+", "[0-9]{2}"), "00"),
        (("__.*", ".*x"), None),
        ((".*", ".*"), "a"),
    ],
)
def test_a_shortest_name_is_found_or_there_is_none(items: tuple[str, ...], witness: str | None) -> None:
    assert common(*items) == witness


def test_what_is_excluded_is_in_nobodys_selection() -> None:
    assert common("dc.*", "dc2.*", exclude=("dc2-?.*",)) is None
    assert common("orders.*", "o.*", exclude=("orders",)) == "ordersa"
    assert common("a+", "a{1,2}", exclude=("a", "aa")) is None


@pytest.mark.parametrize("item", ["a{1000}b{1000}", "x$y.*", r"\borders.*"])
def test_what_nobody_can_tell_is_not_claimed(item: str) -> None:
    with pytest.raises(TooManyStates):
        common(item, ".*")


expressions = st.recursive(
    st.sampled_from(["a", "b", "[ab]", ".", "[^a]", "-"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=5,
)


@given(st.lists(expressions, min_size=2, max_size=3), st.lists(st.text("ab-", min_size=1, max_size=5), max_size=20))
def test_a_witness_is_taken_by_all_and_no_name_is_where_there_is_none(items: list[str], names: list[str]) -> None:
    # Plain names are no expressions to it.
    items = [f"(?:{item})" for item in items]
    found = common(*items)
    taken = [name for name in names if all(re.fullmatch(item, name) for item in items)]
    if found is None:
        assert taken == []
    else:
        assert all(re.fullmatch(item, found) for item in items)
        assert all(len(found) <= len(name) for name in taken)
