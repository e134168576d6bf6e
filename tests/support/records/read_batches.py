"""What batches hold, and how many records each."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.records.batch import Batch
from tests.support.records.library_records import Record, decode


def records(found: Iterable[Batch]) -> list[Record]:
    """Return the records of all batches."""
    return [record for one in found for record in decode(one.to_bytes())]


def sizes(found: Iterable[Batch]) -> list[int]:
    """Return how many records each batch has."""
    return [one.record_count for one in found]
