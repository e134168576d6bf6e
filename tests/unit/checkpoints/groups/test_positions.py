"""Which original a copy is of, on record behind a written position: plans and runs go by that record."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.checkpoints.groups import positions as module
from reconciler.checkpoints.groups.positions import Positions
from reconciler.model.base.errors import Problem
from reconciler.model.offsets.committed import Move
from reconciler.model.recorded.ownership import OwnedTopic, kafka_id

OLD, NEW = "0ca15af2-6c74-48f4-8c6e-bf3e03031dfc", "1ca15af2-6c74-48f4-8c6e-bf3e03031dfc"
MOVES = tuple(Move("moved", topic, number, None, 60, 60) for topic in ("orders", "users") for number in (0, 1))
ZEROS = "A" * 22


def recorded(
    monkeypatch: pytest.MonkeyPatch, before: str, today: str | None, refused: tuple[Move, ...] = ()
) -> dict[str, str]:
    """What is put on record when positions of `orders`, which was `before`, and of `users` are written."""
    written: list[OwnedTopic] = []
    monkeypatch.setattr(module, "Ownership", lambda *_: SimpleNamespace(write=written.extend))
    positions: Any = object.__new__(Positions)
    ids = {"orders": today, "users": OLD}
    problem = Problem("AB313", "", "", "")
    positions._topology, positions.flow = "tests", SimpleNamespace(name="moved")
    positions._source = SimpleNamespace(ids=lambda topics: {topic: ids[topic] for topic in topics})
    positions.target = SimpleNamespace(
        cluster=SimpleNamespace(where=""), commit=lambda *_: dict.fromkeys(refused, problem)
    )
    positions.copies = {
        topic: OwnedTopic(f"east.{topic}", "id", "tests", "", "moved", "east", topic, was, 2, "translated", {})
        for topic, was in (("orders", before), ("users", kafka_id(OLD) or ""))
    }
    assert positions.write(MOVES) == dict.fromkeys(refused, problem)
    return {one.source_topic: one.source_topic_id for one in written}


def test_the_topic_in_whose_log_a_position_was_written_is_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    assert recorded(monkeypatch, str(kafka_id(OLD)), NEW) == {"orders": kafka_id(NEW)}
    # Of one partition is enough: the others stay parked, each by its own position.
    assert recorded(monkeypatch, str(kafka_id(OLD)), NEW, MOVES[:1]) == {"orders": kafka_id(NEW)}


@pytest.mark.parametrize(
    ("before", "today", "refused"),
    [
        (str(kafka_id(OLD)), OLD, ()),
        (str(kafka_id(OLD)), None, ()),
        (ZEROS, NEW, ()),
        ("", NEW, ()),
        (str(kafka_id(OLD)), NEW, MOVES[:2]),
    ],
    ids=["the same topic", "brokers without ids", "zeros on record", "nothing on record", "no position was written"],
)
def test_nothing_is_recorded_where_nothing_was_decided(
    monkeypatch: pytest.MonkeyPatch, before: str, today: str | None, refused: tuple[Move, ...]
) -> None:
    assert recorded(monkeypatch, before, today, refused) == {}
