"""What is wrong with a TLS connection is named: by a look of our own behind librdkafka's, and by the wire."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from reconciler.embedded.certificates import Authority
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import tls
from reconciler.wire import NotLetIn
from tests.support.wire.tls import HOST, reference, serving, trusting
from tests.support.wire.wires import ask

pytestmark = pytest.mark.slow

# A key of `Authority.issue(secret=…)`, as `openssl pkcs8 -topk8 -v2 aes-256-cbc` writes it.
KEY, KEY_PASSWORD = 20261122, "key-secret"
ENCRYPTED_KEY = """\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjHtsGfslQS7AICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEAohuhYj8gzEkOjCMz8ifogEgZBn
gRaVaHJASPK26VHGGcfaiuJsigDXV+5qhtCVrlmFMASGwhsKRLogeMBOUZAq8cbs
daeMfD5nI8n7YAOZjjPy9Qz4AHwp3eln2NhX6BgfIUSI3MqmsZKxYZLr6pfBveCF
T+V6rfu6bl5RQ/N6KHboP6kgGy+grq/0nmJeJjaf9fdM+hALwwHMM+netitKxqU=
-----END ENCRYPTED PRIVATE KEY-----
"""
OURS, OTHERS = Authority("ours"), Authority("others")


def found(cluster: Cluster) -> Problem | None:
    """Return what a look finds."""
    fault = tls.examine(cluster)
    if fault is None:
        return None
    assert isinstance(fault, EnvironmentFault)
    (problem,) = fault.problems
    assert problem.where == cluster.where
    return problem


def told(cluster: Cluster) -> str:
    """Return what the wire says."""
    with pytest.raises(NotLetIn) as refused:
        ask(cluster, lambda wire: wire.topics(["orders"]), timeout=0.3)
    return str(refused.value)


def said(problem: Problem) -> str:
    return f"{problem.where}: {problem.message}; {problem.remedy}"


def test_a_certificate_of_our_authority_is_accepted(tmp_path: Path) -> None:
    with serving(OURS.issue("broker", (HOST,)), tmp_path) as port:
        assert found(trusting(OURS, tmp_path, f"{HOST}:{port}")) is None


@pytest.mark.parametrize(
    ("authority", "host", "life", "words", "remedy"),
    [
        (OURS, HOST, -1, "certificate has expired", "renew the broker's certificate"),
        (OTHERS, HOST, 1, "unable to get local issuer certificate", "set security.ca"),
        (OURS, "elsewhere.example", 1, f"certificate is not valid for '{HOST}'", "as their certificates do"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_told_apart(
    tmp_path: Path, authority: Authority, host: str, life: int, words: str, remedy: str
) -> None:
    own = authority.issue("broker", (host,), timedelta(days=life))
    with serving(own, tmp_path) as port:
        cluster = trusting(OURS, tmp_path, f"{HOST}:{port}")
        problem = found(cluster)
        assert problem is not None
        assert told(cluster) == said(problem)
    assert problem.code == "AB318"
    assert (
        f"an anonymous user cannot connect to {HOST}:{port}: the broker's certificate is not accepted"
        in problem.message
    )
    assert words in problem.message
    assert remedy in problem.remedy


@pytest.mark.parametrize(("authority", "life"), [(None, 1), (OTHERS, 1), (OURS, -1)])
def test_a_client_whose_certificate_is_refused_hears_of_it(
    tmp_path: Path, authority: Authority | None, life: int
) -> None:
    with serving(OURS.issue("broker", (HOST,)), tmp_path, clients=OURS) as port:
        cluster = trusting(OURS, tmp_path, f"{HOST}:{port}")
        if authority is not None:
            certificate, key = authority.issue("mirror", life=timedelta(days=life)).write(tmp_path, "mirror")
            security = replace(cluster.security, certificate=reference(certificate), key=reference(key))
            cluster = replace(cluster, security=security)
        problem = found(cluster)
        words = told(cluster)
    assert problem is not None
    assert problem.code == "AB318"
    assert "alert" in problem.message
    # A connection may be closed before the alert could be read.
    assert "alert" in words or "is closed after the TLS handshake" in words
    assert problem.remedy in words
    assert ("mirror.pem" if authority else "no certificate") in problem.message


def test_a_key_may_have_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, _ = OURS.issue("mirror", secret=KEY).write(tmp_path, "mirror")
    (tmp_path / "encrypted.key").write_text(ENCRYPTED_KEY)
    with serving(OURS.issue("broker", (HOST,)), tmp_path, clients=OURS) as port:
        plain = trusting(OURS, tmp_path, f"{HOST}:{port}")
        own = replace(
            plain.security,
            certificate=reference(certificate),
            key=reference(tmp_path / "encrypted.key"),
            key_password=Reference("env", "KEY_PASSWORD"),
        )
        monkeypatch.setenv("KEY_PASSWORD", KEY_PASSWORD)
        assert tls.examine(replace(plain, security=own)) is None
        monkeypatch.setenv("KEY_PASSWORD", "wrong")
        problem = found(replace(plain, security=own))
        assert problem is not None
        assert told(replace(plain, security=own)) == said(problem)
    assert problem.code == "AB306"
    assert "wrong" not in str(problem)


def test_certificates_and_keys_may_stand_in_the_environment_and_in_properties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = OURS.issue("mirror").write(tmp_path, "mirror")
    properties = tmp_path / "own.properties"
    properties.write_text("key=" + key.read_text().strip().replace("\n", "\\n"))
    with serving(OURS.issue("broker", (HOST,)), tmp_path, clients=OURS) as port:
        plain = trusting(OURS, tmp_path, f"{HOST}:{port}")
        assert plain.security.ca is not None
        ca, own = Reference("env", "CA"), Reference("env", "CERTIFICATE")
        monkeypatch.setenv("CA", plain.security.ca.resolve("east"))
        monkeypatch.setenv("CERTIFICATE", certificate.read_text())
        security = replace(plain.security, ca=ca, certificate=own, key=Reference("file", str(properties), "key"))
        assert tls.examine(replace(plain, security=security)) is None
        # The server closes whatever is said; the handshake was done.
        assert "is closed after the TLS handshake" in told(replace(plain, security=security))
        # A path, where the certificate itself was to be.
        monkeypatch.setenv("CERTIFICATE", str(certificate))
        problem = found(replace(plain, security=security))
        assert problem is not None
        assert told(replace(plain, security=security)) == said(problem)
        assert (problem.code, "env:CERTIFICATE" in problem.message) == ("AB306", True)


def librdkafka_shakes_hands(cluster: Cluster, handshakes: list[bool]) -> bool:
    """Tell whether the other client comes to the end of a handshake, as the server sees it."""
    handshakes.clear()
    client = AdminClient(cluster.librdkafka() | {"log_level": "2", "error_cb": lambda _: None})
    deadline = time.monotonic() + 30
    while not handshakes:
        assert time.monotonic() < deadline, "it does not connect"
        with contextlib.suppress(KafkaException):
            client.list_topics(timeout=0.2)
    return handshakes[0]


def oldest(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2


def one_suite(context: ssl.SSLContext) -> None:
    oldest(context)
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")


@pytest.mark.parametrize(
    ("fields", "names", "prepare", "agree"),
    [
        ({}, ("elsewhere.example",), bool, False),
        ({"verify_hostname": False}, ("elsewhere.example",), bool, True),
        ({}, (HOST,), oldest, True),
        ({"tls_protocols": ("TLSv1.3",)}, (HOST,), oldest, False),
        ({"tls_protocols": ("TLSv1.3",)}, (HOST,), bool, True),
        ({"tls_protocols": ("TLSv1.2", "TLSv1.3")}, (HOST,), oldest, True),
        ({"ciphers": ("ECDHE-ECDSA-AES256-GCM-SHA384",)}, (HOST,), one_suite, False),
        ({"ciphers": ("ECDHE-ECDSA-AES128-GCM-SHA256",)}, (HOST,), one_suite, True),
    ],
)
def test_both_clients_speak_tls_as_it_is_declared(
    tmp_path: Path,
    fields: dict[str, Any],
    names: tuple[str, ...],
    prepare: Callable[[ssl.SSLContext], object],
    agree: bool,
) -> None:
    handshakes: list[bool] = []
    with serving(OURS.issue("broker", names), tmp_path, prepare=prepare, handshakes=handshakes) as port:
        cluster = trusting(OURS, tmp_path, f"{HOST}:{port}")
        cluster = replace(cluster, security=replace(cluster.security, **fields))
        problem = found(cluster)
        assert (problem is None) is agree
        assert "tls_protocols" not in fields or problem is None or "leave out security.tls-protocols" in problem.remedy
        # The server closes after each handshake.
        assert ("is closed after the TLS handshake" in told(cluster)) is agree
        assert librdkafka_shakes_hands(cluster, handshakes) is agree


def test_a_suite_that_is_none_is_told(tmp_path: Path) -> None:
    with serving(OURS.issue("broker", (HOST,)), tmp_path) as port:
        cluster = trusting(OURS, tmp_path, f"{HOST}:{port}")
        cluster = replace(cluster, security=replace(cluster.security, ciphers=("NO-SUCH-SUITE",)))
        problem = found(cluster)
        assert problem is not None
        assert told(cluster) == said(problem)
    assert (problem.code, "ciphers are suites of TLS 1.2" in problem.remedy) == ("AB306", True)


def test_a_port_without_tls_is_named(tmp_path: Path) -> None:
    with serving(None, tmp_path) as port:
        cluster = trusting(OURS, tmp_path, f"{HOST}:{port}")
        problem = found(cluster)
        assert problem is not None
        assert told(cluster) == said(problem)
    assert problem.code == "AB319"
    assert "does not answer as a TLS server does" in problem.message
    assert "set security.protocol to PLAINTEXT" in problem.remedy


def test_a_port_with_tls_is_named_to_whom_speaks_without(tmp_path: Path) -> None:
    with serving(OURS.issue("broker", (HOST,)), tmp_path) as port:
        problem = found(Cluster("east", (f"{HOST}:{port}",)))
    assert problem is not None
    assert problem.code == "AB319"
    assert problem.message == f"an anonymous user cannot connect to {HOST}:{port} with PLAINTEXT: it uses TLS"
    assert "set security.protocol to SSL" in problem.remedy


def test_nobody_there_is_no_matter_of_tls(tmp_path: Path) -> None:
    assert tls.examine(trusting(OURS, tmp_path, f"{HOST}:1")) is None
    assert tls.examine(Cluster("east", (f"{HOST}:1",), security=Security("SSL"))) is None
