"""What becomes of a run that dies or stands still while another one shares its flow, whatever its copies are."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Mapping
from dataclasses import replace

from reconciler.embedded import EmbeddedCluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, TaskStatus
from tests.support.clusters.traffic import WEEK_MS, Traffic
from tests.support.replicator.copying import Running, all_running, code, fill
from tests.support.replicator.owner import Owner
from tests.support.still import halt


def another(spec: FlowSpec) -> FlowSpec:
    """Return a second run of the same flow."""
    return replace(spec, run=f"another-{uuid.uuid4().hex}")


def all_wait(status: TaskStatus) -> bool:
    return all((p.state, code(p)) == (PartitionState.WAITING, "AB223") for p in status.partitions)


def has_half(status: TaskStatus) -> bool:
    """Tell whether a task has half of its flow's partitions, and waits for those of another run."""
    waiting = [p for p in status.partitions if (p.state, code(p)) == (PartitionState.WAITING, "AB223")]
    return all_running(p for p in status.partitions if p not in waiting) and 2 * len(waiting) == len(status.partitions)


def copy_while_one_dies(spec: FlowSpec, traffic: Mapping[str, Traffic], shares: bool = True) -> None:
    """Copy everything with a run that is killed on the way, and another one that takes over.

    Args:
        spec: of the first run.
        traffic: to its topics.
        shares: whether the second has half of the partitions before; else it waits for all.
    """
    for thread in traffic.values():
        thread.start()
    with Owner(spec) as one:
        one.wait(lambda status: status.records > 1_000)
        with Running(another(spec)) as two:
            two.wait(has_half if shares else all_wait)
            one.process.kill()
            two.wait(lambda status: all_running(status.partitions))
            for thread in traffic.values():
                thread.finish()
            two.settled_again()


def copy_while_one_stands_still(
    spec: FlowSpec, traffic: Mapping[str, Traffic], source: EmbeddedCluster, prefix: str, shares: bool = True
) -> None:
    """Copy everything, and 800 records more, with a run that stands still until another one has taken over.

    Args:
        spec: of the first run.
        traffic: to the topics `<prefix>-fresh` and `<prefix>-old`, of four partitions.
        source: where they are.
        prefix: of their names.
        shares: whether two runs have half of the partitions each; else one waits for all.
    """
    for thread in traffic.values():
        thread.start()
    with Owner(spec) as one:
        one.wait(lambda status: status.records > 1_000)
        with Running(another(spec)) as two:
            two.wait(has_half if shares else all_wait)
            halt(one.process.pid)
            two.wait(lambda status: all_running(status.partitions))
            fill(source, f"{prefix}-fresh", 400, 4)
            fill(source, f"{prefix}-old", 400, 4, age=WEEK_MS)
            two.wait(lambda status: status.records > 0)
            one.process.send_signal(signal.SIGCONT)
            one.wait(has_half if shares else all_wait)
            for thread in traffic.values():
                thread.finish()
            one.process.kill()
            two.wait(lambda status: all_running(status.partitions))
            two.settled_again()
