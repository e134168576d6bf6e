"""Which positions are committed at a target, of all that could be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.checkpoints.syncing import Standing
from reconciler.model.groups import GroupRules

OFFSETS = st.integers(0, 20)


def test_a_position_goes_on_and_goes_back_only_with_the_group() -> None:
    assert Standing(5, 7, None, None).is_to_move
    assert Standing(5, 7, 4, 6).is_to_move
    assert not Standing(5, 7, 5, 7).is_to_move
    # Somebody reads at the target, or put it there.
    assert not Standing(5, 7, 5, 9).is_to_move
    assert not Standing(5, 7, None, 9).is_to_move
    # The group went back at the source.
    assert Standing(3, 5, 5, 7).is_to_move


@given(OFFSETS, OFFSETS, st.none() | OFFSETS, st.none() | OFFSETS)
def test_what_is_at_the_target_is_taken_back_for_nobody_but_the_source(
    upstream: int, downstream: int, before: int | None, committed: int | None
) -> None:
    moves = Standing(upstream, downstream, before, committed).is_to_move
    if committed is not None and downstream < committed:
        assert moves is (before is not None and upstream < before)
    else:
        assert moves is (committed is None or downstream > committed)


def test_which_groups_are_taken_along() -> None:
    rules = GroupRules(include=("billing", "ship.*"))
    assert [name for name in ("billing", "billings", "shipping", "orders") if rules.takes(name)] == [
        "billing",
        "shipping",
    ]
    everyone = GroupRules(include=(".*",))
    names = ("a", "connect-x", "console-consumer-1", "__x", "anabranch.shop.a-b", "anabranch.shop.a-b:groups")
    assert [name for name in names if everyone.takes(name)] == ["a"]
    # Whoever names others to leave out wants the usual ones.
    assert GroupRules((".*",), ("x",)).takes("connect-x")
    assert not GroupRules((".*",), ("x",)).takes("anabranch.shop.a-b")
    assert not GroupRules().takes("a")
