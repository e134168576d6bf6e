"""Measured numbers as people read them: counts, ages, latencies, rates. `-` stands for an unknown value."""

from __future__ import annotations

UNKNOWN = "-"
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_SECOND = 1_000
_KILO = 1_000
_FEW_BYTES = 50_000
# Between these, tenths of a second are shown.
_TENTHS_FROM, _TENTHS_TO = 0.05, 9.95


def count(number: int | None) -> str:
    """Return `1,234`; negative numbers stand for unknown ones."""
    return UNKNOWN if number is None or number < 0 else f"{number:,}"


def seconds(value: float | None) -> str:
    """Return a span of time: `0 s`, `0.1 s`, `12 s`, `5 min`, `3 h`, `7 d`."""
    if value is None:
        return UNKNOWN
    for size, name in _SPANS:
        if value >= size:
            return f"{value / size:.0f} {name}"
    return f"{value:.1f} s" if _TENTHS_FROM <= value < _TENTHS_TO else f"{max(0, value):.0f} s"


def milliseconds(value: int | None) -> str:
    """Return a latency: `45 ms`, `1.2 s`, `7 d`."""
    if value is None:
        return UNKNOWN
    return f"{value} ms" if value < _SECOND else seconds(value / _SECOND)


def bytes_per_second(value: float) -> str:
    """Return a rate in megabytes (10^6 bytes) per second; where that would be 0.0, in kilobytes or bytes."""
    if 0 < value < _KILO:
        return f"{value:.0f} B/s"
    return f"{value / _KILO:,.0f} KB/s" if 0 < value < _FEW_BYTES else f"{value / 1e6:,.1f} MB/s"
