"""Translated offsets, as values: questions and answers."""

from __future__ import annotations

from typing import Literal, NamedTuple

How = Literal["record", "end", "ahead", "expired", "unknown"]
Way = Literal["downstream", "upstream"]


class Question(NamedTuple):
    """An offset of one partition.

    Attributes:
        topic: the original topic, whichever way.
        partition: its number on both sides.
        offset: the next one to be read: 0 or more; of the source downstream, of the target upstream.
        way: `downstream` from source to target, `upstream` back.
    """

    topic: str
    partition: int
    offset: int
    way: Way = "downstream"


class Translated(NamedTuple):
    """What an offset is on the other side.

    Attributes:
        offset: where to go on; None where no consumer should be moved.
        how: `record`: a record stands there, or stood there before it was compacted away. `end`: all before it is
            copied; what comes next is the next to be read. `ahead`: it is further than the copy, so this is the end of
            what is there, and what is copied later would be read again. `expired`: that place is deleted already.
            `unknown`: it cannot be determined.
        why: in words, where there is more to report.
    """

    offset: int | None
    how: How
    why: str = ""
