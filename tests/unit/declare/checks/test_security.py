"""Which fields under `security:` go together: every impossible combination is told, all at once, without values."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import declare
from reconciler.model.base.errors import Problem
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Kerberos, OAuth, Security
from tests.unit.declare.declaring import load, refused, write

HEAD = "version: 1\nname: shop\nclusters:\n"
PASSWORD = "mechanism: PLAIN, username: u, password: 'env:P'"
ENDPOINT = "token-endpoint: 'https://login.example/token', client-id: c, client-secret: 'env:S'"


def declared(security: str) -> str:
    return f"{HEAD}  a: {{bootstrap: 'b:1', security: {{{security}}}}}\n"


def problems(folder: Path, security: str) -> list[str]:
    """Return code, last key of the path, and message of each problem."""
    found = refused(folder, declared(security))
    return [f"{one.code} {one.where.rpartition('.')[2].strip(')')}: {one.message}" for one in found]


def security_of(folder: Path, security: str) -> Security:
    flow = "  b: {bootstrap: 'b:2'}\nflows: [{from: a, to: b}]\n"
    return load(folder, declared(security) + flow).clusters["a"].security


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ("protocol: SSL", Security("SSL")),
        (
            "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {token-provider: p, token-provider-options: "
            "{region: r, secret: 'env:S'}, extensions: {logicalCluster: 'file:/x#y'}}",
            Security(
                "SASL_SSL",
                "OAUTHBEARER",
                oauth=OAuth(
                    token_provider="p",
                    token_provider_options=(("region", "r"), ("secret", Reference("env", "S"))),
                    extensions=(("logicalCluster", Reference("file", "/x", "y")),),
                ),
            ),
        ),
        (
            "protocol: SSL, verify-hostname: false, tls-protocols: [TLSv1.2, TLSv1.3], ciphers: [A-B, C-D]",
            Security("SSL", verify_hostname=False, tls_protocols=("TLSv1.2", "TLSv1.3"), ciphers=("A-B", "C-D")),
        ),
        ("protocol: SSL, ca: 'file:/ca'", Security("SSL", ca=Reference("file", "/ca"))),
        (
            "protocol: SSL, certificate: 'file:/c', key: 'file:/k', key-password: 'env:K'",
            Security(
                "SSL",
                certificate=Reference("file", "/c"),
                key=Reference("file", "/k"),
                key_password=Reference("env", "K"),
            ),
        ),
        (
            "protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: u, password: 'env:P'",
            Security("SASL_SSL", "SCRAM-SHA-512", "u", Reference("env", "P")),
        ),
        (
            f"protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {{{ENDPOINT}, scope: kafka}}",
            Security(
                "SASL_SSL",
                "OAUTHBEARER",
                oauth=OAuth(None, "https://login.example/token", "c", Reference("env", "S"), "kafka"),
            ),
        ),
        (
            "protocol: SASL_PLAINTEXT, mechanism: OAUTHBEARER, oauth: {token: 'file:/t'}",
            Security("SASL_PLAINTEXT", "OAUTHBEARER", oauth=OAuth(Reference("file", "/t"))),
        ),
        (
            "protocol: SASL_SSL, mechanism: GSSAPI, kerberos: {principal: 'm/h@A.B', keytab: 'file:/k', service: bus}",
            Security("SASL_SSL", "GSSAPI", kerberos=Kerberos("m/h@A.B", Reference("file", "/k"), "bus")),
        ),
        (
            "protocol: SASL_PLAINTEXT, mechanism: GSSAPI, kerberos: {principal: m}",
            Security("SASL_PLAINTEXT", "GSSAPI", kerberos=Kerberos("m")),
        ),
    ],
)
def test_what_goes_together_is_taken(tmp_path: Path, security: str, expected: Security) -> None:
    assert security_of(tmp_path, security) == expected


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        (
            f"protocol: SSL, {PASSWORD}",
            [
                "AB104 mechanism: mechanism does not go with protocol SSL",
                "AB104 username: username does not go with protocol SSL",
                "AB104 password: password does not go with protocol SSL",
            ],
        ),
        (
            "protocol: PLAINTEXT, ca: 'file:/ca', certificate: 'file:/c', oauth: {token: 'env:T'}",
            [
                "AB104 ca: ca does not go with protocol PLAINTEXT",
                "AB104 certificate: certificate does not go with protocol PLAINTEXT",
                "AB104 oauth: oauth does not go with protocol PLAINTEXT",
            ],
        ),
        (
            f"protocol: SASL_PLAINTEXT, {PASSWORD}, ca: 'file:/ca'",
            ["AB104 ca: ca does not go with protocol SASL_PLAINTEXT"],
        ),
        ("protocol: SASL_SSL", ["AB114 security: mechanism, username and password are missing"]),
        ("protocol: SASL_SSL, mechanism: SCRAM-SHA-256, username: u", ["AB114 security: password is missing"]),
        ("protocol: SASL_SSL, mechanism: OAUTHBEARER", ["AB114 security: oauth is missing"]),
        ("protocol: SASL_SSL, oauth: {token: 'env:T'}", ["AB114 security: mechanism is missing"]),
        ("protocol: SASL_SSL, kerberos: {principal: m}", ["AB114 security: mechanism is missing"]),
        ("protocol: SASL_SSL, mechanism: GSSAPI", ["AB114 security: kerberos is missing"]),
        (
            "protocol: SASL_SSL, mechanism: GSSAPI, username: u, kerberos: {principal: m}, oauth: {token: 'env:T'}",
            [
                "AB104 username: username does not go with GSSAPI",
                "AB104 oauth: oauth does not go with mechanism GSSAPI",
            ],
        ),
        (
            f"protocol: SASL_SSL, {PASSWORD}, kerberos: {{principal: m}}",
            ["AB104 kerberos: kerberos does not go with mechanism PLAIN"],
        ),
        (
            "protocol: PLAINTEXT, verify-hostname: false, tls-protocols: [TLSv1.3], ciphers: [A-B]",
            [
                f"AB104 {one}: {one} does not go with protocol PLAINTEXT"
                for one in ("verify-hostname", "tls-protocols", "ciphers")
            ],
        ),
        (
            "protocol: SSL, tls-protocols: [TLSv1.2]",
            ["AB104 tls-protocols: expected TLSv1.3 among the versions; found TLSv1.2 alone"],
        ),
        (
            "protocol: SSL, tls-protocols: [TLSv1.3], ciphers: [A-B]",
            ["AB104 ciphers: ciphers does not go with TLSv1.3 alone: they are suites of TLS 1.2"],
        ),
        ("protocol: SSL, kerberos: {principal: m}", ["AB104 kerberos: kerberos does not go with protocol SSL"]),
        ("protocol: SSL, certificate: 'file:/c'", ["AB114 security: key is missing beside certificate"]),
        ("protocol: SSL, key: 'file:/k'", ["AB114 security: certificate is missing beside key"]),
        ("protocol: SSL, key-password: 'env:K'", ["AB114 security: key is missing beside key-password"]),
        (
            f"protocol: SASL_SSL, {PASSWORD}, oauth: {{token: 'env:T'}}",
            ["AB104 oauth: oauth does not go with mechanism PLAIN"],
        ),
        (
            "protocol: SASL_SSL, mechanism: OAUTHBEARER, username: u, oauth: {token: 'env:T'}",
            ["AB104 username: username does not go with OAUTHBEARER"],
        ),
        (
            "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {token-provider: p, token: 'env:T', client-id: c}",
            [
                "AB104 token-provider: token-provider does not go with token",
                "AB104 client-id: client-id does not go with token",
            ],
        ),
        (
            "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {token: 'env:T', token-provider-options: {a: b}}",
            ["AB114 oauth: token-provider is missing beside token-provider-options"],
        ),
        (
            "protocol: SASL_SSL, mechanism: OAUTHBEARER, "
            "oauth: {token-provider: p, token-provider-options: {role: r, client-secret: hunter2}}",
            [
                "AB110 client-secret: expected env:NAME, file:/absolute/path or file:/absolute/path#key "
                "for client-secret; found text"
            ],
        ),
        (
            "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {client-id: c}",
            ["AB114 oauth: token-endpoint and client-secret are missing"],
        ),
        (
            f"protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {{token: 'env:T', {ENDPOINT}}}",
            [
                "AB104 token-endpoint: token-endpoint does not go with token",
                "AB104 client-id: client-id does not go with token",
                "AB104 client-secret: client-secret does not go with token",
            ],
        ),
        (
            "protocol: SASL_SSL, mechanism: PLAIN, password: hunter2, ca: /ca.pem, certificate: 'file:/c'",
            [
                "AB114 security: username is missing",
                "AB114 security: key is missing beside certificate",
                "AB110 password: expected env:NAME, file:/absolute/path or file:/absolute/path#key; found text",
                "AB110 ca: expected a reference to PEM text: file:/absolute/path, or env:NAME; found text",
            ],
        ),
    ],
)
def test_what_does_not_go_together_is_told_all_at_once(tmp_path: Path, security: str, expected: list[str]) -> None:
    assert problems(tmp_path, security) == expected


def test_a_misspelt_field_is_not_told_as_missing_too(tmp_path: Path) -> None:
    (one,) = refused(
        tmp_path, declared("protocol: SASL_SSL, mechanism: PLAIN, usernam: u, password: 'env:P', ca: 'file:/ca'")
    )
    assert (one.code, one.remedy) == ("AB103", "did you mean username?")


@pytest.mark.parametrize("key", ["truststore", "keystore", "keystore-password"])
def test_java_stores_are_explained(tmp_path: Path, key: str) -> None:
    (one,) = refused(tmp_path, declared(f"protocol: SSL, {key}: 'file:/secret-name.jks'"))
    assert one.code == "AB103"
    assert "keytool -importkeystore" in one.remedy
    assert "openssl pkcs12" in one.remedy
    assert "secret-name" not in str(one)


@pytest.mark.parametrize(
    "security",
    [
        "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {token: hunter2-Sq7}",
        "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {client-secret: hunter2-Sq7, client-id: c}",
        "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {token-endpoint: 'https://me:hunter2-Sq7@login.example'}",
        "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: hunter2-Sq7",
        "protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {hunter2-Sq7: x}",
        "protocol: SSL, key-password: hunter2-Sq7, key: hunter2-Sq7",
        "protocol: SSL, keystore-password: hunter2-Sq7",
        "protocol: PLAINTEXT, password: 'file:/hunter2-Sq7'",
    ],
)
def test_no_message_repeats_what_may_be_a_secret(tmp_path: Path, security: str) -> None:
    found = refused(tmp_path, declared(security))
    assert found
    assert not [one for one in found if "hunter2" in str(one)]


def test_clusters_of_a_realm_have_one_principal(tmp_path: Path) -> None:
    def cluster(alias: str, principal: str) -> str:
        login = f"protocol: SASL_SSL, mechanism: GSSAPI, kerberos: {{principal: {principal}}}"
        return f"  {alias}: {{bootstrap: '{alias}:1', security: {{{login}}}}}\n"

    flows = "flows: [{from: a, to: b}, {from: a, to: c}]\n"
    (one,) = refused(tmp_path, HEAD + cluster("a", "m@X") + cluster("b", "other@Y") + cluster("c", "n@X") + flows)
    assert one.code == "AB123"
    assert one.where.endswith("(clusters.c.security.kerberos.principal)")
    assert one.message == "expected m@X, as cluster a of the same realm has it; found n@X"
    assert load(tmp_path, HEAD + cluster("a", "m@X") + cluster("b", "other@Y") + cluster("c", "m@X") + flows)


LOGIN = "mechanism: {}, username: u, password: 'env:P'"
TOKEN = "mechanism: OAUTHBEARER, oauth: {{token-endpoint: '{}', client-id: c, client-secret: 'env:S'}}"
FAR, NEAR = "['localhost:1', 'b:1']", "['localhost:1', '127.0.0.1:2', '[::1]:3']"


@pytest.mark.parametrize(
    ("bootstrap", "security", "expected"),
    [
        (
            FAR,
            f"protocol: SASL_PLAINTEXT, {LOGIN.format('PLAIN')}",
            ["AB128 protocol: SASL_PLAINTEXT with PLAIN sends"],
        ),
        (NEAR, f"protocol: SASL_PLAINTEXT, {LOGIN.format('PLAIN')}", []),
        (FAR, f"protocol: SASL_PLAINTEXT, {LOGIN.format('SCRAM-SHA-512')}", []),
        (FAR, f"protocol: SASL_SSL, {LOGIN.format('PLAIN')}", []),
        (FAR, "protocol: PLAINTEXT", []),
        (
            FAR,
            f"protocol: SASL_PLAINTEXT, {TOKEN.format('http://login.example/t')}",
            [
                "AB128 protocol: SASL_PLAINTEXT with OAUTHBEARER",
                "AB127 token-endpoint: the client's secret goes to this",
            ],
        ),
        (FAR, f"protocol: SASL_SSL, {TOKEN.format('http://login.example/t')}", ["AB127 token-endpoint: the client's"]),
        (NEAR, f"protocol: SASL_SSL, {TOKEN.format('http://login.example/t')}", ["AB127 token-endpoint: the client's"]),
        (FAR, f"protocol: SASL_SSL, {TOKEN.format('https://login.example/t')}", []),
        (FAR, "protocol: SSL, verify-hostname: false", ["AB130 verify-hostname: certificates of brokers are taken"]),
        (FAR, "protocol: SSL, verify-hostname: true", []),
        (FAR, f"protocol: SASL_SSL, {TOKEN.format('http://127.0.0.1:8080/t')}", []),
    ],
)
def test_secrets_that_go_in_clear_are_warned_of(
    tmp_path: Path, bootstrap: str, security: str, expected: list[str]
) -> None:
    text = f"{HEAD}  a: {{bootstrap: {bootstrap}, security: {{{security}}}}}\n  b: {{bootstrap: 'c:2'}}\n"
    warnings: list[Problem] = []
    declare.load(write(tmp_path, f"{text}flows: [{{from: a, to: b}}]\n"), warn=warnings.append)
    found = [f"{one.code} {one.where.rpartition('.')[2].strip(')')}: {one.message}" for one in warnings]
    assert len(found) == len(expected)
    assert all(one.startswith(said) for one, said in zip(found, expected, strict=True)), found
