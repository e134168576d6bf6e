"""The bench's command line, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import parser
from bench.commands.common import RESULTS, index_of, keep, write_index
from bench.commands.race import competitors
from bench.instruments.sample import first_difference
from bench.measures.verify import Measured, VerifyResult, verify_report
from bench.reports.index import profile_of
from bench.workload.load import Load
from bench.workload.profiles import PROFILES, Profile
from reconciler.model.base.errors import EnvironmentFault, Problem


def test_a_race_of_all_profiles_has_everybody_but_no_floor_where_copies_are_several() -> None:
    asked = parser().parse_args(["race", "--profile", "all"])
    assert asked.profile == list(PROFILES.values())
    names = {profile.name: [one.name for one in competitors(profile, asked)] for profile in asked.profile}
    everybody = ["anabranch-1", "anabranch-2", "mm2-2", "mm2-2-eos"]
    for name in ("rf3", "rf3-lz4", "secured", "far", "far-16k-lz4", "far-target"):
        assert names.pop(name) == everybody
    # Where the original has holes, no copy can have its offsets.
    translated = ["anabranch-1-translated", "anabranch-2-translated", *everybody[2:]]
    assert names.pop("compacted") == [*translated, "follower"]
    assert set(map(tuple, names.values())) == {(*everybody, "follower")}


@pytest.mark.parametrize(
    "words",
    [["--profile", "large"], ["--size", "20"], ["--records", "0"], ["--codec", "zip"]],
    ids=lambda words: words[0],
)
def test_what_cannot_be_raced_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["race", *words])
    assert words[0] in capsys.readouterr().err


def test_latency_is_measured_with_as_many_lingers_as_are_named() -> None:
    assert parser().parse_args(["latency"]).linger == []
    assert parser().parse_args(["latency", "--linger", "15ms", "--linger", "20ms"]).linger == ["15ms", "20ms"]


def test_latency_is_measured_beside_the_rows_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["latency"]).tuning is None, "all of them"
    words = ["latency", "--tuning", "its own settings", "--tuning", "linger 0"]
    assert parser().parse_args(words).tuning == ["its own settings", "linger 0"]
    with pytest.raises(SystemExit):
        parser().parse_args(["latency", "--tuning", "quickest"])
    assert "tuned as in the race" in capsys.readouterr().err


def test_verify_is_measured_against_consumers_that_only_read() -> None:
    load = Load(1_000_000, 250, 8)
    slow, quick = Measured(20.0, 30.0), Measured(8.0, 9.0)
    text = verify_report(VerifyResult(load, (slow,) * 3, (quick,) * 3, 0.1), {"cpu": "two"}, "2030-01-02")
    assert "| 1 | two console consumers | 20.0 | 30.0 | 25 |" in text
    assert "| 3 | `verify` | 8.0 | 9.0 | 62 |" in text
    assert "| 2.50 | at least 2 | met |" in text
    assert parser().parse_args(["verify", "--runs", "1"]).records == 8_000_000


def test_a_report_never_replaces_an_earlier_one(tmp_path: Path) -> None:
    first, second = (keep(text, "2030-01-02-race", tmp_path) for text in ("one", "two"))
    assert (first.name, second.name) == ("2030-01-02-race.md", "2030-01-02-race-2.md")
    assert (first.read_text(), second.read_text()) == ("one", "two")


def test_the_first_record_that_differs_is_named() -> None:
    assert first_difference([(1,), (2,)], [(1,), (2,)]) == ""
    assert first_difference([(1,), (2,)], [(1,), (3,)]) == "record 1 is (3,), not (2,)"
    assert first_difference([(1,), (2,)], [(1,)]) == "record 1 is missing, not (2,)"
    assert first_difference([], [(1,)]) == "record 0 is (1,), not missing"


def test_a_load_that_cannot_be_is_refused_before_anything_starts() -> None:
    asked = parser().parse_args(["race", "--profile", "plain250,tiny", "--odd"])
    with pytest.raises(SystemExit, match="are planted, each with key and value"):
        asked.run(asked)


def test_a_profile_that_fails_leaves_the_next_its_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raced: list[str] = []

    def fail(profile: Profile, *_: object) -> None:
        raced.append(profile.name)
        raise EnvironmentFault(Problem("AB352", "here", "the copy is not the original", ""))

    monkeypatch.setattr("bench.commands.race.race", fail)
    asked = parser().parse_args(["race", "--profile", "lz4,16k"])
    with pytest.raises(SystemExit, match="no result: lz4, 16k"):
        asked.run(asked)
    assert raced == ["lz4", "16k"]
    assert capsys.readouterr().err.count("the copy is not the original") == 2


def test_older_reports_go_to_the_history_and_the_index_lists_the_newest(tmp_path: Path) -> None:
    ratios = (
        "Ratios of the medians:\n\n|  | records/s | all memory |\n| --- | --: | --: |\n| a / b | 2.00 | 0.50 |\n\nEnd\n"
    )
    for stem in ("2030-01-02-race-tiny", "2030-01-02-race-tiny-10", "2030-01-02-race-tiny-9", "2029-01-01-latency"):
        keep(ratios if "race" in stem else "nothing", stem, tmp_path)
        write_index(tmp_path)
    assert sorted(path.stem for path in tmp_path.glob("2*.md")) == ["2029-01-01-latency", "2030-01-02-race-tiny-10"]
    assert len([*(tmp_path / "history").iterdir()]) == 2
    text = (tmp_path / "README.md").read_text()
    assert "| race-tiny | [2030-01-02](2030-01-02-race-tiny-10.md) |" in text
    assert "| race-tiny | a / b | 2.00 |  | 0.50 |" in text
    assert keep("more", "2030-01-02-race-tiny", tmp_path).stem == "2030-01-02-race-tiny-2"


def test_the_index_of_the_results_is_up_to_date() -> None:
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == index_of(RESULTS)
    stems = [path.stem for path in RESULTS.glob("2*.md")]
    assert len(stems) == len({profile_of(stem) for stem in stems})
