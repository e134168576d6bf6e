"""What stands beside a position, and what follows when a missing marker cannot be written; no broker."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.commit import hanging_transactions
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.wire import BrokerError, Leader, ProducerState, TopicInfo, Wire
from reconciler.wire.requests import commits
from reconciler.wire.requests.transactions import Markers
from tests.support.replicator.channels import PLACE

CLUSTER_AUTHORIZATION_FAILED, NOT_LEADER, UNSUPPORTED_VERSION, TOPIC_AUTHORIZATION_FAILED = 31, 6, 35, 29
TARGET = TopicInfo(PLACE.remote, None, 0, {PLACE.partition: Leader(2, 7, 0)})
OPEN = ProducerState(77, 4, 12, True, -1, 1_234)
ids = st.none() | st.uuids().map(str)
numbers = st.none() | st.integers(0, 2**62)


@given(
    st.builds(
        OffsetMetadata,
        ids,
        ids,
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        st.integers(-1, 2**62),
        numbers,
        numbers,
        numbers,
    )
)
def test_a_note_is_read_as_it_was_written(note: OffsetMetadata) -> None:
    assert OffsetMetadata.parse(str(note)) == note


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "5",
        "[]",
        "null",
        '{"began": "x"}',
        '{"began": null}',
        "[" * 4_096,
        '{"began": 1e999}',
        '{"source": ["x"]}',
    ],
)
def test_what_others_have_said_says_nothing(text: str) -> None:
    assert OffsetMetadata.parse(text) == OffsetMetadata()


def end(monkeypatch: pytest.MonkeyPatch, code: int, committed: bool = False) -> Markers:
    said: list[Markers] = []

    async def write(_wire: Wire, node: int, markers: Markers) -> None:
        said.append(markers)
        assert node == 2
        if code:
            raise BrokerError(code)

    monkeypatch.setattr(hanging_transactions, "write_markers", write)
    asyncio.run(hanging_transactions.end(cast("Wire", None), PLACE, TARGET, OPEN, committed))
    return said[0]


@pytest.mark.parametrize("committed", [True, False])
def test_the_marker_says_what_became_of_the_transaction(monkeypatch: pytest.MonkeyPatch, committed: bool) -> None:
    markers = end(monkeypatch, 0, committed)
    assert markers == Markers(PLACE.remote, PLACE.partition, 77, 4, 0, 1, committed)


def test_without_the_permission_the_partition_parks_and_says_what_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Disagreement) as stopped:
        end(monkeypatch, CLUSTER_AUTHORIZATION_FAILED)
    state, reason = stopped.value.verdict
    assert (state, reason.code) == (PartitionState.PARKED, "AB228")
    assert "the transaction at offset 1,234 of east.orders/3 was aborted" in reason.text


def test_what_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BrokerError):
        end(monkeypatch, NOT_LEADER)


class Refusing:
    """Answers every request with one error."""

    def __init__(self, code: int) -> None:
        self._code = code

    async def producers(self, *_: object) -> object:
        raise BrokerError(self._code)

    async def ask(self, *_: object) -> object:
        raise BrokerError(self._code)


def test_brokers_too_old_to_say_have_written_every_marker() -> None:
    wire = cast("Wire", Refusing(UNSUPPORTED_VERSION))
    assert asyncio.run(hanging_transactions.unended(wire, PLACE, TARGET, frozenset({77}))) == []
    assert asyncio.run(commits.in_doubt(wire, 2, [(PLACE.remote, 3)], 77)) == set()


def test_who_may_not_look_does_not_go_on() -> None:
    wire = cast("Wire", Refusing(TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(Disagreement) as stopped:
        asyncio.run(hanging_transactions.unended(wire, PLACE, TARGET, frozenset({77})))
    assert stopped.value.verdict[1].code == "AB213"
    with pytest.raises(BrokerError):
        asyncio.run(commits.in_doubt(wire, 2, [(PLACE.remote, 3)], 77))
