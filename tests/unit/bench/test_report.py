"""From measurements to medians, ratios and Markdown."""

from __future__ import annotations

import pytest

from bench.competitors.base import Competitor
from bench.competitors.follower import Follower
from bench.competitors.mm2 import MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.instruments.procs import Memory
from bench.instruments.segments import LogFacts
from bench.instruments.watch import Measurement
from bench.measures.race import Entry, Result
from bench.reports.race import bars, ratios, report
from bench.workload.load import Load
from bench.workload.profiles import Profile

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
    profile = Profile("plain250", "records of 250 bytes", Load(4_000_000))
    return Result(profile, LogFacts(4000, 4_000_000, 1_040_000_000), made, 0.5)


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
    found = result((Anabranch(1), (ours, ours)), (MirrorMaker2(2), (theirs, theirs)))
    text = report([found], {"processors": "2"}, "2030-01-02")
    lines = text.splitlines()
    assert lines[0] == "# Race of 2030-01-02"
    assert "- processors: 2" in lines
    assert "## plain250: records of 250 bytes" in lines
    assert "Medians of 2 runs:" in lines
    assert "| Anabranch, 1 task | exactly once | 800,000 | 200 | 6.0 | 6.00 | 20.0 | 12.0 | 8.0 | 0.00 |" in lines
    assert "| MirrorMaker 2, 2 tasks | at least once | 0 | 1,600 | 0 | 1,500 | 253.9 |" in lines
    assert "| Anabranch, 1 task | 2 | 800,000 | 200 | 6.0 | 6.00 | 20.0 | 12.0 | 8.0 | 0.00 |" in lines
    (row,) = (line for line in lines if line.startswith("| Anabranch, 1 task / MirrorMaker 2, 2 tasks |"))
    assert row.split(" | ")[1:4] == ["4.00", "4.00", "0.25"]
    assert "- quiet: load average 0.50 before the start, at most 0.00 processors busy elsewhere" in lines


def test_the_report_says_when_the_machine_was_not_quiet() -> None:
    text = report([result((Anabranch(2), (measurement(5, 6, OURS, elsewhere=0.75),)))], {}, "2030-01-02")
    assert "**not quiet**" in text
    assert "0.75 processors busy elsewhere" in text
    assert "One run:" in text
    assert "Every run" not in text
    assert "Nobody took part beside it." in text


def test_bars_take_the_fastest_and_the_most_economical_of_each_side() -> None:
    found = {
        bar.name: bar
        for bar in bars(
            result(
                (Anabranch(1), (measurement(8, 3, OURS),)),
                (Anabranch(2), (measurement(5, 6, OURS),)),
                (MirrorMaker2(1), (measurement(40, 24, THEIRS),)),
                (MirrorMaker2(2), (measurement(20, 30, THEIRS),)),
                (MirrorMaker2(2, exactly_once=True), (measurement(35, 30, THEIRS),)),
                (Follower(), (measurement(6, 3, THEIRS),)),
            )
        )
    }
    assert found["records/s / MirrorMaker 2 at least once"].value == pytest.approx(4)
    assert found["records/s / MirrorMaker 2 exactly once"].value == pytest.approx(7)
    assert found["records/s / Kafka follower"].value == pytest.approx(1.2)
    assert found["CPU s per GB / MirrorMaker 2 at least once"].value == pytest.approx(0.125)
    assert [name for name, bar in found.items() if not bar.is_met] == ["CPU s per GB / MirrorMaker 2 at least once"]
    assert found["a worker's peak memory, every number of tasks"].value == pytest.approx(209.7152)


def test_where_only_speed_beside_mirror_maker_is_promised_only_that_is_a_bar() -> None:
    ours, theirs = measurement(5, 6, OURS), measurement(20, 24, THEIRS)
    tiny = Profile("tiny", "one by one", Load(4_000_000, alone=True))
    made = result((Anabranch(1), (ours,)), (MirrorMaker2(2), (theirs,)), (Follower(), (theirs,)))
    found = bars(Result(tiny, made.original, made.entries, 0.0))
    assert [bar.limit for bar in found[1:]] == [2]
    assert found[1].value == pytest.approx(4)
    assert bars(result((MirrorMaker2(2), (theirs,)))) == []
