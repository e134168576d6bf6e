"""What flows cannot do together, and what each list item must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.names.selection import ALWAYS_EXCLUDED
from tests.unit.declare.declaring import HEAD, HEAD_LINES, flows, load, place, refused

IDENTITY = "policy: {type: identity}"
RING = (("a", "b"), ("b", "c"), ("c", "a"))


def codes(folder: Path, body: str) -> list[str]:
    return [problem.code for problem in refused(folder, HEAD + body)]


def flow(source: str, target: str, policy: str, include: str = '".*"', extra: str = "") -> str:
    return (
        f"  - {{from: {source}, to: {target}, policy: {{type: {policy}}}, topics: {{include: [{include}]}}{extra}}}\n"
    )


def test_identity_both_ways_is_told_where_the_second_direction_is_declared(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, HEAD + "flows:\n" + flow("a", "b", "identity") + flow("b", "a", "identity"))
    assert problem.code == "AB108"
    assert place(problem, tmp_path) == f"0.yaml:{HEAD_LINES + 3}:5 (flows[1])"
    assert problem.message == "policy identity copies the same topics both ways between a and b"


FAILED_OVER = ", failed-over: true"


def test_what_failback_copies_back_nobody_else_copies_there(tmp_path: Path) -> None:
    over, back = flow("a", "b", "identity", "orders", FAILED_OVER), flow("b", "a", "identity", "orders")
    for body in (over + back, back + over):
        (problem,) = refused(tmp_path, HEAD + "flows:\n" + body)
        assert problem.code == "AB116"
        assert problem.message.startswith("flow b-a takes orders, which failback of flow a-b (")
        assert problem.message.endswith(") copies from b to a as well")
        assert problem.remedy.startswith("disable flow b-a until flow a-b has failed back")
    for other in (flow("b", "a", "identity", "users"), flow("b", "a", "default", "orders")):
        assert flows(tmp_path, "flows:\n" + over + other) == ["a→b", "b→a"]


def test_a_flow_that_is_failed_over_counts_the_other_way_round_in_rings(tmp_path: Path) -> None:
    ring = flow("a", "c", "identity") + flow("c", "b", "identity")
    over = "  - {from: a, to: b, policy: {type: identity}, failed-over: true}\n"
    assert len(flows(tmp_path, "flows:\n" + ring + over.replace("a, to: b", "b, to: a"))) == 3
    (problem,) = refused(tmp_path, HEAD + "flows:\n" + ring + over)
    assert problem.code == "AB107"
    assert problem.message.endswith("(policy identity); failed over, and so counted the other way round: a-b")


def test_two_flows_failed_over_against_each_other_are_both_ways_still(tmp_path: Path) -> None:
    both = flow("a", "b", "identity", extra=FAILED_OVER) + flow("b", "a", "identity", extra=FAILED_OVER)
    (problem,) = refused(tmp_path, HEAD + "flows:\n" + both)
    assert problem.code == "AB108"
    assert problem.message.endswith("; failed over, and so counted the other way round: a-b and b-a")


def test_failing_over_is_for_one_flow_alone(tmp_path: Path) -> None:
    assert codes(tmp_path, "defaults: {failed-over: true}\nflows: [{from: a, to: b}]\n") == ["AB103"]
    assert codes(tmp_path, "replication: [{active-active: [a, b], failed-over: true}]\n") == ["AB104"]
    one = load(tmp_path, HEAD + "replication: [{from: a, to: b, failed-over: true}, {active-active: [b, c]}]\n")
    assert [made.name for made in one.flows if made.failed_over] == ["a-b"]
    entry = "replication: [{active-active: [b, c]}]\nflows: [{from: c, to: b, failed-over: true}]\n"
    assert [made.name for made in load(tmp_path, HEAD + entry).flows if made.failed_over] == ["c-b"]


@pytest.mark.parametrize("offsets", ["auto", "translated"])
def test_records_may_be_repeated_where_offsets_are_not_identical(tmp_path: Path, offsets: str) -> None:
    body = f"defaults: {{offsets: {offsets}, delivery: at-least-once}}\nflows: [{{from: a, to: b}}]\n"
    (found,) = load(tmp_path, HEAD + body).flows
    assert (found.delivery, found.repeats) == ("at-least-once", True)


def test_records_cannot_be_repeated_at_identical_offsets(tmp_path: Path) -> None:
    """Told once for each place that says so; a flow that does not run is no mistake."""
    body = (
        "defaults: {delivery: at-least-once}\n"
        "flows:\n"
        "  - {from: a, to: b, offsets: identical}\n"
        "  - {from: a, to: c, offsets: identical}\n"
        "  - {from: b, to: c, offsets: identical, delivery: exactly-once}\n"
        "  - {from: c, to: b, offsets: identical, delivery: at-least-once, enabled: false}\n"
    )
    (problem,) = refused(tmp_path, HEAD + body)
    assert (problem.code, place(problem, tmp_path)) == ("AB104", f"0.yaml:{HEAD_LINES + 1}:22 (defaults.delivery)")
    assert problem.message == (
        "flow a-b demands identical offsets, which are exactly once by themselves; found 'at-least-once'"
    )
    assert problem.remedy == "leave delivery out, or take offsets: auto or translated"


def test_another_word_for_delivery_is_none(tmp_path: Path) -> None:
    assert codes(tmp_path, "flows: [{from: a, to: b, delivery: at-most-once}]\n") == ["AB104"]


def test_a_pattern_under_identity_is_one_problem_with_all_its_pairs(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, HEAD + IDENTITY + "\nreplication: [{active-active: [a, b, c]}]\n")
    assert problem.code == "AB108"
    assert problem.message.endswith("between a and b, a and c and b and c")


@pytest.mark.parametrize(
    "body",
    [
        # Names prove it: nothing is taken both ways.
        flow("a", "b", "identity", "orders") + flow("b", "a", "identity", "users"),
        flow("a", "b", "identity", '"orders.*"') + flow("b", "a", "identity", "users"),
        # A standby direction is no mistake.
        flow("a", "b", "identity") + flow("b", "a", "identity", extra=", enabled: false"),
        flow("a", "b", "identity") + flow("b", "c", "identity"),
        # Names that grow are not taken for ever.
        flow("a", "b", "default") + flow("b", "a", "identity", "orders"),
        flow("a", "b", "default", '"orders.*"') + flow("b", "a", "identity", '"orders.*"'),
    ],
)
def test_pairs_that_may_be(tmp_path: Path, body: str) -> None:
    assert len(flows(tmp_path, "flows:\n" + body)) == 2


def test_an_exclude_list_parts_two_directions(tmp_path: Path) -> None:
    body = (
        "flows:\n"
        "  - {from: a, to: b, policy: {type: identity}, topics: {include: [orders, users], exclude: [users]}}\n"
        "  - {from: b, to: a, policy: {type: identity}, topics: {include: [users]}}\n"
    )
    assert flows(tmp_path, body) == ["a→b", "b→a"]


def test_expressions_that_have_no_name_in_common_part_two_directions(tmp_path: Path) -> None:
    for one, other in (("orders.*", "users.*"), ("dc1-.*", "dc2-.*"), ("dc1[.-].+", "(?:dc2|dc3)[.-].+")):
        body = flow("a", "b", "identity", f'"{one}"') + flow("b", "a", "identity", f'"{other}"')
        assert len(flows(tmp_path, "flows:\n" + body)) == 2
    overlapping = flow("a", "b", "identity", '"dc1-.*"') + flow("b", "a", "identity", '".*-x"')
    assert codes(tmp_path, "flows:\n" + overlapping) == ["AB108"]
    excluded = "policy: {type: identity}, topics: {include: ['.*'], exclude: ['dc%d-.*']}"
    apart = "policy: {type: identity}, topics: {include: ['dc%d-.*']}"
    both = f"  - {{from: a, to: b, {excluded % 2}}}\n  - {{from: b, to: a, {apart % 2}}}\n"
    assert len(flows(tmp_path, "flows:\n" + both)) == 2
    only_excluded = f"  - {{from: a, to: b, {excluded % 2}}}\n  - {{from: b, to: a, {excluded % 1}}}\n"
    assert codes(tmp_path, "flows:\n" + only_excluded) == ["AB108"]


def test_a_ring_of_three_by_expressions_that_no_two_directions_share(tmp_path: Path) -> None:
    ring = flow("a", "b", "identity", '"x.*"') + flow("b", "c", "identity", '".*y"')
    assert codes(tmp_path, "flows:\n" + ring + flow("c", "a", "identity", '".*z.*"')) == ["AB107"]
    assert len(flows(tmp_path, "flows:\n" + ring + flow("c", "a", "identity", '"z.*"'))) == 3
    # The shortest way between two clusters is not the one that a name goes.
    body = ring + flow("b", "a", "identity", '"b.*"') + flow("c", "a", "identity", '"xz?y"')
    assert codes(tmp_path, "flows:\n" + body) == ["AB107"]


def test_a_ring_of_three(tmp_path: Path) -> None:
    body = "flows:\n" + "".join(flow(source, target, "identity") for source, target in RING)
    (problem,) = refused(tmp_path, HEAD + body)
    assert problem.code == "AB107"
    assert place(problem, tmp_path) == f"0.yaml:{HEAD_LINES + 4}:5 (flows[2])"
    assert "a → b → c → a" in problem.message


def test_a_ring_that_one_name_travels(tmp_path: Path) -> None:
    body = flow("a", "b", "identity", "orders, users") + flow("b", "c", "identity", '"o.*"')
    assert codes(tmp_path, "flows:\n" + body + flow("c", "a", "identity", "orders")) == ["AB107"]
    assert len(flows(tmp_path, "flows:\n" + body + flow("c", "a", "identity", "users"))) == 3


def test_a_ring_and_a_pair_are_both_told(tmp_path: Path) -> None:
    body = "flows:\n" + "".join(flow(source, target, "identity") for source, target in (*RING, ("c", "d"), ("d", "c")))
    assert sorted(codes(tmp_path, body)) == ["AB107", "AB108"]


@pytest.mark.parametrize(("policy", "refused_with"), [("identity", ["AB107"]), ("default", [])])
def test_a_flow_back_into_its_own_cluster(tmp_path: Path, policy: str, refused_with: list[str]) -> None:
    body = "flows:\n" + flow("a", "a", policy, "orders")
    if refused_with:
        assert codes(tmp_path, body) == refused_with
    else:
        assert flows(tmp_path, body) == ["a→a"]


@pytest.mark.parametrize("mesh", ["[a, b]", "[a, b, c]", "[a, b, c, d]"])
def test_prefixes_end_every_ring(tmp_path: Path, mesh: str) -> None:
    count = mesh.count(",") + 1
    assert len(flows(tmp_path, f"replication: [{{active-active: {mesh}}}]\n")) == count * (count - 1)


@pytest.mark.parametrize(
    ("rings", "message"),
    [
        (flow("a", "b", "default") + flow("b", "a", "identity"), "a → b → a: a.a.orders"),
        (
            flow("a", "b", "identity") + flow("b", "c", "identity") + flow("c", "a", "default"),
            "a → b → c → a: c.c.orders",
        ),
    ],
)
def test_a_ring_of_both_policies_in_which_names_grow(tmp_path: Path, rings: str, message: str) -> None:
    (problem,) = refused(tmp_path, HEAD + "flows:\n" + rings)
    assert problem.code == "AB107"
    assert problem.message.endswith(message)


def test_excluding_remote_topics_ends_a_ring_of_both_policies(tmp_path: Path) -> None:
    body = "flows:\n" + flow("a", "b", "default", "'[^.]*'") + flow("b", "a", "identity")
    assert flows(tmp_path, body) == ["a→b", "b→a"]


def test_an_alias_must_not_contain_the_separator(tmp_path: Path) -> None:
    text = (
        "version: 1\nname: s\nclusters:\n  us-east: {bootstrap: 'a:1'}\n  eu: {bootstrap: 'b:1'}\n"
        "policy: {separator: '-'}\nreplication: [{active-active: [us-east, eu]}]\n"
    )
    (problem,) = refused(tmp_path, text)
    assert (problem.code, place(problem, tmp_path)) == ("AB115", "0.yaml:6:21 (policy.separator)")
    assert "us-east-orders would not show its source" in problem.message


def test_no_alias_must_begin_with_another_one_and_the_separator(tmp_path: Path) -> None:
    """A topic east-orders of us would be us-east-orders on hub, and would never go on to us-east."""
    clusters = "{us: {bootstrap: 'a:1'}, hub: {bootstrap: 'b:1'}, us-east: {bootstrap: 'c:1'}}"
    text = f"version: 1\nname: s\nclusters: {clusters}\n"
    ways = "flows: [{from: us, to: hub}, {from: hub, to: us-east}]\n"
    (problem,) = refused(tmp_path, f"{text}policy: {{separator: '-'}}\n{ways}")
    assert (problem.code, place(problem, tmp_path)) == ("AB115", "0.yaml:4:21 (policy.separator)")
    assert "the alias us-east begins with us and the separator -: us-east-orders would not show" in problem.message
    assert len(load(tmp_path, f"{text}policy: {{separator: _}}\n{ways}").flows) == 2


def test_the_separator_says_nothing_under_identity(tmp_path: Path) -> None:
    body = "policy: {type: identity, separator: 'a'}\nflows: [{from: a, to: b}]\n"
    assert flows(tmp_path, body) == ["a→b"]


DEMANDED = f"{IDENTITY}\ndefaults: {{offsets: identical}}"
PAIR = "flows:\n  - {{from: a, to: b, topics: {{{}}}}}\n  - {{from: a, to: b, name: x, topics: {{{}}}}}\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("include: [orders]", "include: [users, orders]"),
        ("include: [orders]", 'include: ["ord.*"]'),
        ('include: ["ord.*"]', 'include: ["ord.*"]'),
        ('include: ["ord.*"]', 'include: [".*"]'),
        ('include: [".*"]', 'include: ["[.]*"], exclude: [users]'),
    ],
)
def test_two_flows_of_one_pair_must_not_take_one_topic(tmp_path: Path, one: str, other: str) -> None:
    (problem,) = refused(tmp_path, HEAD + PAIR.format(one, other))
    assert problem.code == "AB116"
    assert place(problem, tmp_path).endswith("(flows[1].topics.include)")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("include: [orders]", "include: [users]"),
        ("include: [orders]", 'include: [".*"], exclude: [orders]'),
        ('include: ["ord.*"]', 'include: ["us.*"]'),
    ],
)
def test_two_flows_of_one_pair_with_topics_of_their_own(tmp_path: Path, one: str, other: str) -> None:
    assert flows(tmp_path, PAIR.format(one, other)) == ["a→b", "a→b"]


def test_a_remote_topic_with_identical_offsets_has_one_writer(tmp_path: Path) -> None:
    body = f"{DEMANDED}\nreplication:\n  - aggregation: {{from: [a, b], to: c}}\n    topics: {{include: [orders]}}\n"
    (problem,) = refused(tmp_path, HEAD + body)
    assert (problem.code, place(problem, tmp_path).split(" ")[1]) == ("AB117", "(replication[0].topics.include)")
    assert problem.message.endswith("both write orders on c")


@pytest.mark.parametrize("one", ["a", "b"])
def test_one_flow_that_demands_identical_offsets_is_enough(tmp_path: Path, one: str) -> None:
    body = (
        f"{IDENTITY}\ndefaults: {{topics: {{include: [orders]}}}}\n"
        "replication: [{aggregation: {from: [a, b], to: c}}]\n"
    )
    assert flows(tmp_path, body) == ["a→c", "b→c"]
    (problem,) = refused(tmp_path, HEAD + body + f"flows: [{{from: {one}, to: c, offsets: identical}}]\n")
    assert problem.code == "AB117"


def test_many_remote_topics_with_two_writers_are_one_problem(tmp_path: Path) -> None:
    body = f"{DEMANDED}\nreplication: [{{aggregation: {{from: [a, b], to: c}}, topics: {{include: [x, y, z]}}}}]\n"
    (problem,) = refused(tmp_path, HEAD + body)
    assert problem.message.endswith("both write x on c, and 2 more such")


def renaming(original: str, copy: str, extra: str = "") -> str:
    policy = f"{{type: rename, rules: [{{from: {original}, to: {copy}}}]}}"
    return f"  - {{from: a, to: c, topics: {{include: [{original}]}}, policy: {policy}{extra}}}\n"


@pytest.mark.parametrize("offsets", ["auto", "identical", "translated"])
def test_two_flows_of_one_source_give_no_two_topics_one_name(tmp_path: Path, offsets: str) -> None:
    body = f"defaults: {{offsets: {offsets}}}\nflows:\n{renaming('orders', 'x')}"
    (problem,) = refused(tmp_path, HEAD + body + renaming("users", "x", ", name: q"))
    assert (problem.code, place(problem, tmp_path).split(" ")[1]) == ("AB122", "(flows[1].topics.include)")
    assert problem.message.endswith("both write x on c, the copy of a's orders and of its users")
    assert flows(tmp_path, body + renaming("users", "y", ", name: q")) == ["a→c", "a→c"]


def test_an_aggregation_with_prefixes_or_topics_of_their_own(tmp_path: Path) -> None:
    prefixes = "replication:\n  - aggregation: {from: [a, b], to: c}\n    topics: {include: [orders]}\n"
    assert flows(tmp_path, prefixes) == ["a→c", "b→c"]
    own = "flows:\n" + flow("a", "c", "identity", "orders") + flow("b", "c", "identity", "users")
    assert flows(tmp_path, own) == ["a→c", "b→c"]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("orders(", "missing ), unterminated subpattern at character 7"),
        ("*", "nothing to repeat at character 1"),
        ("a{3,1}", "min repeat greater than max repeat at character 3"),
        ("[[a-z]]", "Possible nested set at position 1"),
        (r"\\p{L}", r"bad escape \p at character 1"),
        ("a{99999999999}", "the repetition number is too large"),
    ],
)
@pytest.mark.parametrize("key", ["include", "exclude"])
def test_a_bad_expression_is_told_with_its_position(tmp_path: Path, item: str, reason: str, key: str) -> None:
    (problem,) = refused(tmp_path, HEAD + f'defaults:\n  topics:\n    {key}:\n      - ok.*\n      - "{item}"\n')
    assert problem.code == "AB109"
    assert place(problem, tmp_path) == f"0.yaml:{HEAD_LINES + 5}:9 (defaults.topics.{key}[1])"
    assert problem.message.endswith(reason)


@pytest.mark.parametrize("name", ["__consumer_offsets", "mm2-offset-syncs.b.internal", "b.checkpoints.internal"])
def test_an_internal_topic_is_never_replicated(tmp_path: Path, name: str) -> None:
    (problem,) = refused(tmp_path, HEAD + f"flows: [{{from: a, to: b, topics: {{include: [{name}]}}}}]\n")
    assert problem.code == "AB118"
    assert all(pattern in problem.message for pattern in ALWAYS_EXCLUDED)
    excluded = f"flows: [{{from: a, to: b, topics: {{exclude: [{name}]}}}}]\n"
    assert flows(tmp_path, excluded) == ["a→b"]
