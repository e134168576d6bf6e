"""Shifted runs: translation is exact for every record, whatever gaps, overruns and healings came before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.offsets.runs import Run, Runs


def test_without_runs_offsets_are_the_same() -> None:
    assert [Runs().to_target(offset) for offset in (0, 7, 10**12)] == [0, 7, 10**12]
    assert (Runs().shift, Runs().shifted) == (0, 0)


def test_a_shifted_run_begins_at_its_first_record_and_ends_where_it_is_healed() -> None:
    runs = Runs().extended(Run(15, 2)).extended(Run(40, 0))
    assert [runs.to_target(offset) for offset in (9, 14, 15, 39, 40)] == [9, 14, 17, 40, 40]
    assert (runs.shift, runs.shifted) == (0, 1)
    assert runs.at_target(41).shift == 0
    assert runs.at_target(17) == Run(15, 2)


def test_lost_records_translate_to_the_first_that_is_there() -> None:
    runs = Runs().extended(Run(100, -50))
    assert [runs.to_target(offset) for offset in (49, 50, 99, 100, 101)] == [49, 50, 50, 50, 51]


def test_a_run_without_records_leaves_no_trace() -> None:
    assert Runs().extended(Run(15, 2)).extended(Run(15, 0)) == Runs()
    assert Runs().extended(Run(15, 2)).extended(Run(17, 0)) == Runs()


stretches = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4), st.integers(0, 2)), max_size=30)


@given(stretches)
def test_every_record_is_found_where_it_was_written(stretches: list[tuple[int, int, int]]) -> None:
    """A log of records and gaps is copied; each filling may come out too long; the next gap heals it."""
    source = target = 0
    runs, stands = Runs(), {}
    for records, gap, overrun in stretches:
        for _ in range(records):
            stands[source] = target
            source, target = source + 1, target + 1
        if gap:
            source += gap
            target = max(target, source) + (overrun if target < source else 0)
            if target - source != runs.shift:
                runs = runs.extended(Run(source, target - source))
    assert {offset: runs.to_target(offset) for offset in stands} == stands
    translated = [runs.to_target(offset) for offset in range(source + 1)]
    assert translated == sorted(translated), "a later offset never translates to an earlier one"
    for offset, place in stands.items():
        assert place - runs.at_target(place).shift == offset
        assert runs.at_source(offset).shift == place - offset
