"""Token providers of users: found by entry point, and whatever they do wrong told in words."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection import token_provider
from reconciler.model.connection.references import Reference, Text
from reconciler.model.connection.security import OAuth, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.wire.net.manager import _Tokens
from tests.support.security.token_classes import install


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the distribution, which is installed as long as the test runs."""
    monkeypatch.syspath_prepend(str(install(tmp_path)))
    monkeypatch.delitem(sys.modules, "acme_tokens", raising=False)
    monkeypatch.setattr(token_provider, "_made", {})
    return import_module("acme_tokens")


def of(name: str, extensions: dict[str, Text] | None = None, **options: Text) -> Cluster:
    oauth = OAuth(
        token_provider=name,
        token_provider_options=tuple(options.items()),
        extensions=tuple((extensions or {}).items()),
    )
    return Cluster("east", ("b1:9092",), security=Security("SASL_SSL", "OAUTHBEARER", oauth=oauth))


def why(cluster: Cluster) -> str:
    with pytest.raises(EnvironmentFault) as caught:
        cluster.token()
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB307", "cluster east (b1:9092)")
    return problem.message


def test_both_clients_get_tokens_and_extensions(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOL", "pool-1")
    declared: dict[str, Text] = {"logicalCluster": "lkc-1", "identityPoolId": Reference("env", "POOL")}
    cluster = of("unsigned", declared, user="mirror", life="60")
    expected = {"logicalCluster": "lkc-1", "identityPoolId": "pool-1", "other": "own"}
    text, ends, principal, extensions = cluster.librdkafka()["oauth_cb"]("")
    assert (text.count("."), principal, extensions) == (2, "", expected)
    assert 50 < ends - time.time() <= 60
    library = _Tokens(cluster)
    assert (library.token(), library.extensions()) == (text, expected)
    # Once for three quarters of its life, and once for each cluster that declares the same.
    assert acme.CALLS == ["mirror"]
    token = cluster.token()
    assert 40 < token.renew - time.time() <= 45


def test_a_token_is_asked_for_anew_before_it_ends(acme: Any) -> None:
    cluster = of("unsigned", user="mirror", life="0.02")
    first = cluster.token()
    while time.time() < first.renew:
        pass
    assert cluster.token().text != first.text
    assert len(acme.CALLS) == 2


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("'x'", "gives something else than a token and when it ends"),
        ("('x',)", "gives something else than a token and when it ends"),
        ("(b'x', 1.0)", "gives something else than a token and when it ends"),
        ("('a b', time.time() + 9)", "gives something else than a token and when it ends"),
        ("('x', float('nan'))", "gives something else than a token and when it ends"),
        ("('x', time.time() - 9)", "gives a token that ended 9 s ago"),
        ("('x', (time.time() + 9) * 1000)", "is its end in milliseconds?"),
        ("1 / 0", "fails: ZeroDivisionError: division by zero"),
    ],
)
def test_what_is_no_token_is_told(given: str, said: str) -> None:
    assert said in why(of("given", given=given))


@pytest.mark.usefixtures("acme")
def test_what_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no entry point nowhere in the group anabranch.token_providers; there are broken, failing" in why(
        of("nowhere")
    )
    assert "token provider broken (acme_tokens:NoSuchClass) cannot be imported" in why(of("broken"))
    assert "token provider leaving fails: SystemExit: 3" in why(of("leaving"))
    monkeypatch.setenv("SECRET", "hunter2")
    assert "fails: RuntimeError: no credentials for …" in why(of("failing", password=Reference("env", "SECRET")))
    assert "expected printable ASCII as the value of extension x" in why(of("unsigned", {"x": "\x01"}, user="u"))
    for name, installed in (("nowhere", False), ("unsigned", True)):
        assert [one.code for one in of(name, user="u").unresolved()] == ([] if installed else ["AB307"])


def test_it_travels_to_tasks_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    security = of("unsigned", {"x": Reference("env", "SECRET")}, user=Reference("env", "SECRET"), life="9").security
    assert Security.from_json(asdict(security)) == security
    assert "hunter2" not in f"{security}"
    assert {str(one) for one in security.references} == {"env:SECRET"}
