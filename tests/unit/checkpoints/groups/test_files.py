"""Files of offsets: what is read of good ones, and every fault of bad ones, each with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.checkpoints.groups.files import LARGEST_OFFSET, read_file
from reconciler.checkpoints.groups.mirus_offsets import text_of
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.offsets.committed import COLUMNS, Asked, Committed, Kind, LogBounds, Move, MovedOffset, Position
from reconciler.report.offsets import (
    moved_line,
    moves_json,
    moves_lines,
    offsets_csv,
    offsets_json,
    offsets_lines,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "offsets"
BAD = sorted(path for path in GOLDEN.iterdir() if path.suffix in (".csv", ".json"))
ODD = 'one, "two"\nthree'


def told(path: Path) -> list[str]:
    """Return all that is wrong with a file, without the folder that it is in."""
    try:
        problems = read_file(path).problems
    except DeclaredInputError as error:
        problems = error.problems
    return [str(problem).removeprefix(f"{path.parent}/") for problem in problems]


def committed(kind: Kind) -> list[Committed] | list[Position]:
    bounds = LogBounds(5, 90, 100)
    if kind == "flow":
        return [
            Position("east-west", "orders", 0, 40, '{"source": "x"}', "east.orders", "translated", bounds),
            Position("east-west", "orders", 1, 100, "", "east.orders", "identical"),
        ]
    return [
        Committed("billing", "orders", 0, 40, ODD, 7, bounds),
        Committed("größe", "orders", 1, LARGEST_OFFSET),
    ]


def written(kind: Kind, folder: Path, suffix: str) -> Path:
    path = folder / f"offsets{suffix}"
    rows = committed(kind)
    text = json.dumps(offsets_json(rows), indent=2) if suffix == ".json" else offsets_csv(kind, rows)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_there_are_bad_files_of_both_kinds() -> None:
    assert {path.suffix for path in BAD} == {".csv", ".json"}
    assert len(BAD) >= 20


@pytest.mark.parametrize("path", BAD, ids=[path.name for path in BAD])
def test_all_that_is_wrong_is_told_at_once_with_its_line(path: Path) -> None:
    expected = path.with_name(f"{path.name}.expected").read_text(encoding="utf-8").splitlines()
    assert told(path) == expected
    assert expected


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@pytest.mark.parametrize("kind", ["group", "flow"])
def test_what_is_exported_is_read_again(kind: Kind, suffix: str, tmp_path: Path) -> None:
    path = written(kind, tmp_path, suffix)
    found = read_file(path)
    rows = committed(kind)
    assert (found.kind, found.problems) == (kind, ())
    assert [(one.owner, one.topic, one.partition, one.offset, one.metadata) for one in found.asked] == [
        (row.cells()[kind], row.topic, row.partition, row.offset, row.metadata) for row in rows
    ]
    # A value with a line break in it is in one line, too.
    lines = (json_lines(path) if suffix == ".json" else [2, 3])[:2]
    assert [one.where for one in found.asked] == [f"{path}:{line}" for line in lines]


@given(group=st.text(st.characters(exclude_categories=["Cs"])), suffix=st.sampled_from([".csv", ".json"]))
@example(group="", suffix=".csv")
@example(group="new\nline", suffix=".csv")
@example(group='"a";b,c', suffix=".csv")
@example(group="=1+1", suffix=".csv")
def test_a_group_of_any_name_is_exported_and_read_again(
    tmp_path_factory: pytest.TempPathFactory, group: str, suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    rows = [Committed(group, "orders", 0, 40)]
    text = json.dumps(offsets_json(rows)) if suffix == ".json" else offsets_csv("group", rows)
    path.write_text(text, encoding="utf-8", newline="")
    found = read_file(path)
    assert ([one.owner for one in found.asked], found.problems) == ([group], ())


def json_lines(path: Path) -> list[int]:
    """Return the lines at which the objects of the list begin."""
    return [number for number, line in enumerate(path.read_text().splitlines(), 1) if line == "    {"]


def test_four_columns_are_enough_in_any_order_and_empty_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("\ufeff\noffset, partition ,topic,group\r\n\r\n7,1,orders,billing\r\n", encoding="utf-8")
    assert read_file(path).asked == (Asked("billing", "orders", 1, 7, "", f"{path}:4"),)
    path = tmp_path / "offsets.JSON"
    path.write_text('{"offsets": [ {"group":"a","topic":"b","partition":0,"offset":0}], "version": 1}')
    assert read_file(path).asked == (Asked("a", "b", 0, 0, "", f"{path}:1"),)


def test_only_the_last_of_two_lists_counts_as_json_has_it(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    path.write_text('{"version": 1, "offsets": [{"group": 5}],\n "offsets": []}')
    found = read_file(path)
    assert (found.asked, found.problems) == ((), ())


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_file_that_cannot_be_read_is_told(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"offsets{suffix}"
    with pytest.raises(DeclaredInputError, match=r"cannot be read: No such file .*\[AB620\]"):
        read_file(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DeclaredInputError, match=r"is not UTF-8 text .*\[AB620\]"):
        read_file(path)


@pytest.mark.parametrize("digits", ["9" * 5_000, "0" * 5_000 + "9", "0" * 30 + "9" * 30, "-" + "9" * 5_000])
@pytest.mark.parametrize("suffix", [".csv", ".json", "quoted.json"])
def test_numbers_that_are_too_long_to_be_read_are_told(suffix: str, digits: str, tmp_path: Path) -> None:
    path = tmp_path / f"offsets{suffix}"
    if suffix == ".csv":
        path.write_text(f"group,topic,partition,offset\nbilling,orders,0,{digits}\n")
    else:
        quote = '"' if suffix == "quoted.json" else ""
        one = f'{{"group": "billing", "topic": "orders", "partition": 0, "offset": {quote}{digits}{quote}}}'
        path.write_text(f'{{"version": 1, "offsets": [{one}]}}')
    (said,) = told(path)
    assert said.endswith(("[AB620]", "[AB621]"))
    assert len(said) < 400


def test_zeros_before_a_number_are_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(f"group,topic,partition,offset\nbilling,orders,0,{'0' * 40}17\n")
    (one,) = read_file(path).asked
    assert one.offset == 17


@pytest.mark.parametrize("name", ["group", "topic", "partition", "offset", "metadata"])
def test_halves_of_characters_are_no_text(name: str, tmp_path: Path) -> None:
    row = {"group": "billing", "topic": "orders", "partition": 0, "offset": 1, "metadata": ""} | {name: "a\ud800"}
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps({"version": 1, "offsets": [row]}))
    (said,) = told(path)
    assert '"a\\ud800"' in said
    assert said.endswith("[AB621]")
    # It can be printed.
    assert said.encode()


def test_readers_stand_in_the_log_or_right_behind_it_and_are_clamped_to_what_loses_nothing() -> None:
    log = LogBounds(5, 90, 100)
    assert [log.holds(offset) for offset in (4, 5, 100, 101)] == [False, True, True, False]
    # What an open transaction holds, from 90 on, is still to be read.
    assert [log.clamped(offset) for offset in (0, 4, 5, 95, 100, 101)] == [5, 5, 5, 95, 100, 90]


def test_the_table_leaves_out_what_nobody_has() -> None:
    lines = [line.plain for line in offsets_lines("group", committed("group"))]
    assert lines[0] == (
        "group    topic   partition               offset  metadata           leader epoch  log start  log stable"
        "  log end  lag"
    )
    assert '  one, "two"\\nthree  ' in lines[1]
    assert lines[1].endswith("      5          90      100   60"), lines
    lines = [line.plain for line in offsets_lines("group", committed("group")[1:])]
    assert lines == [
        "group  topic   partition               offset  metadata  log start  log stable  log end  lag".replace(
            "  metadata", ""
        ),
        f"größe  orders          1  {LARGEST_OFFSET}          -           -        -    -",
    ]
    assert [line.plain for line in offsets_lines("group", [])] == ["no offsets"]
    (title, *_) = offsets_lines("flow", committed("flow"))
    assert "metadata" not in title.plain


def test_moves_say_from_where_to_where_and_what_that_means() -> None:
    moves = [
        Move("east-west", "orders", 0, 40, 30, 30),
        Move("east-west", "orders", 1, 40, 100, 120),
        Move("east-west", "orders", 2, None, 7, 7),
        Move("east-west", "orders", 3, 7, 7, 7),
    ]
    lines = [line.plain for line in moves_lines("flow", moves)]
    assert lines == [
        "flow       topic   partition  from   to",
        "east-west  orders          0    40   30  10 offsets copied again",
        "east-west  orders          1    40  100  clamped: 120 is outside of the log; 60 offsets never copied",
        "east-west  orders          2  none    7",
        "east-west  orders          3     7    7  as it is",
    ]
    remarks = [line.plain.split("  ")[-1] for line in moves_lines("group", moves)[1:]]
    assert remarks[0] == "10 offsets read again"
    assert remarks[1].endswith("60 offsets passed over")
    assert moved_line("flow", moves, MovedOffset(tuple(moves[:1]))) == "wrote 1 offset of 1 flow; 3 not written"
    assert moved_line("flow", moves, MovedOffset()) == "nothing was written"
    told = moves_json("flow", moves, MovedOffset(tuple(moves[:1])))
    assert (told["dryRun"], [one["written"] for one in told["moves"]]) == (False, [True, False, False, False])
    assert told["moves"][1] == {
        **{"flow": "east-west", "topic": "orders", "partition": 1},
        **{"from": 40, "to": 100, "asked": 120, "written": False},
    }
    assert moves_json("flow", moves, None)["dryRun"] is True


def test_the_first_columns_are_those_that_are_needed() -> None:
    assert {kind: columns[:4] for kind, columns in COLUMNS.items()} == {
        kind: (kind, "topic", "partition", "offset") for kind in ("group", "flow")
    }


PRINTED = {
    "csv": "mirus,orders,1,123\nmirus,orders,2,\nother,a.b__c,2,345\n",
    "json": (
        '{"connectorId":"mirus","topic":"orders","partition":1,"offset":123}\n'
        '{"connectorId":"mirus","topic":"orders","partition":2,"offset":null}\n'
        '{"connectorId":"other","topic":"a.b__c","partition":2,"offset":345}\n'
    ),
}


@pytest.mark.parametrize("form", sorted(PRINTED))
def test_what_the_offset_tool_of_mirus_prints_is_read(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"offsets.{form}"
    path.write_text(PRINTED[form])
    found = read_file(path, of_mirus=True)
    assert (found.kind, found.problems) == ("flow", ())
    assert [(one.owner, *one.log, one.offset) for one in found.asked] == [
        ("mirus", "orders", 1, 123),
        ("other", "a.b__c", 2, 345),
    ]
    assert [one.where for one in found.asked] == [f"{path}:1", f"{path}:3"]


@pytest.mark.parametrize(
    "text", ["mirus,orders,1,123\nmirus,orders,x,1\n", "mirus,orders,1\n", '{"connectorId":"m"}\n']
)
def test_what_it_has_not_printed_is_no_such_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(text)
    with pytest.raises(DeclaredInputError, match="AB620"):
        read_file(path, of_mirus=True)


PLACES = {"orders": (1, 123), "a.b__c": (2, 0)}


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("connector", ["mirus", 'one, "two"', "=1+1"])
def test_what_mirus_gets_is_what_it_would_print(connector: str, form: str, tmp_path: Path) -> None:
    positions = [Position("f", topic, *place, "", f"x.{topic}", "translated") for topic, place in PLACES.items()]
    text = text_of(positions, connector, is_json=form == "json")
    if connector == "mirus":
        lines = {
            "csv": ["mirus,orders,1,123", "mirus,a.b__c,2,0"],
            "json": [
                '{"connectorId": "mirus", "topic": "orders", "partition": 1, "offset": 123}',
                '{"connectorId": "mirus", "topic": "a.b__c", "partition": 2, "offset": 0}',
            ],
        }
        assert text.splitlines() == lines[form]
    path = tmp_path / f"offsets.{form}"
    path.write_text(text)
    asked = read_file(path, of_mirus=True).asked
    assert [(one.owner, *one.log, one.offset) for one in asked] == [
        (connector, topic, *place) for topic, place in PLACES.items()
    ]
