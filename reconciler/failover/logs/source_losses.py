"""Finds copied records that originals have lost, as after an unclean leader election: only the copies still hold them.

Copies with identical offsets are compared with their originals; with translated offsets, the leader epoch in the offset
metadata of the position is used (KIP-320), as when a flow goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.translation.translate import Translator
from reconciler.failover.logs.batching import in_portions
from reconciler.failover.logs.cuts import TRANSLATED, remembered
from reconciler.failover.logs.divergence import Divergence
from reconciler.failover.logs.log_match import LogComparison, LogPair
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.recorded.failover import Cut
from reconciler.replicator.copy.agreement import Disagreement
from reconciler.replicator.copy.truncation import truncated_at
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.place import ReadPosition
from reconciler.state.confluent.faults import unreachable
from reconciler.wire import BrokerError, ConnectionLost, Loop, Wire

_SECONDS = 10.0


class SourceLosses(NamedTuple):
    """Cuts that are lowered to what originals still hold.

    Attributes:
        cuts: by original; lost records are after them, at the copies alone.
        notices: which offsets were lost.
        parted: originals whose losses cannot be located in their copies: they must be rebuilt.
    """

    cuts: dict[str, Cut]
    notices: tuple[str, ...]
    parted: frozenset[str]


def lowered(
    topology: str, flow: Flow, source: Groups, target: Groups, cuts: Mapping[str, Cut], wanted: Collection[str]
) -> SourceLosses:
    """Return cuts, lowered to what originals still hold of copied records.

    Only topics whose copies have new records are checked, before records are copied back; for others the flow reports
    the loss when it goes on.

    Args:
        topology: name of the topology.
        flow: the flow that is failed over.
        source: the source.
        target: the target.
        cuts: by original.
        wanted: originals that are to be rebuilt.

    Raises:
        AnabranchError: a cluster does not answer, or something there is refused.
    """
    untouched = [cut for cut in cuts.values() if not (cut.is_handed or cut.anew)]
    there = Divergence.bounds(target, ((cut.remote, cut) for cut in untouched))
    looked_at = [
        cut
        for cut in untouched
        if cut.topic in wanted or any(there[cut.remote, number].end > end for number, (_, end) in enumerate(cut.ends))
    ]
    same = [cut for cut in looked_at if cut.mode != TRANSLATED]
    ends = _of_the_same(topology, flow, source, target, same) | _of_others(topology, flow, source, target, looked_at)
    found, notices, parted = dict(cuts), [], set()
    for cut in looked_at:
        for number, (before, _) in enumerate(cut.ends):
            if (end := ends.get((cut.topic, number))) is None:
                continue
            now, at_copy = end
            if at_copy is None:
                parted.add(cut.topic)
            kept = found[cut.topic]
            some = (*kept.ends[:number], (now, at_copy or 0), *kept.ends[number + 1 :])
            found[cut.topic] = replace(kept, ends=some)
            notices.append(
                f"{cut.topic}/{number} at {source.cluster.alias} has lost offsets {now} to {before - 1} since they "
                f"were copied: what {cut.remote} has of them counts as new"
            )
    return SourceLosses(found, tuple(notices), frozenset(parted))


def _of_the_same(
    topology: str, flow: Flow, source: Groups, target: Groups, cuts: Collection[Cut]
) -> dict[Log, tuple[int, int | None]]:
    """Return the ends, on both sides, of what originals still hold of copies with identical offsets, for losses."""
    if not cuts:
        return {}
    here = Divergence.bounds(source, ((cut.topic, cut) for cut in cuts))
    there = Divergence.bounds(target, ((cut.remote, cut) for cut in cuts))
    known = remembered(target.cluster, topology, flow.name, there)
    found: dict[Log, tuple[int, int | None]] = {}
    with LogComparison(source.cluster, target.cluster) as comparison:
        for cut in cuts:
            for number, (before, end) in enumerate(cut.ends):
                log, remote = (cut.topic, number), (cut.remote, number)
                runs = known.get(remote, CopyRecord(None, None)).runs
                # Only the run at the end is compared.
                run = runs.at_target(end)
                first = max(run.source, here[log].start, there[remote].start - run.shift)
                pair = LogPair(log, remote, run.shift, first, min(before, here[log].end))
                until = comparison.until(pair, is_whole=here[log].end <= before)
                if until is None:
                    # Where they diverge is unknown: nothing counts as copied.
                    found[log] = 0, None
                elif until < before:
                    found[log] = until, runs.to_target(until)
    return found


def _of_others(
    topology: str, flow: Flow, source: Groups, target: Groups, cuts: Collection[Cut]
) -> dict[Log, tuple[int, int | None]]:
    """Return the ends, on both sides, of what originals still hold of copies with translated offsets, for losses."""
    reads = {
        (cut.topic, number): ReadPosition(before, epoch, None, None)
        for cut in cuts
        for number, (before, _) in enumerate(cut.ends)
        if cut.mode == TRANSLATED and before > 0 and (epoch := OffsetMetadata.parse(cut.note(number)).epoch) is not None
    }
    lost = truncated(source.cluster, reads)
    if not lost:
        return {}
    # The source holds other records there now, so reading them would mislead.
    with Translator(None, target.cluster, flow, topology) as translator:
        translator.refresh(lost.keys())
        return {log: (end, translator.downstream(*log, end).offset) for log, end in lost.items()}


def truncated(cluster: Cluster, reads: Mapping[Log, ReadPosition], seconds: float = _SECONDS) -> dict[Log, int]:
    """Return the offset from which on partitions have lost records that were read; those without losses are left out.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: AB630, a leader does not report its epochs.
    """
    found: dict[Log, int] = {}
    if not reads:
        return found
    loop = Loop()
    wire = Wire(loop, cluster, "anabranch-failover", seconds)

    async def ask(log: Log) -> None:
        (topic, partition), read = log, reads[log]
        info = (await wire.topics([topic]))[topic]
        try:
            info.leader_of(partition)
            end = await truncated_at(wire, info, partition, read.offset, read)
        except (Disagreement, BrokerError) as error:
            raise _unknown(cluster, topic, partition, str(error)) from None
        if end is not None:
            found[log] = end

    async def ask_all() -> None:
        await wire.connect()
        await in_portions(loop, sorted(reads), ask)

    try:
        loop.run(ask_all)
    except ConnectionLost as error:
        raise unreachable(cluster, f"leader epochs cannot be read: {error}") from None
    finally:
        wire.close()
        loop.close()
    return found


def _unknown(cluster: Cluster, topic: str, partition: int, why: str) -> EnvironmentFault:
    where = f"{cluster.where}, topic {topic}, partition {partition}"
    message = f"whether it has lost copied records is unknown: {why}"
    return EnvironmentFault(Problem("AB630", where, message, "mend what the cluster names, then try again"))
