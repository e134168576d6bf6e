"""How long is waited for topics that were made: as long as the cluster gets on, and not for ever."""

from __future__ import annotations

import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.model.base.progress import Progress
from reconciler.model.declared.cluster import Cluster
from reconciler.provision import admin
from reconciler.provision.admin import Admin
from reconciler.state.confluent import clients

WEST = Cluster("west", ("127.0.0.1:1",))
PARTITIONS = 20


class Electing:
    """Stands for a cluster whose controller elects a leader between two looks, up to a number of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.led = 0

    def listed(self, *_: object) -> Any:
        self.led = min(self.most, self.led + 1)
        leaders = [1 if number < self.led else -1 for number in range(PARTITIONS)]
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in enumerate(leaders)}
        return SimpleNamespace(topics={"a": SimpleNamespace(partitions=partitions)})


def waits(cluster: Electing, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], dict[str, str]]:
    """Return ids and codes of problems by topic, of a wait that gives up after ten looks without progress."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    described: Future[Any] = Future()
    described.set_result(SimpleNamespace(topic_id="id"))
    monkeypatch.setattr(admin, "VISIBLE_SECONDS", 10 * admin._PAUSE_SECONDS)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(admin, "Progress", lambda seconds: Progress(seconds, lambda: now[0]))
    monkeypatch.setattr(clients, "listed", cluster.listed)
    monkeypatch.setattr(Admin, "_describe", lambda _self, names: dict.fromkeys(names, described))
    ids, problems = Admin(WEST).await_topics({"a": PARTITIONS})
    return ids, {name: problem.code for name, problem in problems.items()}


def test_a_cluster_that_gets_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits(Electing(PARTITIONS), monkeypatch) == ({"a": "id"}, {})


@pytest.mark.parametrize("most", [0, 1, PARTITIONS - 1])
def test_a_cluster_that_is_stuck_is_named(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    cluster = Electing(most)
    assert waits(cluster, monkeypatch) == ({}, {"a": "AB316"})
