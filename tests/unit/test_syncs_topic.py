"""What is said where the topic of offset syncs may not be looked at or changed, and what is no refusal."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from reconciler.model.cluster import Cluster
from reconciler.model.errors import EnvironmentFault
from reconciler.state import clients, syncs
from reconciler.state.journal import Journal

WEST = Cluster("west", ("127.0.0.1:1",))


class Refusing:
    """A cluster that answers everything with one error."""

    def __init__(self, code: int) -> None:
        self._code = code

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        future: Future[Any] = Future()
        future.set_exception(KafkaException(KafkaError(self._code)))
        return dict.fromkeys(resources, future)

    def poll(self, timeout: float) -> None:
        """Report nothing."""


def ensured(monkeypatch: pytest.MonkeyPatch, code: int) -> str | None:
    monkeypatch.setattr(Journal, "ensure", lambda self: False)
    monkeypatch.setattr(clients, "make", lambda *arguments, **options: Refusing(code))
    return syncs.ensure(WEST, "east", 1.0)


def test_who_may_not_change_the_topic_is_told_what_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ensured(monkeypatch, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert said is not None
    assert "mm2-offset-syncs.east.internal may be compacted at any time" in said
    assert "grant DESCRIBE_CONFIGS and ALTER_CONFIGS" in said


def test_a_cluster_that_does_not_answer_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFault, match="AB310"):
        ensured(monkeypatch, KafkaError._TIMED_OUT)
