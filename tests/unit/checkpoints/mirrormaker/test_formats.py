"""Checkpoints and heartbeats as bytes: read as they were written, laid out as MirrorMaker 2 has it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.checkpoints.mirrormaker.formats import (
    BLANK,
    Checkpoint,
    CheckpointKey,
    Heartbeat,
    checkpoint_key,
    checkpoint_value,
    group_prefix,
    heartbeat_key,
    heartbeat_value,
    newest,
    read_checkpoint,
    read_checkpoint_key,
    read_heartbeat,
)
from reconciler.replicator.partition.offset_syncs import OffsetSync, sync_of

pytestmark = pytest.mark.slow

NAMES = st.text(max_size=249)
PARTITIONS = st.integers(0, 2**31 - 1)
OFFSETS = st.integers(0, 2**63 - 1)
CHECKPOINTS = st.builds(Checkpoint, NAMES, NAMES, PARTITIONS, OFFSETS, OFFSETS, st.text(max_size=500))
HEARTBEATS = st.builds(Heartbeat, NAMES, NAMES, OFFSETS)
FEW = st.builds(Checkpoint, st.sampled_from("ab"), st.sampled_from(["x.t", "x.u"]), st.integers(0, 1), OFFSETS, OFFSETS)

ORDERS = Checkpoint("payments", "us-east.orders", 3, 500, 7, "née")
KEY = struct.pack(">h8sh14si", 8, b"payments", 14, b"us-east.orders", 3)
VALUE = struct.pack(">hqqh4s", 0, 500, 7, 4, "née".encode())


@given(CHECKPOINTS)
def test_a_checkpoint_is_read_as_it_was_written(written: Checkpoint) -> None:
    key, value = checkpoint_key(written.key), checkpoint_value(written)
    assert read_checkpoint_key(key) == written.key
    assert read_checkpoint(key, value) == written


@given(HEARTBEATS)
def test_a_heartbeat_is_read_as_it_was_written(written: Heartbeat) -> None:
    key, value = heartbeat_key(written.source, written.target), heartbeat_value(written.timestamp)
    assert read_heartbeat(key, value) == written


@given(NAMES, CHECKPOINTS)
def test_the_keys_of_a_group_and_of_no_other_begin_with_its_prefix(group: str, other: Checkpoint) -> None:
    assert checkpoint_key(other.key).startswith(group_prefix(other.group))
    assert checkpoint_key(other.key).startswith(group_prefix(group)) is (group == other.group)


def test_the_bytes_are_those_of_mirrormaker() -> None:
    assert (checkpoint_key(ORDERS.key), checkpoint_value(ORDERS)) == (KEY, VALUE)
    assert heartbeat_key("east", "w") == struct.pack(">h4sh1s", 4, b"east", 1, b"w")
    assert heartbeat_value(1_700_000_000_000) == struct.pack(">hq", 0, 1_700_000_000_000)


def test_what_stands_behind_a_record_is_left_alone() -> None:
    assert read_checkpoint(KEY + b"more", VALUE + b"more") == ORDERS
    assert read_heartbeat(heartbeat_key("a", "b") + b"x", heartbeat_value(5) + b"x") == Heartbeat("a", "b", 5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY, BLANK),
        (KEY, VALUE[:-1]),
        (KEY, b"\x00\x01" + VALUE[2:]),
        (KEY, struct.pack(">hqqh", 0, 500, 7, -1)),
        (KEY, struct.pack(">hqqh", 0, 500, 7, 1) + b"\xff"),
        (KEY[:-1], VALUE),
        (b"", VALUE),
        (b"\xff\xff" + KEY[2:], VALUE),
    ],
)
def test_what_is_no_checkpoint_is_told(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match=r"bytes at|version|decode"):
        read_checkpoint(key, value)


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_bytes_of_others_are_told_or_read_but_never_anything_else(key: bytes, value: bytes) -> None:
    assert len(newest([(key, value)])) <= 1
    for read in (read_checkpoint, read_heartbeat):
        try:
            read(key, value)
        except ValueError as told:
            assert str(told)


def test_a_heartbeat_of_another_version_is_none() -> None:
    with pytest.raises(ValueError, match="expected version 0, found 1"):
        read_heartbeat(heartbeat_key("a", "b"), b"\x00\x01" + bytes(8))


@pytest.mark.parametrize("key", [CheckpointKey("g" * 2**15, "t", 0), CheckpointKey("g", "ü" * 2**14, 0)])
def test_names_too_long_for_the_format_are_refused(key: CheckpointKey) -> None:
    with pytest.raises(ValueError, match="a text of 32768 bytes, the format has room for 32767"):
        checkpoint_key(key)


def test_metadata_too_long_for_the_format_is_left_out() -> None:
    longest = Checkpoint("g", "t", 0, 1, 2, "m" * (2**15 - 1))
    assert read_checkpoint(checkpoint_key(longest.key), checkpoint_value(longest)) == longest
    longer = Checkpoint("g", "t", 0, 1, 2, "m" * 2**15)
    assert read_checkpoint(checkpoint_key(longer.key), checkpoint_value(longer)) == Checkpoint("g", "t", 0, 1, 2)


@given(st.lists(st.tuples(FEW, st.sampled_from(["written", "blank", "tombstone", "unreadable"])), max_size=30))
def test_the_newest_of_each_key_holds_unless_it_was_taken_back(log: list[tuple[Checkpoint, str]]) -> None:
    values = {"blank": BLANK, "tombstone": None, "unreadable": b"\x00\x07"}
    records = [(checkpoint_key(one.key), values.get(how, checkpoint_value(one))) for one, how in log]
    expected: dict[CheckpointKey, Checkpoint] = {}
    for one, how in log:
        if how == "written":
            expected[one.key] = one
        elif how != "unreadable":
            expected.pop(one.key, None)
    noise: list[tuple[bytes | None, bytes | None]] = [(None, None), (None, VALUE), (b"", b""), (b"key", None)]
    assert newest([*noise, *records, *noise]) == expected


@given(st.binary(max_size=60), st.binary(max_size=20))
def test_an_offset_sync_is_read_from_key_and_value_or_told_to_be_none(key: bytes, value: bytes) -> None:
    assert sync_of(struct.pack(">h6si", 6, b"orders", 3), struct.pack(">qq", 5, 7)) == OffsetSync("orders", 3, 5, 7)
    try:
        found = sync_of(key, value)
    except (ValueError, struct.error):
        return
    name = found.topic.encode()
    assert struct.pack(">h", len(name)) + name + struct.pack(">i", found.partition) == key
    assert struct.pack(">qq", found.source, found.target) == value
