"""The forges that the pipelines' tests run against, each test on both; and the two ends of a connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.state import copies
from reconciler.state.confluent import clients
from reconciler.state.confluent.shared import Shared
from tests.support.ci.forge_github import GitHubDouble
from tests.support.ci.forge_gitlab import GitLabDouble
from tests.support.ci.forges import ForgeDouble, Store
from tests.support.ci.gitops import Job
from tests.support.wire.sockets import Pair


@pytest.fixture(autouse=True)
def _own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share nothing with another test: made-up clusters have one address."""
    for module in (clients, copies):
        monkeypatch.setattr(module, "_shared", Shared())


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as running:
        yield running


@pytest.fixture(params=[GitHubDouble, GitLabDouble], ids=["github", "gitlab"])
def forge(request: pytest.FixtureRequest, store: Store) -> Iterator[ForgeDouble]:
    with request.param(store) as running:
        yield running


@pytest.fixture
def job(forge: ForgeDouble, tmp_path: Path) -> Job:
    return Job(tmp_path, forge.variables())


@pytest.fixture
def pair() -> Iterator[Pair]:
    listener = socket.create_server(("127.0.0.1", 0))
    there = socket.create_connection(listener.getsockname())
    here, _ = listener.accept()
    listener.close()
    here.setblocking(False)
    yield here, there
    here.close()
    there.close()
