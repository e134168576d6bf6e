"""What is said where the topic of offset syncs may not be looked at or changed, and what is no refusal."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigSource

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.state import syncs
from reconciler.state.confluent import clients
from reconciler.state.journals.journal import Journal

WEST = Cluster("west", ("127.0.0.1:1",))


REFUSED, SILENT = KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._TIMED_OUT
BY_DEFAULT = SimpleNamespace(source=ConfigSource.DEFAULT_CONFIG.value)


class Answering:
    """A cluster with a topic of which nothing was set; what it is asked to do may end with errors."""

    def __init__(self, told: int | None, changed: int | None) -> None:
        self._told, self._changed = told, changed

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        return dict.fromkeys(resources, ended(self._told, {"min.compaction.lag.ms": BY_DEFAULT}))

    def incremental_alter_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        return dict.fromkeys(resources, ended(self._changed, None))

    def poll(self, timeout: float) -> None:
        """Report nothing."""


def ended(code: int | None, result: object) -> Future[Any]:
    future: Future[Any] = Future()
    if code is None:
        future.set_result(result)
    else:
        future.set_exception(KafkaException(KafkaError(code)))
    return future


def ensured(monkeypatch: pytest.MonkeyPatch, told: int | None, changed: int | None) -> str | None:
    monkeypatch.setattr(Journal, "ensure", lambda self: False)
    monkeypatch.setattr(clients, "make", lambda *arguments, **options: Answering(told, changed))
    return syncs.ensure(WEST, "east", 1.0)


def test_who_may_not_change_the_topic_is_told_what_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ensured(monkeypatch, None, REFUSED)
    assert said is not None
    assert "mm2-offset-syncs.east.internal may be compacted at any time" in said
    assert "grant ALTER_CONFIGS" in said


def test_who_may_not_look_is_told_nothing_and_neither_is_who_may_do_both(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ensured(monkeypatch, REFUSED, SILENT) is None
    assert ensured(monkeypatch, None, None) is None


@pytest.mark.parametrize(("told", "changed"), [(SILENT, None), (None, SILENT)])
def test_a_cluster_that_does_not_answer_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch, told: int | None, changed: int | None
) -> None:
    with pytest.raises(EnvironmentFault, match="AB310"):
        ensured(monkeypatch, told, changed)
