"""Text of others: in one line, told apart, cut where it is long; JSON and cells that are read as what was written."""

from __future__ import annotations

import ast
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.base.text import LONGEST, as_cell, csv_text, from_cell, json_text, kept_in_lines, shown

# Halves of pairs, too: paths and arguments that are no UTF-8 have them.
ANY = st.text(st.characters(), max_size=60)
SOME = st.text(st.sampled_from("ab\\nx1\x1b\n\t\u202e\u200b\ud800\u3164\"'é "), max_size=8)


@given(ANY | SOME)
def test_any_text_is_shown_in_one_printable_line(text: str) -> None:
    found = shown(text)
    assert found.isprintable()
    assert {unicodedata.category(char) for char in found}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    assert shown(found) == found, "what was shown may be shown again"
    if found == text:
        return
    # It is what Python would read: nothing is lost.
    quoted = found.replace('"', '\\"')
    assert ast.literal_eval(f'"{quoted}"') == text


@given(SOME, SOME)
def test_texts_with_something_to_escape_are_told_apart(one: str, other: str) -> None:
    if shown(one) != one and shown(other) != other:
        assert (shown(one) == shown(other)) is (one == other)


def test_what_is_printable_is_shown_as_it_is() -> None:
    for text in (
        "",
        "us-east.orders",
        "größe 表 😀 → ✓",
        "User:CN=Doe\\, John,O=x",
        "[/x] :smile: |`<b>",
        "CORP\\alice",
    ):
        assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\rd\x00", r"a\nb\tc\rd\x00"),
        ("\x9b2J\x85", r"\x9b2J\x85"),
        ("\u202egnirts\u2069", r"\u202egnirts\u2069"),
        ("a\u200bb\ufeff\u00ad", r"a\u200bb\ufeff\xad"),
        ("\u2028\u00a0\u3000", r"\u2028\xa0\u3000"),
        ("\u3164\u2800", r"\u3164\u2800"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("C:\\n\n", r"C:\\n\n"),
    ],
)
def test_how_it_is_escaped(text: str, expected: str) -> None:
    assert shown(text) == expected


@given(ANY, st.integers(60, 200), st.sampled_from(["", "x", "\x1b", "\U000e0001", "é\\"]))
def test_long_text_is_cut_and_says_how_much_is_missing(text: str, most: int, more: str) -> None:
    whole = text + more * 200
    found = shown(whole, most)
    assert len(found) <= most
    assert shown(found, most) == found
    kept, cut, rest = found.rpartition("… (")
    if found != shown(whole, 10_000):
        assert cut
        left_out = int(rest.removesuffix(" more characters)").replace(",", ""))
        beginning = whole[: len(whole) - left_out]
        assert shown(whole, 10_000).startswith(kept), "no escape is cut in two"
        assert (shown(beginning) if shown(whole) != whole else beginning) in (kept, beginning)


def test_a_broker_s_long_error_leaves_room_for_what_else_is_said() -> None:
    rest = "… (92,027 more characters)"
    found = shown("x" * 100_000)
    assert found == "x" * (100_000 - 92_027) + rest
    assert LONGEST - 1 <= len(found) <= LONGEST


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
        max_leaves=8,
    )
)
def test_json_is_printable_and_read_as_the_same(value: object) -> None:
    for indent in (None, 2):
        text = json_text(value, indent)
        assert text.replace("\n", "").isprintable()
        assert json.loads(text) == value
    assert "\n" not in json_text(value)


def test_json_of_half_a_pair_is_text_that_can_be_written() -> None:
    assert json_text({"é": "\ud800\u009b\u2028"}) == r'{"é": "\ud800\u009b\u2028"}'
    assert json_text("a\\\x1b") == r'"a\\\u001b"'


@given(ANY)
def test_what_is_put_together_keeps_its_lines_alone(text: str) -> None:
    found = kept_in_lines(text)
    assert found.count("\n") == text.count("\n")
    assert all(line.isprintable() for line in found.split("\n"))
    assert kept_in_lines(found) == found


@given(st.text(max_size=30))
def test_a_cell_is_read_as_the_text_that_was_written(text: str) -> None:
    cell = as_cell(text)
    assert cell.isprintable()
    assert cell.lstrip()[:1] not in set("=+-@\uff1d\uff0b\uff0d\uff20")
    assert from_cell(cell) == text


def test_most_cells_are_the_text_itself() -> None:
    for text in ("orders", "'quoted'", "größe", "a=b", '{"source": "x"}', " a", "1"):
        assert as_cell(text) == text
    told = {"=1": '"=1"', "-orders": '"-orders"', " +1": '" +1"', '"a': '"\\"a"', "a\nb": '"a\\nb"', "\t=": '"\\t="'}
    assert {text: as_cell(text) for text in told} == told
    assert [from_cell(cell) for cell in ('"', '"a', '"a" b', '""', "=1", "'=1")] == [
        '"',
        '"a',
        '"a" b',
        "",
        "=1",
        "'=1",
    ]


def test_rows_of_csv() -> None:
    rows = [("a;b", None, -1), ("", 'say "x"', 2), ("c", "", 0)]
    assert csv_text(("name", "said", "n"), rows) == ('name,said,n\n"a;b",,-1\n"""""","say ""x""",2\nc,,0\n')
