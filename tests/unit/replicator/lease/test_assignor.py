"""The deal: one owner for each log, holders keep theirs until they let go, runs get equal parts, in any order."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.replicator.lease.assignor import LeaseHolder, Log, Member, Share, assign

pytestmark = pytest.mark.slow

A, B, C = ("east.orders", 0), ("east.orders", 1), ("east.users", 7)
# A hundred kilobytes that come to a hundred megabytes.
BOMB = zlib.compress(b'{"run": "' + b"x" * 100_000_000)


def member(run: str, since: float, wants: set[Log], holds: set[Log] | None = None, task: int = 0) -> Member:
    return Member(LeaseHolder(run, task, since), frozenset(wants), frozenset(holds or ()))


def granted(members: dict[str, Member]) -> dict[str, set[Log]]:
    return {name: set(share.granted) for name, share in assign(members).items()}


def test_a_lone_member_gets_what_it_wants() -> None:
    assert assign({"m": member("one", 1.0, {A, B})}) == {"m": Share(frozenset({A, B}), {})}


def test_runs_share_what_is_free_and_the_oldest_gets_the_odd_one() -> None:
    members = {"m": member("young", 2.0, {A, B, C}), "n": member("old", 1.0, {A, B, C})}
    assert granted(members) == {"m": {B}, "n": {A, C}}
    assert assign(members)["m"].taken == {A: LeaseHolder("old", 0, 1.0), C: LeaseHolder("old", 0, 1.0)}


def test_what_only_one_wants_counts_for_its_part() -> None:
    members = {"m": member("young", 2.0, {A, B, C}), "n": member("old", 1.0, {A, B})}
    assert granted(members) == {"m": {B, C}, "n": {A}}


def test_who_has_more_than_its_part_is_asked_to_let_some_go() -> None:
    members = {"m": member("old", 1.0, {A, B, C}, {A, B, C}), "n": member("young", 2.0, {A, B, C})}
    shares = assign(members)
    # Until it has, it keeps them.
    assert shares["m"] == Share(frozenset({A, B, C}), {}, frozenset({A}))
    assert shares["n"].granted == frozenset()
    members["m"] = member("old", 1.0, {A, B, C}, {B, C})
    assert granted(members) == {"m": {B, C}, "n": {A}}
    members["n"] = member("young", 2.0, {A, B, C}, {A})
    assert not any(share.surplus for share in assign(members).values())


def test_a_holder_keeps_what_it_has_though_an_older_run_wants_it() -> None:
    members = {"m": member("young", 2.0, {A, B}, {A}), "n": member("old", 1.0, {A, B})}
    assert granted(members) == {"m": {A}, "n": {B}}


def test_what_its_holder_keeps_is_never_asked_for() -> None:
    keeper = Member(LeaseHolder("old", 0, 1.0), frozenset({A, B, C}), frozenset({A, B, C}), frozenset({A, B}))
    shares = assign({"m": keeper, "n": member("young", 2.0, {A, B, C})})
    assert shares["m"] == Share(frozenset({A, B, C}), {}, frozenset({C}))


def test_what_nobody_holds_is_given_to_whom_it_falls_though_another_would_keep_it() -> None:
    wanted = frozenset((A, B, C))
    old = Member(LeaseHolder("old", 0, 1.0), wanted, keeps=wanted)
    members = {"m": old, "n": member("young", 2.0, {A})}
    assert granted(members) == {"m": {B, C}, "n": {A}}


def test_what_nobody_holds_is_given_to_whom_it_falls_in_the_end() -> None:
    """Or a member would be granted what it must let go at once, again and again."""
    D = ("east.users", 8)
    members = {
        "m": member("old", 1.0, {A, B}),
        "n": member("old", 2.0, {C, D}, task=1),
        "o": member("young", 3.0, {A, B}),
    }
    shares = assign(members)
    assert not any(share.surplus for share in shares.values())
    assert sorted(len(share.granted) for share in shares.values()) == [0, 2, 2]


def test_tasks_of_one_run_are_no_rivals() -> None:
    members = {
        "m": member("first", 1.0, {A}, {A}),
        "n": member("first", 9.0, {B, C}, {B, C}, task=1),
        "o": member("second", 5.0, {A, B, C}),
    }
    assert granted(members) == {"m": {A}, "n": {B, C}, "o": set()}
    assert sorted(log for share in assign(members).values() for log in share.surplus) == [A]


def test_what_is_held_and_not_wanted_any_more_is_not_given_away_yet() -> None:
    members = {"m": member("one", 1.0, set(), {A}), "n": member("two", 2.0, {A})}
    assert granted(members) == {"m": {A}, "n": set()}


LOGS = st.frozensets(st.sampled_from([A, B, C, ("ALL_kinds-of.chars", 3)]))
HOLDERS = st.builds(
    LeaseHolder, st.sampled_from(["one", "two", "three"]), st.integers(0, 3), st.sampled_from([1.0, 2.5, 3.0])
)
MEMBERS = st.dictionaries(st.sampled_from("abcdef"), st.builds(Member, HOLDERS, LOGS, LOGS, LOGS), min_size=1)


@given(MEMBERS, st.randoms())
def test_every_log_has_one_owner_and_the_order_of_members_does_not_matter(
    members: dict[str, Member], chance: random.Random
) -> None:
    shares = assign(members)
    wanted = {log for m in members.values() for log in m.wants | m.holds}
    assert sorted(log for share in shares.values() for log in share.granted) == sorted(wanted)
    for name, share in shares.items():
        said = members[name]
        assert share.granted | share.taken.keys() == said.wants | said.holds
        assert not share.granted & share.taken.keys()
        others = [m for other, m in members.items() if other != name]
        # Nothing moves away from the only holder.
        assert {log for log in said.holds if not any(log in m.holds for m in others)} <= share.granted
        assert share.surplus <= (share.granted & said.wants & said.holds) - said.keeps
    shuffled = list(members.items())
    chance.shuffle(shuffled)
    assert assign(dict(shuffled)) == shares


@given(st.integers(1, 40), st.lists(st.integers(1, 3), min_size=1, max_size=4), st.randoms())
def test_runs_that_want_the_same_come_to_equal_parts(partitions: int, tasks: list[int], chance: random.Random) -> None:
    """Whoever is asked to let go does so, whoever is granted holds: after a few deals nobody is asked any more."""
    logs = [("orders", number) for number in range(partitions)]
    members: dict[str, Member] = {}
    for number, count in enumerate(tasks):
        for task in range(count):
            wants = {log for log in logs if log[1] % count == task}
            held = {log for log in wants if not any(log in m.holds for m in members.values()) and chance.random() < 0.7}
            members[f"{number}-{task}"] = member(f"run {number}", float(number), wants, held, task)
    for _ in range(5):
        shares = assign(members)
        members = {
            name: Member(m.who, m.wants, shares[name].granted - shares[name].surplus) for name, m in members.items()
        }
    shares = assign(members)
    assert not any(share.surplus for share in shares.values())
    parts = [
        sum(len(share.granted) for name, share in shares.items() if name.startswith(f"{number}-"))
        for number in range(len(tasks))
    ]
    assert sum(parts) == partitions
    assert max(parts) - min(parts) <= 1


@given(st.builds(Member, HOLDERS, LOGS, LOGS, LOGS))
def test_a_members_words_come_back(said: Member) -> None:
    assert Member.from_bytes(said.to_bytes()) == said


@given(st.builds(Share, LOGS, st.dictionaries(st.sampled_from([A, B, C]), HOLDERS), LOGS))
def test_a_share_comes_back(share: Share) -> None:
    assert Share.from_bytes(share.to_bytes()) == share


def test_no_share_is_an_empty_one() -> None:
    assert Share.from_bytes(b"") == Share(frozenset(), {})


@pytest.mark.parametrize("data", [b"", b"range", b"x\x9c\x03\x00", Share(frozenset(), {}).to_bytes(), BOMB])
def test_what_is_no_members_word_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not the metadata of a member"):
        Member.from_bytes(data)


def test_two_thousand_partitions_fit_a_record_many_times() -> None:
    logs = {(f"us-east.some.long.topic.name.{n // 4}", n % 4) for n in range(2_000)}
    assert len(member("20260101T000000-host-4711", 1.0, logs, logs).to_bytes()) < 50_000


@pytest.mark.parametrize(
    "said",
    [
        bytes(64 * 2**20),
        b"[" * 200_000,
        b'{"run": "a", "task": 1e999, "since": 0, "wants": {}, "holds": {}}',
        b'{"run": "a", "task": 0, "since": 0, "wants": {"t": [1e999]}, "holds": {}}',
    ],
    ids=["too much", "too deep", "no task", "no partition"],
)
def test_words_that_would_take_much_are_refused(said: bytes) -> None:
    data = zlib.compress(said)
    with pytest.raises(ValueError, match="not the metadata of a member"):
        Member.from_bytes(data)
    with pytest.raises(ValueError, match="not a share"):
        Share.from_bytes(data)


def test_a_bomb_from_a_member_is_not_unpacked() -> None:
    data = zlib.compress(bytes(400 * 2**20))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="expected 16,777,216 at most"):
            Member.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    finally:
        tracemalloc.stop()
