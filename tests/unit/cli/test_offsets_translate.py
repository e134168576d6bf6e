"""What `offsets translate` takes for an offset, and what it refuses before any cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from reconciler.cli.main import main
from reconciler.cli.offsets.translate import _in_file, _named
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.offsets.translation import Question, Translated
from reconciler.report.translation import translation_csv, translation_json, translation_lines
from tests.support.commands.payments import write as declare

ERROR = 1
ANSWERS = [
    (Question("orders", 3, 1500), Translated(1207, "record")),
    (Question("a.b", 0, 9, "upstream"), Translated(None, "expired", "offset 3 of a.b/0 is deleted, so it is gone")),
]


def test_offsets_are_named_by_topic_partition_and_offset() -> None:
    assert _named(["orders/3:1500", "a.b-c_d/0:0"], "upstream") == [
        Question("orders", 3, 1500, "upstream"),
        Question("a.b-c_d", 0, 0, "upstream"),
    ]


@pytest.mark.parametrize(
    "place", ["orders", "orders/3", "orders:5", "orders/3:-1", "orders/x:1", "/3:1", "a/b/3:1", ""]
)
def test_what_names_no_offset_is_refused(place: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not TOPIC/PARTITION:OFFSET"):
        _named([place], "downstream")


def test_a_file_may_have_other_columns_and_any_order(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text('\ufeffgroup,offset,topic,partition\nbilling,7,orders,0\n"b,c",12,"orders",1\n', encoding="utf-8")
    assert _in_file(path, "downstream") == [Question("orders", 0, 7), Question("orders", 1, 12)]


def test_all_that_is_wrong_in_a_file_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("topic,partition,offset\norders,0,7\norders,0\n,0,1\norders,x,1\norders,1,-1\n", encoding="utf-8")
    with pytest.raises(DeclaredInputError) as refused:
        _in_file(path, "downstream")
    assert [one.where.rpartition(":")[2] for one in refused.value.problems] == ["3", "4", "5", "6"]
    assert {one.code for one in refused.value.problems} == {"AB650"}


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    with pytest.raises(DeclaredInputError, match=r"cannot be read.*AB650"):
        _in_file(path, "downstream")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DeclaredInputError, match=r"cannot be read.*AB650"):
        _in_file(path, "downstream")
    path.write_text(f"topic,partition,offset\n{'x' * 140_000},0,1\n", encoding="utf-8")
    with pytest.raises(DeclaredInputError, match=r"is not CSV: field larger.*AB650"):
        _in_file(path, "downstream")
    path.write_text("topic,offset\norders,1\n", encoding="utf-8")
    with pytest.raises(DeclaredInputError, match="there is no column partition"):
        _in_file(path, "downstream")


@pytest.mark.parametrize(
    ("columns", "told"),
    [("topic,partition,ofset", "there is no column offset"), ("theme,part,offset", "there is no column topic, part")],
)
def test_a_wrong_column_ends_the_command_before_any_cluster_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: str, told: str
) -> None:
    # Whoever asked would be told AB310: nobody listens there.
    file = declare(tmp_path, "127.0.0.1:1", "127.0.0.1:1", "orders")
    path = tmp_path / "offsets.csv"
    path.write_text(f"{columns}\norders,0,7\n", encoding="utf-8")
    assert main(["offsets", "translate", str(file), "--flow", "us-east-eu-west", "--csv", str(path)]) == ERROR
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{path}:1: {told}" in " ".join(said.err.split())
    assert "[AB650]" in said.err


def test_answers_are_a_table_csv_and_json() -> None:
    assert [line.plain for line in translation_lines(ANSWERS)] == [
        "topic   partition  offset  translated  how      why",
        "orders          3    1500        1207  record",
        "a.b             0       9           -  expired  offset 3 of a.b/0 is deleted, so it is gone",
    ]
    assert translation_csv(ANSWERS).splitlines() == [
        "topic,partition,offset,translated,how,why",
        "orders,3,1500,1207,record,",
        'a.b,0,9,,expired,"offset 3 of a.b/0 is deleted, so it is gone"',
    ]
    value = translation_json("east-west", ANSWERS)
    assert value["flow"] == "east-west"
    assert value["offsets"][1] == {
        "way": "upstream",
        "topic": "a.b",
        "partition": 0,
        "offset": 9,
        "translated": None,
        "how": "expired",
        "why": "offset 3 of a.b/0 is deleted, so it is gone",
    }
