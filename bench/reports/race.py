"""Writes races as Markdown: medians, ratios between the competitors, bars, every run, and what was measured on what.

Called by the command line. Pure: it must not measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.competitors.follower import Follower
from bench.competitors.mm2 import TUNING, MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.instruments.watch import Measurement
from bench.measures.race import Entry, Result
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, noise_line, table

_MIB = 2**20
_MB = 1e6

_NOTES = """\
All competitors of a section replicated the same topic from the same source cluster to the same target cluster, one
after the other, each into an empty remote topic; every second run was in the opposite order. The brokers were warmed
up first, and of several runs no first start counted; before each start the source was read once, everything
was written to disk, and the memory that the copy would need was touched; it was given back as fast as the copy grew,
so that no host of a virtual machine could take it away before. After each run a sample of the copy was compared with
the original, record by record; a difference would have ended the race without a report.

- Time and CPU count from the moment the first replicated records stand in the target's log to the moment the last
  does, looked at every 20 ms; CPU is user and system time of all processes of the competitor (Anabranch: the command,
  Spark's virtual machine, the Python processes under it; MirrorMaker 2: its virtual machine). Start-up, from the start
  of the process to the first records, is apart. Anabranch's remote topic is made before by `anabranch apply`,
  MirrorMaker 2 makes its own at the start.
- The Kafka follower is the second node of the source cluster: the topic's partitions are reassigned to it as well, so
  that it fetches the same batches from the same log on the same machine, with Kafka's default settings and no
  throttle. Its CPU is that of its broker, which fetches and keeps the copy; the leader's is under the brokers'. The
  others' brokers' CPU has the target's in it.
- MB and GB are bytes of the original record batches, 10^6 and 10^9.
- Peaks are the kernel's high-water marks of resident memory since the start of each process; a worker is the largest
  Python process under Spark. *All* is every process at the last record, shared pages counted once.
- *Elsewhere* is how many processors were busy with things that are no part of the race: noise.
- One-record batches are written into the source's log segments by the bench, as a producer without linger leaves them.
- Anabranch runs with what a user would write, the number of tasks apart. MirrorMaker 2 runs in dedicated mode, without
  heartbeats, checkpoints and ACL sync, with offset syncs, with the virtual machine options of Kafka's own script, and
  in every section with these settings beyond the defaults:
"""


@dataclass(frozen=True)
class Figure:
    """One column: its heading, the value of a measurement, and how it is written."""

    heading: str
    value: Callable[[Measurement], float]
    form: str


_RECORDS = Figure("records/s", lambda one: one.records_per_second, "{:,.0f}")
_MB_PER_S = Figure("MB/s", lambda one: one.mb_per_second, "{:,.0f}")
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
_BATCH = Figure("remote batch KiB", lambda one: one.copy.batch_bytes / 1024, "{:,.1f}")

SPEED = (_RECORDS, _MB_PER_S, _CPU, _CPU_GB, _START, _START_CPU, _BROKERS, _ELSEWHERE)
MEMORY = (_WORKER, _JVM, _DRIVER, _ALL, _BATCH)

# Records/s beside MirrorMaker 2 at least once; where more is promised, `bars` says so.
_TIMES_AS_FAST = {"plain250": 4.0, "lz4": 4.0, "tiny": 2.0, "compacted": 2.0, "secured": 3.0, "far": 5.0}
# A copy with offsets of its own is written in transactions.
_TIMES_AS_FAST_TRANSLATED = 3.5
_CPU_SHARES = {"plain250": 1 / 10, "secured": 1 / 5}
_CPU_SHARE_TRANSLATED = 1 / 8


def report(results: Sequence[Result], machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        results: the races, one for each profile.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    parts = [f"# Race of {date}\n", machine_lines(machine)]
    parts += [_section(result) for result in results]
    parts += ["## How\n", _NOTES + "".join(f"  - `{key}={value}`\n" for key, value in TUNING.items())]
    return "\n".join(parts)


def ratios(ours: Sequence[Measurement], theirs: Sequence[Measurement]) -> dict[str, float]:
    """Return the ratios ours / theirs of the medians, by heading; 0 where the other has nothing of the kind."""
    pairs = {
        "records/s": (_RECORDS, _RECORDS),
        "MB/s": (_MB_PER_S, _MB_PER_S),
        "CPU s per GB": (_CPU_GB, _CPU_GB),
        "worker / JVM memory": (_WORKER, _JVM),
        "JVM memory": (_JVM, _JVM),
        "all memory": (_ALL, _ALL),
        "start-up s": (_START, _START),
        "start-up CPU s": (_START_CPU, _START_CPU),
    }
    found = {heading: (_median(mine, ours), _median(other, theirs)) for heading, (mine, other) in pairs.items()}
    return {heading: mine / other if other else 0.0 for heading, (mine, other) in found.items()}


def bars(result: Result) -> list[Bar]:
    """Return what is promised for a race's profile and can be told from it.

    Speeds are the fastest of Anabranch's and of the peer's numbers of tasks; the CPU is that of the most economical.
    """
    ours = [entry for entry in result.entries if isinstance(entry.competitor, Anabranch)]
    if not ours:
        return []
    speed, cpu = max(_of(_RECORDS, ours)), min(_of(_CPU_GB, ours))
    once, exactly = (_mm2(result, mode) for mode in ("at least once", "exactly once"))
    floor = [entry for entry in result.entries if isinstance(entry.competitor, Follower)]
    found = [
        Bar("a worker's peak memory, every number of tasks", max(_of(_WORKER, ours)) * _MIB / _MB, 300, False, " MB")
    ]
    translated = any(not entry.competitor.keeps_offsets for entry in ours if isinstance(entry.competitor, Anabranch))
    if once and (times := _TIMES_AS_FAST.get(result.profile.name)):
        times = min(times, _TIMES_AS_FAST_TRANSLATED) if translated else times
        found.append(Bar("records/s / MirrorMaker 2 at least once", speed / max(_of(_RECORDS, once)), times))
    if result.profile.name == "plain250":
        if exactly:
            found.append(Bar("records/s / MirrorMaker 2 exactly once", speed / max(_of(_RECORDS, exactly)), 6))
        if floor and not translated:
            found.append(Bar("records/s / Kafka follower", speed / max(_of(_RECORDS, floor)), 0.8))
    if once and (share := _CPU_SHARES.get(result.profile.name)):
        share = max(share, _CPU_SHARE_TRANSLATED) if translated else share
        name = "CPU s per GB / MirrorMaker 2 at least once"
        found.append(Bar(name, cpu / min(_of(_CPU_GB, once)), share, at_least=False))
    return found


def _mm2(result: Result, guarantee: str) -> list[Entry]:
    return [
        entry
        for entry in result.entries
        if isinstance(entry.competitor, MirrorMaker2) and entry.competitor.guarantee == guarantee
    ]


def _of(figure: Figure, entries: Iterable[Entry]) -> list[float]:
    return [_median(figure, entry.measurements) for entry in entries]


def _section(result: Result) -> str:
    runs = max(len(entry.measurements) for entry in result.entries)
    worst = max(one.elsewhere for entry in result.entries for one in entry.measurements)
    parts = [
        f"## {result.profile.name}: {result.profile.title}\n",
        _topic(result) + noise_line(result.load_before, worst),
        f"{'Medians of ' + str(runs) + ' runs' if runs > 1 else 'One run'}:\n",
        _figures(result.entries, SPEED),
        "Memory: peaks, and all processes at the last record.\n",
        _figures(result.entries, MEMORY),
        "Ratios of the medians:\n",
        _ratios(result.entries),
        bars_table(bars(result)),
        *(["Every run:\n", _every_run(result.entries)] if runs > 1 else []),
    ]
    return "\n".join(parts)


def _topic(result: Result) -> str:
    load, original = result.profile.load, result.original
    return (
        f"- a topic: {original.records:,} records of {load.size} bytes (key and value), {load.partitions} partitions, "
        f"codec {load.codec}, {original.bytes / 1e9:.2f} GB in {original.batches:,} batches of on average "
        f"{original.batch_bytes / 1024:,.1f} KiB and {original.batch_records:,.0f} records\n"
    )


def _figures(entries: Iterable[Entry], figures: Sequence[Figure]) -> str:
    rows = [
        [entry.competitor.title, entry.competitor.guarantee]
        + [figure.form.format(_median(figure, entry.measurements)) for figure in figures]
        for entry in entries
    ]
    return table(["competitor", "guarantee", *(figure.heading for figure in figures)], rows)


def _ratios(entries: Sequence[Entry]) -> str:
    pairs = [
        (ours, theirs)
        for ours in entries
        for theirs in entries
        if isinstance(ours.competitor, Anabranch) and not isinstance(theirs.competitor, Anabranch)
    ]
    if not pairs:
        return "Nobody took part beside it.\n"
    found = [ratios(ours.measurements, theirs.measurements) for ours, theirs in pairs]
    rows = [
        [f"{ours.competitor.title} / {theirs.competitor.title}", *(f"{value:.2f}" for value in values.values())]
        for (ours, theirs), values in zip(pairs, found, strict=True)
    ]
    return table(["", *found[0]], rows)


def _every_run(entries: Iterable[Entry]) -> str:
    rows = [
        [entry.competitor.title, str(number), *(figure.form.format(figure.value(one)) for figure in SPEED)]
        for entry in entries
        for number, one in enumerate(entry.measurements, 1)
    ]
    return table(["competitor", "run", *(figure.heading for figure in SPEED)], rows)


def _median(figure: Figure, measurements: Iterable[Measurement]) -> float:
    return median(figure.value(one) for one in measurements)
