"""Regular expressions of files, matched by RE2: the same verdicts as Python's `re`, in linear time, or refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler.cli.offsets.options import check_patterns
from reconciler.model.names import selection
from reconciler.model.names.linear import empty_rounds
from reconciler.model.names.patterns import BadPattern, NotLinear, check, compiled, matched_groups
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from tests.unit.declare.declaring import HEAD, refused, said

pytestmark = pytest.mark.slow

# Generous: what backtracks would need longer than the universe.
DEADLINE = 120
LONG = "a" * 249
ENDLESS = ("(a+)+b", r"([a-z]+-?)+\.orders", "(.*a){12}")

ATOMS = (
    *"ab.-_ #!ks",
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.", r"\t", r"\n", r"\x41", r"\101", r"\u0130", r"\b", r"\B"),
    *("^", "$", r"\A", r"\Z", "é", "\u017f", "[İ]", "[^é]"),
    *("[a-c]", "[^a]", "[]a]", r"[^\W_]", r"[a\d]", r"[^\s.]", r"[\n-\r]", "[Ss]", "[kK]", "[[:alpha:]]", "[--a]"),
    *("(?i:k)", "(?i:i)", "(?i:[^i])", "(?i:[a-c])", r"(?a:\w)", "(?a:(?i:s))", r"(?a:(?u:\w))", "(?-i:a)"),
    *("(?s:.)", "(?m:^)", "(?m:$)", "{,2}", "a{,2}", "x{0}", r"\Qa\E", r"\pL", "(?P<n>a)"),
)
FLAGS = ("", "(?i)", "(?s)", "(?m)", "(?a)", "(?x)", "(?ai)")
OPENINGS = ("(", "(?:", "(?i:", "(?a:", "(?s:", "(?m:", "(?u:")
REPEATS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{,2}", "{2,}")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3, repeats: int = 2) -> str:
    """Make an expression in which few repetitions stand inside of each other: `re` is to come to an end, too."""
    kind = draw(st.integers(0, 3)) if depth else 0
    if kind == 1:
        parts: list[str] = draw(st.lists(expressions(depth - 1, repeats), min_size=1, max_size=4))
        return "".join(parts)
    if kind == 2:
        branches = draw(st.lists(expressions(depth - 1, repeats), min_size=1, max_size=3))
        return f"{draw(st.sampled_from(OPENINGS))}{'|'.join(branches)})"
    if kind == 3 and repeats:
        inside = draw(expressions(depth - 1, repeats - 1))
        return f"{draw(st.sampled_from(('(', '(?:')))}{inside}){draw(st.sampled_from(REPEATS))}"
    atom: str = draw(st.sampled_from(ATOMS))
    return atom


written = st.builds("".join, st.tuples(st.sampled_from(FLAGS), expressions()))


def python(pattern: str) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, Warning):
        return None


def usable(pattern: str, any_text: bool) -> bool:
    try:
        check(pattern, any_text)
    except NotLinear:
        return False
    return True


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(written, st.lists(st.text("aabcks._-1 K\u017f\nI", min_size=1, max_size=5), min_size=5, max_size=15))
def test_an_expression_matches_what_python_matches(pattern: str, names: list[str]) -> None:
    theirs = python(pattern)
    if theirs is None:
        with pytest.raises(BadPattern):
            check(pattern)
        return
    plain = [name for name in names if name.isascii() and "\n" not in name]
    for any_text, those in ((False, plain), (True, names)):
        if usable(pattern, any_text):
            expected = {name: theirs.fullmatch(name) is not None for name in those}
            assert {name: compiled(pattern).fullmatch(name) for name in those} == expected


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(written, st.lists(st.text("aabcks._-1", min_size=1, max_size=5), min_size=5, max_size=15))
def test_groups_match_what_pythons_match(pattern: str, names: list[str]) -> None:
    theirs = python(pattern)
    assume(theirs is not None and theirs.groups and usable(pattern, any_text=False) and not empty_rounds(pattern))
    assert theirs is not None
    replacement = "".join(rf"x\{number}.\g<0>" for number in range(1, theirs.groups + 1))
    rule = RenameRule(pattern, replacement)
    for name in names:
        found = theirs.fullmatch(name)
        assert matched_groups(pattern, name) == (None if found is None else (name, *found.groups("")))
        assert rule.renamed(name) == (None if found is None else found.expand(replacement))


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (r"\d+", "٣٤", True),
        (r"\w+", "größe", True),
        ("(?i)straße", "STRAßE", True),
        (r"[^\W_]+", "a_b", False),
        (r"[^\W_]+", "日本", True),
        (".+", "a\nb", False),
        ("(?s).+", "a\nb", True),
        ("orders$", "orders\n", False),
        (r"(?:([Ss])|b)", "\u017f", False),  # as a class in RE2 it would match
        ("(?i)(?:([Ss])|b)", "\u017f", True),
        (".", "\ud800", True),
    ],
)
def test_names_of_groups_may_be_any_text(pattern: str, name: str, matches: bool) -> None:
    check(pattern, any_text=True)
    assert compiled(pattern).fullmatch(name) is matches is (re.fullmatch(pattern, name) is not None)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"orders\.(?!test).*", r"a negative look-ahead, \(\?!…\)"),
        ("(?=a).*", r"a look-ahead, \(\?=…\)"),
        ("a(?<!b).*", r"a negative look-behind, \(\?<!…\)"),
        ("a(?<=a).*", r"a look-behind, \(\?<=…\)"),
        (r"(a|b)-\1", "a back-reference"),
        ("(?P<x>a)(?P=x)", "a back-reference"),
        ("(a)?(?(1)b|c)", "a condition"),
        ("(?>a*)b", "an atomic group"),
        ("a*+b", "a possessive quantifier"),
        ("a$b", r"a \$ that is not at the end"),
        ("a{1001}", "repeats 1001 times, at most 1000"),
        ("((a{100}){100}){100}", "more than 20000 characters"),
        ("(?:(?:a{50}){30}){10}", "RE2, which matches it, does not take it: invalid repetition size"),
        ("(?:.{0,1000}){0,2}" * 30, "more than 20000 characters|RE2"),
        ("a|" * 5001, "10002 characters, at most 10000"),
    ],
)
def test_what_is_not_matched_in_linear_time_is_refused_by_name(pattern: str, reason: str) -> None:
    with pytest.raises(NotLinear, match=reason):
        check(pattern)


def test_bounds_of_words_are_those_of_ascii_and_no_group_is_chosen_by_them() -> None:
    check(r".*\borders\b.*")
    with pytest.raises(NotLinear, match="need not be ASCII"):
        check(r".*\borders\b.*", any_text=True)
    check(r"(?a).*\borders\b.*", any_text=True)


@pytest.mark.parametrize("nested", ["(" * 300 + ")" * 300, "(?:a|" * 2000 + ")" * 2000])
def test_groups_inside_of_each_other_end_in_a_reason(nested: str) -> None:
    try:
        check(nested)
    except (BadPattern, NotLinear) as reason:
        assert str(reason)


PATHOLOGICAL = f"""
from reconciler.model.declared.groups import GroupRules
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
for pattern in {ENDLESS!r}:
    print([Selection((pattern,)).matches({LONG!r} + end) for end in ("", "b", ".orders")])
    print(Selection((".*",), (pattern,)).matches({LONG!r}), GroupRules((pattern,)).takes({LONG!r}))
    print(RenameRule(pattern, r"x-\\g<0>").renamed({LONG!r} + "!"))
    policy = ReplicationPolicy("rename", rules=(RenameRule(pattern, "x"),))
    print(policy.remote_topic("a", {LONG!r} + "!") == "a." + {LONG!r} + "!")
