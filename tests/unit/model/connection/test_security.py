"""References to secrets, and the one table that turns `security:` into both clients' settings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Kerberos, Mechanism, OAuth, Protocol, Security
from reconciler.model.declared.cluster import Cluster

PASSWORD = "correct horse; battery"


def secured(password: Reference | None) -> Cluster:
    return Cluster("west", ("b1:9092", "b2:9092"), security=Security("SASL_PLAINTEXT", "PLAIN", "alice", password))


@pytest.mark.parametrize("text", ["env:PASSWORD", "env:_x1", "file:/run/secrets/west"])
def test_a_reference_is_written_as_it_was_read(text: str) -> None:
    assert str(Reference.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "hunter2", "env:1X", "env:A-B", "env:A B", "file:relative", "file:/a b", "ENV:A", "env:A\n"]
)
def test_anything_else_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="not a reference") as caught:
        Reference.parse(text)
    assert not text or text not in str(caught.value)


def test_a_variables_value_is_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    assert Reference.parse("env:WEST_PASSWORD").resolve("cluster west") == PASSWORD


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEST_PASSWORD", raising=False)
    with pytest.raises(EnvironmentFault) as caught:
        Reference.parse("env:WEST_PASSWORD").resolve("cluster west")
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB304", "cluster west")
    assert "WEST_PASSWORD is not set" in problem.message


def test_a_variable_that_is_empty_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEST_PASSWORD", "")
    with pytest.raises(EnvironmentFault, match="AB304") as caught:
        Reference.parse("env:WEST_PASSWORD").check("cluster west")
    assert "WEST_PASSWORD is empty" in caught.value.problems[0].message


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_files_text_is_the_secret_without_its_last_line_ending(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "secret"
    file.write_text(f" {PASSWORD} {ending}", encoding="utf-8", newline="")
    assert Reference.parse(f"file:{file}").resolve("cluster west") == f" {PASSWORD} "


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        Reference.parse(f"file:{tmp_path}/missing").resolve("cluster west")
    (problem,) = caught.value.problems
    assert problem.code == "AB304"
    assert f"cannot read {tmp_path}/missing: No such file" in problem.message


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"\xff\xfe\x00secret")
    with pytest.raises(EnvironmentFault) as caught:
        Reference.parse(f"file:{file}").resolve("cluster west")
    (problem,) = caught.value.problems
    assert problem.code == "AB304"
    assert str(file) in problem.message


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n", b"\xef\xbb\xbf\n"])
def test_a_file_with_nothing_in_it_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    reference = Reference.parse(f"file:{file}")
    for look in (reference.resolve, reference.check):
        with pytest.raises(EnvironmentFault, match="AB304") as caught:
            look("cluster west")
        assert caught.value.problems[0].message == f"{file} is empty"


def test_a_mark_before_the_text_is_no_part_of_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"\xef\xbb\xbfhunter2\r\n")
    reference = Reference.parse(f"file:{file}")
    reference.check("cluster west")
    assert reference.resolve("cluster west") == "hunter2"


def test_files_of_certificates_may_have_comments_in_any_encoding(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(b"# Autorit\xe9 de certification\n-----BEGIN CERTIFICATE-----\n")
    cluster = of(Security("SSL", ca=Reference("file", str(bundle))))
    assert cluster.librdkafka()["ssl.ca.location"] == str(bundle)


def test_both_clients_get_the_same_security(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    cluster = secured(Reference.parse("env:WEST_PASSWORD"))
    assert cluster.librdkafka() == {
        "bootstrap.servers": "b1:9092,b2:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    assert cluster.kafka_python() == {
        "bootstrap_servers": ["b1:9092", "b2:9092"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }


def of(security: Security) -> Cluster:
    return Cluster("west", ("b1:9092",), security=security)


def test_librdkafka_reads_files_of_certificates_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, certificate, key = (tmp_path / name for name in ("ca.pem", "own.pem", "own.key"))
    for file in (ca, certificate, key):
        file.write_text("PEM")
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)
    trusted, own, secret = (Reference("file", str(file)) for file in (ca, certificate, key))
    password = Reference("env", "KEY_PASSWORD")
    cluster = of(Security("SSL", ca=trusted, certificate=own, key=secret, key_password=password))
    assert cluster.librdkafka() == {
        "bootstrap.servers": "b1:9092",
        "security.protocol": "SSL",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.ca.location": str(ca),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
        "ssl.key.password": PASSWORD,
    }
    assert cluster.kafka_python() == {
        "bootstrap_servers": ["b1:9092"],
        "security_protocol": "SSL",
    }
    key.unlink()
    with pytest.raises(EnvironmentFault, match=r"cannot read .*own\.key"):
        cluster.librdkafka()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_each_mechanism_reaches_both_clients(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, mechanism: Mechanism
) -> None:
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    cluster = of(Security(protocol, mechanism, "alice", Reference("env", "WEST_PASSWORD")))
    librdkafka, kafka_python = cluster.librdkafka(), cluster.kafka_python()
    assert librdkafka["security.protocol"] == kafka_python["security_protocol"] == protocol
    assert librdkafka["sasl.mechanism"] == kafka_python["sasl_mechanism"] == mechanism
    assert librdkafka["sasl.password"] == kafka_python["sasl_plain_password"] == PASSWORD
    assert ("ssl.endpoint.identification.algorithm" in librdkafka) is (protocol == "SASL_SSL")


@pytest.mark.parametrize(("mechanism", "said"), [("PLAIN", "a=b,c"), ("SCRAM-SHA-256", "a=3Db=2Cc")])
def test_names_that_scram_must_escape(monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, said: str) -> None:
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    cluster = of(Security("SASL_SSL", mechanism, "a=b,c", Reference("env", "WEST_PASSWORD")))
    assert cluster.kafka_python()["sasl_plain_username"] == said
    # librdkafka does it by itself.
    assert cluster.librdkafka()["sasl.username"] == "a=b,c"


@pytest.mark.parametrize(
    ("security", "said"),
    [
        (Security(), "an anonymous user"),
        (Security("SASL_SSL", "PLAIN", "alice"), "user alice"),
        (Security("SSL", certificate=Reference("file", "/own.pem")), "the owner of certificate /own.pem"),
        (Security("SASL_SSL", "OAUTHBEARER", oauth=OAuth(client_id="mirror")), "client mirror"),
        (Security("SASL_SSL", "OAUTHBEARER", oauth=OAuth(Reference("file", "/t"))), "the owner of token file:/t"),
    ],
)
def test_messages_say_as_whom_clients_log_in(security: Security, said: str) -> None:
    assert of(security).user == said


def test_every_reference_is_known() -> None:
    token, secret, ca = Reference("env", "T"), Reference("env", "S"), Reference("file", "/ca")
    oauth = OAuth(token, "https://login.example", "c", secret)
    assert set(Security("SASL_SSL", "OAUTHBEARER", ca=ca, oauth=oauth).references) == {token, secret, ca}


def test_without_security_both_clients_speak_plaintext() -> None:
    cluster = Cluster("west", ("b1:9092",))
    assert cluster.librdkafka() == {"bootstrap.servers": "b1:9092", "security.protocol": "PLAINTEXT"}
    assert cluster.kafka_python() == {"bootstrap_servers": ["b1:9092"], "security_protocol": "PLAINTEXT"}


def test_a_secret_is_looked_up_only_when_a_connection_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEST_PASSWORD", raising=False)
    cluster = secured(Reference.parse("env:WEST_PASSWORD"))
    assert "WEST_PASSWORD" in repr(cluster)
    for settings in (cluster.librdkafka, cluster.kafka_python):
        with pytest.raises(EnvironmentFault):
            settings()
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    assert cluster.librdkafka()["sasl.password"] == PASSWORD
    assert PASSWORD not in repr(cluster)


def test_messages_name_a_cluster_by_alias_and_addresses() -> None:
    assert Cluster("west", ("b1:9092", "b2:9092")).where == "cluster west (b1:9092,b2:9092)"


def test_a_rack_is_a_name_or_stands_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Cluster("east", ("b1:9092",)).client_rack() == ""
    assert Cluster("east", ("b1:9092",), rack="use1-az1").client_rack() == "use1-az1"
    somewhere = Cluster("east", ("b1:9092",), rack=Reference("env", "OUR_RACK"))
    monkeypatch.setenv("OUR_RACK", "use1-az2")
    assert somewhere.client_rack() == "use1-az2"
    monkeypatch.delenv("OUR_RACK")
    with pytest.raises(EnvironmentFault) as caught:
        somewhere.client_rack()
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB304", "rack of cluster east (b1:9092)")
    assert "OUR_RACK is not set" in problem.message


# --- Kerberos --------------------------------------------------------------------------------------------------------


def test_kerberos_reaches_both_clients(tmp_path: Path) -> None:
    keytab = tmp_path / "mirror.keytab"
    keytab.write_bytes(b"\x05\x02\xff")
    cluster = of(Security("SASL_SSL", "GSSAPI", kerberos=Kerberos("mirror@A.B", Reference("file", str(keytab)), "bus")))
    settings = cluster.librdkafka()
    assert {key: value for key, value in settings.items() if key.startswith("sasl.")} == {
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "bus",
        "sasl.kerberos.principal": "mirror@A.B",
        "sasl.kerberos.keytab": str(keytab),
    }
    # Whom it logs in as is asked of the cluster at each login.
    assert cluster.kafka_python()["sasl_mechanism"] == "GSSAPI"
    keytab.unlink()
    with pytest.raises(EnvironmentFault, match=r"cannot read .*mirror\.keytab: No such file"):
        cluster.librdkafka()


def test_without_a_keytab_nobody_runs_kinit() -> None:
    settings = of(Security("SASL_PLAINTEXT", "GSSAPI", kerberos=Kerberos("mirror"))).librdkafka()
    assert settings["sasl.kerberos.min.time.before.relogin"] == 0
    assert "sasl.kerberos.keytab" not in settings


@pytest.mark.parametrize("principal", ["mirror", "mirror@A.B", "mirror/host.a.b@A.B", "mirror/host.a.b"])
def test_brokers_call_a_principal_by_its_first_part(principal: str) -> None:
    security = Security("SASL_SSL", "GSSAPI", kerberos=Kerberos(principal))
    assert security.user == "mirror"
    assert security.principal == f"principal {principal}"


def test_a_reference_to_any_file_can_be_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keytab"
    file.write_bytes(b"\x05\x02\xff")
    Reference("file", str(file)).check("cluster west")
    monkeypatch.delenv("KEYTAB", raising=False)
    for missing in (Reference("env", "KEYTAB"), Reference("file", f"{tmp_path}/none")):
        with pytest.raises(EnvironmentFault) as caught:
            missing.check("cluster west")
        assert [one.code for one in caught.value.problems] == ["AB304"]


def test_kerberos_survives_json() -> None:
    security = Security("SASL_SSL", "GSSAPI", kerberos=Kerberos("mirror", Reference("file", "/k"), "bus"))
    assert Security.from_json(asdict(security)) == security


def test_a_user_stands_in_the_file_or_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    security = Security("SASL_SSL", "SCRAM-SHA-512", Reference("env", "OUR_USER"), Reference("env", "OUR_PASSWORD"))
    cluster = Cluster("east", ("b1:9092",), security=security)
    monkeypatch.setenv("OUR_PASSWORD", "secret")
    # Nobody knows beforehand whom it will be.
    assert (security.user, security.principal) == (None, "user env:OUR_USER")
    assert Reference("env", "OUR_USER") in security.references
    with pytest.raises(EnvironmentFault) as raised:
        cluster.librdkafka()
    (problem,) = raised.value.problems
    assert (problem.code, "OUR_USER is not set" in problem.message) == ("AB304", True)
    monkeypatch.setenv("OUR_USER", "o,hara")
    assert security.principal == "user o,hara"
    assert cluster.librdkafka()["sasl.username"] == "o,hara"
    assert cluster.kafka_python()["sasl_plain_username"] == "o=2Chara"
    assert Security.from_json(asdict(security)) == security
