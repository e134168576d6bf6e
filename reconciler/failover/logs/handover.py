"""Hands logs that other clients wrote to over to a flow: to the one that copies back, or to the flow that goes on.

The takeover refuses logs with records of other producers. The handover records the producers and the end of a log, and
the takeover accepts these; records after that end are checked as usual.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from reconciler.failover.logs.batching import in_portions
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log
from reconciler.model.offsets.runs import CopyRecord, Handed, Run, Runs
from reconciler.state.confluent.faults import refused, unreachable
from reconciler.state.copies import Copies
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.wire import BrokerError, ConnectionLost, ErrorCode, Loop, Wire, error_name

_SECONDS = 10.0


@dataclass(frozen=True)
class LogState:
    """State of one partition's log.

    Attributes:
        topic_id: of its topic; None if brokers have no topic ids.
        end: the log end at the leader, replicated or not.
        producers: the producer ids that the leader holds.
        is_open: whether one of them has an open transaction.
        epoch: the leader epoch; -1 if brokers report none.
    """

    topic_id: str | None
    end: int
    producers: tuple[int, ...]
    is_open: bool
    epoch: int = -1

    @property
    def handed(self) -> Handed:
        """What the takeover accepts of this log."""
        return Handed(self.end, self.producers)


@dataclass(frozen=True)
class Handover:
    """One partition that is handed to a flow.

    Attributes:
        source_id: id of the topic that it is a copy of.
        state: state of the log.
        position: the source offset that is copied next, at its end; None keeps the recorded shift.
        back: shifted runs of the flow that copied back; None if offsets do not differ.
    """

    source_id: str | None
    state: LogState
    position: int | None = None
    back: Runs | None = None


def log_states(cluster: Cluster, logs: Collection[Log], seconds: float = _SECONDS) -> dict[Log, LogState]:
    """Return the state of some logs.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: AB313, READ on a topic is refused; AB630, a partition has no leader, or is not there.
    """
    found: dict[Log, LogState] = {}
    loop = Loop()
    wire = Wire(loop, cluster, "anabranch-failover", seconds)

    async def ask(log: Log) -> None:
        try:
            found[log] = await _stand(wire, log)
        except BrokerError as error:
            raise _fault(cluster, log, error.code) from None

    async def ask_all() -> None:
        await wire.connect()
        await in_portions(loop, sorted(logs), ask)

    try:
        if logs:
            loop.run(ask_all)
    except ConnectionLost as error:
        raise unreachable(cluster, f"logs cannot be read: {error}") from None
    finally:
        wire.close()
        loop.close()
    return found


async def _stand(wire: Wire, log: Log) -> LogState:
    topic, partition = log
    info = (await wire.topics([topic]))[topic]
    leader = info.leader_of(partition)
    producers = await wire.producers(leader.node, topic, partition)
    end = await wire.log_end(leader.node, topic, partition, leader.epoch)
    if end is None:
        raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE)
    ids = tuple(sorted(one.producer_id for one in producers))
    topic_id = None if info.topic_id is None else str(info.topic_id)
    return LogState(topic_id, end, ids, any(one.open_transaction for one in producers), leader.epoch)


def _fault(cluster: Cluster, log: Log, code: int) -> EnvironmentFault:
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return EnvironmentFault(refused(cluster, "READ", f"topic {log[0]}"))
    where = f"{cluster.where}, topic {log[0]}, partition {log[1]}"
    remedy = "mend what the cluster names, then try again"
    return EnvironmentFault(Problem("AB630", where, f"the cluster answers {error_name(code)}", remedy))


def hand_over(target: Cluster, topology: str, flow: str, handovers: Mapping[Log, Handover]) -> None:
    """Record that logs belong to a flow from now on, and wait until that is stored.

    Args:
        target: the cluster of the logs.
        topology: name of the topology.
        flow: name of the flow that is to write to them.
        handovers: by remote partition.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, the record cannot be written.
    """
    Journal(target, JournalPlace(topology, "copies")).ensure()
    copies = Copies(target, topology)
    try:
        copies.refresh()
        for log, one in sorted(handovers.items()):
            known = copies.get(flow, *log) or CopyRecord(None, None)
            copies.put(flow, *log, _inherited(known, one))
    finally:
        copies.close()


def _inherited(known: CopyRecord, one: Handover) -> CopyRecord:
    state = one.state
    of_another = known.target_id not in (None, state.topic_id) or known.source_id not in (None, one.source_id)
    base = CopyRecord(one.source_id, state.topic_id) if of_another else known
    runs = base.runs
    for run in one.back.runs if one.back is not None else ():
        # A shift of the flow that copied back is the opposite shift of this flow.
        runs = runs.extended(Run(run.target, -run.shift))
    if one.position is not None and (shift := state.end - one.position) != runs.shift:
        runs = runs.extended(Run(one.position, shift)) if runs.runs or one.position else Runs((Run(0, shift),))
    return replace(base, source_id=one.source_id, target_id=state.topic_id, runs=runs, handed=state.handed)
