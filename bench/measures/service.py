"""The service: how long a scrape of many partitions takes, and how requests fare while tasks report.

Called by the command line. Made-up tasks report every second to a real broker; `anabranch metrics` and `anabranch
serve` are processes of their own, asked over HTTP.
"""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, table
from reconciler import operate
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running
from reconciler.model.tasks.latency import Latency
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, TaskStatus
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.status import StatusWriter

_COMMAND = [sys.executable, "-m", "reconciler.cli.main"]
_TASKS = 10
_SCRAPES = 20
_SECONDS = 20.0
_CLIENTS = 8
_PATHS = (
    "/api/v1/flows",
    "/api/v1/flows/east-west",
    "/api/v1/flows/east-west/partitions?limit=100",
    "/status",
    "/livez",
)
_MOST_SCRAPE_SECONDS = 0.5
_MOST_BYTES = 100e6
_MOST_P99_MS = 20.0
_FILE = """\
version: 1
name: bench-service
clusters:
  east: {{bootstrap: ["127.0.0.1:9"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west}}
"""
_NOTES = """\
Ten made-up tasks report every second to the status topic of a broker; a process of `anabranch metrics` reads it and is
scraped, a process of `anabranch serve` is asked five paths in turn by eight clients, as many times a second as is
named. Broker, tasks, clients and process share the machine. Seconds are those of the clock, from the request until the
last byte; resident memory is that of the asked process at the end.
"""


@dataclass(frozen=True)
class Scraped:
    """Scrapes, or requests.

    Attributes:
        partitions: how many partitions reported.
        seconds: of each request.
        size: bytes of the last answer.
        memory: resident bytes of the process that answered.
        per_second: how many were answered in a second.
    """

    partitions: int
    seconds: Sequence[float]
    size: int
    memory: int
    per_second: float

    @property
    def p99(self) -> float:
        """The 99th percentile of the seconds."""
        return sorted(self.seconds)[max(0, round(len(self.seconds) * 0.99) - 1)]


def service(partitions: int, reporting: int, rate: int, say: Callable[[str], None]) -> tuple[Scraped, Scraped]:
    """Measure scrapes, then requests.

    Args:
        partitions: how many partitions report while scrapes are made.
        reporting: how many report while requests are.
        rate: requests in a second.
        say: called with a line of progress.
    """
    cluster = EmbeddedCluster("west", ClusterOptions(jvm=STEADY_JVM))
    with running(cluster), tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bench.yaml")
        file.write_text(_FILE.format(west=cluster.bootstrap), encoding="utf-8")
        say(f"{_SCRAPES} scrapes of {partitions:,} partitions")
        with _reporting(file, partitions), _asked(file, "metrics") as (url, process):
            scraped = _scrapes(url, partitions, process)
        say(f"{rate} requests/s while {reporting:,} partitions report")
        with _reporting(file, reporting), _asked(file, "serve") as (url, process):
            return scraped, _requests(url, reporting, rate, process)


@contextmanager
def _reporting(file: Path, partitions: int) -> Iterator[None]:
    topology = operate.load([file])
    west = topology.clusters["west"]
    Journal(west, JournalPlace(topology.name, "status")).ensure()
    writer = StatusWriter(west, topology.name)
    stopping = threading.Event()

    def post() -> None:
        number = 0
        while not stopping.wait(1.0):
            number += 1
            for task in range(_TASKS):
                writer.post(_status(task, partitions // _TASKS, number))
            writer.flush(1.0)

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _status(task: int, count: int, number: int) -> TaskStatus:
    metrics = Metrics(1_000 * number, 50_000 * number, Latency(10, 1, 30, 20, 150, 160), 12, 0.5)
    rows = tuple(
        PartitionStatus(
            f"topic-{task}", one, f"east.topic-{task}", PartitionState.RUNNING, number, number + 1, None, metrics
        )
        for one in range(count)
    )
    return TaskStatus(
        "east-west", "east", "west", "run", task, _TASKS, time.time(), False, None, 0, 0, 0.0, 0.0, rows
    )  # fmt: skip


@contextmanager
def _asked(file: Path, command: str) -> Iterator[tuple[str, psutil.Process]]:
    """Run a command that answers, and yield its URL when it has read everything."""
    arguments = [*_COMMAND, command, str(file), "--listen", "127.0.0.1:0", "--log-format", "text"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(one for one in process.stderr if " at http" in one)
            url = line.split(" at ")[1].strip()
            host = urlsplit(url).netloc
            while b'task="9"' not in _get(http.client.HTTPConnection(host, timeout=60), "/metrics"):
                time.sleep(0.5)
            yield host, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.stderr.read()


def _get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    return connection.getresponse().read()


def _scrapes(host: str, partitions: int, process: psutil.Process) -> Scraped:
    seconds = []
    size = 0
    began = time.monotonic()
    for _ in range(_SCRAPES):
        before = time.monotonic()
        size = len(_get(http.client.HTTPConnection(host, timeout=60), "/metrics"))
        seconds.append(time.monotonic() - before)
        time.sleep(0.5)
    return Scraped(partitions, seconds, size, process.memory_info().rss, len(seconds) / (time.monotonic() - began))


def _requests(host: str, partitions: int, rate: int, process: psutil.Process) -> Scraped:
    seconds: list[float] = []
    sizes: list[int] = []
    began = time.monotonic()

    def ask(client: int) -> None:
        connection = http.client.HTTPConnection(host, timeout=60)
        number = 0
        while (due := began + (number * _CLIENTS + client) / rate) < began + _SECONDS:
            time.sleep(max(0.0, due - time.monotonic()))
            # From when it was due: a client that is held up must not hide how long others would have waited.
            sizes.append(len(_get(connection, _PATHS[number % len(_PATHS)])))
            seconds.append(time.monotonic() - due)
            number += 1

    clients = [threading.Thread(target=ask, args=(one,)) for one in range(_CLIENTS)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    per_second = len(seconds) / (time.monotonic() - began)
    return Scraped(partitions, seconds, max(sizes), process.memory_info().rss, per_second)


def service_report(scraped: Scraped, asked: Scraped, machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        scraped: scrapes of the exporter.
        asked: requests to the service.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    rows = [
        (
            name,
            f"{one.partitions:,}",
            f"{len(one.seconds):,}",
            f"{one.per_second:,.1f}",
            f"{statistics.median(one.seconds) * 1_000:,.1f}",
            f"{one.p99 * 1_000:,.1f}",
            f"{one.size / 1e6:,.2f}",
            f"{one.memory / 1e6:,.0f}",
        )
        for name, one in (("scrapes of metrics", scraped), ("requests to serve", asked))
    ]
    bars = [
        Bar("median of a scrape", statistics.median(scraped.seconds), _MOST_SCRAPE_SECONDS, at_least=False, unit=" s"),
        Bar("size of a scrape", scraped.size / 1e6, _MOST_BYTES / 1e6, at_least=False, unit=" MB"),
        Bar("p99 of a request", asked.p99 * 1_000, _MOST_P99_MS, at_least=False, unit=" ms"),
    ]
    heads = ["what", "partitions", "number", "per second", "median ms", "p99 ms", "answer MB", "resident MB"]
    return "\n".join(
        [
            f"# Service of {date}\n",
            machine_lines(machine),
            "## Answers\n",
            table(heads, rows),
            bars_table(bars),
            "## How\n",
            _NOTES,
        ]
    )
