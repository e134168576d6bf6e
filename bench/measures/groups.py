"""Groups: how long a round takes that takes many consumer groups along, and what it does when nothing moved.

Called by the command line. Anabranch copies a topic of many partitions; groups commit offsets in all of them at the
source; then rounds translate them all, write checkpoints and commit them at the target.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, table
from bench.workload.load import Load, produce
from bench.workload.topics import create
from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.service.rounds import RoundResult, Rounds
from reconciler.declare import load
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Move

_TOPIC = "orders"
_RECORDS = 1_000
_MOST_SECONDS = 30.0
_COMMAND = [sys.executable, "-m", "reconciler.cli.main"]
_FILE = """\
version: 1
name: bench-groups
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - from: east
    to: west
    offsets: {offsets}
    topics: {{include: [orders]}}
    groups: {{include: ["readers-.*"], sync-offsets: true}}
"""

_NOTES = """\
A round asks the source which groups there are and what they have committed, translates every position, writes the
checkpoints that changed, asks the target what the same groups have committed there, and commits what is to move. Each
group has an offset of its own in each partition. Brokers, harness and rounds share the machine; a round's seconds are
those of the clock.
"""


@dataclass(frozen=True)
class Measured:
    """One round.

    Attributes:
        name: what moved before it.
        seconds: how long it took.
        cpu: CPU seconds of this process meanwhile.
        done: what it did.
    """

    name: str
    seconds: float
    cpu: float
    done: RoundResult


def groups(number: int, partitions: int, offsets: str, say: Callable[[str], None]) -> tuple[Measured, ...]:
    """Measure rounds.

    Args:
        number: how many groups.
        partitions: in how many partitions each has committed an offset.
        offsets: `identical` or `translated`.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a command failed, or a round did not do what it should.
    """
    options = ClusterOptions(jvm=STEADY_JVM)
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-groups-") as scratch,
        running(EmbeddedCluster("east", options), EmbeddedCluster("west", options)) as (east, west),
    ):
        create(east, _TOPIC, partitions)
        say("producing and copying")
        produce(east.client_config(), _TOPIC, Load(records=_RECORDS * partitions, partitions=partitions))
        file = Path(scratch) / "groups.yaml"
        file.write_text(_FILE.format(east=east.bootstrap, west=west.bootstrap, offsets=offsets), encoding="utf-8")
        _run("apply", str(file), "--yes")
        _run("replicate", str(file), "--until-caught-up", "--state-dir", scratch)
        topology = load((file,))
        source, target, (flow,) = topology.clusters["east"], topology.clusters["west"], topology.flows
        say("committing at the source")
        _commit(source, number, partitions, 0)
        rounds = Rounds(source, target, flow, topology.name, topology.aliases)
        try:
            found = tuple(_measured(rounds, source, number, partitions, say))
        finally:
            rounds.close()
    return found


def _measured(
    rounds: Rounds, source: Cluster, number: int, partitions: int, say: Callable[[str], None]
) -> Iterator[Measured]:
    everything = number * partitions
    for name, moved in (("everything is new", everything), ("nothing", 0), ("a tenth of the groups", everything // 10)):
        if name.startswith("a tenth"):
            _commit(source, number // 10, partitions, _RECORDS // 4)
        began, cpu = time.monotonic(), time.process_time()
        done = rounds.round()
        one = Measured(name, time.monotonic() - began, time.process_time() - cpu, done)
        say(f"{name}: {one.seconds:.1f} s")
        if (done.written, done.committed) != (moved, moved) or done.problems:
            found = (
                f"expected {moved} positions to be moved, found {done.written} written and {done.committed} committed"
            )
            raise EnvironmentFault(
                Problem("AB321", "bench groups", f"{found}; {done.problems[:3]}", "look at the clusters")
            )
        yield one


def _commit(source: Cluster, number: int, partitions: int, further: int) -> None:
    """Let groups commit an offset in each partition, `further` than a random one that each has."""
    moves: dict[str, list[Move]] = {}
    for group in range(number):
        chance, name = random.Random(group), f"readers-{group}"
        places = [(partition, chance.randrange(_RECORDS // 2) + further) for partition in range(partitions)]
        moves[name] = [Move(name, _TOPIC, partition, None, offset, offset) for partition, offset in places]
    if failed := Groups(source).commit(moves):
        raise EnvironmentFault(list(failed.values())[:3])


def _run(*arguments: str) -> None:
    ended = subprocess.run([*_COMMAND, *arguments], capture_output=True, text=True, check=False)
    if ended.returncode:
        where = f"anabranch {arguments[0]}"
        raise EnvironmentFault(Problem("AB321", where, f"ended with {ended.returncode}: {ended.stderr[-500:]}", ""))


def groups_report(
    number: int,
    partitions: int,
    found: Mapping[str, tuple[Measured, ...]],
    machine: Mapping[str, str],
    date: str,
) -> str:
    """Return the report.

    Args:
        number: how many groups.
        partitions: in how many partitions each has an offset.
        found: rounds by how the copy's offsets relate to the original's.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    rows = [
        (
            offsets,
            one.name,
            f"{one.seconds:.1f}",
            f"{one.cpu:.1f}",
            f"{one.done.positions:,}",
            f"{one.done.written:,}",
            f"{one.done.committed:,}",
        )
        for offsets, rounds in found.items()
        for one in rounds
    ]
    bars = [
        Bar(f"{offsets}: a round where {one.name} moved", one.seconds, _MOST_SECONDS, at_least=False, unit=" s")
        for offsets, rounds in found.items()
        for one in rounds
    ]
    heads = ["offsets", "what moved before", "seconds", "CPU seconds", "positions", "checkpoints written", "committed"]
    return "\n".join(
        [
            f"# Groups of {date}\n",
            f"{number:,} groups with offsets in {partitions:,} partitions each.\n",
            machine_lines(machine),
            "## Rounds\n",
            table(heads, rows),
            bars_table(bars),
            "## How\n",
            _NOTES,
        ]
    )
