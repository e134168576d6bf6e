"""The checkpoint service of one flow: rounds at intervals, by one of the processes that run the flow.

`replicate` starts one for each flow that syncs groups, or has heartbeats without. No problem ends it; each is reported
once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reconciler.checkpoints.service.emit import HeartbeatWriter
from reconciler.checkpoints.service.leadership import Leadership
from reconciler.checkpoints.service.rounds import RoundResult, Rounds
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.replicator.driver.periodic import Periodic

_LOOK_SECONDS = 0.5
_END_PATIENCE = 15.0


class CheckpointService(Periodic):
    """Syncs the groups of one flow until it is ended.

    Args:
        topology: what is declared.
        flow: one of its flows.
        warn: called with each new problem, from this thread.
        seen: called with the result of each round, likewise.
    """

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        warn: Callable[[str], None],
        seen: Callable[[RoundResult], None] = lambda one: None,
    ) -> None:
        super().__init__("groups", flow.name, warn, _END_PATIENCE)
        source, target = (topology.clusters[alias] for alias in (flow.source, flow.target))
        self._flow = flow
        self._seen = seen
        self._turn = Leadership(target, topology.name, flow.name)
        has_groups = bool(flow.groups.include)
        self._rounds = Rounds(source, target, flow, topology.name, topology.aliases) if has_groups else None
        # These name no flow, as MirrorMaker 2's: only rounds record when groups were last synced.
        self._heart = HeartbeatWriter(target, flow.source, flow.target)
        self._has_begun = False
        self._due = self._beat_due = 0.0

    def _pause(self) -> float:
        # Otherwise `Leadership.look` waits.
        return _LOOK_SECONDS if self.has_failed else 0.0

    def _look(self, troubles: list[str]) -> bool:
        """Make a round and write a heartbeat when due, while this process is the leader."""
        had = self._turn.is_ours
        is_ours = self._turn.look(_LOOK_SECONDS)
        self._has_begun = self._has_begun and had and is_ours
        if not is_ours:
            return False
        if not self._has_begun:
            self._has_begun, self._due, self._beat_due = True, 0.0, 0.0
        has_beaten = self._beat()
        return self._round(troubles) or has_beaten

    def _beat(self) -> bool:
        if not self._flow.heartbeats or time.monotonic() < self._beat_due:
            return False
        self._beat_due = time.monotonic() + self._flow.heartbeats
        self._heart.beat(int(time.time() * 1_000))
        return True

    def _round(self, troubles: list[str]) -> bool:
        if self._rounds is None or time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + self._flow.groups.interval
        done = self._rounds.round()
        self._seen(done)
        troubles += map(str, done.problems)
        troubles += [f"not translated: {why}" for why in done.unknown.values()]
        return True

    def _close(self) -> None:
        self._turn.close()
        if self._rounds is not None:
            self._rounds.close()


@contextmanager
def looking_after_groups(topology: Topology, flows: Sequence[Flow], warn: Callable[[str], None]) -> Iterator[None]:
    """Run the service of each flow with groups or heartbeats, from the start of the block to its end."""
    services = [CheckpointService(topology, flow, warn) for flow in flows if flow.has_service]
    for service in services:
        service.start()
    try:
        yield
    finally:
        for service in services:
            service.over()
        for service in services:
            service.end()
