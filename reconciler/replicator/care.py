"""Keeps the tasks of a run alive, and says of a flow why they do not live.

`drive` has one look several times a second. A task that says nothing for long is ended with its process, whatever it
does, and begun anew; a target that does not answer explains silence, and nobody is ended for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.errors import AnabranchError
from reconciler.model.spec import FlowSpec
from reconciler.model.status import TaskStatus
from reconciler.replicator.session import Session
from reconciler.replicator.watchdog import Watchdog
from reconciler.state import clients
from reconciler.state.status import StatusWriter

_SAY_EVERY = 1.0
_TIMEOUT = 5.0


class Care:
    """Looks after the tasks of one run.

    Args:
        specs: its flows.
        session: where they run.
    """

    def __init__(self, specs: Sequence[FlowSpec], session: Session) -> None:
        self._specs = {spec.flow.name: spec for spec in specs}
        self._session = session
        self._watchdog = Watchdog()
        self._begun = dict(session.begun)
        self._said: dict[str, tuple[StatusWriter, TaskStatus]] = {}
        self._say_at = 0.0

    def look(self, statuses: Sequence[TaskStatus], now: float) -> Mapping[str, str]:
        """Begin anew what has ended or stands still.

        Args:
            statuses: the newest words of the run's tasks.
            now: monotonic seconds.

        Returns:
            Why flows fail again and again, by their names.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        failing = self._session.check(now)
        self._pardon_new(now)
        for silence in self._watchdog.silent(statuses, now):
            flow = silence.flow
            if flow not in failing and self._answers(self._specs[flow]):
                self._session.replace(flow, f"its task {silence.task} said nothing for {silence.seconds:.0f} s", now)
            self._watchdog.pardon(flow, now)
        self._pardon_new(now)
        self._say(failing, now)
        return failing

    def close(self) -> None:
        """Take back what was said."""
        for flow in list(self._said):
            self._take_back(flow)

    def _pardon_new(self, now: float) -> None:
        for flow, begun in self._session.begun.items():
            if begun != self._begun.get(flow):
                self._begun[flow] = begun
                self._watchdog.pardon(flow, now)

    @staticmethod
    def _answers(spec: FlowSpec) -> bool:
        try:
            clients.metadata(spec.target, _TIMEOUT)
        except AnabranchError:
            return False
        return True

    def _say(self, failing: Mapping[str, str], now: float) -> None:
        """Say in the status topic of their targets why flows fail, as no task of theirs can."""
        for flow in self._said.keys() - failing.keys():
            self._take_back(flow)
        if now < self._say_at:
            return
        self._say_at = now + _SAY_EVERY
        for flow, why in failing.items():
            spec = self._specs[flow]
            writer = self._said[flow][0] if flow in self._said else StatusWriter(spec.target)
            word = TaskStatus.of_process(spec.flow, spec.run, spec.digest, failing=why)
            writer.post(word)
            self._said[flow] = writer, word

    def _take_back(self, flow: str) -> None:
        writer, word = self._said.pop(flow)
        writer.withdraw(word)
