"""Percentiles, and what is added to a floor."""

from __future__ import annotations

from array import array

import pytest

from bench.competitors.mm2 import MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.instruments.probe import Stream, percentile
from bench.measures.latency import SHARES, LatencyResult, Line, Setting, Sight
from bench.reports.latency import added, latency_bars, latency_report


def sight(times: tuple[float, ...], cpu: float = 0.0) -> Sight:
    return Sight(10_000, dict(zip(SHARES, times, strict=True)), 0.2, cpu, 0.5, 0.1, 0.02)


def result(ours: tuple[Sight, ...], theirs: tuple[Sight, ...], floors: tuple[Sight, ...]) -> LatencyResult:
    lines = (
        Line("the floor", "", None, floors),
        Line("Anabranch, 1 task", "exactly once", Anabranch(1), ours),
        Line("MirrorMaker 2, 1 task", "at least once", MirrorMaker2(1), theirs),
    )
    return LatencyResult(Setting(Stream(), 10, 5), lines, 0.1)


FLOOR = sight((1, 2, 5, 9, 20))
OURS = sight((3, 5, 8, 12, 30), cpu=0.2)
THEIRS = sight((6, 8, 11, 14, 40), cpu=0.3)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 500), (0.9, 900), (0.99, 990), (0.999, 999), (0.9991, 1000), (1.0, 1000)]
)
def test_percentiles_are_values_that_were_measured(share: float, expected: int) -> None:
    assert percentile(array("q", range(1, 1001)), share) == expected


def test_a_single_value_is_every_percentile() -> None:
    assert {percentile(array("q", [7]), share) for share in SHARES.values()} == {7}


def test_what_is_added_is_the_median_of_differences_within_runs() -> None:
    floors = (sight((1, 2, 5, 9, 20)), sight((11, 12, 15, 19, 30)), sight((1, 2, 5, 9, 20)))
    ours = (sight((3, 5, 8, 12, 30)), sight((13, 15, 18, 22, 40)), sight((9, 9, 9, 12, 30)))
    found = result(ours, ours, floors)
    assert added(found, found.lines[1], "p50") == 2
    assert added(found, found.lines[1], "p99") == 3


def test_a_row_with_another_linger_is_told_apart_and_no_bar_is_held_against_it() -> None:
    patient = Anabranch(1, linger="15ms")
    assert (patient.title, patient.name) == ("Anabranch, 1 task, linger 15ms", "anabranch-1-linger-15ms")
    beside = result((OURS,), (THEIRS,), (FLOOR,))
    further = Line(patient.title, "exactly once", patient, (sight((9, 9, 9, 12, 30), cpu=0.1),))
    lines = (*beside.lines[:2], further, *beside.lines[2:])
    assert latency_bars(LatencyResult(beside.setting, lines, 0.1)) == latency_bars(beside)


def test_bars_are_half_of_the_other_side_and_the_other_side() -> None:
    p50, p99, cpu = latency_bars(result((OURS,), (THEIRS,), (FLOOR,)))
    assert (p50.value, p50.limit, p50.is_met) == (2, 2.5, True)
    assert (p99.value, p99.limit, p99.is_met) == (3, 6, True)
    assert (cpu.value, cpu.limit, cpu.is_met) == (0.2, 0.15, False)
    assert latency_bars(LatencyResult(Setting(Stream()), result((OURS,), (THEIRS,), (FLOOR,)).lines[:2], 0)) == []


def test_the_report_shows_the_floor_what_is_added_and_every_run() -> None:
    text = latency_report(result((OURS, OURS), (THEIRS, THEIRS), (FLOOR, FLOOR)), {"processors": "2"}, "2030-01-02")
    lines = text.splitlines()
    assert lines[0] == "# Latency of 2030-01-02"
    assert "1,000 records/s of 250 bytes over 8 partitions for 10 s, after 5 s of warm-up." in lines
    row = "| 3.00 | 5.00 | 8.00 | 12.00 | 30.00 | 0.200 | 0.500 | 0.100 | 0.020 | 0.200 |"
    assert f"| Anabranch, 1 task | exactly once {row}" in lines
    assert "| Anabranch, 1 task | 2.00 | 3.00 | 3.00 | 3.00 |" in lines
    assert f"| Anabranch, 1 task | 2 | 10,000 {row}" in lines
    assert "  - `target.producer.linger.ms=20`" in lines
