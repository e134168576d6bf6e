"""Which positions are committed at a target, of all that could be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.checkpoints.mirrormaker.formats import Checkpoint, CheckpointKey
from reconciler.checkpoints.service.syncing import GroupStanding, SyncedOffsets
from reconciler.model.declared.groups import GroupRules

OFFSETS = st.integers(0, 20)


def test_a_position_goes_on_and_goes_back_only_with_the_group() -> None:
    assert GroupStanding(5, 7, None, None).is_to_move
    assert GroupStanding(5, 7, 4, 6).is_to_move
    assert not GroupStanding(5, 7, 5, 7).is_to_move
    # Somebody reads at the target, or put it there.
    assert not GroupStanding(5, 7, 5, 9).is_to_move
    assert not GroupStanding(5, 7, None, 9).is_to_move
    # The group went back at the source.
    assert GroupStanding(3, 5, 5, 7).is_to_move


@given(OFFSETS, OFFSETS, st.none() | OFFSETS, st.none() | OFFSETS)
def test_what_is_at_the_target_is_taken_back_for_nobody_but_the_source(
    upstream: int, downstream: int, before: int | None, committed: int | None
) -> None:
    moves = GroupStanding(upstream, downstream, before, committed).is_to_move
    if committed is not None and downstream < committed:
        assert moves is (before is not None and upstream < before)
    else:
        assert moves is (committed is None or downstream > committed)


KEY = CheckpointKey("readers", "east.orders", 0)


class Group:
    """A group of an identical copy: where it stands on both sides, and whether it has members at the target."""

    def __init__(self) -> None:
        self.settled = SyncedOffsets()
        self.checkpoint = Checkpoint(*KEY, 0, 0)
        self.target: int | None = None
        self.has_members = False

    def look(self, upstream: int) -> int | None:
        """Make one round; return where the group stands at the target then."""
        self.settled.learn({KEY: self.checkpoint})
        self.checkpoint = Checkpoint(*KEY, upstream, upstream)
        moves = GroupStanding(upstream, upstream, self.settled.before(KEY), self.target).is_to_move
        if moves and not self.has_members:
            self.target = upstream
        self.settled.note(KEY, upstream, is_in_line=not (moves and self.has_members))
        return self.target


def test_a_group_that_went_back_while_it_had_members_at_the_target_goes_back_when_they_have_left() -> None:
    group = Group()
    assert group.look(40) == 40
    group.has_members, group.target = True, 60
    assert [group.look(10), group.look(10), group.look(12)] == [60, 60, 60]
    # They read on until they leave.
    group.has_members, group.target = False, 80
    assert group.look(12) == 12
    # It has gone back once: from here on it is as for anybody else.
    group.target = 90
    assert [group.look(12), group.look(20)] == [90, 90]


def test_a_group_that_is_at_its_old_place_again_was_not_taken_back() -> None:
    group = Group()
    group.look(40)
    group.has_members, group.target = True, 60
    assert [group.look(10), group.look(45)] == [60, 60]
    group.has_members = False
    assert group.look(45) == 60


def test_a_group_went_back_from_as_far_as_it_was_seen() -> None:
    group = Group()
    group.look(30)
    # Its members have committed nothing of what was refused: it stands at 30 there still.
    group.has_members = True
    assert [group.look(50), group.look(35)] == [30, 30]
    group.has_members, group.target = False, 90
    assert group.look(35) == 35


def test_what_was_remembered_of_a_group_counts_until_somebody_else_has_written_of_it() -> None:
    settled = SyncedOffsets()
    settled.learn({KEY: Checkpoint(*KEY, 40, 40)})
    settled.note(KEY, 10, is_in_line=False)
    ours = {KEY: Checkpoint(*KEY, 10, 10)}
    settled.forget(ours, ours)
    settled.learn(ours)
    assert settled.before(KEY) == 40
    theirs = {KEY: Checkpoint(*KEY, 20, 20)}
    settled.forget(ours, theirs)
    settled.learn(theirs)
    assert settled.before(KEY) == 20
    # Of a group that was deleted, and is there again, nothing is known.
    settled.forget(theirs, {})
    assert settled.before(KEY) is None


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
