"""Names that no cluster can have are errors in the file, and what probably means another one is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.declare.checks.meant import in_ascii, meant_by_glob
from reconciler.model.names.patterns import BadPattern, NotLinear
from reconciler.model.names.reachable import dead_end
from tests.unit.declare.declaring import HEAD, load, refused, warnings


def flow(more: str) -> str:
    return f"{HEAD}flows:\n- from: a\n  to: b\n  {more}\n"


@pytest.mark.parametrize(
    ("item", "reason", "remedy"),
    [
        ("\u043erders", "character 1 is \u043e (U+043E, CYRILLIC SMALL LETTER O)", "did you mean orders, in ASCII?"),
        (
            "\u043erders-.*",
            "character 1 is \u043e (U+043E, CYRILLIC SMALL LETTER O)",
            "did you mean orders-.*, in ASCII?",
        ),
        ("“orders”", "character 1 is “ (U+201C, LEFT DOUBLE QUOTATION MARK)", "did you mean orders, in ASCII?"),
        ("orders\u2013eu", "character 7 is \u2013 (U+2013, EN DASH)", "did you mean orders-eu, in ASCII?"),
        (
            "ünïcode",
            "character 1 is ü (U+00FC, LATIN SMALL LETTER U WITH DIAERESIS)",
            "did you mean unicode, in ASCII?",
        ),
        ("т\u043eпик", "character 1 is т (U+0442", "correct it: names of topics have letters, digits, ., _ and -"),
        ("a/b", "character 2 is / (U+002F, SOLIDUS)", "correct it: names of topics have letters"),
        ("a:b", "character 2 is : (U+003A, COLON)", "correct it: names of topics have letters"),
        ("orders-{eu,us}", "character 8 is { (U+007B", "did you mean orders-(eu|us)?"),
        ("orders%", "character 7 is % (U+0025", "did you mean orders.*?"),
        # What is left in ASCII is no name either.
        ('say"hi"|#1', 'character 4 is " (U+0022, QUOTATION MARK)', "correct it: names of topics have letters"),
        # One of several alternatives is as dead as a whole item.
        ("users|\u043erders", "character 7 is \u043e (U+043E", "did you mean users|orders, in ASCII?"),
        ("(?i)users/.*", "character 10 is / (U+002F", "correct it"),
        (r"or\sders", "it needs a character such as (U+0009), which no topic's name has", "correct it"),
        ("^$", "it matches empty text alone", "correct it, or remove it: it matches no topic"),
        ("[a-z]{250}", "it needs at least 250 characters, Kafka allows 249", "correct it, or remove it"),
        ("..", "it is .., which Kafka refuses", "correct it: no topic is called so, and any text is .*"),
        ("a" * 250, "it has 250 characters, Kafka allows 249", "correct it: no topic is called so"),
    ],
)
@pytest.mark.parametrize("key", ["include", "exclude"])
def test_a_name_that_no_topic_can_have(tmp_path: Path, item: str, reason: str, remedy: str, key: str) -> None:
    (problem,) = refused(tmp_path, flow(f"topics: {{{key}: [users.*, '{item}']}}"))
    assert problem.code == "AB135"
    assert problem.where.endswith(f"(flows[0].topics.{key}[1])")
    assert problem.message.startswith("expected a name that a topic can have; found '")
    assert reason in problem.message
    assert problem.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ("configs: {exclude: ['retention.m\u0455']}", "flows[0].configs.exclude[0]"),
        ("policy: {type: rename, rules: [{from: '\u043erders', to: 'x'}]}", "flows[0].policy.rules[0].from"),
    ],
)
def test_settings_and_rename_rules_have_such_names_as_well(tmp_path: Path, more: str, path: str) -> None:
    (problem,) = refused(tmp_path, flow(more))
    assert (problem.code, problem.where.partition("(")[2]) == ("AB135", f"{path})")


@pytest.mark.parametrize(
    "item",
    [
        "orders.*",
        "(?:/x)?orders",
        "[a-z\u0430-я]+",
        "[^/]+",
        "orders[^\u0430]*",
        ".{1,249}",
        "(?i)ORDERS",
        r"\w+\.eu",
        "a|b",
    ],
)
def test_expressions_that_some_topic_may_match(tmp_path: Path, item: str) -> None:
    assert load(tmp_path, flow(f"topics: {{include: ['{item}']}}")).flows


@given(st.from_regex(r"[a-z./:\u0430-в|()*+?\[\]{}\\-]{1,12}", fullmatch=True), st.data())
def test_what_is_called_dead_matches_no_name_as_a_whole(pattern: str, data: st.DataObject) -> None:
    try:
        end = dead_end(pattern)
        expression = re.compile(pattern)
    except (BadPattern, NotLinear, re.error):
        return
    if end is None or "|" in pattern:
        return
    name = data.draw(st.text("abcz.:-_", min_size=1, max_size=8).filter(lambda one: ":" not in one))
    assert not expression.fullmatch(name)


@pytest.mark.parametrize(
    ("item", "meant"),
    [
        *(("orders-*", "orders-.*"), ("orders*", "orders.*"), ("a-*-b_*", "a-.*-b_.*")),
        *((r"orders\.*", None), ("orders.*", None), ("[a-z]*", None), ("(ab)*", None), ("orders", None)),
    ],
)
def test_a_glob_is_suspected(tmp_path: Path, item: str, meant: str | None) -> None:
    assert meant_by_glob(item) == meant
    for field in ("topics", "groups", "configs"):
        told = [one for one in warnings(tmp_path, flow(f"{field}: {{include: ['{item}']}}")) if one.code == "AB136"]
        assert [one.remedy.partition("?")[0] for one in told] == ([f"did you mean {meant}"] if meant else [])


def test_a_glob_that_is_no_expression_names_one(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, flow("topics: {include: ['*-orders']}"))
    assert (problem.code, problem.remedy) == ("AB109", "did you mean .*-orders?")
    rule = "policy: {type: rename, rules: [{from: 'orders-*', to: 'x'}]}"
    assert [one.code for one in warnings(tmp_path, flow(rule)) if one.code != "AB190"] == ["AB136"]


@pytest.mark.parametrize(
    ("item", "character"),
    [
        ("“billing”", "U+201C"),
        ("b\u0456lling", "U+0456"),
        ("billing", None),
        ("счет\u0430", None),
        ("grüße", None),
        ("a/b:c", None),
    ],
)
def test_a_group_may_be_called_anything_and_some_are_unlikely(tmp_path: Path, item: str, character: str | None) -> None:
    told = [one for one in warnings(tmp_path, flow(f"groups: {{include: ['{item}']}}")) if one.code == "AB137"]
    assert [character in one.message for one in told if character] == ([True] if character else [])
    assert [one.remedy for one in told] == (["did you mean billing, in ASCII?"] if character else [])


def test_a_group_that_is_called_as_no_expression_may_be_is_written_otherwise(tmp_path: Path) -> None:
    for item, escaped in (("c++", r"c\+\+"), ("app[1", r"app\[1"), ("a(b", r"a\(b")):
        (problem,) = refused(tmp_path, flow(f"groups: {{include: ['{item}']}}"))
        assert problem.remedy.endswith(f"; a group of just this name is written {escaped}")
        (one,) = load(tmp_path, flow(f"groups: {{include: ['{escaped}', my group]}}")).flows
        assert (one.groups.takes(item), one.groups.takes("my group")) == (True, True)


@given(st.text())
def test_text_in_ascii_is_ascii(text: str) -> None:
    found = in_ascii(text)
    assert found is None or found.isascii()
