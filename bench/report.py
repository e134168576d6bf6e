"""Writes a race as Markdown: medians, ratios Anabranch / MirrorMaker 2, every run, and what was measured on what.

Called by the command line. Pure: it must not measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.mm2 import TUNING, MirrorMaker2
from bench.ours import Anabranch
from bench.race import Entry, Result
from bench.watch import Measurement

_MIB = 2**20
_NOISE = 0.1

_NOTES = """\
All competitors replicated the same topic from the same source broker to the same target broker, one after the other,
each into an empty remote topic; every second run was in the opposite order. The brokers were warmed up first; before
each start the source was read once and everything was written to disk.

- Time and CPU count from the moment the first replicated records stand in the target's log to the moment the last
  does, looked at every 20 ms; CPU is user and system time of all processes of the competitor (Anabranch: the command,
  Spark's virtual machine, the Python processes under it; MirrorMaker 2: its virtual machine). Start-up, from the start
  of the process to the first records, is apart. Anabranch's remote topic is made before by `anabranch apply`,
  MirrorMaker 2 makes its own at the start.
- MB and GB are bytes of the original record batches, 10^6 and 10^9.
- Peaks are the kernel's high-water marks of resident memory since the start of each process; a worker is the largest
  Python process under Spark. *All* is every process at the last record, shared pages counted once.
- *Elsewhere* is how many processors were busy with things that are no part of the race: noise.
- Anabranch runs with what a user would write, the number of tasks apart. MirrorMaker 2 runs in dedicated mode, without
  heartbeats, checkpoints and ACL sync, with offset syncs, with the virtual machine options of Kafka's own script, and
  with these settings beyond the defaults:
"""


@dataclass(frozen=True)
class Figure:
    """One column: its heading, the value of a measurement, and how it is written."""

    heading: str
    value: Callable[[Measurement], float]
    form: str


_RECORDS = Figure("records/s", lambda one: one.records_per_second, "{:,.0f}")
_MB = Figure("MB/s", lambda one: one.mb_per_second, "{:,.0f}")
_CPU = Figure("CPU s", lambda one: one.cpu, "{:.1f}")
_CPU_GB = Figure("CPU s per GB", lambda one: one.cpu_per_gb, "{:.2f}")
_START = Figure("start-up s", lambda one: one.startup, "{:.1f}")
_START_CPU = Figure("start-up CPU s", lambda one: one.startup_cpu, "{:.1f}")
_BROKERS = Figure("brokers' CPU s", lambda one: one.brokers, "{:.1f}")
_ELSEWHERE = Figure("elsewhere", lambda one: one.elsewhere, "{:.2f}")
_WORKER = Figure("worker MiB", lambda one: one.memory.worker / _MIB, "{:,.0f}")
_JVM = Figure("JVM MiB", lambda one: one.memory.jvm / _MIB, "{:,.0f}")
_DRIVER = Figure("driver MiB", lambda one: one.memory.driver / _MIB, "{:,.0f}")
_ALL = Figure("all MiB", lambda one: one.memory.together / _MIB, "{:,.0f}")
_BATCH = Figure("remote batch KiB", lambda one: one.copy.batch_bytes / 1024, "{:,.0f}")

SPEED = (_RECORDS, _MB, _CPU, _CPU_GB, _START, _START_CPU, _BROKERS, _ELSEWHERE)
MEMORY = (_WORKER, _JVM, _DRIVER, _ALL, _BATCH)


def report(result: Result, machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        result: the race.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    runs = max(len(entry.measurements) for entry in result.entries)
    parts = [
        f"# Race of {date}\n",
        _topic(result),
        "\n".join(f"- {name}: {fact}" for name, fact in machine.items()) + "\n" + _noise(result),
        f"## {'Medians of ' + str(runs) + ' runs' if runs > 1 else 'One run'}\n",
        _figures(result.entries, SPEED),
        "Memory: peaks, and all processes at the last record.\n",
        _figures(result.entries, MEMORY),
        "## Ratios Anabranch / MirrorMaker 2\n",
        _ratios(result.entries),
        *(["## Every run\n", _every_run(result.entries)] if runs > 1 else []),
        "## How\n",
        _NOTES + "\n".join(f"  - `{key}={value}`" for key, value in TUNING.items()) + "\n",
    ]
    return "\n".join(parts)


def ratios(ours: Sequence[Measurement], theirs: Sequence[Measurement]) -> dict[str, float]:
    """Return the ratios ours / theirs of the medians, by heading."""
    pairs = {
        "records/s": (_RECORDS, _RECORDS),
        "MB/s": (_MB, _MB),
        "CPU s per GB": (_CPU_GB, _CPU_GB),
        "worker / JVM memory": (_WORKER, _JVM),
        "JVM memory": (_JVM, _JVM),
        "all memory": (_ALL, _ALL),
        "start-up s": (_START, _START),
        "start-up CPU s": (_START_CPU, _START_CPU),
    }
    return {heading: _median(mine, ours) / _median(other, theirs) for heading, (mine, other) in pairs.items()}


def _topic(result: Result) -> str:
    load, original = result.load, result.original
    return (
        f"One topic: {load.records:,} records of {load.size} bytes (key and value), {load.partitions} partitions, "
        f"codec {load.codec}, {original.bytes / 1e9:.2f} GB in {original.batches:,} batches of on average "
        f"{original.batch_bytes / 1024:.0f} KiB and {original.batch_records:,.0f} records.\n"
    )


def _noise(result: Result) -> str:
    worst = max(one.elsewhere for entry in result.entries for one in entry.measurements)
    quiet = f"load average {result.load_before:.2f} before the start, at most {worst:.2f} processors busy elsewhere"
    if worst < _NOISE:
        return f"- quiet: {quiet}\n"
    return f"- **not quiet**: {quiet}; judge by CPU seconds rather than by speed\n"


def _figures(entries: Iterable[Entry], figures: Sequence[Figure]) -> str:
    rows = [
        [entry.competitor.title, entry.competitor.guarantee]
        + [figure.form.format(_median(figure, entry.measurements)) for figure in figures]
        for entry in entries
    ]
    return _table(["competitor", "guarantee", *(figure.heading for figure in figures)], rows)


def _ratios(entries: Sequence[Entry]) -> str:
    pairs = [
        (ours, theirs)
        for ours in entries
        for theirs in entries
        if isinstance(ours.competitor, Anabranch) and isinstance(theirs.competitor, MirrorMaker2)
    ]
    if not pairs:
        return "Only one of the two took part.\n"
    found = [ratios(ours.measurements, theirs.measurements) for ours, theirs in pairs]
    rows = [
        [f"{ours.competitor.title} / {theirs.competitor.title}", *(f"{value:.2f}" for value in values.values())]
        for (ours, theirs), values in zip(pairs, found, strict=True)
    ]
    return _table(["", *found[0]], rows)


def _every_run(entries: Iterable[Entry]) -> str:
    rows = [
        [entry.competitor.title, str(number), *(figure.form.format(figure.value(one)) for figure in SPEED)]
        for entry in entries
        for number, one in enumerate(entry.measurements, 1)
    ]
    return _table(["competitor", "run", *(figure.heading for figure in SPEED)], rows)


def _median(figure: Figure, measurements: Iterable[Measurement]) -> float:
    return median(figure.value(one) for one in measurements)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    # Words to the left, numbers to the right.
    rulers = ["--:" if rows[0][at][:1].isdigit() else "---" for at in range(len(heads))]
    lines = [heads, rulers, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
