"""References: where values are kept that differ between environments, and how they are looked up."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from reconciler.model.base import properties
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.references import Reference, read, settled
from reconciler.model.connection.security import Kerberos, OAuth, Security
from reconciler.model.declared.cluster import Cluster, Replicator
from reconciler.model.declared.datacenter import Spark
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.tasks.spec import FlowSpec

# Of `clusters: {w: {bootstrap: "w:9092"}}`, as the release before made it.
FORMER = "9163151f050386f0"
BROKERS = Reference("env", "EAST_BROKERS", place="0.yaml:4:6 (clusters.east.bootstrap[0])")


def problem_of(caught: pytest.ExceptionInfo[EnvironmentFault]) -> tuple[str, str, str]:
    (problem,) = caught.value.problems
    return problem.code, problem.where, problem.message


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("user=mirror", "mirror"),
        ("user: mirror", "mirror"),
        ("user mirror", "mirror"),
        ("  user \t=  mirror ", "mirror "),
        ("user=", ""),
        ("user", ""),
        ("user=a=b:c", "a=b:c"),
        ("user=\\u00fcber\\tx\\\\y", "über\tx\\y"),
        ("user=one\\\n   two", "onetwo"),
        ("user=one\nuser=two", "two"),
        ("#user=no\n! user=no\nuser=yes", "yes"),
        ("other=1\r\nuser=mirror\r\n", "mirror"),
        ("us\\er=mirror", "mirror"),
        ("user=ends\\\\\nother=1", "ends\\"),
        ("usern=no", None),
        ("", None),
    ],
)
def test_properties_are_read_as_java_reads_them(line: str, value: str | None) -> None:
    assert properties.value(line, "user") == value


def test_keys_with_what_separates_are_escaped() -> None:
    assert properties.value("a\\:b\\ c\\=d = e", "a:b c=d") == "e"
    assert properties.value("sasl.jaas.config = x", "sasl.jaas.config") == "x"


def test_a_key_of_a_properties_file_is_a_value(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("\ufeffbootstrap.servers=b1:9092\nempty=\n", encoding="utf-8")
    reference = Reference.parse(f"file:{file}#bootstrap.servers", "t.yaml:1:2 (x)")
    assert (reference.resolve("x"), str(reference)) == ("b1:9092", f"file:{file}#bootstrap.servers")
    for key, said in (("other", f"{file} has no key other"), ("empty", f"key empty of {file} is empty")):
        with pytest.raises(EnvironmentFault) as caught:
            Reference("file", str(file), key, "t.yaml:1:2 (x)").resolve("cluster x")
        assert problem_of(caught) == ("AB304", "t.yaml:1:2 (x)", said)


def test_a_cluster_says_its_addresses_once_they_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    east = Cluster("east", (BROKERS, "b3:9092"))
    monkeypatch.delenv("EAST_BROKERS", raising=False)
    assert east.where == "cluster east (env:EAST_BROKERS,b3:9092)"
    for look in (east.librdkafka, east.kafka_python, east.check_hosts):
        with pytest.raises(EnvironmentFault) as caught:
            look()
        assert problem_of(caught) == ("AB304", BROKERS.place, "environment variable EAST_BROKERS is not set")
    monkeypatch.setenv("EAST_BROKERS", " b1:9092, [::1]:9093,b3:9092, ")
    assert east.addresses == ("b1:9092", "[::1]:9093", "b3:9092")
    assert east.librdkafka()["bootstrap.servers"] == "b1:9092,[::1]:9093,b3:9092"
    assert east.kafka_python()["bootstrap_servers"] == ["b1:9092", "[::1]:9093", "b3:9092"]
    assert east.declared_addresses == ("env:EAST_BROKERS", "b3:9092")


@pytest.mark.parametrize("value", ["hunter2", "mirror:hunter2@b1:9092", "b1", "b1:0", "b1:65536", "b1:1;b2:2", ","])
def test_what_is_no_address_is_never_shown(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("EAST_BROKERS", value)
    east = Cluster("east", (BROKERS,))
    with pytest.raises(EnvironmentFault) as caught:
        east.check_hosts()
    code, where, message = problem_of(caught)
    assert (code, where) == ("AB304", BROKERS.place)
    assert "expected host:port of brokers" in message
    assert "hunter2" not in f"{caught.value}{east.where}{east!r}"


def test_an_id_is_compared_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    east = Cluster("east", ("b1:9092",), cluster_id=Reference("env", "EAST_ID"))
    monkeypatch.setenv("EAST_ID", "AKIA-looks-like-an-id")
    assert east.other_cluster("AKIA-looks-like-an-id") is None
    problem = east.other_cluster("another")
    assert problem is not None
    assert problem.code == "AB423"
    assert "is cluster another, and cluster-id is env:EAST_ID" in problem.message
    assert "AKIA" not in str(problem)


def test_everything_that_leads_nowhere_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("N1", "N2", "N3", "N4", "N5", "N6")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    one, two, three, four, five, six = (Reference("env", name) for name in names)
    oauth = OAuth(token_endpoint=four, client_id=five, client_secret=six)
    security = Security("SASL_SSL", "OAUTHBEARER", oauth=oauth)
    east = Cluster("east", (one,), rack=two, cluster_id=three, security=security)
    found = east.unresolved()
    assert {problem.code for problem in found} == {"AB304"}
    assert {name for name in names if any(f"variable {name} is not set" in one.message for one in found)} == set(names)
    monkeypatch.setenv("N4", "login.example/token")
    assert any("expected an http or https URL" in problem.message for problem in east.unresolved())


def test_whom_clients_are_may_be_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    who = Reference("env", "WHO")
    kerberos = Cluster("east", ("b:1",), security=Security("SASL_SSL", "GSSAPI", kerberos=Kerberos(who)))
    assert (kerberos.security.user, kerberos.user) == (None, "principal env:WHO")
    monkeypatch.setenv("WHO", "mirror@A.B")
    assert kerberos.librdkafka()["sasl.kerberos.principal"] == "mirror@A.B"
    monkeypatch.setenv("WHO", "no principal")
    with pytest.raises(EnvironmentFault, match="expected a Kerberos principal; env:WHO holds something else"):
        kerberos.librdkafka()
    granted = replace(kerberos, replicator=Replicator(who))
    with pytest.raises(EnvironmentFault, match="expected a principal, such as User:mirror"):
        _ = granted.replicators
    monkeypatch.setenv("WHO", "User:CN=mirror")
    assert granted.replicators == {"User:CN=mirror"}


def test_a_spark_master_may_be_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(Reference("env", "MASTER"))
    monkeypatch.setenv("MASTER", "spark://s1:7077,s2:7077")
    assert spark.address == "spark://s1:7077,s2:7077"
    monkeypatch.setenv("MASTER", "local[4]")
    with pytest.raises(EnvironmentFault, match="expected spark://host:port"):
        _ = spark.address


def test_certificates_from_the_environment_reach_librdkafka_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CA", "-----BEGIN CERTIFICATE-----")
    east = Cluster("east", ("b:1",), security=Security("SSL", ca=Reference("env", "CA")))
    assert east.librdkafka()["ssl.ca.pem"] == "-----BEGIN CERTIFICATE-----"
    assert "ssl.ca.location" not in east.librdkafka()


def of(brokers: Reference | str) -> Topology:
    east = Cluster("east", (brokers,), security=Security("SASL_SSL", "PLAIN", Reference("env", "U"), place_of("P")))
    flow = Flow("east-west", "east", "west", Selection((".*",)))
    return Topology("shop", {"east": east, "west": Cluster("west", ("w:9092",))}, (flow,))


def place_of(name: str, place: str = "here") -> Reference:
    return Reference("env", name, place=place)


def test_machines_where_a_reference_leads_elsewhere_have_one_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for value, place in (("a:9092", "x.yaml:1:1 (y)"), ("b:9092", "other.yaml:7:1 (y)")):
        monkeypatch.setenv("EAST_BROKERS", value)
        topology = of(place_of("EAST_BROKERS", place))
        found.add((topology.digest, digest_into(topology, "west")))
    assert len(found) == 1
    assert of("a:9092").digest != of("b:9092").digest
    assert of(place_of("A")).digest != of(place_of("B")).digest
    assert digest_into(of(place_of("A")), "west") != digest_into(of(place_of("B")), "west")


def test_what_a_former_release_did_not_know_of_security_changes_no_digest() -> None:
    plain = of("a:9092")
    before = plain.clusters["east"].security
    digests = {plain.digest}
    for security in (
        replace(before, verify_hostname=False),
        replace(before, tls_protocols=("TLSv1.3",)),
        replace(before, ciphers=("A-B",)),
    ):
        clusters = {**plain.clusters, "east": replace(plain.clusters["east"], security=security)}
        digests.add(replace(plain, clusters=clusters).digest)
    assert len(digests) == 4
    # As the former release made it.
    assert Topology("shop", {"w": Cluster("w", ("w:9092",))}, ()).digest == FORMER


def test_references_travel_to_tasks_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = of(BROKERS)
    monkeypatch.setenv("EAST_BROKERS", "secret-host:9092")
    spec = FlowSpec.compile(topology, topology.flows[0], "run")
    text = spec.to_json()
    assert "secret-host" not in text
    again = FlowSpec.from_json(text)
    assert again == spec
    (brokers,) = again.source.bootstrap
    # A task tells where what it cannot look up is declared.
    assert isinstance(brokers, Reference)
    assert brokers.place == BROKERS.place
    assert again.source.addresses == ("secret-host:9092",)


def test_a_value_and_a_reference_survive_json() -> None:
    assert read(json.loads(json.dumps(asdict(BROKERS)))) == BROKERS
    assert read("b:9092") == settled("b:9092", "") == "b:9092"
