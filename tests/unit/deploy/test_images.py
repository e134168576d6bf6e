"""Whether the image of pods is in its registry: read from its name, asked for over HTTP as registries have it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from reconciler import declare
from reconciler.deploy.kubernetes.registry import ImageName, look_up, name_of
from reconciler.operate.deployments.pods import pod_checks

pytestmark = pytest.mark.slow

TOPOLOGY = """\
version: 1
name: shop
clusters:
  a: {{bootstrap: "127.0.0.1:1", datacenter: dc1}}
  b: {{bootstrap: "127.0.0.1:2", datacenter: dc2}}
flows: [{{from: a, to: b}}]
datacenters:
  dc2:
    deploy: {{kind: kubernetes, kubernetes: {{image: "{image}"}}}}
"""


class RegistryStandIn:
    """A registry on loopback: it has `team/anabranch:1.0.0`, and gives tokens where it wants them.

    Attributes:
        host: with its port.
        asked: path and `Authorization` of each request for a manifest.
        wants: which token it wants; empty for none.
        challenge: what it answers a request without that token with.
        tokens: the answer to a request for a token.
        status: what it answers instead; 0 for nothing else.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.wants, self.tokens, self.status = "", b'{"token": "t-1"}', 0
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                given = self.headers.get("Authorization")
                registry.asked.append((self.path, given))
                assert "application/vnd.oci.image.index.v1+json" in self.headers["Accept"]
                is_known = self.path == "/v2/team/anabranch/manifests/1.0.0"
                code = registry.status or (200 if is_known else 404)
                if registry.wants and given != f"Bearer {registry.wants}":
                    code = 401
                self.send_response(code)
                if code == 401:
                    self.send_header("WWW-Authenticate", registry.challenge)
                self.end_headers()

            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                assert query == {"service": ["r"], "scope": ["repository:team/anabranch:pull"]}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(registry.tokens)

            def log_message(self, *_arguments: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        scope = 'service="r",scope="repository:team/anabranch:pull"'
        self.challenge = f'Bearer realm="http://{self.host}/token",{scope}'
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry() -> Iterator[RegistryStandIn]:
    made = RegistryStandIn()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("images.example/anabranch:1.0.0", ("images.example", "anabranch", "1.0.0")),
        ("images.example:5000/team/anabranch", ("images.example:5000", "team/anabranch", "latest")),
        ("localhost/anabranch:1", ("localhost", "anabranch", "1")),
        ("anabranch:1.0.0", ("registry-1.docker.io", "library/anabranch", "1.0.0")),
        ("team/anabranch", ("registry-1.docker.io", "team/anabranch", "latest")),
        ("docker.io/team/anabranch:1", ("registry-1.docker.io", "team/anabranch", "1")),
        (f"images.example/a:1@sha256:{'0' * 64}", ("images.example", "a", f"sha256:{'0' * 64}")),
    ],
)
def test_names_are_read_as_engines_read_them(image: str, parts: tuple[str, str, str]) -> None:
    assert name_of(image) == ImageName(*parts)


def test_one_that_is_there_and_one_that_is_not(registry: RegistryStandIn) -> None:
    there = look_up(f"{registry.host}/team/anabranch:1.0.0")
    assert there == ("ok", f"{registry.host} has team/anabranch with 1.0.0")
    for image, said in (("team/anabranch:1.0.1", "team/anabranch with 1.0.1"), ("other", "other with latest")):
        assert look_up(f"{registry.host}/{image}") == ("failure", f"{registry.host} has no {said}")


def test_a_token_is_fetched_where_everybody_may_have_one(registry: RegistryStandIn) -> None:
    registry.wants = "t-1"
    assert look_up(f"{registry.host}/team/anabranch:1.0.0").level == "ok"
    assert [given for _, given in registry.asked] == [None, "Bearer t-1"]


@pytest.mark.parametrize(
    "tokens", [b'{"token": "t-2"}', b"{}", b"[]", b"<html>", b'{"token": 7}', b'{"token": "a\\nb"}']
)
def test_where_a_login_is_wanted_nothing_is_claimed(tokens: bytes, registry: RegistryStandIn) -> None:
    registry.wants, registry.tokens = "t-1", tokens
    seen = look_up(f"{registry.host}/team/anabranch:1.0.0")
    assert seen == ("warning", f"{registry.host} requires a login for team/anabranch, which pods may have")


@pytest.mark.parametrize("challenge", ["Basic realm=x", "Bearer", 'Bearer realm="file:///etc/passwd"', ""])
def test_a_challenge_that_leads_elsewhere_is_not_followed(challenge: str, registry: RegistryStandIn) -> None:
    registry.wants, registry.challenge = "t-1", challenge
    assert look_up(f"{registry.host}/team/anabranch:1.0.0").level == "warning"
    assert len(registry.asked) == 1


@pytest.mark.parametrize(("status", "level"), [(403, "warning"), (500, "warning"), (307, "warning"), (404, "failure")])
def test_other_answers_are_told(status: int, level: str, registry: RegistryStandIn) -> None:
    registry.status = status
    assert look_up(f"{registry.host}/team/anabranch:1.0.0").level == level


def test_a_registry_that_is_away_or_not_allowed_is_told(
    registry: RegistryStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = look_up("127.0.0.1:1/anabranch:1")
    assert (seen.level, "127.0.0.1:1 does not answer: " in seen.found) == ("warning", True)
    monkeypatch.setenv("ANABRANCH_ALLOWED_HOSTS", "*.example")
    seen = look_up(f"{registry.host}/team/anabranch:1.0.0")
    assert (seen.level, "may not be connected to from here" in seen.found) == ("warning", True)
    assert registry.asked == []


def test_doctor_names_the_place_of_an_image_that_is_not_there(tmp_path: Path, registry: RegistryStandIn) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(TOPOLOGY.format(image=f"{registry.host}/team/anabranch:2"))
    topology = declare.load([file])
    (check,) = pod_checks(topology, ["b"])
    assert (check.what, check.level) == ("image of dc2", "failure")
    assert check.found == f"{registry.host} has no team/anabranch with 2"
    assert check.remedy == f"see kubernetes.image at {file}:9:13 (datacenters.dc2.deploy)"
    assert list(pod_checks(topology, ["a"])) == []
