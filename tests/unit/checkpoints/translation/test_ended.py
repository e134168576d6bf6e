"""Where another replicator ended: what it noted, and where its copy has most in common with the original."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.checkpoints.translation.ended import ended, noted_by_mirror_maker, noted_by_mirus
from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.model.offsets.committed import LogBounds


class Message:
    """A record as librdkafka gives it."""

    def __init__(self, offset: int, value: bytes | None, key: bytes | None = None) -> None:
        self._offset, self._value, self._key = offset, value, key

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def timestamp(self) -> tuple[int, int]:
        return (1, 7)

    def error(self) -> None:
        return None


class Reader(RecordReader):
    """Logs of values, each at its offset, in place of a cluster's."""

    def __init__(self, *logs: dict[int, Any]) -> None:
        self._logs = logs

    def messages(self, topic: str, partition: int, first: int, end: int | None = None) -> Iterator[Any]:
        for offset, value in sorted(self._logs[partition].items()):
            if offset >= first:
                key, content = value if isinstance(value, tuple) else (None, value)
                yield Message(offset, content, key)


def log(text: str, first: int = 0) -> dict[int, bytes]:
    return {first + at: letter.encode() for at, letter in enumerate(text)}


def next_of(source: dict[int, bytes], noted: int, copy: dict[int, bytes], end: int | None = None) -> tuple[int, int]:
    bounds = LogBounds(0, 0, max(copy, default=-1) + 1 if end is None else end)
    found = ended(Reader(source), Reader(copy), ("x", 0), noted, ("c", 0), bounds)
    return found.offset, found.unnoted


@pytest.mark.parametrize(
    ("source", "noted", "copy", "is_whole"),
    [
        ("abcdef", 3, "abcde", True),
        ("abcdef", 3, "abc", True),
        # Longer than what of the original is compared.
        ("abcdef", 3, "xyzabcde", True),
        # Among records of other partitions.
        ("abcdef", 3, "axbyczd", False),
        ("abcdef", 3, "abczd", False),
        ("abcdef", 3, "xyz", False),
    ],
)
def test_whether_a_copy_ends_with_records_of_its_original_alone(
    source: str, noted: int, copy: str, is_whole: bool
) -> None:
    bounds = LogBounds(0, 0, len(copy))
    found = ended(Reader(log(source)), Reader(log(copy)), ("x", 0), noted, ("c", 0), bounds)
    assert found.is_whole == is_whole


@pytest.mark.parametrize(
    ("source", "noted", "copy", "expected"),
    [
        ("abcdef", 3, "abc", (3, 0)),
        ("abcdef", 3, "abcde", (5, 2)),
        ("abcdef", 6, "abcdef", (6, 0)),
        ("abcdef", 2, "", (2, 0)),
        # Written twice before, as after a former kill.
        ("abcdef", 3, "abcbcde", (5, 2)),
        # Equal records: as many as stand there, and none is left out.
        ("aaaaaa", 2, "aaaa", (4, 2)),
        ("aaaaaa", 2, "aa", (2, 0)),
        ("aaaaaa", 2, "aaaaaa", (6, 4)),
        ("xaaaa", 2, "xaa", (3, 1)),
        ("abab", 0, "ab", (2, 2)),
        ("abababab", 4, "ababab", (6, 2)),
        ("abcdef", 3, "xyz", (3, 0)),
    ],
)
def test_the_longest_run_that_a_copy_ends_with(source: str, noted: int, copy: str, expected: tuple[int, int]) -> None:
    assert next_of(log(source), noted, log(copy)) == expected


def test_holes_and_markers_are_no_records() -> None:
    source = {0: b"a", 1: b"b", 4: b"c", 9: b"d", 12: b"e"}
    copy = {0: b"a", 1: b"b", 3: b"c", 5: b"d"}
    assert next_of(source, 2, copy, end=7) == (10, 2)


def test_a_copy_without_holes_is_never_left_short_or_doubled() -> None:
    """Whatever records are equal, and wherever the position was noted, it goes on behind what was copied."""
    chance = random.Random(1)
    for _ in range(5_000):
        source = "".join(chance.choices("ab", k=chance.randint(1, 12)))
        copied = chance.randint(0, len(source))
        noted = chance.randint(0, copied)
        assert next_of(log(source), noted, log(source[:copied])) == (copied, copied - noted), (source, noted, copied)


def test_a_copy_that_was_begun_anew_before_goes_on_behind_its_last_record() -> None:
    """A former kill had some written twice; records are told apart by number here, as by time and content elsewhere."""
    chance = random.Random(2)
    for _ in range(3_000):
        source = "abcdefghijklmnopqrst"
        copied = chance.randint(2, len(source))
        again = chance.randint(0, copied - 1)
        copy = source[: chance.randint(again, copied)] + source[again:copied]
        noted = chance.randint(again, copied)
        assert next_of(log(source), noted, log(copy)) == (copied, copied - noted), (copy, noted, copied)


def test_positions_of_connect_are_those_of_the_source_and_the_last_of_each() -> None:
    def key(connector: str = "M", cluster: str = "east", topic: str = "orders", partition: Any = 0) -> bytes:
        place = f'{{"cluster":"{cluster}","partition":{partition},"topic":"{topic}"}}'
        return f'["{connector}",{place}]'.encode()

    first: dict[int, Any] = {
        0: (key(), b'{"offset":4}'),
        1: (key(), b'{"offset":9}'),
        2: (key(cluster="west"), b'{"offset":1}'),
        3: (key(topic="users"), b'{"offset":2}'),
        4: (key(topic="users"), None),
        5: (b"not json", b'{"offset":2}'),
        6: (b'["M"]', b'{"offset":2}'),
        7: (b'["M",["x"]]', b'{"offset":2}'),
        8: (key(partition='"0"'), b'{"offset":2}'),
        9: (key(partition=-1), b'{"offset":2}'),
        10: (key(topic="odd"), b'{"offset":"2"}'),
        11: (key(topic="none"), b"[]"),
        12: (None, None),
        13: (b"[" * 100_000, b"x"),
    }
    other: dict[int, Any] = {0: (key("N", partition=1), b'{"offset":0}')}
    found = noted_by_mirror_maker(Reader(first, other), "offsets", 2, "east")
    assert found == [("M", ("orders", 0), 10), ("N", ("orders", 1), 1)]


def test_positions_of_mirus_name_no_cluster_and_the_next_record() -> None:
    first: dict[int, Any] = {
        0: (b'["mirus",{"topic":"orders","partition":0}]', b'{"offset":4}'),
        1: (b'["mirus",{"partition":0,"topic":"orders"}]', b'{"offset":9}'),
        2: (b'["mirus",{"topic":"users","partition":1}]', b'{"offset":2}'),
        3: (b'["mirus",{"topic":"users","partition":1}]', None),
        4: (b'["M",{"cluster":"east","partition":0,"topic":"orders"}]', b'{"offset":1}'),
        5: (b'["mirus",{"topic":"odd","partition":-1}]', b'{"offset":1}'),
    }
    found = noted_by_mirus(Reader(first), "offsets", 1)
    assert found == [("mirus", ("orders", 0), 9)]
