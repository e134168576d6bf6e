"""References in files: which fields take one, and what looks like one and is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.declare.documents import codes
from reconciler.model.base.errors import Problem
from reconciler.model.connection.references import Reference
from tests.unit.declare.declaring import load, refused

FLOWS = "flows: [{from: a, to: b}]\n"


def one(folder: Path, fields: str, flows: str = FLOWS, more: str = "") -> Problem:
    """Return the only problem of a file, with fields of cluster `a`."""
    text = f"version: 1\nname: shop\nclusters:\n  a: {{{fields}}}\n  b: {{bootstrap: 'b1:9092'}}\n{more}{flows}"
    (problem,) = refused(folder, text)
    return problem


def test_every_field_that_differs_between_environments_takes_a_reference(tmp_path: Path) -> None:
    topology = load(
        tmp_path,
        """version: 1
name: shop
clusters:
  a:
    bootstrap: ["env:A_BROKERS", "b9.a.example:9092"]
    cluster-id: env:A_ID
    rack: file:/etc/rack
    replicator: {principal: "env:A_PRINCIPAL"}
    security:
      protocol: SASL_SSL
      mechanism: SCRAM-SHA-512
      username: file:/etc/kafka/a.properties#user
      password: file:/etc/kafka/a.properties#password
      ca: env:A_CA
      certificate: file:/etc/a.properties#certificate
      key: env:A_KEY
      key-password: env:A_KEY_PASSWORD
  b:
    bootstrap: "file:/etc/b.properties#bootstrap.servers, b2:9092"
    security:
      protocol: SASL_SSL
      mechanism: OAUTHBEARER
      oauth: {token-endpoint: "env:URL", client-id: "env:ID", client-secret: "env:SECRET", scope: "env:SCOPE"}
  c: {bootstrap: "env:9092", security: {protocol: SASL_SSL, mechanism: GSSAPI, kerberos: {principal: "env:WHO"}}}
