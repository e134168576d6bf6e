"""What an express says and hears: the same as the usual way where all is plain, and nothing where it is not."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer.fetch import FetchResponse
from kafka.protocol.producer.produce import ProduceResponse

from reconciler.wire import (
    FetchAnswer,
    FetchAsk,
    FetchBounds,
    FetchSession,
    ProduceAnswer,
    ProduceAsk,
    UnreadableAnswer,
    compact_string,
)
from reconciler.wire.protocol import compact, fast_path, fetching, producing
from reconciler.wire.protocol.fetching import Fetched, FetchTurn, RawFetch
from reconciler.wire.protocol.producing import RawProduce

pytestmark = pytest.mark.slow

CLIENT, CORRELATION = "tests", 77
IDS = {f"topic-{n}": uuid.UUID(int=n + 1) for n in range(3)}
NAMES = {topic_id.bytes: topic for topic, topic_id in IDS.items()}
FETCH_VERSIONS, BY_NAME, BY_ID = range(13, 18), range(9, 13), 13
SESSION = 12
NOBODY = -1
# A tag that nobody knows, and one that looks like no tags behind its first byte.
TAGS = (b"\x01\x2a\x03abc", b"\x01\0\0")

topics = st.sampled_from(sorted(IDS))
partitions = st.integers(0, 2**31 - 1)
int64s = st.integers(-1, 2**63 - 1)
int32s = st.integers(-1, 2**31 - 1)
records = st.binary(max_size=300)
asks = st.builds(lambda topic, *rest: FetchAsk(topic, IDS[topic], *rest), topics, partitions, int64s, int32s, int32s)
produce_asks = st.builds(
    lambda topic, partition, batch, head: ProduceAsk(topic, IDS[topic], partition, batch, head),
    topics,
    partitions,
    records,
    records,
)


def behind_header(request: RawFetch | RawProduce, key: int) -> bytes:
    """Return what a request says behind its size and header."""
    request.with_header(CORRELATION, CLIENT)
    encoded = request.encode(framed=True, header=True)
    whole = b"".join(encoded) if isinstance(encoded, list) else encoded
    head = compact.frame_head(key, request.API_VERSION, CORRELATION, CLIENT)
    assert whole[4 : 4 + len(head)] == head
    return whole[4 + len(head) :]


def by_topic(rows: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.topic, []).append(row)
    return found


# --- what is said ----------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(FETCH_VERSIONS),
    st.lists(asks, max_size=6),
    st.builds(FetchBounds, int32s, int32s, st.booleans(), st.sampled_from(["", "b", "züri-1"]), int32s),
    st.integers(0, 10_000),
    st.tuples(st.integers(1, 2**31 - 1), st.integers(0, 3)),
)
@settings(deadline=None)
def test_a_fetch_request_says_the_same(
    version: int, wanted: list[FetchAsk], bounds: FetchBounds, wait_ms: int, place: tuple[int, int]
) -> None:
    session = FetchSession(1, committed=bounds.committed)
    session.answered(Fetched(0, 0, place[0], []))
    for _ in range(place[1]):
        session.stepped()
    packed: dict[bytes, list[bytes]] = {}
    for ask in wanted:
        one = fast_path.ask(ask.partition, ask.leader_epoch, ask.offset, ask.max_bytes)
        packed.setdefault(IDS[ask.topic].bytes, []).append(one)
    usual = RawFetch(version, bounds._replace(wait_ms=wait_ms), FetchTurn(session.number, session.epoch, wanted), {})
    opening = fetching.opening(version, bounds, wait_ms, session.number, session.epoch)
    said = fast_path.fetch_body(opening, packed, fast_path.fetch_tail(bounds.rack))
    assert said == behind_header(usual, fetching.API_KEY)
    assert (session.number, session.epoch) == (place[0], place[1] + 1), "to ask changes nothing"


@given(st.sampled_from([*BY_NAME, BY_ID]), st.lists(produce_asks, max_size=6), int32s, st.sampled_from([1, 100]))
@settings(deadline=None)
def test_a_produce_request_says_the_same(version: int, wanted: list[ProduceAsk], timeout_ms: int, times: int) -> None:
    # The usual way sends large batches as pieces of their own.
    wanted = [ask._replace(batch=bytes(ask.batch) * times) for ask in wanted]
    batches = [
        (target(ask.topic, version == BY_ID), ask.partition.to_bytes(4, "big"), ask.head, ask.batch) for ask in wanted
    ]
    usual = RawProduce(version, timeout_ms, wanted)
    assert fast_path.produce_body(timeout_ms, batches) == behind_header(usual, producing.API_KEY)


def target(topic: str, by_id: bool) -> bytes:
    """Return a topic as produce requests and answers name it."""
    return IDS[topic].bytes if by_id else compact_string(topic)


# --- what is heard of the source -------------------------------------------------------------------------------------

well = st.builds(
    lambda topic, partition, high, stable, start, data: FetchAnswer(topic, partition, 0, high, stable, start, data),
    topics,
    partitions,
    int64s,
    int64s,
    int64s,
    records,
)


def fetched(
    answers: list[FetchAnswer], version: int = BY_ID, throttle: int = 0, error: int = 0, session: int = SESSION
) -> bytes:
    """Return a fetch answer, as the library writes it."""
    topic = FetchResponse.FetchableTopicResponse
    whole = FetchResponse(
        version=version,
        throttle_time_ms=throttle,
        error_code=error,
        session_id=session,
        responses=[
            topic(
                topic_id=IDS[name],
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
                        # Brokers send an empty list to who reads committed records, and none to others.
                        or (None if one.partition % 2 else []),
                        preferred_read_replica=one.nearest,
                        records=bytes(one.records) or (None if one.partition % 3 else b""),
                    )
                    for one in rows
                ],
            )
            for name, rows in by_topic(answers).items()
        ],
        node_endpoints=[],
    )
    return bytes(whole.encode(framed=False, header=False))


@given(st.sampled_from(FETCH_VERSIONS), st.lists(well, max_size=6))
@settings(deadline=None)
def test_a_plain_fetch_answer_is_read_as_the_usual_way_does(version: int, answers: list[FetchAnswer]) -> None:
    data = fetched(answers, version)
    found = fast_path.pieces(data, SESSION)
    assert found is not None
    usual = fetching.decode(NAMES, memoryview(data))
    assert (usual.throttle_time_ms, usual.error, usual.session_id) == (0, 0, SESSION)
    assert [
        (NAMES[one.topic], one.partition, one.stable, data[one.start : one.end], one.start == one.end) for one in found
    ] == [(one.topic, one.partition, one.last_stable_offset, one.records, not one.records) for one in usual.answers]
    assert all((one.error, one.aborted, one.nearest) == (0, (), NOBODY) for one in usual.answers)


@given(
    st.lists(well, min_size=1, max_size=4),
    st.integers(0, 3),
    st.fixed_dictionaries({"error": st.integers(-1, 2**15 - 1).filter(bool)})
    | st.fixed_dictionaries({"aborted": st.lists(st.tuples(int64s, int64s), min_size=1, max_size=200).map(tuple)})
    | st.fixed_dictionaries({"nearest": st.integers(0, 2**31 - 1)}),
)
@settings(deadline=None)
def test_a_partition_of_which_there_is_more_to_say_is_left_to_the_usual_way(
    answers: list[FetchAnswer], place: int, more: dict[str, Any]
) -> None:
    answers[place % len(answers)] = answers[place % len(answers)]._replace(**more)
    assert fast_path.pieces(fetched(answers), SESSION) is None


@given(
    st.lists(well, max_size=3),
    st.fixed_dictionaries({"throttle": st.integers(1, 2**31 - 1)})
    | st.fixed_dictionaries({"error": st.integers(-1, 2**15 - 1).filter(bool)})
    | st.fixed_dictionaries({"session": int32s.filter(lambda session: session != SESSION)}),
)
@settings(deadline=None)
def test_an_answer_that_says_more_as_a_whole_is_left_to_the_usual_way(
    answers: list[FetchAnswer], more: dict[str, int]
) -> None:
    assert fast_path.pieces(fetched(answers, **more), SESSION) is None


def test_an_aborted_transaction_of_nobody_is_left_to_the_usual_way() -> None:
    # What stands for a producer id stands where there is no nearest replica otherwise.
    one = FetchAnswer("topic-1", 3, 0, 9, 9, 0, b"records", ((-1, 0),))
    assert fast_path.pieces(fetched([one]), SESSION) is None


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("at", [-3, -2], ids=["partition", "topic"])
def test_tags_are_left_to_the_usual_way(at: int, tags: bytes) -> None:
    data = fetched([FetchAnswer("topic-1", 3, 0, 9, 9, 0, b"records")])
    tagged = data[:at] + tags + data[len(data) + at + 1 :]
    assert fetching.decode(NAMES, memoryview(tagged)) == fetching.decode(NAMES, memoryview(data))
    assert fast_path.pieces(tagged, SESSION) is None


# --- what is heard of the target -------------------------------------------------------------------------------------

stood = st.builds(
    lambda topic, partition, base: ProduceAnswer(topic, partition, 0, base, None), topics, partitions, int64s
)


def produced(answers: list[ProduceAnswer], version: int, errors: int = 0, throttle: int = 0) -> bytes:
    """Return a produce answer, as the library writes it.

    Args:
        answers: what it says of partitions.
        version: of the answer.
        errors: how many errors of single records it names for each of them.
        throttle: for how many ms the broker wants to be left alone.
    """
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    whole = ProduceResponse(
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
                            partition.BatchIndexAndErrorMessage(batch_index=n, batch_index_error_message="bad")
                            for n in range(errors)
                        ],
                        error_message=one.message,
                    )
                    for one in rows
                ],
            )
            for name, rows in by_topic(answers).items()
        ],
        throttle_time_ms=throttle,
        node_endpoints=[],
    )
    return bytes(whole.encode(framed=False, header=False))


@given(st.sampled_from([*BY_NAME, BY_ID]), st.lists(stood, max_size=6), st.sampled_from([0, 50]))
@settings(deadline=None)
def test_a_plain_produce_answer_is_read_as_the_usual_way_does(
    version: int, answers: list[ProduceAnswer], throttle: int
) -> None:
    by_id = version == BY_ID
    data = produced(answers, version, throttle=throttle)
    usual = producing.decode(NAMES if by_id else None, memoryview(data)).answers
    assert fast_path.produced(data, by_id) == {
        (target(one.topic, by_id), one.partition): one.base_offset for one in usual
    }
    assert all((one.error, one.message) == (0, None) for one in usual)


@given(
    st.sampled_from([BY_NAME[-1], BY_ID]),
    st.lists(stood, min_size=1, max_size=4),
    st.integers(0, 3),
    st.fixed_dictionaries({"error": st.integers(-1, 2**15 - 1).filter(bool)})
    | st.fixed_dictionaries({"message": st.text(max_size=200)}),
)
@settings(deadline=None)
def test_a_batch_of_which_there_is_more_to_say_is_left_to_the_usual_way(
    version: int, answers: list[ProduceAnswer], place: int, more: dict[str, Any]
) -> None:
    answers[place % len(answers)] = answers[place % len(answers)]._replace(**more)
    assert fast_path.produced(produced(answers, version), version == BY_ID) is None


@pytest.mark.parametrize("version", [BY_NAME[-1], BY_ID])
@pytest.mark.parametrize("errors", [1, 200])
def test_errors_of_single_records_are_left_to_the_usual_way(version: int, errors: int) -> None:
    data = produced([ProduceAnswer("topic-1", 3, 0, 9, None)], version, errors)
    assert fast_path.produced(data, version == BY_ID) is None


@pytest.mark.parametrize("version", [BY_NAME[-1], BY_ID])
@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("at", [-7, -6], ids=["partition", "topic"])
def test_tags_of_the_target_are_left_to_the_usual_way(version: int, at: int, tags: bytes) -> None:
    data = produced([ProduceAnswer("topic-1", 3, 0, 9, None)], version)
    tagged = data[:at] + tags + data[len(data) + at + 1 :]
    names = NAMES if version == BY_ID else None
    assert producing.decode(names, memoryview(tagged)) == producing.decode(names, memoryview(data))
    assert fast_path.produced(tagged, version == BY_ID) is None


# --- what is no answer -----------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[bytes], object]] = {
    "fetched": lambda data: fast_path.pieces(data, SESSION),
    "produced by id": lambda data: fast_path.produced(data, by_id=True),
    "produced by name": lambda data: fast_path.produced(data, by_id=False),
}
readers = st.sampled_from(sorted(READERS))


@st.composite
def written(draw: st.DrawFn, reader: str) -> bytes:
    """Return an answer for a reader."""
    if reader == "fetched":
        return fetched(draw(st.lists(well, max_size=4)), draw(st.sampled_from(FETCH_VERSIONS)))
    return produced(draw(st.lists(stood, max_size=4)), BY_ID if reader == "produced by id" else BY_NAME[-1])


@given(readers, st.data())
@settings(deadline=None)
def test_an_answer_that_is_cut_is_unreadable_or_says_the_same(reader: str, data: st.DataObject) -> None:
    whole = data.draw(written(reader))
    part = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        found = READERS[reader](part)
    except UnreadableAnswer:
        return
    assert found == READERS[reader](whole), "only what nobody looks at may be gone"


@given(readers, st.data())
@settings(deadline=None)
def test_an_answer_with_other_bytes_in_it_is_no_fault_of_ours(reader: str, data: st.DataObject) -> None:
    whole = bytearray(data.draw(written(reader)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=10))
    readable(reader, bytes(whole))


@given(readers, st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_are_unreadable_or_say_something(reader: str, data: bytes) -> None:
    readable(reader, data)
    readable(reader, b"\0\0\0\0" + b"\0\0" + SESSION.to_bytes(4, "big") + data)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("data", [b"", b"\xff" * 9 + b"\x7f", b"\xff" * 30])
def test_what_claims_more_than_there_is_is_unreadable(reader: str, data: bytes) -> None:
    front = b"\0\0\0\0" + b"\0\0" + SESSION.to_bytes(4, "big") if reader == "fetched" else b""
    with pytest.raises(UnreadableAnswer):
        READERS[reader](front + data)


def readable(reader: str, data: bytes) -> object:
    """Let bytes be read; whatever else than `UnreadableAnswer` comes of it fails the test."""
    try:
        return READERS[reader](data)
    except UnreadableAnswer:
        return None
