"""JSON within bounds, and the checks of fields: everything else is a Misfit, and nothing else is raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.model.base import shape
from reconciler.model.base.shape import Check, Misfit, decimal, fields, fits, listed, mapped, maybe, one_of, parsed, row
from tests.support.commands.foreign import DEEP, JSON, nested

LARGEST = 1_000_000


def why(data: bytes | str) -> str:
    with pytest.raises(Misfit) as refused:
        parsed(data, LARGEST)
    return str(refused.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (DEEP, "more than 64 levels"),
        (json.dumps(nested(65)), "more than 64 levels"),
        (b"[" * 900 + b"]" * 900, "more than 64 levels"),
        (b'{"time": NaN}', "NaN is no number"),
        (b'{"time": -Infinity}', "no number"),
        (b'{"time": 1e999}', "more than 64 bits"),
        (b'{"n": 9223372036854775808}', "more than 64 bits"),
        (b'[-9223372036854775809]', "more than 64 bits"),
        (b"9" * 5_000, "not JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (rb'{"a": ["\ud800"]}', "half a character"),
        (rb'{"\u0000": 1}', "NUL"),
        (b'"' + b"x" * LARGEST + b'"', "1,000,002 bytes, expected 1,000,000 at most"),
    ],
    ids=range(15),
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused(data: bytes | str, said: str) -> None:
    assert said in why(data)


@pytest.mark.parametrize("value", [{}, [], nested(64), {"a": 2**63 - 1, "b": -(2**63), "c": 1.5}, "ключ 漢 \n", None])
def test_what_is_within_bounds_comes_back(value: Any) -> None:
    assert parsed(json.dumps(value), LARGEST) == value


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"a":' * 200)
def test_nothing_else_is_raised(data: bytes) -> None:
    fits(lambda one: parsed(one, LARGEST), data)


CHECKS: list[tuple[Check, list[Any], list[Any]]] = [
    (shape.text(3, least=1), ["a", "ü"], ["", "four", 1, None, "\0", "\ud800"]),
    (shape.whole(0, 5), [0, 5], [-1, 6, True, 1.0, "1", None, 10**400]),
    (shape.real(0, 5), [0, 5, 0.5], [-0.1, float("nan"), float("inf"), True, "1", None, 10**400]),
    (shape.TIME, [0, 1.5e9], [-1, 1e300, float("nan"), "x"]),
    (shape.flag, [True, False], [0, 1, None, "true"]),
    (shape.topic_name, ["a.b_C-9", "x" * 249], ["", "a/b", "x" * 250, "ü", "a\n", None, ["a"]]),
    (one_of("a", "b"), ["a", "b"], ["c", None, ["a"], {}]),
    (maybe(shape.flag), [None, True], [0]),
    (listed(shape.flag, 2), [[], [True, False]], [[1], [True] * 3, "ab", {}, None]),
    (row(shape.flag, shape.COUNT), [[True, 1]], [[True], [1, True], [True, 1, 1], "ab", None]),
    (mapped(decimal(10), shape.flag), [{}, {"7": True}], [{"11": True}, {"x": True}, {"7": 1}, [], None]),
    (decimal(1_000), ["0", "1000", "007"], ["", "-1", "1001", "9" * 5_000, "٣", "1.0", 1, None]),
]


@pytest.mark.parametrize(("check", "good", "bad"), CHECKS, ids=range(len(CHECKS)))
def test_a_check_lets_through_what_it_is_for(check: Check, good: list[Any], bad: list[Any]) -> None:
    assert all(fits(lambda one: [check(one)], value) is not None for value in good)
    assert [value for value in bad if fits(lambda one: [check(one)], value) is not None] == []


def test_what_is_listed_cannot_be_changed() -> None:
    assert listed(row(shape.COUNT, shape.COUNT))([[1, 2]]) == ((1, 2),)


def test_a_misfit_names_the_field() -> None:
    with pytest.raises(Misfit, match=r"^a: b is missing$"):
        fields({"a": {}}, {"a": lambda value: fields(value, {"b": shape.flag})})
    with pytest.raises(Misfit, match=r"^a: expected a whole number, found a list$"):
        fields({"a": [5]}, {}, {"a": shape.COUNT})
    with pytest.raises(Misfit, match=r"^expected an object, found null$"):
        fields(None, {})


def test_fields_that_are_not_asked_for_are_left_out() -> None:
    assert fields({"a": True, "b": 1, "c": 2}, {"a": shape.flag}, {"c": shape.COUNT, "d": shape.COUNT}) == {
        "a": True,
        "c": 2,
    }
