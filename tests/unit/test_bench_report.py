"""From measurements to medians, ratios and Markdown."""

from __future__ import annotations

import pytest

from bench.competitor import Competitor
from bench.load import Load
from bench.mm2 import MirrorMaker2
from bench.ours import Anabranch
from bench.procs import Memory
from bench.race import Entry, Result
from bench.report import ratios, report
from bench.segments import LogFacts
from bench.watch import Measurement

MIB = 2**20
OURS = Memory(jvm=400 * MIB, driver=150 * MIB, worker=200 * MIB, together=900 * MIB)
THEIRS = Memory(jvm=1600 * MIB, driver=0, worker=0, together=1500 * MIB)


def measurement(seconds: float, cpu: float, memory: Memory, elsewhere: float = 0.0) -> Measurement:
    copy = LogFacts(4000, 4_000_000, 1_040_000_000)
    return Measurement(
        records=4_000_000,
        bytes=1_000_000_000,
        seconds=seconds,
        cpu=cpu,
        brokers=8.0,
        elsewhere=elsewhere,
        startup=20.0 if memory is OURS else 10.0,
        startup_cpu=12.0,
        memory=memory,
        copy=copy,
    )


def result(*entries: tuple[Competitor, tuple[Measurement, ...]]) -> Result:
    made = tuple(Entry(competitor, measurements) for competitor, measurements in entries)
    return Result(Load(4_000_000), LogFacts(4000, 4_000_000, 1_040_000_000), made, 0.5)


def test_rates_are_of_the_measured_time_alone() -> None:
    one = measurement(5, 6, OURS)
    assert (one.records_per_second, one.mb_per_second, one.cpu_per_gb) == (800_000, 200, 6)


def test_ratios_are_of_medians() -> None:
    ours = [measurement(seconds, cpu, OURS) for seconds, cpu in ((4, 5), (5, 6), (50, 60))]
    theirs = [measurement(seconds, cpu, THEIRS) for seconds, cpu in ((20, 30), (25, 24), (1, 12))]
    found = ratios(ours, theirs)
    assert found["records/s"] == pytest.approx(4)
    assert found["MB/s"] == pytest.approx(4)
    assert found["CPU s per GB"] == pytest.approx(0.25)
    assert found["worker / JVM memory"] == pytest.approx(0.125)
    assert found["JVM memory"] == pytest.approx(0.25)
    assert found["all memory"] == pytest.approx(0.6)
    assert found["start-up s"] == pytest.approx(2)


def test_the_report_shows_figures_ratios_and_every_run() -> None:
    ours, theirs = measurement(5, 6, OURS), measurement(20, 24, THEIRS)
    text = report(
        result((Anabranch(1), (ours, ours)), (MirrorMaker2(2), (theirs, theirs))), {"processors": "2"}, "2030-01-02"
    )
    lines = text.splitlines()
    assert lines[0] == "# Race of 2030-01-02"
    assert "- processors: 2" in lines
    assert "## Medians of 2 runs" in lines
    assert "| Anabranch, 1 task | exactly once | 800,000 | 200 | 6.0 | 6.00 | 20.0 | 12.0 | 8.0 | 0.00 |" in lines
    assert "| MirrorMaker 2, 2 tasks | at least once | 0 | 1,600 | 0 | 1,500 | 254 |" in lines
    assert "| Anabranch, 1 task | 2 | 800,000 | 200 | 6.0 | 6.00 | 20.0 | 12.0 | 8.0 | 0.00 |" in lines
    (row,) = (line for line in lines if line.startswith("| Anabranch, 1 task / MirrorMaker 2, 2 tasks |"))
    assert row.split(" | ")[1:4] == ["4.00", "4.00", "0.25"]
    assert "- quiet: load average 0.50 before the start, at most 0.00 processors busy elsewhere" in lines


def test_the_report_says_when_the_machine_was_not_quiet() -> None:
    text = report(result((Anabranch(2), (measurement(5, 6, OURS, elsewhere=0.75),))), {}, "2030-01-02")
    assert "**not quiet**" in text
    assert "0.75 processors busy elsewhere" in text
    assert "## One run" in text
    assert "Every run" not in text
    assert "Only one of the two took part." in text
