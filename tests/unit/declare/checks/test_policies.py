"""Replication policies as they are declared: rules, classes, and names that are certain to be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.names.renames import RenameRule
from reconciler.model.policies.policy import ReplicationPolicy
from tests.support.security.policy_classes import offer
from tests.unit.declare.declaring import HEAD, HEAD_LINES, load, place, refused, said

FLOW = "flows: [{from: a, to: b}]\n"
LINE = HEAD_LINES + 1


def renaming(*rules: str, otherwise: str = "default") -> str:
    return f"policy:\n  type: rename\n  otherwise: {otherwise}\n  rules:\n" + "".join(
        f"    - {rule}\n" for rule in rules
    )


def taking(*topics: str, **more: str) -> str:
    fields = "".join(f", {key}: {value}" for key, value in more.items())
    return f"flows: [{{from: a, to: b, topics: {{include: [{', '.join(topics)}]}}{fields}}}]\n"


def problem(folder: Path, body: str) -> tuple[str, str, str, str]:
    """Return the only problem: its place, code, message and remedy."""
    (found,) = refused(folder, HEAD + body)
    return place(found, folder), found.code, found.message, found.remedy


def test_rules_become_the_policy_with_their_places(tmp_path: Path) -> None:
    body = renaming("{from: users, to: dc1-users}", r"{from: '^orders\.(.*)$', to: dc1-\1}", otherwise="identity")
    (flow,) = load(tmp_path, HEAD + body + FLOW).flows
    assert flow.policy == ReplicationPolicy(
        "rename",
        rules=(RenameRule("users", "dc1-users"), RenameRule(r"^orders\.(.*)$", r"dc1-\1")),
        otherwise="identity",
    )
    assert [rule.place.removeprefix(f"{tmp_path}/") for rule in flow.policy.rules] == [
        f"0.yaml:{LINE + 4}:7 (policy.rules[0])",
        f"0.yaml:{LINE + 5}:7 (policy.rules[1])",
    ]
    assert flow.policy.place.endswith(f"0.yaml:{LINE + 4}:5 (policy.rules)")
    assert [flow.remote_topic(name) for name in ("users", "orders.eu", "else")] == ["dc1-users", "dc1-eu", "else"]


def test_where_a_policy_stands_changes_nothing_of_what_it_is(tmp_path: Path) -> None:
    rules = renaming("{from: users, to: dc1-users}")
    one, other = load(tmp_path, HEAD + rules + FLOW), load(tmp_path, HEAD + "\n# a line more\n" + rules + FLOW)
    assert one.digest == other.digest
    assert one.digest != load(tmp_path, HEAD + rules.replace("dc1", "dc2") + FLOW).digest


@pytest.mark.parametrize(
    ("rule", "at", "code", "message"),
    [
        ("{from: 'a(', to: b}", "from", "AB109", "found 'a(': missing ), unterminated subpattern at character 2"),
        (r"{from: 'a(.*)', to: 'b$1'}", "to", "AB119", r"expected groups as \1; found 'b$1'"),
        ("{from: a, to: b/c}", "to", "AB119", r"expected letters, digits, ., _ and -, and groups as \1; found 'b/c'"),
        (r"{from: 'a(.*)', to: 'b\n'}", "to", "AB119", "found 'b\\n'"),
        (
            r"{from: 'a(.*)', to: 'b\2'}",
            "to",
            "AB119",
            r"expected a group that from has, \1; found 'b\2': invalid group",
        ),
        (r"{from: a, to: 'b\1'}", "to", "AB119", "expected a group that from has, it has none"),
        (r"{from: '(?P<x>.*)', to: 'b\g<y>'}", "to", "AB119", r"expected a group that from has, \1, \g<x>"),
        (
            "{from: a, to: ..}",
            "to",
            "AB119",
            "expected a topic's name; found '..': its name is .., which Kafka refuses",
        ),
        (f"{{from: a, to: {'x' * 250}}}", "to", "AB119", "its name has 250 characters, Kafka allows 249"),
    ],
)
def test_a_rule_that_cannot_be_applied_is_told_where_it_stands(
    tmp_path: Path, rule: str, at: str, code: str, message: str
) -> None:
    where, found, text, remedy = problem(tmp_path, renaming("{from: ok, to: fine}", rule) + FLOW)
    assert where.startswith(f"0.yaml:{LINE + 5}:")
    assert where.endswith(f"(policy.rules[1].{at})")
    assert (found, remedy != "") == (code, True)
    assert message in text


@pytest.mark.parametrize("layer", ["defaults: {policy: {POLICY}}", "replication: [{from: a, to: b, policy: {POLICY}}]"])
def test_rules_are_checked_wherever_they_stand(tmp_path: Path, layer: str) -> None:
    rules = "type: rename, rules: [{from: a, to: 'b c'}, {from: x, to: y}, {from: x, to: z}]"
    found = said(tmp_path, HEAD + layer.replace("POLICY", rules) + "\n")
    assert [line.split()[-1] for line in found] == ["AB119", "AB106"]


@pytest.mark.parametrize(
    ("policy", "at", "code", "message"),
    [
        ("{type: rename}", "policy.type", "AB114", "policy type rename needs rules; found none"),
        ("{type: rename, rules: []}", "policy.rules", "AB114", "policy type rename needs rules; found none"),
        ("{type: class}", "policy.type", "AB114", "policy type class needs class; found none"),
        (
            "{rules: [{from: a, to: b}]}",
            "policy.rules",
            "AB104",
            "rules goes with policy type rename; found type default",
        ),
        (
            "{type: identity, class: x}",
            "policy.class",
            "AB104",
            "class goes with policy type class; found type identity",
        ),
        ("{options: {a: b}}", "policy.options", "AB104", "options goes with policy type class; found type default"),
        ("{otherwise: identity}", "policy.otherwise", "AB104", "otherwise goes with policy type rename"),
        ("{type: rename, rules: [{from: a}]}", "policy.rules[0]", "AB114", "to is missing"),
        ("{type: rename, rules: [{form: a, to: b}]}", "policy.rules[0].form", "AB103", "unknown field form"),
        ("{type: class, class: x, options: {a: 3}}", "policy.options.a", "AB104", "expected text; found 3"),
        ("{type: renaming}", "policy.type", "AB104", "expected default, identity, rename or class; found 'renaming'"),
    ],
)
def test_what_does_not_go_together_is_told(tmp_path: Path, policy: str, at: str, code: str, message: str) -> None:
    where, found, text, _ = problem(tmp_path, f"policy: {policy}\n{FLOW}")
    assert (where.split(" ")[1], found) == (f"({at})", code)
    assert message in text


def test_a_flow_may_replace_the_policy_of_its_defaults_and_rules_of_its_own_need_their_type(tmp_path: Path) -> None:
    rules = renaming("{from: users, to: dc1-users}")
    (flow,) = load(tmp_path, HEAD + rules + "flows: [{from: a, to: b, policy: {type: identity}}]\n").flows
    assert flow.remote_topic("users") == "users"
    own = "policy: {type: identity}\nflows: [{from: a, to: b, policy: {rules: [{from: x, to: y}]}}]\n"
    assert said(tmp_path, HEAD + own) == [f"0.yaml:{LINE + 1}:35 (flows[0].policy.rules) AB104"]


def test_a_policy_class_is_taken_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, by_region="Regional")
    policy = "policy: {type: class, class: by-region, options: {region: emea}}\n"
    (flow,) = load(tmp_path, HEAD + policy + FLOW).flows
    assert (flow.remote_topic("orders"), flow.policy.entry_point) == ("emea.a.orders", "by-region")


def test_a_policy_class_that_cannot_be_imported_is_told_once_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, broken="no_such_module:X")
    body = "policy: {type: class, class: broken}\nreplication: [{active-active: [a, b, c]}]\n"
    where, code, message, remedy = problem(tmp_path, body)
    assert (where, code) == (f"0.yaml:{LINE}:30 (policy.class)", "AB120")
    assert message == (
        "expected a policy class; policy class broken (no_such_module:X) cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert "install the package" in remedy
    assert problem(tmp_path, body.replace("broken", "brokn"))[2].endswith("there are broken")


def test_written_names_that_would_have_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, lumping="Silent")
    body = "policy: {type: class, class: lumping, options: {orders: all, users: all}}\n"
    where, code, message, _ = problem(tmp_path, body + taking("orders", "users", "payments"))
    assert (where, code) == (f"0.yaml:{LINE}:30 (policy.class)", "AB122")
    assert message == "flow a-b: expected a name of its own for each copy; found all for orders, users of a"

    rules = renaming("{from: '(orders|clicks)', to: all}", "{from: 'us(er|age)s?', to: all}")
    where, code, message, _ = problem(tmp_path, rules + taking("orders", "users", "x.*"))
    assert (where.split(" ")[1], code) == ("(policy.rules[1])", "AB122")
    assert "found all for orders, users of a" in message
    assert load(tmp_path, HEAD + rules + taking("orders", "payments")).flows


def test_a_written_name_whose_copy_has_no_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, choosy="Choosy")
    where, code, message, remedy = problem(tmp_path, "policy: {type: class, class: choosy}\n" + taking("bad", "good"))
    assert (where, code) == (f"0.yaml:{LINE}:30 (policy.class)", "AB121")
    assert "fails at remote_topic('a', 'bad'): LookupError: no rule for bad" in message
    assert remedy == "correct the policy, or exclude bad"
    excluding = "flows: [{from: a, to: b, topics: {include: [bad, good], exclude: [bad]}}]\n"
    assert load(tmp_path, HEAD + "policy: {type: class, class: choosy}\n" + excluding).flows
    long = renaming("{from: '(.*)', to: '" + "x" * 240 + r"\1'}")
    where, code, message, _ = problem(tmp_path, long + taking("orders-of-all", "a"))
    assert (where.split(" ")[1], code) == ("(policy.rules[0])", "AB121")
    assert "its name has 253 characters" in message


RING = "replication: [{active-active: [a, b]}]\n"


@pytest.mark.parametrize(
    "body",
    [
        # Names that no rule matches are kept, and come back.
        renaming("{from: users, to: dc1-users}", otherwise="identity") + RING,
        # Only what the rules match goes round.
        renaming(r"{from: '^o\.(.*)$', to: 'o.\1'}") + RING.replace("b]}", "b], topics: {include: ['o\\..*']}}"),
        # One direction puts back what the other has renamed.
        "flows:\n  - {from: a, to: b, policy: {type: rename, rules: [{from: x, to: y}]}, topics: {include: [x]}}\n"
        "  - {from: b, to: a, policy: {type: rename, rules: [{from: y, to: x}]}, topics: {include: ['[xy]']}}\n",
        # A name that grows.
        renaming(r"{from: '(.*)', to: '\1-copy'}") + RING,
        # A loop back into its own cluster.
        renaming("{from: x, to: x}") + "flows: [{from: a, to: a, topics: {include: [x]}}]\n",
    ],
)
def test_names_that_go_round_for_ever_are_refused(tmp_path: Path, body: str) -> None:
    _, code, message, remedy = problem(tmp_path, body)
    assert code == "AB107"
    assert "topics would go round for ever: a → " in message
    assert remedy


def test_a_class_without_upstream_cannot_join_clusters_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, silent="Silent", by_region="Regional")
    assert problem(tmp_path, "policy: {type: class, class: silent}\n" + RING)[1] == "AB107"
    knowing = "policy: {type: class, class: by-region, options: {region: emea}}\n"
    assert len(load(tmp_path, HEAD + knowing + RING.replace("a, b", "a, b, c")).flows) == 6


@pytest.mark.parametrize(
    "body",
    [
        renaming(r"{from: '^orders\.(.*)$', to: 'dc1-\1'}") + RING,
        renaming("{from: x, to: y}", otherwise="identity") + RING.replace("b]}", "b], topics: {include: [x]}}"),
        renaming("{from: x, to: y}", otherwise="identity") + "flows: [{from: a, to: b}, {from: b, to: c}]\n",
        renaming("{from: x, to: y}") + "flows: [{from: a, to: a, topics: {include: [x]}}]\n",
    ],
)
def test_names_that_end_are_taken(tmp_path: Path, body: str) -> None:
    assert load(tmp_path, HEAD + body).flows


def test_what_is_internal_under_the_separator_is_never_replicated(tmp_path: Path) -> None:
    body = "policy: {separator: _}\n" + taking("orders", "a_checkpoints_internal")
    where, code, message, _ = problem(tmp_path, body)
    assert (where.split(" ")[1], code) == ("(flows[0].topics.include[1])", "AB118")
    assert "found a_checkpoints_internal" in message
    assert load(tmp_path, HEAD + taking("a_checkpoints_internal")).flows
