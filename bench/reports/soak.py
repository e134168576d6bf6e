"""Writes what `soak` saw as Markdown: peaks, slopes and the verdict. Pure: it must not measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from bench.measures.soak import LARGEST, SMALLEST, SoakResult
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, table

MOST_WORKER_MB = 300.0
# Of the mean, in an hour. What is kept for ever, once for each of some hundred thousand records, is far above it.
FLAT = 0.05
_SHORTEST = 600.0
_HOUR = 3600.0
_MB = 1e6
_PARTS = 10
_ROLES = {"worker": "largest worker", "driver": "driver", "jvm": "JVM"}


def soak_report(result: SoakResult, machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        result: what was seen.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    wear, roles = result.wear, [role for role in _ROLES if role in result.resident]
    bars = [Bar("a worker's peak memory", result.peaks.worker / _MB, MOST_WORKER_MB, False, " MB")]
    heads = ["", "peak MB", "mean MB", "slope MB/hour", "verdict"]
    parts = [
        f"# Soak of {date}\n",
        f"{wear.seconds:,.0f} s, of which the first {wear.warm_up:,.0f} do not count: after a backlog of "
        f"{wear.backlog / _MB:,.0f} MB, copied in {result.backlog_seconds:.0f} s, {wear.rate / _MB:g} MB/s and every "
        f"{wear.burst_every:g} s a burst of {wear.burst / _MB:,.0f} MB. Records of {SMALLEST} bytes to {LARGEST:,}, "
        f"each order of magnitude as often as the next, {wear.partitions} partitions: {result.records:,} records, "
        f"{result.bytes / 1e9:.2f} GB, all copied. {result.cpu:.0f} CPU s after the backlog.\n",
        machine_lines(machine) + f"- load average {result.load_before:.2f} before the start\n",
        table(heads, [_row(result, role) for role in roles]),
        bars_table(bars),
        f"Mean MB in each of {_PARTS} equal parts of the time:\n",
        table(["", *(str(part) for part in range(1, _PARTS + 1))], [_parts(result, role) for role in roles]),
        "Resident memory of the largest process of each role, looked at every second; peaks are the kernel's\n"
        "high-water marks and include the backlog. The slope is that of the straight line that fits best (least\n"
        "squares).\n"
        f"Flat means that it rises by at most {FLAT:.0%} of the mean in an hour.\n",
    ]
    return "\n".join(parts)


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the line that fits best, in units of the values a second; 0 when there is one time only."""
    middle, mean = fmean(times), fmean(values)
    spread = sum((time - middle) ** 2 for time in times)
    together = sum((time - middle) * (value - mean) for time, value in zip(times, values, strict=True))
    return together / spread if spread else 0.0


def verdict(rise: float, mean: float, seconds: float) -> str:
    """Return whether memory is flat.

    Args:
        rise: in an hour.
        mean: of the memory, in the same unit.
        seconds: how long it was looked at.
    """
    if seconds < _SHORTEST:
        return "too short to tell"
    return "flat" if rise <= FLAT * mean else "**not flat**"


def _row(result: SoakResult, role: str) -> list[str]:
    # A run shorter than its warm-up still shows something.
    counted = [at for at, time in enumerate(result.times) if time >= result.wear.warm_up] or range(len(result.times))
    times = [result.times[at] for at in counted]
    values = [result.resident[role][at] / _MB for at in counted]
    rise, mean = slope(times, values) * _HOUR, fmean(values)
    peak = getattr(result.peaks, role) / _MB
    found = verdict(rise, mean, times[-1] - times[0])
    return [_ROLES[role], f"{peak:,.0f}", f"{mean:,.0f}", f"{rise:+,.1f}", found]


def _parts(result: SoakResult, role: str) -> list[str]:
    values = result.resident[role]
    cuts = [len(values) * part // _PARTS for part in range(_PARTS + 1)]
    pieces = [values[start:end] for start, end in pairwise(cuts)]
    return [_ROLES[role], *(f"{fmean(piece) / _MB:,.0f}" if piece else "-" for piece in pieces)]