datacenters: {default: {spark: {master: "env:SPARK"}}}
flows: [{from: a, to: b}, {from: a, to: c}]
""",
    )
    a, b, c = (topology.clusters[alias] for alias in ("a", "b", "c"))
    assert a.bootstrap == (Reference("env", "A_BROKERS"), "b9.a.example:9092")
    assert b.bootstrap == (Reference("file", "/etc/b.properties", "bootstrap.servers"), "b2:9092")
    # A host may be called `env`.
    assert c.bootstrap == ("env:9092",)
    assert set(map(str, a.references)) == {
        *("env:A_BROKERS", "env:A_ID", "file:/etc/rack", "env:A_CA", "env:A_KEY", "env:A_KEY_PASSWORD"),
        *("file:/etc/kafka/a.properties#user", "file:/etc/kafka/a.properties#password"),
        "file:/etc/a.properties#certificate",
    }
    assert a.replicator is not None
    assert a.replicator.principal == Reference("env", "A_PRINCIPAL")
    assert {str(reference) for reference in b.security.references} == {"env:URL", "env:ID", "env:SECRET", "env:SCOPE"}
    assert c.security.kerberos is not None
    assert c.security.kerberos.principal == Reference("env", "WHO")
    assert topology.spark("a").master == Reference("env", "SPARK")
    places = {str(reference): reference.place for reference in a.references}
    assert places["env:A_BROKERS"].endswith("0.yaml:5:17 (clusters.a.bootstrap[0])")
    assert places["file:/etc/kafka/a.properties#password"].endswith("0.yaml:13:17 (clusters.a.security.password)")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${BROKERS}", "env:BROKERS"),
        ("${env:BROKERS}", "env:BROKERS"),
        ("${strimzienv:BROKERS}", "env:BROKERS"),
        ("$BROKERS", "env:BROKERS"),
        ("$(BROKERS)", "env:BROKERS"),
        ("%BROKERS%", "env:BROKERS"),
        ("${file:/opt/kafka/external.properties:SRC_BROKERS}", "file:/opt/kafka/external.properties#SRC_BROKERS"),
        ("${file:/run/brokers}", "file:/run/brokers"),
        ("${directory:/run/secrets:brokers}", "file:/run/secrets/brokers"),
        ("b1:9092,${BROKERS}", "env:BROKERS"),
        ("${secrets:kafka/brokers:list}", "env:NAME for a variable"),
        ("{{ .Values.brokers }}", "env:NAME for a variable"),
        ("<%= brokers %>", "env:NAME for a variable"),
        ("${BROKER}:9092", "env:NAME for a variable"),
    ],
)
def test_what_other_tools_call_a_reference_is_told_in_the_right_form(tmp_path: Path, written: str, meant: str) -> None:
    problem = one(tmp_path, f"bootstrap: '{written}'")
    assert problem.code == codes.NO_REFERENCE
    assert "clusters.a.bootstrap" in problem.where
    assert problem.remedy.startswith(f"write {meant}")


LOGIN = "bootstrap: 'b:1', security: {{protocol: SASL_SSL, mechanism: PLAIN, username: {}, password: {}}}"


@pytest.mark.parametrize(
    ("username", "password", "code", "said"),
    [
        ("'${B_USER}'", "env:P", "AB129", "write env:B_USER"),
        ("'file:relative'", "env:P", "AB110", "write an absolute path"),
        ("'file:/run/a b'", "env:P", "AB110", "without blanks"),
        ("'env:1X'", "env:P", "AB110", "write the name of a variable"),
        ("'ENV:X'", "env:P", "AB110", "in small letters"),
        ("u", "'$hunter2'", "AB129", "write env:NAME"),
        ("u", "'${hunter2}'", "AB129", "write env:NAME"),
        ("u", "'${file:/run/hunter:password}'", "AB129", "write file:/run/hunter#password"),
        ("u", "'file:/run/a#b#c'", "AB110", "write an absolute path"),
        ("u", "'file:/run/a#'", "AB110", "write an absolute path"),
    ],
)
def test_credentials_in_another_form(tmp_path: Path, username: str, password: str, code: str, said: str) -> None:
    problem = one(tmp_path, LOGIN.format(username, password))
    assert (problem.code, said in problem.remedy) == (code, True), problem
    assert "hunter2" not in str(problem)


def test_the_user_of_azure_event_hubs_is_no_variable(tmp_path: Path) -> None:
    text = f"version: 1\nname: s\nclusters:\n  a: {{{LOGIN.format(repr('$ConnectionString'), 'env:P')}}}\n"
    topology = load(tmp_path, f"{text}  b: {{bootstrap: 'b:1'}}\n{FLOWS}")
    assert topology.clusters["a"].security.username == "$ConnectionString"


@pytest.mark.parametrize(
    "flows",
    [
        "flows: [{from: a, to: b, topics: {include: ['${TOPICS}']}}]",
        "flows: [{from: a, to: b, topics: {exclude: ['$TOPICS']}}]",
        "flows: [{from: a, to: b, topics: {include: ['${PREFIX}orders']}}]",
        "flows: [{from: a, to: b, topics: {exclude: ['{{topic}}']}}]",
        "flows: [{from: a, to: b, topics: {include: ['env:TOPICS']}}]",
        "flows: [{from: a, to: b, topics: {include: ['file:/etc/topics']}}]",
        "flows: [{from: a, to: b, groups: {include: ['{{ groups }}']}}]",
        "flows: [{from: a, to: b, groups: {include: ['${GROUPS}-.*']}}]",
        "flows: [{from: a, to: b, configs: {set: {retention.ms: 'env:RETENTION'}}}]",
        "flows: [{from: a, to: b, configs: {set: {retention.ms: '${RETENTION}'}}}]",
        "flows: [{from: a, to: b, quota: '$QUOTA'}]",
        "flows: [{from: a, to: b, name: 'env:NAME'}]",
        "flows: [{from: a, to: b, dlq: '${DLQ}'}]",
        "flows: [{from: a, to: b, policy: {type: rename, rules: [{from: 'x', to: 'env:Y'}]}}]",
    ],
)
def test_fields_that_take_none_take_none_literally(tmp_path: Path, flows: str) -> None:
    problem = one(tmp_path, "bootstrap: 'b:1'", f"{flows}\n")
    assert problem.code == codes.NO_REFERENCE
    assert "this field takes none" in problem.message
    assert "docs/reference/topology.md#references" in problem.remedy


def test_java_names_groups_of_an_expression_so(tmp_path: Path) -> None:
    rules = "flows: [{from: a, to: b, policy: {type: rename, rules: [{from: '(?P<n>x.*)', to: 'c-${n}'}]}}]\n"
    assert one(tmp_path, "bootstrap: 'b:1'", rules).remedy == "for a group of `from` write \\g<n>"


def test_what_others_read_is_theirs(tmp_path: Path) -> None:
    topology = load(
        tmp_path,
        """version: 1
name: shop
clusters: {a: {bootstrap: 'a:1'}, b: {bootstrap: 'b:1'}}
datacenters: {default: {spark: {conf: {spark.local.dir: '${java.io.tmpdir}/x'}}}}
flows: [{from: a, to: b, groups: {include: ['env:prod', 'file:\\$\\{x\\}', 'x{2}$']}}]
""",
    )
    assert topology.flows[0].groups.include == ("env:prod", "file:\\$\\{x\\}", "x{2}$")


@pytest.mark.parametrize("alias", ["anabranch", "anabranch-owned", "anabranch_x"])
def test_no_alias_begins_as_our_own_topics_do(tmp_path: Path, alias: str) -> None:
    text = f"version: 1\nname: anabranch\nclusters: {{{alias}: {{bootstrap: 'a:1'}}, b: {{bootstrap: 'b:1'}}}}\n"
    (problem,) = refused(tmp_path, f"{text}flows: [{{from: {alias}, to: b}}]\n")
    assert (problem.code, alias in problem.message) == ("AB131", True)
    assert "0.yaml:3:12" in problem.where


def test_a_port_is_only_looked_at_where_one_stands(tmp_path: Path) -> None:
    assert one(tmp_path, "bootstrap: ['env:A', 'b1:99999']").code == codes.WRONG_VALUE
