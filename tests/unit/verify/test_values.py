"""What a comparison carries between its pieces, what it says of differences, and how that is printed."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from reconciler.cli.main import main
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.offsets.runs import CopyRecord, Run, Runs
from reconciler.model.offsets.verification import MOST_TOLD, Compared, Counts, Difference, Findings, Sofar, Verification
from reconciler.records.rewrite import RawRecord, raw_records
from reconciler.records.varint import signed
from reconciler.replicator.partition.shares import Place
from reconciler.report.verify import summary, verification_json, verification_markdown, verification_text
from reconciler.report.verify_progress import VerifyProgress
from reconciler.verify.comparison.align import align, are_swapped
from reconciler.verify.comparison.compaction import Compaction, Lacking
from reconciler.verify.comparison.describe import what_differs
from reconciler.verify.comparison.pairing import Places
from reconciler.verify.origin import Origin
from reconciler.verify.resume import FlowState, Resume
from reconciler.verify.slices import SliceBounds, SliceProgress
from reconciler.verify.survey import VerifyFilter
from tests.support.records.batches import Content, batch

RECORD = CopyRecord("a", "b", 3, Runs((Run(5, 2),)), ((7, 9),))
BOUNDS = SliceBounds("orders", 1, "east.orders", "translated", None, "b", 0, 10, 3, 15, RECORD, sync=(4, 6))
PROBLEM = Problem("AB609", "cluster west, east.orders/1", "cannot be read", "try again")
FOUND = Difference("changed", 4, 6, "value differs at byte 1 of 9")


def compared(*told: Difference, failure: Problem | None = None, **counts: int) -> Compared:
    findings = Findings(Counts(**counts))
    for one in told:
        findings.add(one)
    names = ("east-west", "east", "orders", "west", "east.orders", 1, "identical")
    return Compared(*names, (0, 10), (0, 10), findings, failure)


# --- between pieces ---------------------------------------------------------------------------------------------------


def test_bounds_and_progress_come_back_from_json_as_they_were() -> None:
    assert SliceBounds.from_json(json.loads(json.dumps(BOUNDS.to_json()))) == BOUNDS
    progress = SliceProgress(4, 6, True, 1, 2, 3, {"aw==": [1, 2, 3, False]}, (7, 8), 3, failure=PROBLEM)
    progress.findings.add(FOUND)
    assert SliceProgress.from_json(json.loads(json.dumps(progress.to_json()))) == progress


def test_what_a_compacted_target_lacks_comes_back_as_it_was() -> None:
    record = RawRecord(4, 1_000, signed(1) + b"k" + signed(-1) + signed(0))
    one = Compaction()
    assert one.lacks(record, 9) == 0
    assert one.lacks(record._replace(offset=5), 10) == 1
    assert one.lacks(RawRecord(6, 1_000, signed(-1) + signed(-1) + signed(0)), 11) is None
    again = Compaction.from_json(json.loads(json.dumps(one.to_json())))
    assert list(again.open().values()) == [Lacking(1, 5, 10, True)]
    assert again.came_again(record._replace(offset=6)) == 1
    assert not again


def test_a_file_to_go_on_with_belongs_to_one_comparison(tmp_path: Path) -> None:
    path, wanted = tmp_path / "progress.json", VerifyFilter(("orders",), since=5)
    file = Resume(path, "payments", wanted)
    assert file.load() == {}
    begun, users = (BOUNDS, SliceProgress.begin(BOUNDS)), Place("users", 0, "east.users")
    state = FlowState([begun], [users], [PROBLEM], origin=Origin("d", "s", "t"))
    file.save({"east-west": state})
    assert Resume(path, "payments", wanted).load() == {"east-west": state}
    for other in (Resume(path, "payments", VerifyFilter()), Resume(path, "others", wanted)):
        with pytest.raises(EnvironmentFault, match="AB610"):
            other.load()
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(EnvironmentFault, match="AB611"):
        Resume(tmp_path / "nowhere" / "p.json", "payments", wanted).save({})
    Resume(None, "payments", wanted).save({})


# --- rows of records --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("abc", "abc", (0, 0)),
        ("abc", "bc", (1, 0)),
        ("abc", "xabc", (0, 1)),
        ("abcd", "xbcd", (1, 1)),
        ("abc", "xyz", None),
        ("aab", "ab", (1, 0)),
        # What is there more than once counts only where it goes on alike.
        ("xaaab", "aaab", (1, 0)),
        ("axbxc", "bxc", (2, 0)),
    ],
)
def test_rows_are_lined_up_with_the_least_left_out(source: str, target: str, expected: tuple[int, int] | None) -> None:
    assert align(source, target) == expected


@given(st.lists(st.integers(0, 50), max_size=30), st.lists(st.integers(0, 50), max_size=30))
def test_what_is_lined_up_is_the_same(source: list[int], target: list[int]) -> None:
    found = align(source, target)
    if set(source).isdisjoint(target):
        assert found is None
    elif found is not None:
        assert source[found[0]] == target[found[1]]


def test_a_swapped_pair_is_known_by_what_follows() -> None:
    assert are_swapped("abc", "bac")
    assert are_swapped("ab", "ba")
    assert not are_swapped("abc", "bax")
    assert not are_swapped("aab", "aab")
    assert not are_swapped("a", "a")


def test_places_follow_runs_and_what_was_found_moved() -> None:
    places = Places(Runs((Run(5, 2), Run(9, 0))))
    assert [places.of(offset) for offset in (0, 4, 5, 8, 9, 4)] == [0, 4, 7, 10, 9, 4]
    places.moved = -1
    assert [places.of(offset) for offset in (4, 5, 9)] == [3, 6, 8]
    assert Places(Runs((Run(5, 2),))).source_end(10) == 8


# --- words ------------------------------------------------------------------------------------------------------------


def test_nothing_that_a_record_holds_is_said() -> None:
    def raw_records(value: bytes | None, headers: tuple[tuple[bytes, bytes], ...] = ()) -> RawRecord:
        rest = signed(3) + b"key" + (signed(-1) if value is None else signed(len(value)) + value)
        rest += signed(len(headers))
        for name, said in headers:
            rest += signed(len(name)) + name + signed(len(said)) + said
        return RawRecord(0, 1_000, rest)

    assert what_differs(raw_records(b"secret"), raw_records(b"secret")) == ""
    assert what_differs(raw_records(b"secret"), raw_records(b"sekrat")) == "value differs at byte 2 of 6, and 1 more"
    assert what_differs(raw_records(b"secret"), raw_records(b"secrets")) == "value has 7 bytes, and had 6"
    assert (
        what_differs(raw_records(b"secret"), raw_records(b"x")) == "value has 1 bytes, and had 6, other from byte 0 on"
    )
    assert what_differs(raw_records(b"secret"), raw_records(None)) == "value is null, and was 6 bytes"
    many = tuple((b"h%d" % n, b"secret") for n in range(7))
    said = what_differs(raw_records(b"", many), raw_records(b"")._replace(timestamp=7))
    assert said.startswith("timestamp 1000 became 7; header h0 is lost, header h1 is lost")
    assert said.endswith(", and 2 more")
    assert "secret" not in said
    # What is no record is compared as bytes.
    assert what_differs(RawRecord(0, 1, b"\x7f"), RawRecord(0, 1, b"\x7e")) == "bytes differs at byte 0 of 1"


# --- reports ----------------------------------------------------------------------------------------------------------


def printed(found: Verification) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(verification_text(found))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_differences_are_told_with_both_places_in_every_format() -> None:
    gone = Difference("missing", 7, 9, "the target does not have it", 3)
    found = Verification("payments", (compared(FOUND, gone, records=10, as_bytes=5, expired=2),))
    assert found.is_equal is False
    text = printed(found)
    assert "east orders/1 offset 4 ↔ west east.orders/1 offset 6: value differs at byte 1 of 9 [AB600]" in text
    assert "the target does not have it (3 records) [AB601]" in text
    assert "4 differ in 1 partition; 10 records are the same, 50 % of them as bytes" in text
    assert "2 deleted by retention on one side" in text
    value = verification_json(found)
    assert (value["equal"], value["counts"]["records"]) == (False, 10)
    (one,) = value["partitions"]
    assert (one["state"], one["differences"]) == ("different", {"changed": 1, "missing": 3})
    assert [(told["code"], told["source"], told["target"]) for told in one["first"]] == [
        ("AB600", 4, 6),
        ("AB601", 7, 9),
    ]
    markdown = verification_markdown(found)
    assert "| `east orders/1 offset 7 ↔ west east.orders/1 offset 9` |" in markdown
    assert "| 3 | AB601 |" in markdown


def test_what_was_not_compared_is_never_called_equal() -> None:
    whole = compared(records=3)
    assert Verification("payments", (whole,)).is_equal is True
    half = Verification("payments", (whole, compared(records=1, failure=PROBLEM)), (replace(PROBLEM, where="x"),))
    assert (half.is_equal, verification_json(half)["equal"]) == (None, None)
    assert "incomplete: 2 parts could not be compared" in summary(half)
    assert "not compared to its end" in printed(half)
    assert verification_markdown(half).count("- not compared: ") == 2
    assert summary(Verification("payments", ())) == "nothing to compare"


def test_of_many_differences_the_first_are_told_and_all_counted() -> None:
    found = Findings()
    for offset in range(50):
        found.add(Difference("changed", offset, offset, "x"))
    assert (len(found.told), found.by_kind) == (MOST_TOLD, {"changed": 50})
    found.add(Difference("missing", 60, 60, "y"))
    found.add(Difference("missing", 61, 61, "y"), goes_on=True)
    assert (len(found.told), found.by_kind["missing"]) == (MOST_TOLD, 2)


def test_a_bar_is_shown_on_a_terminal_alone() -> None:
    said = []
    for is_terminal in (True, False):
        file = io.StringIO()
        console = Console(file=file, force_terminal=is_terminal, width=160)
        with VerifyProgress(console) as progress:
            progress.phase("comparing")
            progress.seen(Sofar(5, 10, Counts(records=5, bytes=500), 1))
        said.append(file.getvalue())
    assert "5 records" in said[0]
    assert "1 partition with differences" in said[0]
    assert said[1] == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--quota", "fast"], "no rate: fast"),
        (["--quota", "0MB/s"], "no rate: 0MB/s"),
        (["--from-timestamp", "2026-13-01T00:00:00Z"], "no time: 2026-13-01T00:00:00Z"),
        (["--flow", "none"], "no flow none is declared; there are east-west"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        "version: 1\nname: t\nclusters:\n  east: {bootstrap: ['127.0.0.1:9']}\n  west: {bootstrap: ['127.0.0.1:9']}\n"
        "flows:\n  - {from: east, to: west, topics: {include: [x]}}\n"
    )
    assert main(["verify", str(file), "--state-dir", str(tmp_path / "state"), *options]) == 2
    assert words in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_names_of_headers_are_printed_as_what_they_are() -> None:
    """Whoever produces records chooses them, also to clear a screen, or to write lines of their own."""
    names = ("\x1b]0;mine\x07\x1b[2J", "a\n  = orders ↔ all the same", "\u202egnirts", "long" * 100, "plain-é")
    ours = raw_records(batch(Content(1, None, None, tuple((name, b"1") for name in names))))[0]
    what = what_differs(ours, raw_records(batch(Content(1, None, None)))[0])
    assert what.isprintable()
    assert "header \\x1b]0;mine\\x07\\x1b[2J is lost" in what
    assert "header a\\n  = orders ↔ all the same is lost" in what
    assert f"header {('long' * 100)[:77]}… (323 more characters) is lost" in what
    assert "header plain-é is lost" in what
