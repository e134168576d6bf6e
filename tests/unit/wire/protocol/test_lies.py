"""Whatever bytes an answer has, decoders end with an error of the wire's, at once, in memory that its size bounds."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import kafka.errors as kafka_errors
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.admin.groups import DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.admin.topics import DeleteRecordsResponse
from kafka.protocol.admin.transactions import (
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    ListTransactionsResponse,
)
from kafka.protocol.consumer.fetch import FetchResponse
from kafka.protocol.consumer.group import (
    JoinGroupResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from kafka.protocol.consumer.offsets import ListOffsetsResponse, OffsetForLeaderEpochResponse
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse
from kafka.protocol.producer.produce import ProduceResponse
from kafka.protocol.producer.transaction import InitProducerIdResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from reconciler.wire.protocol import compact, fast_path, fetching, producing
from reconciler.wire.protocol.bounded_decoding import RemainingBytes
from reconciler.wire.protocol.fast_path import UnreadableAnswer
from reconciler.wire.protocol.frames import RawHeader, WholeFrames
from tests.support.wire.direct_ends import COPY, SESSION, TOPIC, Fetched, Landed, fetch_answer, produce_answer

pytestmark = pytest.mark.slow

RESPONSES: list[Any] = [
    *(ApiVersionsResponse, MetadataResponse, FindCoordinatorResponse, SaslHandshakeResponse, SaslAuthenticateResponse),
    *(ListOffsetsResponse, OffsetForLeaderEpochResponse, DescribeProducersResponse, DescribeTransactionsResponse),
    *(ListTransactionsResponse, InitProducerIdResponse, OffsetCommitResponse, OffsetFetchResponse, JoinGroupResponse),
    *(SyncGroupResponse, DescribeGroupsResponse, ListGroupsResponse, DeleteRecordsResponse),
    *(FetchResponse, ProduceResponse),
]
KINDS = [(kind, version) for kind in RESPONSES for version in range(kind.valid_versions[0], kind.valid_versions[1] + 1)]
# Counts, lengths and varints that say more than there is, or never end; over and over.
LIES = {
    "classic counts": b"\x7f\xff\xff\xff",
    "negative counts": b"\x80\x00\x00\x00",
    "compact counts": b"\xff\xff\xff\xff\x07",
    "endless varints": b"\xff",
    "varints of ten bytes": b"\xff" * 9 + b"\x01",
    "many tags": b"\x00\x7f\x01\x05\x00",
    "nothing": b"\x00",
    "ones": b"\x01",
    "twos": b"\x02",
}
NAMES = {TOPIC.bytes: "orders", COPY.bytes: "east.orders"}


@contextmanager
def in_little_memory(size: int) -> Iterator[None]:
    """Fail if what is done takes much more than a frame of `size` bytes is worth."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20 + 400 * size
    finally:
        tracemalloc.stop()


def answered(kind: Any, version: int, data: bytes) -> None:
    """Decode an answer as a connection does."""
    frames = WholeFrames(client_id="tests")
    header: Any = SimpleNamespace(
        correlation_id=7, api_key=kind.API_KEY, api_version=version, get_response_class=lambda: kind[version]
    )
    frames.in_flight_requests.append(header)
    with suppress(kafka_errors.KafkaProtocolError):
        frames.receive_bytes(memoryview(struct.pack(">i", 7) + data))


