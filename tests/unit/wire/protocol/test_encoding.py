"""Our own encodings of fetch and produce against kafka-python's: the same bytes out, the same values in."""

from __future__ import annotations

import gc
import uuid
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from reconciler.wire import FetchAnswer, FetchAsk, ProduceAnswer, ProduceAsk, RecordError
from reconciler.wire.protocol import compact
from reconciler.wire.protocol.fetching import FetchBounds, FetchTurn, RawFetch
from reconciler.wire.protocol.producing import RawProduce

pytestmark = pytest.mark.slow

CLIENT = "tests"
CORRELATION = 77
FETCH_VERSIONS, PRODUCE_VERSIONS = range(12, 18), range(9, 14)
IDS = {f"topic-{n}": uuid.UUID(int=n + 1) for n in range(3)}
BY_ID = 13

topics = st.sampled_from(sorted(IDS))
places = st.tuples(topics, st.integers(0, 2**31 - 1))
int64s = st.integers(-1, 2**63 - 1)
int32s = st.integers(-1, 2**31 - 1)
int16s = st.integers(-1, 2**15 - 1)
messages = st.none() | st.text(max_size=200)
records = st.binary(max_size=300)


def frame(request: Any) -> bytes:
    request.with_header(correlation_id=CORRELATION, client_id=CLIENT)
    encoded = request.encode(framed=True, header=True)
    return b"".join(encoded) if isinstance(encoded, list) else bytes(encoded)


def named(topic: str, version: int) -> dict[str, Any]:
    return {"topic_id": IDS[topic]} if version >= BY_ID else {"topic": topic}


def by_topic(rows: list[Any]) -> list[tuple[str, list[Any]]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.topic, []).append(row)
    return list(found.items())


asks = st.builds(
    lambda place, offset, epoch, size: FetchAsk(place[0], IDS[place[0]], place[1], offset, epoch, size),
    places,
    int64s,
    int32s,
    int32s,
)
produce_asks = st.builds(
    lambda place, batch, head: ProduceAsk(place[0], IDS[place[0]], place[1], batch, head), places, records, records
)


@given(
    st.sampled_from(FETCH_VERSIONS),
    st.lists(asks, max_size=5),
    st.lists(asks, max_size=3),
    st.builds(FetchBounds, int32s, int32s, st.booleans(), st.sampled_from(["", "b", "züri-1"]), int32s),
    st.tuples(int32s, int32s),
)
@settings(deadline=None)
def test_a_fetch_request_has_the_librarys_bytes(
    version: int, wanted: list[FetchAsk], unwanted: list[FetchAsk], bounds: FetchBounds, session: tuple[int, int]
) -> None:
    theirs = FetchRequest(
        version=version,
        replica_id=-1,
        max_wait_ms=bounds.wait_ms,
        min_bytes=bounds.min_bytes,
        max_bytes=bounds.max_bytes,
        isolation_level=int(bounds.committed),
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchRequest.FetchTopic(
                **named(topic, version),
                partitions=[
                    FetchRequest.FetchTopic.FetchPartition(
                        partition=ask.partition,
                        current_leader_epoch=ask.leader_epoch,
                        fetch_offset=ask.offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=ask.max_bytes,
                    )
                    for ask in rows
                ],
            )
            for topic, rows in by_topic(wanted)
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(**named(topic, version), partitions=[ask.partition for ask in rows])
            for topic, rows in by_topic(unwanted)
        ],
        rack_id=bounds.rack,
    )
    ours = RawFetch(version, bounds, FetchTurn(*session, wanted, unwanted), {})
    assert frame(ours) == frame(theirs)


@given(st.sampled_from(PRODUCE_VERSIONS), st.lists(produce_asks, min_size=1, max_size=5), st.sampled_from([1, 100]))
@settings(deadline=None)
def test_a_produce_request_has_the_librarys_bytes(version: int, wanted: list[ProduceAsk], times: int) -> None:
    # Large batches travel as pieces of their own.
    wanted = [ProduceAsk(ask.topic, ask.topic_id, ask.partition, bytes(ask.batch) * times, ask.head) for ask in wanted]
    data = ProduceRequest.TopicProduceData
    theirs = ProduceRequest(
        version=version,
        transactional_id=None,
        acks=-1,
        timeout_ms=1_234,
        topic_data=[
            data(
                **({"topic_id": IDS[topic]} if version >= BY_ID else {"name": topic}),
                partition_data=[data.PartitionProduceData(index=a.partition, records=a.head + a.batch) for a in rows],
            )
            for topic, rows in by_topic(wanted)
        ],
    )
    assert frame(RawProduce(version, 1_234, wanted)) == frame(theirs)


fetch_answers = st.builds(
    FetchAnswer,
    topics,
    int32s,
    int16s,
    int64s,
    int64s,
    int64s,
    records,
    st.lists(st.tuples(int64s, int64s), max_size=3).map(tuple),
    int32s,
)


