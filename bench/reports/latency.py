"""Writes what `latency` found as Markdown. Pure: it must not measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from bench.competitors.mm2 import TUNING, MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.measures.latency import SHARES, LatencyResult, Line, Sight
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, noise_line, table

_ADDED = ("p50", "p90", "p99", "p99.9")

_NOTES = """\
One process sent every record and received it, so that one clock tells: from the moment a record was handed to the
producer (linger 0, acks all: each record is a batch of its own) to the moment the consumer handed it out. The floor is
that way on the source cluster alone; the others' begins there and ends at the remote topic on the target cluster. All
came one after the other in each run, every second run in the opposite order, each with a topic of its own; the warm-up
does not count. *Added* is a percentile less the floor's of the same run. Every record that was sent came out exactly
once, or there would be no report.

- CPU is user and system time of all processes of a replicator, in CPU seconds a second; *harness* is that of the
  process that sent and received, *elsewhere* what else was busy. *Late* is by how much the generator was late at worst.
- Anabranch runs with what a user would write, for the whole time, so that its rounds change inside; what has no rounds
  is measured for 90 s at most.
- MirrorMaker 2 runs in dedicated mode, without heartbeats, checkpoints and ACL sync, with offset syncs: with the
  settings of the race; with its own, where its producer waits for 5 ms; and with those of the race, but
  `target.producer.linger.ms=0`, which is its quickest. Those of the race beyond the defaults:
"""


def latency_report(result: LatencyResult, machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        result: what was measured.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    setting, stream = result.setting, result.setting.stream
    runs = len(result.lines[0].sights)
    worst = max(sight.elsewhere for line in result.lines for sight in line.sights)
    parts = [
        f"# Latency of {date}\n",
        f"{stream.rate:,} records/s of {stream.size} bytes over {stream.partitions} partitions "
        f"for {setting.seconds:g} s, after {setting.warm_up:g} s of warm-up.\n",
        machine_lines(machine) + noise_line(result.load_before, worst),
        f"## {'Medians of ' + str(runs) + ' runs' if runs > 1 else 'One run'}\n",
        table(["", "guarantee", *(f"{name} ms" for name in SHARES), *_COSTS], [_row(line) for line in result.lines]),
        "Added to the floor of the same run:\n",
        table(
            ["", *(f"{name} ms" for name in _ADDED)],
            [
                [line.title, *(f"{added(result, line, name):.2f}" for name in _ADDED)]
                for line in result.lines
                if line.peer
            ]
            or [["nobody", *("0" for _ in _ADDED)]],
        ),
        bars_table(latency_bars(result)),
        *(["## Every run\n", _every_run(result)] if runs > 1 else []),
        "## How\n",
        _NOTES + "".join(f"  - `{key}={value}`\n" for key, value in TUNING.items()),
    ]
    return "\n".join(parts)


def added(result: LatencyResult, line: Line, share: str) -> float:
    """Return the median, over the runs, of the milliseconds that a line adds to the floor at a percentile."""
    floor = result.lines[0]
    return median(
        sight.milliseconds[share] - below.milliseconds[share]
        for sight, below in zip(line.sights, floor.sights, strict=True)
    )


def latency_bars(result: LatencyResult) -> list[Bar]:
    """Return what is promised beside MirrorMaker 2; nothing when one of the two was missing."""
    ours = [line for line in result.lines if isinstance(line.peer, Anabranch)]
    theirs = [line for line in result.lines if isinstance(line.peer, MirrorMaker2)]
    if not ours or not theirs:
        return []
    return [bar for other in theirs for bar in _bars_beside(result, ours[0], other)]


def _bars_beside(result: LatencyResult, mine: Line, other: Line) -> list[Bar]:
    most = {"p50": added(result, other, "p50") / 2, "p99": added(result, other, "p99")}
    found = [
        Bar(
            f"added {share}; {'half of ' if share == 'p50' else ''}what {other.title} adds",
            added(result, mine, share),
            limit,
            False,
            " ms",
        )
        for share, limit in most.items()
    ]
    name = f"CPU s/s; half of {other.title}'s"
    found.append(Bar(name, _cost(mine, "CPU s/s"), _cost(other, "CPU s/s") / 2, at_least=False))
    return found


_COSTS: dict[str, Callable[[Sight], float]] = {
    "CPU s/s": lambda sight: sight.cpu,
    "brokers": lambda sight: sight.brokers,
    "harness": lambda sight: sight.harness,
    "elsewhere": lambda sight: sight.elsewhere,
    "late ms": lambda sight: sight.late,
}


def _cost(line: Line, name: str) -> float:
    return median(_COSTS[name](sight) for sight in line.sights)


def _row(line: Line) -> list[str]:
    times = [f"{median(sight.milliseconds[name] for sight in line.sights):.2f}" for name in SHARES]
    return [line.title, line.guarantee, *times, *(f"{_cost(line, name):.3f}" for name in _COSTS)]


def _every_run(result: LatencyResult) -> str:
    rows = [
        [
            line.title,
            str(number),
            f"{sight.records:,}",
            *(f"{sight.milliseconds[name]:.2f}" for name in SHARES),
            *(f"{cost(sight):.3f}" for cost in _COSTS.values()),
        ]
        for line in result.lines
        for number, sight in enumerate(line.sights, 1)
    ]
    return table(["", "run", "records", *(f"{name} ms" for name in SHARES), *_COSTS], rows)