@pytest.mark.parametrize("lie", LIES)
def test_the_librarys_decoders_end_where_the_frame_does(lie: str) -> None:
    data = LIES[lie] * (20_000 // len(LIES[lie]))
    for kind, version in KINDS:
        with in_little_memory(len(data)):
            answered(kind, version, data)
            answered(kind, version, b"\0" + data)
            answered(kind, version, b"\0\0\0" + data)


@pytest.mark.parametrize("kind", [ApiVersionsResponse, MetadataResponse])
def test_a_megabyte_that_is_one_varint_is_no_work(kind: Any) -> None:
    # As a number of so many bits, which is made anew for each byte, it takes minutes.
    answered(kind, kind.valid_versions[1], b"\0" * 6 + b"\xff" * 2**20)


def test_tags_of_many_structures_are_read_once_each() -> None:
    # Each with a tag that nobody knows; all behind it was copied for each of them.
    count = 100_000
    one = struct.pack(">hhh", 1, 0, 2) + b"\x01\x05\x00"
    data = b"\0\0" + compact.uvarint(count + 1) + one * count + bytes(4) + b"\0"
    frames = WholeFrames(client_id="tests")
    kind: Any = ApiVersionsResponse
    frames.in_flight_requests.append(
        SimpleNamespace(correlation_id=7, api_key=18, api_version=3, get_response_class=lambda: kind[3])
    )
    ((number, found),) = frames.receive_bytes(memoryview(struct.pack(">i", 7) + data))
    assert (number, len(found.api_keys), found.api_keys[-1].max_version) == (7, count, 2)
    assert found.api_keys[0].unknown_tags == {"_5": b""}


@given(st.sampled_from(KINDS), st.binary(max_size=200))
@settings(deadline=None, max_examples=400)
def test_noise_is_an_error_of_the_protocol(kind: tuple[Any, int], noise: bytes) -> None:
    answered(*kind, noise)


# --- our own decoders -------------------------------------------------------------------------------------------------

FETCHED = fetch_answer(Fetched(0, b"records" * 9, 5), Fetched(3, b"", 9, aborted=((7, 4), (8, 5))), Fetched(4, error=6))
PRODUCED = produce_answer(Landed(0, 17), Landed(1, -1, 10, "too large"), throttle=9)


def raw(decode: Callable[[memoryview], Any]) -> Callable[[bytes], None]:
    """Decode behind a header, as a connection does with what `decode` reads."""

    def read(data: bytes) -> None:
        frames = WholeFrames(client_id="tests")
        frames.in_flight_requests.append(RawHeader(7, decode))
        with suppress(kafka_errors.KafkaProtocolError):
            frames.receive_bytes(memoryview(struct.pack(">i", 7) + data))

    return read


def readable(work: Callable[[bytes], Any]) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        with suppress(UnreadableAnswer):
            work(data)

    return read


def taken(work: Callable[[memoryview], Any]) -> Callable[[bytes], None]:
    """Read an answer that was taken where it was read: `Wire.decoded` and `Wire.produced` do so."""

    def read(data: bytes) -> None:
        with suppress(UnreadableAnswer), fast_path.reading():
            work(memoryview(data))

    return read


DECODERS: dict[str, Callable[[bytes], None]] = {
    "fetch by ids": raw(lambda data: fetching.decode(NAMES, data)),
    "fetch by names": raw(lambda data: fetching.decode(None, data)),
    "produce by ids": raw(lambda data: producing.decode(NAMES, data)),
    "produce by names": raw(lambda data: producing.decode(None, data)),
    "fetched": taken(lambda data: fetching.decode(NAMES, data)),
    "produced": taken(lambda data: producing.decode(NAMES, data)),
    "throttle by ids": lambda data: assert_number(producing.throttle(memoryview(data), True)),
    "throttle by names": lambda data: assert_number(producing.throttle(memoryview(data), False)),
    "pieces": readable(lambda data: fast_path.pieces(data, SESSION)),
    "landed by ids": readable(lambda data: fast_path.produced(data, True)),
    "landed by names": readable(lambda data: fast_path.produced(data, False)),
}


def assert_number(found: int) -> None:
    assert isinstance(found, int)


@st.composite
def mutated(draw: st.DrawFn, whole: bytes) -> bytes:
    """Draw bytes that were an answer: some are others, missing or more, or it ends early."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["other", "gone", "more", "end"])):
            case "other":
                data[at : at + 1] = bytes((draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)),))
            case "gone":
                del data[at : at + draw(st.integers(1, 6))]
            case "more":
                data[at:at] = draw(st.sampled_from(sorted(LIES.values())) | st.binary(max_size=6))
            case "end":
                del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", DECODERS)
@given(data=mutated(FETCHED) | mutated(PRODUCED) | mutated(b"\0" + FETCHED) | mutated(b"\0" + PRODUCED) | st.binary())
@settings(deadline=None, max_examples=300)
def test_an_answer_with_other_bytes_is_read_or_an_error(name: str, data: bytes) -> None:
    DECODERS[name](data)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("lie", LIES)
def test_our_decoders_end_where_the_answer_does(name: str, lie: str) -> None:
    data = LIES[lie] * (20_000 // len(LIES[lie]))
    for front in (b"", b"\0", FETCHED[:10], b"\0" + FETCHED[:10], FETCHED[:27], PRODUCED[:18]):
        with in_little_memory(len(data)):
            DECODERS[name](front + data)


@given(st.binary(max_size=40))
def test_a_varint_has_ten_bytes_at_most(noise: bytes) -> None:
    try:
        value, at = compact.read_uvarint(noise, 0)
    except (ValueError, IndexError):
        return
    assert at <= 10
    assert 0 <= value < 2**70


@given(st.binary(max_size=30), st.integers(0, 30), st.lists(st.integers(0, 9), max_size=6))
def test_the_rest_of_a_frame_is_read_as_a_file_is(data: bytes, at: int, sizes: list[int]) -> None:
    rest, expected = RemainingBytes(memoryview(data), at), data[at:]
    found = b"".join(rest.read(size) for size in sizes)
    assert found == expected[: sum(sizes)]
    assert rest.tell() == len(found)
    assert rest.read() == expected[len(found) :]