@given(st.sampled_from(FETCH_VERSIONS), st.lists(fetch_answers, max_size=5), int16s, int32s)
@settings(deadline=None)
def test_a_fetch_answer_is_read_as_the_library_wrote_it(
    version: int, answers: list[FetchAnswer], error: int, session: int
) -> None:
    topic = FetchResponse.FetchableTopicResponse
    theirs = FetchResponse(
        version=version,
        throttle_time_ms=3,
        error_code=error,
        session_id=session,
        responses=[
            topic(
                **named(name, version),
                partitions=[
                    topic.PartitionData(
                        partition_index=one.partition,
                        error_code=one.error,
                        high_watermark=one.high_watermark,
                        last_stable_offset=one.last_stable_offset,
                        log_start_offset=one.log_start,
                        aborted_transactions=[
                            topic.PartitionData.AbortedTransaction(producer_id=producer, first_offset=first)
                            for producer, first in one.aborted
                        ]
                        or None,
                        preferred_read_replica=one.nearest,
                        records=bytes(one.records) or None,
                    )
                    for one in rows
                ],
            )
            for name, rows in by_topic(answers)
        ],
        node_endpoints=[],
    )
    request = RawFetch(
        version, FetchBounds(1, 1, committed=True), FetchTurn(0, -1, []), {i.bytes: n for n, i in IDS.items()}
    )
    found = decoded(request, theirs)
    assert (found.throttle_time_ms, found.error, found.session_id) == (3, error, session)
    assert found.answers == [one for _, rows in by_topic(answers) for one in rows]


record_errors = st.lists(st.builds(RecordError, int32s, messages), max_size=3).map(tuple)
produce_answers = st.builds(ProduceAnswer, topics, int32s, int16s, int64s, messages, record_errors)


@given(st.sampled_from(PRODUCE_VERSIONS), st.lists(produce_answers, max_size=5))
@settings(deadline=None)
def test_a_produce_answer_is_read_as_the_library_wrote_it(version: int, answers: list[ProduceAnswer]) -> None:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    theirs = ProduceResponse(
        version=version,
        responses=[
            topic(
                **({"topic_id": IDS[name]} if version >= BY_ID else {"name": name}),
                partition_responses=[
                    partition(
                        index=one.partition,
                        error_code=one.error,
                        base_offset=one.base_offset,
                        log_append_time_ms=-1,
                        log_start_offset=0,
                        record_errors=[
                            partition.BatchIndexAndErrorMessage(batch_index=n, batch_index_error_message=said)
                            for n, said in one.records
                        ],
                        error_message=one.message,
                    )
                    for one in rows
                ],
            )
            for name, rows in by_topic(answers)
        ],
        throttle_time_ms=9,
        node_endpoints=[],
    )
    request = RawProduce(version, 1, [ProduceAsk(name, topic_id, 0, b"") for name, topic_id in IDS.items()])
    found = decoded(request, theirs)
    assert found.throttle_time_ms == 9
    assert found.answers == [one for _, rows in by_topic(answers) for one in rows]


def decoded(request: RawFetch | RawProduce, answer: Any) -> Any:
    """Return what `request` reads out of an answer, which it gets without the header."""
    request.with_header(CORRELATION, CLIENT)
    return request.header.decode(memoryview(bytes(answer.encode(framed=False, header=False))))


@given(st.integers(0, 2**35))
def test_varints_round_trip(value: int) -> None:
    data = b"\xff" + compact.uvarint(value)
    assert compact.read_uvarint(memoryview(data), 1) == (value, len(data))


@given(messages)
def test_strings_round_trip(text: str | None) -> None:
    data = compact.string(text) if text is not None else b"\x00"
    assert compact.read_string(memoryview(data), 0) == (text, len(data))


@given(st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=200)), max_size=4))
def test_tags_are_passed_over(tags: list[tuple[int, bytes]]) -> None:
    data = compact.uvarint(len(tags)) + b"".join(
        compact.uvarint(number) + compact.uvarint(len(value)) + value for number, value in tags
    )
    assert compact.skip_tags(memoryview(data + b"rest"), 0) == len(data)


def test_a_varint_that_does_not_end_is_an_error() -> None:
    with pytest.raises(IndexError):
        compact.read_uvarint(memoryview(b"\x80\x80"), 0)


def test_a_request_is_gone_as_soon_as_nobody_holds_it_while_its_answer_is_awaited() -> None:
    """A cycle would keep its batches, megabytes of them, until the next collection."""
    place = next(iter(IDS.items()))
    fetch = RawFetch(17, FetchBounds(500, 2**20, True), FetchTurn(0, -1, [FetchAsk(*place, 0, 0, -1, 2**20)]), {})
    produce = RawProduce(13, 1, [ProduceAsk(*place, 0, b"batch", b"head")])
    gc.disable()
    try:
        frame(fetch)
        frame(produce)
        kept = [fetch.header, produce.header]
        fetched, produced = weakref.ref(fetch), weakref.ref(produce)
        del fetch, produce
        assert (fetched(), produced()) == (None, None)
        assert all(kept)
    finally:
        gc.enable()