print(RenameRule("(.*)", r"\\1a" * 40 + "b").may_give({LONG!r}))
"""


def run(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=DEADLINE, check=False, cwd=Path.cwd()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_no_expression_is_matched_for_long() -> None:
    lines = run("-c", PATHOLOGICAL)
    assert lines[:4] == ["[False, True, False]", "True False", "None", "True"]
    assert lines[4:8] == ["[False, False, True]", "True False", "None", "True"]
    assert lines[8:12] == ["[True, False, False]", "False True", "None", "True"]
    assert lines[12:] == ["False"]


def test_validate_ends_whatever_a_file_excludes(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    body = (
        f"flows:\n  - from: a\n    to: b\n    topics: {{include: [{LONG[2:]}], exclude: {json.dumps(ENDLESS[:2])}}}\n"
    )
    file.write_text(HEAD + body, encoding="utf-8")
    assert run("-m", "reconciler.cli.main", "validate", str(file)) == ["shop: 4 clusters, 1 flow: valid"]


@pytest.mark.parametrize(
    ("body", "place", "remedy"),
    [
        ("topics: {include: ['orders(?!-test).*']}", "topics.include[0]", "as an item of exclude"),
        ("topics: {exclude: [x, '(?!orders).*']}", "topics.exclude[1]", "what include does not take"),
        (r"groups: {include: ['(a)\1']}", "groups.include[0]", "write out what may stand there"),
        (r"groups: {include: ['\bpay.*']}", "groups.include[0]", "(?a) in front"),
        ("configs: {include: ['a*+']}", "configs.include[0]", "is Java's; write a*"),
        (
            "policy: {type: rename, rules: [{from: '(?!b)(.*)', to: 'x-\\1'}]}",
            "policy.rules[0].from",
            "put a rule for the names that it keeps away before this one",
        ),
        (
            "policy: {type: rename, rules: [{from: '(a*)*', to: 'x-\\1'}]}",
            "policy.rules[0].from",
            "repeat what has at least one character",
        ),
    ],
)
def test_a_file_is_told_where_and_what_to_do(tmp_path: Path, body: str, place: str, remedy: str) -> None:
    text = f"{HEAD}flows:\n  - from: a\n    to: b\n    {body}\n"
    (problem,) = refused(tmp_path, text)
    assert problem.code == "AB125" and problem.where.endswith(f"(flows[0].{place})") and remedy in problem.remedy
    assert f":{text.count(chr(10))}:" in problem.where


def test_a_group_before_digits_is_no_character_in_octal(tmp_path: Path) -> None:
    rules = r"rules: [{from: '(a)(.*)', to: 'x\101'}]"
    text = f"{HEAD}flows:\n  - {{from: a, to: b, policy: {{type: rename, {rules}}}}}\n"
    assert [line.rsplit(" ", 1)[1] for line in said(tmp_path, text)] == ["AB119"]


def test_options_of_commands_are_held_against_the_same() -> None:
    check_patterns(["orders", r".*\borders", "all"], "--topic")
    for named, said_so in ((["(?!a).*"], "negative look-ahead"), (["a("], "missing ")):
        with pytest.raises(typer.BadParameter, match=said_so):
            check_patterns(named, "--topic")
    with pytest.raises(typer.BadParameter, match="ASCII"):
        check_patterns([r"\borders"], "--group", any_text=True)


def test_plain_names_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def seen(item: str, any_text: bool = False) -> object:
        asked.append(item)
        return compiled(item, any_text)

    monkeypatch.setattr(selection, "compiled", seen)
    names = tuple(f"orders-{number}" for number in range(1000))
    chosen = Selection((*names, "users.*"), (*names[:500], "users-x.*"))
    assert sum(map(chosen.matches, names)) == 500 and set(asked) == {"users-x.*"}
    asked.clear()
    assert chosen.matches("users-y") and not chosen.matches("users-x1")
    assert asked == ["users.*", "users-x.*"] * 2


def test_a_rule_is_found_by_name_and_the_first_that_matches_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    matches = RenameRule.matches

    def seen(rule: RenameRule, topic: str) -> bool:
        asked.append(rule.pattern)
        return matches(rule, topic)

    monkeypatch.setattr(RenameRule, "matches", seen)
    plain = tuple(RenameRule(f"t{number}", f"x{number}") for number in range(1000))
    policy = ReplicationPolicy("rename", rules=(*plain[:500], RenameRule("t9.*", "nines"), *plain[500:]))
    for topic, rule in (("t7", plain[7]), ("t501", plain[501]), ("t92", plain[92]), ("t901", policy.rules[500])):
        assert policy.rule_for(topic) is rule
    assert asked == ["t9.*"] * 2
    assert (
        policy.rule_for("other") is None and ReplicationPolicy("rename", rules=plain[:2] * 2).rule_for("t1") is plain[1]
    )


@pytest.mark.parametrize(
    ("replacement", "name", "may"),
    [
        (r"x-\1", "x-orders", True),
        (r"x-\1", "y-orders", False),
        (r"\1-x-\2", "a-x-b", True),
        (r"\1-x-\2", "a-y-b", False),
        (r"ab\1ba", "aba", False),
        (r"ab\1ba", "abba", True),
        (r"a\1a\2a", "aa", False),
        (r"a\1a\2a", "aaa", True),
        (r"\1\2", "", True),
        ("x", "x", True),
        ("x", "xx", False),
    ],
)
def test_a_rule_may_give_what_its_texts_allow(replacement: str, name: str, may: bool) -> None:
    assert RenameRule("(.*)-(.*)", replacement).may_give(name) is may
