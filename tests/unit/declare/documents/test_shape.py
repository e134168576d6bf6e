"""The schema's violations in human words: positions, codes, suggestions, and what is planned for later."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.declare.documents.words import closest
from tests.unit.declare.declaring import HEAD, HEAD_LINES, place, refused, said

LINE = HEAD_LINES + 1
PLAIN = "replication: [{from: a, to: b}]\n"


def one(folder: Path, body: str) -> tuple[str, str, str, str]:
    """Return place, code, message and remedy of the single problem of a topology with four clusters."""
    (problem,) = refused(folder, HEAD + body)
    return place(problem, folder).removeprefix(f"0.yaml:{LINE}:"), problem.code, problem.message, problem.remedy


def cluster(fields: str) -> str:
    return f"version: 1\nname: shop\nclusters:\n  a: {fields}\n"


@pytest.mark.parametrize(
    ("body", "where", "code", "message", "remedy"),
    [
        (
            "replication: [{fan-outt: {from: a, to: [b]}}]",
            "16 (replication[0].fan-outt)",
            "AB103",
            "expected one of fan-out, aggregation, active-active, xdcr, or from and to; found fan-outt",
            "did you mean fan-out?",
        ),
        (
            "defaults: {replication_factor: 3}",
            "12 (defaults.replication_factor)",
            "AB103",
            "unknown field replication_factor",
            "did you mean replication-factor?",
        ),
        (
            "flows: [{source: a, to: b}]",
            "10 (flows[0].source)",
            "AB103",
            "unknown field source",
            "did you mean from?",
        ),
        (
            "tasks: 4",
            "1 (tasks)",
            "AB103",
            "expected one of version, name, owner, clusters, datacenters, policy, defaults, replication or flows; "
            "found tasks",
            "tasks is a field of flows: put it under defaults, a pattern or an entry of flows",
        ),
        (
            "replication: [{tasks: 4}]",
            "15 (replication[0])",
            "AB114",
            "expected one of fan-out, aggregation, active-active, xdcr, or from and to; found tasks",
            'for example: active-active: ["us-east", "eu-west"]',
        ),
        (
            "replication: [{fan-out: {from: a, to: [b]}, active-active: [a, b]}]",
            "15 (replication[0])",
            "AB104",
            "expected one of fan-out, aggregation, active-active, xdcr, or from and to; "
            "found fan-out and active-active",
            "write one pattern for each",
        ),
        (
            "replication: [{from: a}]",
            "15 (replication[0])",
            "AB114",
            "to is missing beside from",
            "add to: and an alias",
        ),
        (
            "replication: [{active-active: [a, b], name: mesh}]",
            "39 (replication[0].name)",
            "AB104",
            "name goes with from and to alone",
            "remove it: the flows of a pattern are called <from>-<to>",
        ),
        (
            "replication: [{active-active: [a]}]",
            "31 (replication[0].active-active)",
            "AB104",
            "expected a list of two or more aliases; found a list of 1",
            'for example: active-active: ["us-east", "eu-west"]',
        ),
        (
            "replication: [{xdcr: {west: [a, b]}}]",
            "22 (replication[0].xdcr)",
            "AB104",
            "expected two or more groups of clusters; found a mapping of 1",
            'for example: xdcr: {"west": ["west-1", "west-2"], "east": ["east-1", "east-2"]}',
        ),
        (
            "replication: [{fan-out: {from: a, to: []}}]",
            "39 (replication[0].fan-out.to)",
            "AB104",
            "expected a list of aliases, not empty; found an empty list",
            'for example: to: ["us-east", "eu-west"]',
        ),
        (
            "flows: [{from: a}]",
            "9 (flows[0])",
            "AB114",
            "to is missing",
            "add to",
        ),
        (
            "defaults: {topics: {include: []}}",
            "30 (defaults.topics.include)",
            "AB113",
            "expected a list of names and regular expressions, not empty; found an empty list",
            "name topics, or leave include out to take all; enabled: false stops a flow",
        ),
        (
            "defaults: {topics: {include: orders}}",
            "30 (defaults.topics.include)",
            "AB104",
            "expected a list; found 'orders'",
            'for example: include: ["orders.*", "payments"]',
        ),
        (
            "defaults: {tasks: 0}",
            "19 (defaults.tasks)",
            "AB104",
            "expected a whole number from 1 to 1000; found 0",
            "for example: tasks: 4",
        ),
        (
            "defaults: {tasks: 1.5}",
            "19 (defaults.tasks)",
            "AB104",
            "expected a whole number; found 1.5",
            "for example: tasks: 4",
        ),
        (
            "defaults: {enabled: yes}",
            "21 (defaults.enabled)",
            "AB104",
            "expected true or false; found 'yes'",
            "write enabled: true",
        ),
        (
            "defaults: {offsets: identicl}",
            "21 (defaults.offsets)",
            "AB104",
            "expected auto, identical or translated; found 'identicl'",
            "did you mean identical?",
        ),
        (
            "policy: {separator: ''}",
            "21 (policy.separator)",
            "AB104",
            "expected one or more of the characters a topic's name may have; found ''",
            "for example: separator: .",
        ),
        (
            "replication: {from: a, to: b}",
            "14 (replication)",
            "AB104",
            "expected a list; found a mapping of 2",
            'for example: replication: [{"fan-out": {"from": "hub", "to": ["paris", "oslo"]}}]',
        ),
    ],
)
def test_a_violation_says_what_was_expected_and_found_and_what_to_do(
    tmp_path: Path, body: str, where: str, code: str, message: str, remedy: str
) -> None:
    assert one(tmp_path, body + "\n") == (where, code, message, remedy)


@pytest.mark.parametrize(
    "body",
    [
        *(f"defaults: {{{key}: x}}" for key in (*("where", "select", "checkpoints"),)),
    ],
)
def test_what_is_planned_is_refused_as_not_yet(tmp_path: Path, body: str) -> None:
    _, code, message, remedy = one(tmp_path, body + "\n")
    assert code == "AB111"
    assert message.endswith("is planned and not accepted yet")
    assert remedy


@pytest.mark.parametrize(
    ("kerberos", "expected"),
    [
        ("{}", "AB114 kerberos: principal is missing"),
        ("{principal: 'a b'}", "AB104 principal: expected a Kerberos principal, or a reference; found text"),
        ("{principal: m, keytab: 'env:K'}", "AB110 keytab: expected file:/absolute/path of a keytab; found text"),
        # A shell runs `kinit` with it.
        ("{principal: m, keytab: 'file:/k;x'}", "AB110 keytab: expected file:/absolute/path of a keytab; found text"),
        ("{principal: m, service: 'k/h'}", "AB104 service: expected the brokers' service name; found text"),
        ("{principal: m, realm: X}", "AB103 kerberos: expected one of principal, keytab or service"),
    ],
)
def test_kerberos_that_cannot_be(tmp_path: Path, kerberos: str, expected: str) -> None:
    security = f"{{protocol: SASL_PLAINTEXT, mechanism: GSSAPI, kerberos: {kerberos}}}"
    (problem,) = refused(tmp_path, cluster(f"{{bootstrap: b:1, security: {security}}}"))
    assert f"{problem.code} {problem.where.rpartition('.')[2].strip(')')}: {problem.message}".startswith(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("{}", "0.yaml:4:6 (clusters.a) AB114"),
        ("{bootstrap: []}", "0.yaml:4:18 (clusters.a.bootstrap) AB104"),
        ("{bootstrap: 9092}", "0.yaml:4:18 (clusters.a.bootstrap) AB104"),
        ("{bootstrap: [b1]}", "0.yaml:4:19 (clusters.a.bootstrap[0]) AB104"),
        ("{bootstrap: ['b1:x']}", "0.yaml:4:19 (clusters.a.bootstrap[0]) AB104"),
        ("{bootstrap: ['b1:1', 'b2:65536']}", "0.yaml:4:27 (clusters.a.bootstrap[1]) AB104"),
        ("{bootstrap: 'b1:1,b2:0'}", "0.yaml:4:18 (clusters.a.bootstrap) AB104"),
        ("{bootstrap: 'b1:1,'}", "0.yaml:4:18 (clusters.a.bootstrap) AB104"),
        ("{bootstrap: ['b1:1', 'b1:1']}", "0.yaml:4:27 (clusters.a.bootstrap[1]) AB106"),
        ("{bootstrap: b:1, datacentre: x}", "0.yaml:4:23 (clusters.a.datacentre) AB103"),
        ("{bootstrap: b:1, security: ~}", "0.yaml:4:33 (clusters.a.security) AB104"),
        ("{bootstrap: b:1, security: 7}", "0.yaml:4:33 (clusters.a.security) AB104"),
        ("{bootstrap: b:1, security: {}}", "0.yaml:4:33 (clusters.a.security) AB114"),
        ("{bootstrap: b:1, security: {protocol: SASL_PLAINTEXT}}", "0.yaml:4:33 (clusters.a.security) AB114"),
        (
            "{bootstrap: b:1, security: {protocol: PLAINTEXT, username: u}}",
            "0.yaml:4:55 (clusters.a.security.username) AB104",
        ),
        (
            "{bootstrap: b:1, security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: u, password: 'env:'}}",
            "0.yaml:4:101 (clusters.a.security.password) AB110",
        ),
        (
            "{bootstrap: b:1, security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: u, password: 'file:x'}}",
            "0.yaml:4:101 (clusters.a.security.password) AB110",
        ),
    ],
)
def test_violations_of_a_cluster(tmp_path: Path, fields: str, expected: str) -> None:
    assert said(tmp_path, cluster(fields)) == [expected]


@pytest.mark.parametrize("alias", ["us.east", "-a", "a b", '""'])
def test_an_alias_that_a_topics_name_could_not_carry(tmp_path: Path, alias: str) -> None:
    (problem,) = refused(tmp_path, f"version: 1\nname: shop\nclusters:\n  {alias}: {{bootstrap: b:1}}\n")
    assert problem.code == "AB104"
    assert "expected a name of letters, digits, _ and -" in problem.message


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("clusters: {'a.b': ~}\n", '0.yaml:3:12 (clusters["a.b"]) AB104'),
        (
            "clusters: {a: {bootstrap: b:1}}\nreplication: [{xdcr: {west: [a], 'e t': 7}}]\n",
            '0.yaml:4:34 (replication[0].xdcr["e t"]) AB104',
        ),
    ],
)
def test_what_stands_behind_a_bad_name_is_left_alone(tmp_path: Path, body: str, expected: str) -> None:
    assert said(tmp_path, "version: 1\nname: shop\n" + body) == [expected]


def test_a_number_is_a_fine_alias(tmp_path: Path) -> None:
    assert said(tmp_path, "version: 1\nname: s\nclusters:\n  1: {bootstrap: b:1}\nflows: [{from: 1, to: '1'}]\n") == [
        "0.yaml:5:16 (flows[0].from) AB104"
    ]


@pytest.mark.parametrize(
    ("text", "place_and_code"),
    [
        ("name: s\nclusters: {a: {bootstrap: b:1}}\n", "0.yaml:1:1 AB112"),
        ("version: 2\nname: s\nclusters: {a: {bootstrap: b:1}}\n", "0.yaml:1:10 (version) AB112"),
        ("version: '1'\nname: s\nclusters: {a: {bootstrap: b:1}}\n", "0.yaml:1:10 (version) AB112"),
        ("version: true\nname: s\nclusters: {a: {bootstrap: b:1}}\n", "0.yaml:1:10 (version) AB112"),
        ("version: 1\nclusters: {a: {bootstrap: b:1}}\n", "0.yaml:1:1 AB114"),
        ("version: 1\nname: s\n", "0.yaml:1:1 AB114"),
        ("version: 1\nname: Shop\nclusters: {a: {bootstrap: b:1}}\n", "0.yaml:2:7 (name) AB104"),
        ("version: 1\nname: s\nclusters: {}\n", "0.yaml:3:11 (clusters) AB104"),
        ("version: 1\nname: s\nclusters:\nflows: [{from: a, to: b}]\n", "0.yaml:3:1 (clusters) AB104"),
        ("version: 1\nnmae: s\nclusters: {a: {bootstrap: b:1}}\n", "0.yaml:2:1 (nmae) AB103"),
    ],
)
def test_what_every_topology_has(tmp_path: Path, text: str, place_and_code: str) -> None:
    assert said(tmp_path, text) == [place_and_code]


def test_all_errors_are_told_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    body = (
        "policy: {type: identity}\n"
        "replication:\n"
        "  - {from: a, to: b, taks: 2}\n"
        "  - {from: b, to: nowhere}\n"
        "  - {from: b, to: a, topics: {include: ['orders(']}}\n"
        "flows:\n"
        "  - {from: b, to: c}\n"
        "  - {from: b, to: c, where: 3}\n"
    )
    assert said(tmp_path, HEAD + body) == [
        "0.yaml:10:22 (replication[0].taks) AB103",
        "0.yaml:11:19 (replication[1].to) AB105",
        "0.yaml:12:41 (replication[2].topics.include[0]) AB109",
        "0.yaml:15:5 (flows[1]) AB106",
        "0.yaml:15:22 (flows[1].where) AB111",
    ]


def test_a_cycle_is_told_beside_other_errors_that_leave_the_flows_sure(tmp_path: Path) -> None:
    body = (
        "replication:\n"
        "  - {from: a, to: b, policy: {type: identity}}\n"
        "  - {from: b, to: a, policy: {type: identity}}\n"
        "  - {from: b, to: nowhere, where: 5}\n"
    )
    assert [line.split()[-1] for line in said(tmp_path, HEAD + body)] == ["AB108", "AB105", "AB111"]


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("Tasks", ("tasks", "topics"), "tasks"),
        ("bootstrap.servers", ("bootstrap", "datacenter"), "bootstrap"),
        ("whitelist", ("include", "exclude"), "include"),
        ("sync-acls", ("acls", "configs"), "acls"),
        ("sync-configs", ("acls", "configs"), "configs"),
        ("target", ("from", "to"), "to"),
        ("zebra", ("include", "exclude"), None),
    ],
)
def test_the_closest_known_word(word: str, known: tuple[str, ...], meant: str | None) -> None:
    assert closest(word, known) == meant
