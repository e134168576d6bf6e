"""What is said about a value or expression that is written as elsewhere: YAML 1.1, Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.declare.checks.java import explained
from reconciler.model.names.patterns import check
from tests.unit.declare.declaring import HEAD, load, refused


def flow(more: str) -> str:
    return f"{HEAD}flows:\n- from: a\n  to: b\n  {more}\n"


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("enabled: yes", "write enabled: true"),
        ("enabled: On", "write enabled: true"),
        ("acls: off", "write acls: false"),
        ("acls: on", "write acls: true"),
        ("enabled: 1", "write enabled: true"),
        ("enabled: 'true'", "write enabled: true"),
        ("enabled: perhaps", "for example: enabled: false"),
        ("tasks: '4'", "write tasks: 4, without quotes"),
        ("tasks: four", "for example: tasks: 4"),
    ],
)
def test_a_value_of_another_type_is_told_with_the_right_one(tmp_path: Path, written: str, remedy: str) -> None:
    (problem,) = refused(tmp_path, flow(written))
    assert (problem.code, problem.remedy) == ("AB104", remedy)


@pytest.mark.parametrize(
    ("item", "found"),
    [("007", "007"), ("1e3", "1e3"), ("true", "true"), ("True", "True"), ("null", "nothing"), ("-1.50", "-1.50")],
)
def test_text_that_is_read_as_something_else_goes_in_quotes_as_it_stands(tmp_path: Path, item: str, found: str) -> None:
    for field in ("topics", "groups", "configs"):
        (problem,) = refused(tmp_path, flow(f"{field}: {{include: [orders, {item}]}}"))
        assert problem.message.endswith(f"; found {found}")
        assert problem.remedy == f"put it in quotes: '{item}'"
        assert load(tmp_path, flow(f"{field}: {{include: ['{item}x']}}")).flows


def test_names_and_aliases_are_text_as_well(tmp_path: Path) -> None:
    told = refused(tmp_path, HEAD.replace("name: shop", "name: 2024") + "flows: [{from: 1, to: b}]\n")
    assert [one.remedy for one in told] == ["put it in quotes: '2024'", "put it in quotes: '1'"]


def test_what_would_be_wrong_in_quotes_too_is_not_put_there(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, flow("linger: 5"))
    assert problem.remedy == "for example: linger: 5ms"
    (problem,) = refused(tmp_path, flow("topics: {include: ['']}"))
    assert "quotes" not in problem.remedy


def test_a_number_that_may_be_a_secret_is_not_repeated(tmp_path: Path) -> None:
    security = "{protocol: SASL_SSL, mechanism: PLAIN, username: 00123, password: 'env:X'}"
    (problem,) = refused(
        tmp_path, f"version: 1\nname: s\nclusters: {{a: {{bootstrap: 'b:1', security: {security}}}}}\n"
    )
    assert problem.remedy == "put it in quotes" and "123" not in str(problem)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?<env>prod|dev).orders", "(?<name>…) is Java's; write (?P<env>prod|dev).orders"),
        (r"\Qa.b\E.*", r"\Q…\E is Java's; write a\.b.*"),
        (r"\p{Alpha}+", r"\p{…} is Java's; write [A-Za-z]+"),
        (r"[\p{Lower}\d]+", r"\p{…} is Java's; write [a-z\d]+"),
        (r"\P{Digit}.*", r"\p{…} is Java's; write [^0-9].*"),
        (r"\pL+", r"\p{…} is Java's; write [A-Za-z]+"),
        (".*+", "a possessive quantifier is Java's; write .*"),
        (r"orders\z", r"\z is Java's; write orders"),
        (r"\x{2d}orders", r"\x{…} is Java's; write \x2dorders"),
        (
            r"(?<a>\Qx.y\E)[0-9]++",
            r"\Q…\E and (?<name>…) and a possessive quantifier are Java's; write (?P<a>x\.y)[0-9]+",
        ),
        (r"(?<a>x)\k<a>", r"(?<name>…) and \k<name> are Java's; write it in the syntax of Python's re"),
        ("[a-z&&[^b]]", "&& in a class is Java's: write the characters that are left"),
        ("orders(", None),
        (r"\p{Klingon}", None),
    ],
)
def test_forms_of_java_are_explained(tmp_path: Path, pattern: str, said: str | None) -> None:
    assert explained(pattern) == said
    (problem,) = refused(tmp_path, flow(f"topics: {{include: ['{pattern}']}}"))
    assert problem.code in ("AB109", "AB125")
    assert (problem.remedy == said) == (said is not None)
    if said and "; write " in said and "Python" not in said:
        check(said.partition("; write ")[2])


@pytest.mark.parametrize("pattern", [r"orders\.*", "(?P<env>prod|dev).*", "(?<!a)b", r"[\w.]+", "a+"])
def test_expressions_of_python_have_nothing_of_java(pattern: str) -> None:
    assert explained(pattern) is None
