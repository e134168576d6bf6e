"""What the client says of partitions without a leader; no broker."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from reconciler.checkpoints.bounds import Asker
from reconciler.model.cluster import Cluster
from reconciler.model.errors import AnabranchError
from reconciler.state import clients

LOG = "east.checkpoints.internal", 0


class Client:
    """Answers each question for an offset with one error."""

    def __init__(self, error: KafkaError) -> None:
        self._error = error

    def list_offsets(self, asked: dict[Any, Any], **_options: Any) -> dict[Any, Future[Any]]:
        failed: Future[Any] = Future()
        failed.set_exception(KafkaException(self._error))
        return dict.fromkeys(asked, failed)

    def poll(self, _seconds: float) -> int:
        return 0


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError.LEADER_NOT_AVAILABLE),
        KafkaError(KafkaError._NOENT, "Failed to query partition leaders: No leaders found"),
    ],
)
def test_who_has_no_leader_has_no_bounds(monkeypatch: pytest.MonkeyPatch, error: KafkaError) -> None:
    """Of a topic that was just made all may have none."""
    monkeypatch.setattr(clients.Renewed, "get", lambda _: Client(error))
    assert Asker(Cluster("west", ("w:9092",)), 1.0).bounds([LOG]) == {}


def test_any_other_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients.Renewed, "get", lambda _: Client(KafkaError(KafkaError._TIMED_OUT)))
    with pytest.raises(AnabranchError, match="AB310"):
        Asker(Cluster("west", ("w:9092",)), 1.0).bounds([LOG])
