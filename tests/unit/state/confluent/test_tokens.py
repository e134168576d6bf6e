"""Tokens for OAUTHBEARER: from an endpoint, kept for most of their life, or from where somebody keeps them fresh."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection import tokens
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import OAuth, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients
from tests.support.answering import answering

CLIENT_SECRET = "hunter2-Sq7"


class Endpoint(HTTPServer):
    """Gives tokens; `answer` is what it says next."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str | None, dict[str, list[str]]]] = []
        self.answer: tuple[int, bytes] = (200, b"{}")
        self.location = ""

    def gives(self, text: str, life: float) -> None:
        self.answer = 200, json.dumps({"access_token": text, "expires_in": life}).encode()


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append((self.headers["Authorization"], form))
        status, body = self.server.answer
        self.send_response(status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
    # Another test's endpoint may have had the same port.
    monkeypatch.setattr(tokens, "_fetched", {})
    with answering(Endpoint()) as server:
        yield server


def of_endpoint(server: Endpoint) -> Cluster:
    return at_port(server.server_port)


def at_port(port: int, more: str = "") -> Cluster:
    url = f"http://127.0.0.1:{port}/token{more}"
    oauth = OAuth(None, url, "mirror", Reference("env", "CLIENT_SECRET"), "kafka")
    return Cluster("east", ("b1:9092",), security=Security("SASL_SSL", "OAUTHBEARER", oauth=oauth))


def kept_in(path: Path) -> Cluster:
    oauth = OAuth(Reference("file", str(path)))
    return Cluster("east", ("b1:9092",), security=Security("SASL_SSL", "OAUTHBEARER", oauth=oauth))


def test_the_secret_goes_nowhere_else(endpoint: Endpoint) -> None:
    with Endpoint() as other:
        other.gives("of-another", 60)
        thread = threading.Thread(target=other.serve_forever, daemon=True)
        thread.start()
        endpoint.location = f"http://localhost:{other.server_port}/token"
        endpoint.answer = 302, b""
        with pytest.raises(EnvironmentFault, match="HTTP status 302"):
            of_endpoint(endpoint).token()
        other.shutdown()
        thread.join()
    assert (len(endpoint.asked), other.asked) == (1, [])


@pytest.mark.parametrize("address", ["https://h:abc/t", "https://[::1/x", "http://127.0.0.1:abc/t"])
def test_what_is_no_address_is_named(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
    oauth = OAuth(None, address, "mirror", Reference("env", "CLIENT_SECRET"), "kafka")
    cluster = Cluster("east", ("b1:9092",), security=Security("SASL_SSL", "OAUTHBEARER", oauth=oauth))
    with pytest.raises(EnvironmentFault, match=r"is no address") as told:
        cluster.token()
    assert [problem.code for problem in told.value.problems] == ["AB307"]


@pytest.mark.parametrize(
    ("answered", "told"),
    [(b"\x15\x03\x03\x00\x02\x02\x46\r\n\r\n", "answer is no HTTP"), (b"", "closed connection without response")],
    ids=["TLS", "nothing"],
)
def test_who_speaks_no_http_is_named(monkeypatch: pytest.MonkeyPatch, answered: bytes, told: str) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            asking, _ = server.accept()
            with asking:
                # What is closed with unread bytes is reset: the body comes after the headers.
                asked = asking.recv(65_536)
                while b"grant_type" not in asked:
                    asked += asking.recv(65_536)
                asking.sendall(answered)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(EnvironmentFault, match=told):
            at_port(server.getsockname()[1]).token()
        thread.join()


@pytest.mark.parametrize("kind", [AdminClient, Consumer, Producer])
def test_clients_are_not_begun_without_a_token(tmp_path: Path, kind: type[AdminClient]) -> None:
    began = time.monotonic()
    settings = {} if kind is AdminClient or kind is Producer else {"group.id": "one"}
    with pytest.raises(EnvironmentFault) as told:
        clients.make(kind, kept_in(tmp_path / "nowhere"), settings)
    assert [problem.code for problem in told.value.problems] == ["AB304"]
    # librdkafka would wait for ten seconds, and say less.
    assert time.monotonic() - began < 8


def web_token(expires: float) -> str:
    parts = ({"alg": "none"}, {"sub": "mirror", "exp": expires})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def test_a_token_is_asked_for_with_the_clients_credentials_and_used_for_most_of_its_life(endpoint: Endpoint) -> None:
    endpoint.gives("first-token", 60)
    cluster = of_endpoint(endpoint)
    token = cluster.token()
    assert token.text == "first-token"
    assert 55 < token.expires - time.time() <= 60
    assert 40 < token.renew - time.time() <= 45
    endpoint.gives("second-token", 60)
    assert cluster.token() is token
    basic = base64.b64encode(f"mirror:{CLIENT_SECRET}".encode()).decode()
    assert endpoint.asked == [(f"Basic {basic}", {"grant_type": ["client_credentials"], "scope": ["kafka"]})]
    assert "first-token" not in repr(token)


def test_a_token_near_its_end_is_not_used_again(endpoint: Endpoint) -> None:
    endpoint.gives("old-token", -1)
    cluster = of_endpoint(endpoint)
    cluster.token()
    endpoint.gives("new-token", 60)
    assert cluster.token().text == "new-token"


def test_both_clients_get_it(endpoint: Endpoint) -> None:
    endpoint.gives("the-token", 60)
    cluster = of_endpoint(endpoint)
    settings = cluster.librdkafka()
    text, expires, principal, extensions = settings["oauth_cb"]("")
    assert (text, expires > time.time(), principal, extensions) == ("the-token", True, "", {})
    assert settings["sasl.mechanism"] == cluster.kafka_python()["sasl_mechanism"] == "OAUTHBEARER"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, CLIENT_SECRET.encode()), "HTTP status 401"),
        ((200, b"<html>"), "its answer is no JSON with an access_token"),
        ((200, b'{"token": "x"}'), "its answer is no JSON with an access_token"),
        ((200, b"[]"), "its answer is no JSON with an access_token"),
    ],
)
def test_no_token_is_named_without_a_secret(endpoint: Endpoint, answer: tuple[int, bytes], said: str) -> None:
    endpoint.answer = answer
    with pytest.raises(EnvironmentFault) as caught:
        of_endpoint(endpoint).token()
    (problem,) = caught.value.problems
    assert problem.code == "AB307"
    assert problem.message == f"http://127.0.0.1:{endpoint.server_port}/token gives client mirror no token: {said}"
    assert CLIENT_SECRET not in str(caught.value)
    # Nor is what somebody has put behind the address.
    with pytest.raises(EnvironmentFault) as again:
        at_port(endpoint.server_port, f"?client_secret={CLIENT_SECRET}#x").token()
    assert again.value.problems[0].message == problem.message


def test_an_endpoint_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
    with pytest.raises(EnvironmentFault, match="Connection refused") as caught:
        at_port(1).token()
    assert caught.value.problems[0].code == "AB307"


def test_a_kept_token_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("opaque\n")
    cluster = kept_in(file)
    assert cluster.token().text == "opaque"
    expires = time.time() + 1_000
    file.write_text(web_token(expires))
    token = cluster.token()
    assert (token.text, token.expires) == (web_token(expires), expires)


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [("", "is empty", "AB304"), (" \n", "is empty", "AB307"), (web_token(1.0), "has expired", "AB307")],
)
def test_a_kept_token_that_nobody_keeps_fresh_is_named(tmp_path: Path, text: str, said: str, code: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(EnvironmentFault, match=said) as caught:
        kept_in(file).token()
    assert caught.value.problems[0].code == code
    assert str(file) in str(caught.value)
