"""Batches that hold more than they may: each path that decompresses one ends early, with a reason, in little memory."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable
from typing import Any, cast

import pytest

from reconciler.model.declared.flow import DEFAULT_LARGEST_BATCH, Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records import codecs
from reconciler.records.batch import Batch, UnreadableBatch
from reconciler.records.decompression import DecompressedTooLarge
from reconciler.records.legacy import read_legacy
from reconciler.records.rewrite import first_at, raw_records
from reconciler.records.split import split
from reconciler.replicator.copy.agreement import Agreement, Disagreement
from reconciler.replicator.copy.same_log import first_difference, share_records
from reconciler.replicator.gaps.padding import _is_ours
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.intake import BatchForm, CannotPass, items
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.partition.refusals import RefusedRecords
from reconciler.replicator.partition.translated_channel import TranslatedChannel
from reconciler.replicator.task.dead_letters import DeadLetters
from reconciler.verify.comparison.past import Past
from reconciler.verify.comparison.side import Side, UnreadableLog
from tests.support.records.batches import CODECS, GZIP, LOG_APPEND_TIME, LZ4, NONE, SNAPPY, ZSTD, build, some
from tests.support.records.bombs import OTHERWISE, bomb, old_bomb
from tests.support.replicator.channels import EPOCH, PLACE, PRODUCER_ID, SIDES, feed, fetched, land
from tests.support.wire.peak import MIB, measured, peak

pytestmark = pytest.mark.slow

BOUND, SIZE = 24 * MIB, 200 * MIB
# A decoder, a piece, and what the interpreter has around them.
AIR = 24 * MIB
CODES = {codec: (LZ4 if codec == GZIP else GZIP) for codec in CODECS}


def only(data: bytes) -> Batch:
    (found,) = split(data)
    return found


def code_of(work: Callable[[], object]) -> str:
    """Return the code of what stands against something."""
    try:
        work()
    except CannotPass as error:
        assert "bytes" in str(error.reason)
        return error.reason.code
    except Disagreement as error:
        return error.verdict[1].code
    except UnreadableBatch as error:
        return reasons.unreadable(error).code
    except UnreadableLog as error:
        assert "more than" in str(error)
        return "unreadable"
    except DecompressedTooLarge as error:
        return reasons.undecodable(7, error).code
    return "nothing"


def passed(data: bytes, form: BatchForm, expected: int = 0) -> Callable[[], object]:
    return lambda: list(items(fetched(data), expected, form))


def letter_of(batch: Batch) -> Callable[[], object]:
    """Put the only record of a batch aside."""

    def put() -> object:
        channel = Channel(PLACE)
        channel.open(SIDES, LogEnd(0, PRODUCER_ID, EPOCH, 0, 0))
        sent_batch = channel._sent(batch, batch.size, 0.0)
        letters = DeadLetters(cast("Any", None), Flow("f", "a", "b", Selection((".*",))), cast("Any", None))
        return letters._letters(channel, sent_batch, [RefusedRecords(0, 0, Reason("AB217", "refused"))], 0)

    return put


def compared(batch: Batch) -> Callable[[], object]:
    """Compare a batch with another of the same offsets, as a takeover does."""
    other = only(build(some(1)))
    logs: Any = type("Logs", (), {"copy": "copy", "name": "log", "place": PLACE, "is_known": False, "end": 1})
    return lambda: Agreement._same(logs, batch, other, 0)


def looked_at(batch: Batch) -> Callable[[], object]:
    """Let verify look for the next record."""

    def head() -> object:
        side = Side("source", batch.base_offset, batch.next_offset)
        side.add([batch])
        return side.head()

    return head


def everywhere(codec: int) -> tuple[dict[str, str], int]:
    """Lead a batch through every path; return what stands against it there, and how much memory all took at most."""
    codecs.limit_decompressed(BOUND)
    plain, stamped = bomb(SIZE, codec), bomb(SIZE, codec, attributes=LOG_APPEND_TIME)
    holey = bomb(SIZE, codec, span=3)
    one, other = only(plain), CODES[codec]
    paths = {
        "another codec": passed(plain, BatchForm(codec=other, largest=MIB)),
        "divided": passed(bomb(SIZE, codec, span=2, records=2), BatchForm(largest=100)),
        "append times": passed(stamped, BatchForm()),
        "append times, dense": passed(stamped, BatchForm(dense=True)),
        "holes": passed(holey, BatchForm()),
        "holes, dense": passed(holey, BatchForm(dense=True)),
        "begun inside": passed(holey, BatchForm(), 1),
        "put aside": passed(plain, BatchForm(without=frozenset({0}))),
        "dead letter": letter_of(one),
        "first record": lambda: first_at(only(holey), 0),
        "takeover": compared(one),
        "same log": lambda: first_difference(one, only(build(some(1)))),
        "common records": lambda: share_records(one, only(build(some(1)))),
        "verify": looked_at(one),
        "as it is": passed(plain, BatchForm(merge=256 * 1024)),
        "as it is, dense": passed(plain, BatchForm(dense=True)),
    }
    if codec in (GZIP, SNAPPY, LZ4):
        paths |= {f"v{magic}": passed(old_bomb(SIZE, codec, magic), BatchForm()) for magic in (0, 1)}
    before = peak()
    found = {name: code_of(work) for name, work in paths.items()}
    return found, peak() - before


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_no_path_decompresses_more_than_it_may(codec: int) -> None:
    (found, grown), _ = measured("tests.unit.records.test_bombs:everywhere", codec)
    passes = {"as it is": "nothing", "as it is, dense": "nothing", "verify": "unreadable"}
    assert found == {name: passes.get(name, "AB235") for name in found}
    assert len(found) >= 16
    assert grown < BOUND + AIR


def in_another_way(name: str) -> tuple[str, int]:
    codecs.limit_decompressed(BOUND)
    codec, packed = OTHERWISE[name]
    data = bomb(SIZE, codec, packed=packed)
    before = peak()
    return code_of(passed(data, BatchForm(codec=NONE, largest=MIB))), peak() - before


@pytest.mark.parametrize("name", OTHERWISE)
def test_however_it_is_packed(name: str) -> None:
    (code, grown), _ = measured("tests.unit.records.test_bombs:in_another_way", name)
    assert code == "AB235"
    assert grown < BOUND + AIR


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_may_pass_is_read_however_it_is_packed(name: str) -> None:
    codec, packed = OTHERWISE[name]
    (record,) = raw_records(only(bomb(3 * MIB, codec, packed=packed)))
    assert len(record.rest) > 3 * MIB
    assert not any(record.rest[10:-10])


def within_bounds(codec: int, form: str) -> tuple[list[int], int]:
    """Rewrite a batch that may just pass; return what comes of it, in bytes."""
    codecs.limit_decompressed(BOUND)
    data = bomb(BOUND - 100, codec, attributes=0 if form == "codec" else LOG_APPEND_TIME)
    before = peak()
    how = BatchForm(codec=CODES[codec], largest=2 * MIB) if form == "codec" else BatchForm(dense=form == "dense")
    found = [one.size for one in items(fetched(data), 0, how) if isinstance(one, Batch)]
    return found, peak() - before


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
@pytest.mark.parametrize("form", ["codec", "stamped", "dense"])
def test_a_batch_that_may_just_pass_takes_about_twice_as_much(codec: int, form: str) -> None:
    (found, grown), _ = measured("tests.unit.records.test_bombs:within_bounds", codec, form)
    assert len(found) == 1
    assert found[0] < 2 * MIB
    assert grown < 2 * BOUND + AIR


def test_the_bound_is_of_the_thread_and_128_mib_without_one() -> None:
    assert DEFAULT_LARGEST_BATCH == 128 * MIB
    assert codecs._most.get() == DEFAULT_LARGEST_BATCH


# --- in a channel -----------------------------------------------------------------------------------------------------


def bounded(test: Callable[[], None]) -> None:
    token = codecs._most.set(MIB)
    try:
        test()
    finally:
        codecs._most.reset(token)


def test_a_batch_that_is_recoded_when_it_is_sent_parks_its_partition_where_it_stands() -> None:
    def test() -> None:
        channel = Channel(PLACE, codec=LZ4)
        channel.open(SIDES, LogEnd(0, PRODUCER_ID, EPOCH, 0, 0))
        assert feed(channel, build(some(2), 0, ZSTD) + bomb(2 * MIB, ZSTD, 2) + build(some(2), 3, ZSTD)) == 3
        first = channel.send()
        with pytest.raises(CannotPass):
            channel.send()
        # What is in flight is answered first.
        assert (channel.state, channel.can_send()) == (PartitionState.RUNNING, False)
        assert not channel.wants_data()
        land(channel, first, time.monotonic())
        assert (channel.state, channel.position) == (PartitionState.PARKED, 2)
        assert channel.reason is not None
        assert channel.reason.code == "AB235"
        for said in ("source offset 2 ", f"more than {MIB:,} decompressed", "largest-batch", "compression: source"):
            assert said in channel.reason.text

    bounded(test)


def test_its_position_stays_before_such_a_batch_where_offsets_are_translated() -> None:
    def test() -> None:
        channel = TranslatedChannel(PLACE, lambda _: None, codec=LZ4)
        channel.open(SIDES, LogEnd(0, PRODUCER_ID, EPOCH, 0, 0))
        channel.admitted = True
        feed(channel, bomb(2 * MIB, ZSTD, 5) + build(some(2), 6, ZSTD))
        with pytest.raises(CannotPass):
            channel.send()
        assert channel.state is PartitionState.PARKED
        channel._mind_gap()
        assert channel.position <= 5

    bounded(test)


# --- what else is decompressed ----------------------------------------------------------------------------------------


def test_padding_is_told_from_a_bomb() -> None:
    assert not _is_ours(only(bomb(64 * MIB, ZSTD))._replace(max_timestamp=0))


def test_what_went_by_and_cannot_be_decoded_is_not_remembered() -> None:
    def test() -> None:
        past = Past()
        past.add(only(bomb(2 * MIB, ZSTD)), 0)
        assert past.find(raw_records(only(build(some(1))))[0], 1) is None

    bounded(test)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [-12, -1, 0, 13, 2**31 - 1])
def test_a_message_inside_that_lies_about_its_size_is_an_error(magic: int, size: int) -> None:
    inside = struct.pack(">qiIbb", 0, size, 0, magic, 0) + bytes(30)
    value = zlib.compressobj(6, zlib.DEFLATED, 31)
    packed = value.compress(inside) + value.flush()
    times = struct.pack(">q", 0) if magic else b""
    behind = struct.pack(">bb", magic, GZIP) + times + struct.pack(">ii", -1, len(packed)) + packed
    with pytest.raises(UnreadableBatch, match="do not have the layout of their format"):
        read_legacy(memoryview(struct.pack(">qiI", 0, 4 + len(behind), zlib.crc32(behind)) + behind), 0)
