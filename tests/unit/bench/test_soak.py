"""Slopes and verdicts of a soak, and the table of a padding."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from bench.instruments.procs import Memory
from bench.measures.padding import Padded, PaddingResult, padding_report
from bench.measures.soak import LARGEST, SMALLEST, SoakResult, Wear, sizes
from bench.reports.soak import slope, soak_report, verdict

MB = 10**6


def soaked(seconds: int, mb_per_hour: float, warm_up: float = 0.0) -> SoakResult:
    times = tuple(float(at) for at in range(seconds))
    # A saw's teeth on a slope; before the warm-up is over there is much more.
    worker = tuple(
        int((200 + at % 10 + mb_per_hour * at / 3600 + (500 if at < warm_up else 0)) * MB) for at in range(seconds)
    )
    flat = (100 * MB,) * seconds
    resident = {"worker": worker, "driver": flat, "jvm": flat}
    peaks = Memory(jvm=410 * MB, driver=100 * MB, worker=250 * MB, together=0)
    return SoakResult(Wear(seconds, warm_up), times, resident, peaks, 1000, 5 * MB, 3.0, 40.0, 0.1)


def test_a_slope_is_that_of_the_line_that_fits_best() -> None:
    assert slope([0, 1, 2], [5, 7, 9]) == 2
    assert slope([0, 1, 2, 3], [1, 0, 1, 0]) == pytest.approx(-0.2)
    assert slope([4], [9]) == 0


def test_flat_is_at_most_a_twentieth_of_the_mean_an_hour() -> None:
    assert verdict(10, 200, 3600) == "flat"
    assert verdict(-90, 200, 3600) == "flat"
    assert verdict(10.5, 200, 3600) == "**not flat**"
    assert verdict(10.5, 200, 599) == "too short to tell"


@pytest.mark.parametrize(("rise", "found"), [(2.0, "flat"), (50.0, "**not flat**")])
def test_a_soak_is_judged_by_its_slope_among_the_teeth(rise: float, found: str) -> None:
    text = soak_report(soaked(3600, rise), {"processors": "2"}, "2030-01-02")
    lines = [line for line in text.splitlines() if line.startswith("| largest worker |")]
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[0:2] == ["largest worker", "250"]
    assert float(cells[3]) == pytest.approx(rise, abs=0.5)
    assert cells[4] == found
    assert len(lines[1].strip("|").split("|")) == 11
    assert "| a worker's peak memory | 250.00 MB | at most 300 MB | met |" in text


def test_what_is_seen_before_the_warm_up_is_over_does_not_count() -> None:
    text = soak_report(soaked(2000, 0.0, warm_up=700), {}, "2030-01-02")
    (line, _) = (line for line in text.splitlines() if line.startswith("| largest worker |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    # With the 500 MB of the beginning the mean would be 379, and the slope far below 0.
    assert cells[2] == "204"
    assert abs(float(cells[3])) < 1


def test_sizes_are_of_every_order_of_magnitude_and_the_largest_is_among_them() -> None:
    made = list(islice(sizes(random.Random(1)), 2000))
    assert made[0] == LARGEST
    assert all(SMALLEST <= size <= LARGEST for size in made)
    tens = [sum(10**power <= size < 10 ** (power + 1) for size in made) for power in range(2, 6)]
    assert all(400 < count < 600 for count in tens)


def test_a_padding_shows_every_run_and_the_median() -> None:
    starts = tuple(Padded(20.0, seconds, seconds + 1, 3.0, 4.0, 150 * MB) for seconds in (10.0, 80.0, 20.0))
    text = padding_report(PaddingResult(50_000_000, 2, starts, 0.2), {"processors": "2"}, "2030-01-02")
    assert "| 2 | 20.0 | 80.0 | 1,250,000 | 81.0 | 3.0 | 4.0 | 150 |" in text
    assert "| median | 20.0 | 20.0 | 5,000,000 | 21.0 | 3.0 | 4.0 | 150 |" in text
    assert "| seconds to pad to offset 50,000,000 | 20.00 s | at most 60 s | met |" in text
