"""Sizes and times as users write them, turned into numbers.

`settings` calls it with text that has passed the schema, which alone decides what is accepted.
"""

from __future__ import annotations

import re
from datetime import datetime

_BYTES = {
    **{"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3},
    **{"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3},
}
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_THOUSANDTHS = {"ms": 1, "s": 1000}
NO_MOMENT = -1
_WRITTEN = re.compile(r"([0-9]+) ?([A-Za-z]+)")


def byte_count(size: str | int) -> int:
    """Return a size in bytes: `256KiB`, or a number that is one already."""
    return _scaled(size, _BYTES) if isinstance(size, str) else int(size)


def byte_rate(rate: str) -> int:
    """Return a rate in bytes per second: `50MB/s`."""
    return byte_count(rate.removesuffix("/s"))


def seconds(time: str) -> float:
    """Return a time in seconds: `60s`, `5min`."""
    return float(_scaled(time, _SECONDS))


def short_seconds(time: str) -> float:
    """Return a short time in seconds: `5ms`, `2s`."""
    return _scaled(time, _THOUSANDTHS) / 1000


def moment(written: str) -> int:
    """Return a time in milliseconds since 1970: `2026-11-01T00:00:00Z`; `NO_MOMENT` for one that no calendar has."""
    try:
        return int(datetime.fromisoformat(written).timestamp() * 1000)
    except ValueError:
        return NO_MOMENT


def _scaled(written: str, units: dict[str, int]) -> int:
    found = _WRITTEN.fullmatch(written)
    if found is None:
        message = f"no number with a unit: {written}"
        raise ValueError(message)
    return int(found[1]) * units[found[2]]
