"""The checkpoint service of one flow: rounds at intervals, by one of the processes that run the flow.

`replicate` starts one for each flow that takes groups along. No trouble ends it; each is told once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reconciler.checkpoints.rounds import Round, Rounds
from reconciler.checkpoints.turn import Turn
from reconciler.model.errors import AnabranchError
from reconciler.model.flow import Flow
from reconciler.model.topology import Topology

_LOOK_SECONDS = 0.5
_END_PATIENCE = 15.0


class CheckpointService(threading.Thread):
    """Looks after the groups of one flow until it is ended.

    Args:
        topology: what is declared.
        flow: one of its flows.
        warn: told of each new trouble, from this thread.
        seen: told what each round did, likewise.
    """

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        warn: Callable[[str], None],
        seen: Callable[[Round], None] = lambda one: None,
    ) -> None:
        super().__init__(name=f"checkpoints-{flow.name}", daemon=True)
        self._topology = topology
        self._flow = flow
        self._warn = warn
        self._seen = seen
        self._over = threading.Event()
        self._told: set[str] = set()

    def run(self) -> None:
        """Make rounds while it is this process's turn."""
        source, target = (self._topology.clusters[alias] for alias in (self._flow.source, self._flow.target))
        turn = Turn(target, self._topology.name, self._flow.name)
        rounds: Rounds | None = None
        due = 0.0
        try:
            while not self._over.is_set():
                troubles: Sequence[str] = ()
                had = turn.is_ours
                try:
                    if not turn.look(_LOOK_SECONDS):
                        continue
                    if rounds is None:
                        rounds = Rounds(source, target, self._flow, self._topology.aliases)
                    if not had:
                        rounds.begin()
                        due = 0.0
                    if time.monotonic() < due:
                        continue
                    due = time.monotonic() + self._flow.groups.interval
                    troubles = self._round(rounds)
                except AnabranchError as error:
                    troubles = [str(problem) for problem in error.problems]
                    self._over.wait(_LOOK_SECONDS)
                except Exception as error:
                    # A fault of this program must end neither the run nor the looking.
                    troubles = [f"looking after groups failed: {type(error).__name__}: {error}"]
                    self._over.wait(_LOOK_SECONDS)
                self._tell(troubles)
        finally:
            turn.close()
            if rounds is not None:
                rounds.close()

    def over(self) -> None:
        """Begin no further round."""
        self._over.set()

    def end(self) -> None:
        """End, and wait for a round that is under way, though not for ever."""
        self._over.set()
        if self.is_alive():
            self.join(_END_PATIENCE)

    def _round(self, rounds: Rounds) -> list[str]:
        done = rounds.round()
        self._seen(done)
        return [*map(str, done.problems), *(f"not translated: {why}" for why in done.unknown.values())]

    def _tell(self, troubles: Sequence[str]) -> None:
        for trouble in troubles:
            if trouble not in self._told:
                self._warn(f"flow {self._flow.name}: {trouble}")
        self._told = set(troubles)


@contextmanager
def looking_after_groups(topology: Topology, flows: Sequence[Flow], warn: Callable[[str], None]) -> Iterator[None]:
    """Run the service of each flow that takes groups along, from the start of the block to its end."""
    services = [CheckpointService(topology, flow, warn) for flow in flows if flow.groups.include]
    for service in services:
        service.start()
    try:
        yield
    finally:
        for service in services:
            service.over()
        for service in services:
            service.end()
