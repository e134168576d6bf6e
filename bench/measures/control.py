"""Control: a cluster of many topics and ACLs: how long plan and apply take, and how many requests they send.

Called by the command line and the tests. The source and the target obey ACLs. A large run has as many topics and ACLs
as asked for, a small one a single topic; requests are counted on their way to both brokers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from bench.instruments.procs import ProcessTree
from bench.instruments.tally import Tally
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, noise_line, table
from bench.workload.topics import admin
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.state.confluent.bindings import EVERY

_ANSWER_SECONDS = 60
_ACL_SECONDS = 300
_AT_ONCE = 1000
_USER, _PASSWORD = "bench", "bench-secret"
_COMMAND = [sys.executable, "-m", "reconciler.cli.main"]
_LOOK = 0.05
_EACH = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")

_NOTES = """\
The ACLs are literal ones, on the topics in turn. *Plan* and *apply* are
`anabranch plan` and `anabranch apply --yes` as processes, from their start to their end, Python's own start included.
Between the clusters and the commands stand ports that count the requests of Kafka's protocol. The bar on requests
compares a plan of many topics that are as they should be with a plan of one; fetches are apart, as the record of what
is ours is read in them, and the client repeats FindCoordinator and Metadata by itself while it waits.
"""


@dataclass(frozen=True)
class Call:
    """One command.

    Attributes:
        name: what it was.
        seconds: how long it took.
        cpu: CPU seconds of its process.
        requests: that both clusters got, by kind.
    """

    name: str
    seconds: float
    cpu: float
    requests: Counter[str]

    @property
    def asked(self) -> int:
        """How many requests it sent beside fetches."""
        return self.requests.total() - self.requests["Fetch"]


@dataclass(frozen=True)
class Control:
    """What was measured: the commands of the large run and of the small one, in their order."""

    large: tuple[Call, ...]
    small: tuple[Call, ...]


def control(topics: int, partitions: int, acls: int, say: Callable[[str], None]) -> Control:
    """Measure.

    Args:
        topics: how many the large run has.
        partitions: of each of them.
        acls: how many it has.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: AB350, a command fails; AB351, a plan is not empty after an apply.
    """
    return Control(_run(topics, partitions, acls, say), _run(1, 1, min(acls, len(_EACH)), say))


def _run(topics: int, partitions: int, acls: int, say: Callable[[str], None]) -> tuple[Call, ...]:
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-control-") as folder,
        _counted("source") as (source, at_source),
        _counted("target") as (_, at_target),
    ):
        say(f"{topics:,} topics of {partitions:,} partitions, and {acls:,} ACLs")
        _fill(source, topics, partitions, acls)
        file = Path(folder) / "topology.yaml"
        clusters = {"source": _declared(at_source.port), "target": _declared(at_target.port)}
        flows = [{"from": "source", "to": "target", "topics": {"include": ["t-.*"]}}]
        # JSON is YAML.
        file.write_text(json.dumps({"version": 1, "name": "control", "clusters": clusters, "flows": flows}))
        calls = []
        for name, words in (("plan", ["plan"]), ("apply", ["apply", "--yes"]), ("plan, unchanged", ["plan"])):
            for tally in (at_source, at_target):
                tally.take()
            seconds, cpu = _call([words[0], str(file), *words[1:], "--format", "json"], Path(folder) / "said")
            calls.append(Call(name, seconds, cpu, at_source.take() + at_target.take()))
            say(f"  {name}: {seconds:.1f} s, {calls[-1].asked} requests")
        planned = json.loads((Path(folder) / "said").read_text())
        if any(planned["summary"].values()):
            message = f"expected nothing to do after an apply, found {planned['summary']}"
            raise EnvironmentFault(Problem("AB351", "the plan", message, "look what differs"))
        return tuple(calls)


@contextmanager
def _counted(name: str) -> Iterator[tuple[EmbeddedCluster, Tally]]:
    with Tally() as tally:
        options = ClusterOptions(jvm=STEADY_JVM, users={_USER: _PASSWORD}, advertised=(tally.port,))
        cluster = EmbeddedCluster(name, options)
        cluster.launch()
        try:
            tally.upstream = int(cluster.bootstrap.rpartition(":")[2])
            cluster.await_ready()
            yield cluster, tally
        finally:
            cluster.stop()


def _fill(cluster: EmbeddedCluster, topics: int, partitions: int, acls: int) -> None:
    client: AdminClient = admin(cluster)
    names = [f"t-{number:05}" for number in range(topics)]
    at_once = max(1, _AT_ONCE // partitions)
    for start in range(0, topics, at_once):
        settings = {"retention.ms": "86400000"}
        new = [NewTopic(name, partitions, 1, config=settings) for name in names[start : start + at_once]]
        for made in client.create_topics(new).values():
            made.result(_ANSWER_SECONDS)
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            names[number % topics],
            ResourcePatternType.LITERAL,
            f"User:reader-{number // topics // len(_EACH)}",
            "*",
            AclOperation[_EACH[number // topics % len(_EACH)]],
            AclPermissionType.ALLOW,
        )
        for number in range(acls)
    ]
    for start in range(0, acls, _AT_ONCE):
        for granted in client.create_acls(bindings[start : start + _AT_ONCE]).values():
            granted.result(_ANSWER_SECONDS)
    # A broker that makes a thousand topics goes by new ACLs seconds after the controller has them.
    deadline = time.monotonic() + _ACL_SECONDS
    while len(client.describe_acls(EVERY).result(_ANSWER_SECONDS)) < acls:
        if time.monotonic() > deadline:
            message = f"expected {acls} ACLs within {_ACL_SECONDS} s"
            raise EnvironmentFault(Problem("AB351", f"cluster {cluster.name}", message, "run it again"))
        time.sleep(_LOOK)


def _declared(port: int) -> dict[str, object]:
    security = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": _USER, "password": "env:BENCH_PASSWORD"}
    return {"bootstrap": [f"127.0.0.1:{port}"], "security": security}


def _call(words: list[str], said: Path) -> tuple[float, float]:
    """Run a command, and return its seconds and its CPU seconds."""
    began = time.monotonic()
    with said.open("wb") as output:
        process = subprocess.Popen(
            [*_COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            env=os.environ | {"BENCH_PASSWORD": _PASSWORD},
        )
        tree, cpu = ProcessTree(process.pid), 0.0
        while process.poll() is None:
            cpu = max(cpu, tree.cpu_seconds())
            time.sleep(_LOOK)
    if process.returncode != 0:
        told = process.stderr.read().decode() if process.stderr else ""
        remedy = "run it by hand"
        raise EnvironmentFault(
            Problem("AB350", f"anabranch {words[0]}", f"ended with {process.returncode}: {told}", remedy)
        )
    return time.monotonic() - began, cpu


def control_report(
    topics: int, partitions: int, acls: int, found: Control, machine: Mapping[str, str], date: str
) -> str:
    """Return the report.

    Args:
        topics: how many there were.
        partitions: of each of them.
        acls: how many there were.
        found: what was measured.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    plan, apply, again = found.large
    bars = [
        Bar("plan", plan.seconds, 10, at_least=False, unit=" s"),
        Bar("apply", apply.seconds, 60, at_least=False, unit=" s"),
        Bar("plan, unchanged", again.seconds, 10, at_least=False, unit=" s"),
        Bar(
            f"requests of an unchanged plan, {topics:,} topics / 1",
            again.asked / found.small[-1].asked,
            1.05,
            at_least=False,
        ),
    ]
    rows = [
        [run, call.name, f"{call.seconds:.1f}", f"{call.cpu:.1f}", str(call.asked), str(call.requests["Fetch"])]
        for run, calls in ((f"{topics:,} topics, {acls:,} ACLs", found.large), ("1 topic", found.small))
        for call in calls
    ]
    kinds = sorted(again.requests.keys() | found.small[-1].requests.keys())
    by_kind = [[kind, str(again.requests[kind]), str(found.small[-1].requests[kind])] for kind in kinds]
    parts = [
        f"# Control of {date}\n",
        f"{topics:,} topics of {partitions:,} partitions and {acls:,} ACLs on the source, none of which the target has "
        "at first.\n",
        machine_lines(machine) + noise_line(os.getloadavg()[0], 0.0),
        table(["", "command", "seconds", "CPU s", "requests", "fetches"], rows),
        "Requests of an unchanged plan:\n",
        table(["request", f"{topics:,} topics", "1 topic"], by_kind),
        bars_table(bars),
        "## How\n",
        _NOTES,
    ]
    return "\n".join(parts)
