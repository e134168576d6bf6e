"""Files, YAML and positions: what is accepted of YAML, and where each mistake is said to be."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconciler import declare
from reconciler.declare.documents.located import Mark, render
from reconciler.declare.documents.reader import MAX_BYTES, parse
from reconciler.model.base.errors import DeclaredInputError, Problem
from tests.unit.declare.declaring import HEAD, refused, said


def problems_of(text: str) -> list[tuple[int, int, str, str]]:
    found = parse("f", text).problems
    return [(*item.position.mark, item.problem.code, item.problem.message) for item in found]


def test_values_keep_their_types_and_positions() -> None:
    reading = parse("f", "a: 1\nb:\n  - x\n  - {c: true, d: ~}\ne: '2'\n")
    assert reading.problems == []
    document = reading.document
    assert document is not None
    assert document.value == {"a": 1, "b": ["x", {"c": True, "d": None}], "e": "2"}
    assert document.at("b", 1, "d").mark == Mark(4, 18)
    assert document.at("b", 1, "d").key_mark == Mark(4, 15)
    assert document.at("b", 7, "nowhere").mark == Mark(3, 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("True", True),
        ("null", None),
        ("-7", -7),
        ("0x1f", "0x1f"),
        (".5", 0.5),
        ("4.0", 4.0),
        ("1e400", "1e400"),
        ("9" * 5000, "9" * 5000),
        ("2026-01-01", "2026-01-01"),
        ("9092:9093", "9092:9093"),
        ('"1"', "1"),
    ],
)
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    document = parse("f", f"a: {text}\n").document
    assert document is not None
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: &x 1\n", 1, 4, "YAML anchors are not accepted"),
        ("a: 1\nb: *x\n", 2, 4, "YAML aliases are not accepted"),
        ("a: {<<: {b: 1}}\n", 1, 5, "merge keys are not accepted"),
        ("a: !!str 1\n", 1, 4, "YAML tags are not accepted"),
        ("a: 1\n---\nb: 2\n", 2, 1, "expected one document; found a second"),
        ("? [a]\n: b\n", 1, 3, "expected text as a key; found something else"),
        ('a: "x\\ny"\n', 1, 4, "expected printable text on one line; found a control character"),
        ('a: "\\e[31m"\n', 1, 4, "expected printable text on one line; found a control character"),
        ("a: x\x07y\n", 1, 5, "expected printable text; found character U+0007"),
        ("a: 1\n# kept\u2028b: 2\n", 2, 7, "expected printable text; found character U+2028"),
        ("a: 1\r\n# kept\u2029b: 2\n", 2, 7, "expected printable text; found character U+2029"),
        ("# kept\x85b: 2\n", 1, 7, "expected printable text; found character U+0085"),
        ("# kept\rb: 2\n", 1, 7, "expected printable text; found character U+000D"),
        ("a: 1\n\n# \u202eb\n", 3, 3, "expected printable text; found character U+202E"),
        ("a: '\u2066b'\n", 1, 5, "expected printable text; found character U+2066"),
        ("a:\n\tb: 1\n", 2, 1, "expected spaces; found a tab character"),
        ("a: [1, 2\nb: 3\n", 2, 2, "not valid YAML: expected ',' or ']', but got ':'"),
        ("a: b: c\n", 1, 5, "not valid YAML: mapping values are not allowed here"),
        ("[" * 40 + "]" * 40, 1, 33, "nested more than 32 deep"),
    ],
)
def test_what_is_not_accepted_is_told_at_its_place(text: str, line: int, column: int, message: str) -> None:
    assert problems_of(text) == [(line, column, "AB101", message)]


def test_every_indirection_of_a_file_is_told() -> None:
    found = problems_of("a: &x {b: 1}\nc: *x\nd: !t 1\n")
    assert [(line, code) for line, _, code, _ in found] == [(1, "AB101"), (2, "AB101"), (3, "AB101")]


def test_a_hundred_thousand_open_brackets_are_one_problem() -> None:
    assert len(problems_of("[" * 100_000)) == 1


@pytest.mark.parametrize(
    ("text", "found"), [("", "nothing"), ("# empty\n", "nothing"), ("- a\n", "a list"), ("text\n", "a single value")]
)
def test_a_file_that_is_no_mapping(text: str, found: str) -> None:
    ((_, _, code, message),) = problems_of(text)
    assert code == "AB102"
    assert message.endswith(f"found {found}")


def test_a_duplicate_key_is_told_once_and_the_rest_is_still_checked(tmp_path: Path) -> None:
    text = "version: 1\nname: shop\nname: other\nclusters:\n  a: {bootstrap: b:1}\nclusters:\n  a: {bootstrap: b:2}\n"
    assert said(tmp_path, text + "tasks: 1\n") == [
        "0.yaml:3:1 AB106",
        "0.yaml:6:1 AB106",
        "0.yaml:8:1 (tasks) AB103",
    ]


def test_the_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    text = (HEAD + "replication: [{from: a, to: b}]\n").replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [flow.name for flow in declare.load([path]).flows] == ["a-b"]


def unreadable(path: Path) -> Problem:
    with pytest.raises(DeclaredInputError) as caught:
        declare.load([path])
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: caf\xe9\n", "expected UTF-8; byte 9 is not"),
        ("name: x\n".encode("utf-16"), "expected YAML; found binary data"),
        (b"\x7fELF\x00\x01", "expected YAML; found binary data"),
        (b"#" * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    problem = unreadable(path)
    assert (problem.code, problem.where, problem.message) == ("AB100", str(path), message)
    assert problem.remedy


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    missing = unreadable(tmp_path / "missing.yaml")
    assert (missing.code, missing.message) == ("AB100", "cannot read the file: No such file or directory")
    assert unreadable(tmp_path).message == "cannot read the file: Is a directory"
    assert unreadable(Path("nul\0l")).code == "AB100"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.touch(mode=0)
    assert unreadable(path).message == "cannot read the file: Permission denied"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + "replication: [{from: a, to: nowhere}]\n"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    with pytest.raises(DeclaredInputError) as caught:
        declare.load([Path("-")])
    assert caught.value.problems[0].where.startswith("<stdin>:8:")


def test_every_file_is_looked_at_though_one_cannot_be_read(tmp_path: Path) -> None:
    good = HEAD + "tasks: 3\nreplication: [{from: a, to: elsewhere}]\n"
    # `elsewhere` may be declared in the file that cannot be read: nothing is said of it.
    assert said(tmp_path, good, "a: [\n") == ["0.yaml:8:1 (tasks) AB103", "1.yaml:2:1 AB101"]


def test_paths_are_written_as_people_write_them() -> None:
    assert render(("flows", 0, "topics", "include", 1)) == "flows[0].topics.include[1]"
    assert render(("clusters", "us.east", "x")) == 'clusters["us.east"].x'
    assert render(()) == ""


def test_one_problem_has_place_message_remedy_and_code(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, HEAD + "replication: [{from: a, to: east}]\n")
    assert str(problem) == (
        f"{tmp_path}/0.yaml:8:29 (replication[0].to): expected a declared cluster; found 'east', "
        "declared are a, b, c and d — declare east under clusters, or correct it [AB105]"
    )
