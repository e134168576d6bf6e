"""Which consumer groups a flow takes along: names as they stand first, then as expressions over any text."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.model.declared.groups import GroupRules, choosing
from reconciler.model.names.patterns import BadPattern, NotLinear, check


@pytest.mark.parametrize("name", ["team+app", "app[1]", "a|b", "$HOME", "a.b", "(x)", "billing?", "new line", "50%"])
def test_a_group_is_taken_by_its_own_name(name: str) -> None:
    assert GroupRules((name,)).takes(name)
    assert not GroupRules((".*",), (name,)).takes(name)
    assert name in choosing([name])


def test_an_item_is_an_expression_as_well() -> None:
    rules = GroupRules(("app[1]", "team+"))
    assert [rules.takes(group) for group in ("app[1]", "app1", "teammm", "team+", "app2")] == [True] * 4 + [False]


@pytest.mark.parametrize("item", [".*", "new.lin.*", "(?s)new.*", "[^x]*", "n.*e"])
def test_a_dot_is_a_line_end_too(item: str) -> None:
    assert GroupRules((item,)).takes("new\nline")
    assert "new\nline" in choosing([item])
    assert GroupRules((item,), ()).takes("new\nlin\u00e9e")


def test_all_are_all() -> None:
    everybody = choosing(["all"])
    assert all(group in everybody for group in ("", "a\nb", "billing", "all"))
    assert not GroupRules((".*",)).takes("anabranch.shop.a-b\nx"), "a group of flows is taken by none"


def test_what_matches_none_is_told() -> None:
    assert GroupRules(("app[1]", "x.*", "billing", "anabranch.*")).idle(["app[1]", "anabranch.s.f"]) == [
        *("x.*", "billing", "anabranch.*")
    ]


def test_items_for_any_text_are_pickled_as_such() -> None:
    chosen = pickle.loads(pickle.dumps(choosing(["a[.]?.b"])))
    assert "a\nb" in chosen


@given(st.text(min_size=1))
def test_every_name_is_its_own_item(name: str) -> None:
    try:
        check(name, any_text=True)
    except (BadPattern, NotLinear):
        check(re.escape(name), any_text=True)
        assume(not name.startswith("anabranch."))
        assert GroupRules((re.escape(name),), ()).takes(name)
        return
    assert name in choosing([name])
