"""Restarts the tasks of a run that have ended or hang, and reports why flows fail.

`driver` runs it several times a second. A task that publishes no status for long is ended with its process, whatever it
does, and started again. Before that the driver publishes a status of its own in the same topic: only when that was read
back, and the task still publishes nothing, is the task at fault and not the connection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import TaskStatus
from reconciler.replicator.driver.watchdog import Silence, Watchdog
from reconciler.replicator.spark.session import ReplicationSession
from reconciler.state.status import StatusWriter, flush_all

_PUBLISH_EVERY = 1.0
# Each check of Spark is a call into its JVM.
_CHECK_EVERY = 1.0
# Seconds that a task may still be silent once the driver's own status was read back: its connections may take that
# long.
_GRACE = 15.0


@dataclass
class _OwnStatus:
    """The driver's own status of a flow.

    Attributes:
        status: the newest status.
        since: when the silence that it reports began (monotonic seconds); None where it reports none.
        first: the time in the first status about it.
        read_at: when one of these statuses was read back (monotonic seconds).
    """

    status: TaskStatus
    since: float | None
    first: float
    read_at: float | None = None


class Supervisor:
    """Supervises the tasks of one run.

    Args:
        specs: its flows.
        session: the Spark session in which they run.
    """

    def __init__(self, specs: Sequence[FlowSpec], session: ReplicationSession) -> None:
        self._specs = {spec.flow.name: spec for spec in specs}
        self._session = session
        self._watchdog = Watchdog()
        self._begun: dict[str, int] = {}
        self._statuses: dict[str, _OwnStatus] = {}
        self._writers: dict[Cluster, StatusWriter] = {}
        self._publish_at = self._check_at = -math.inf
        self._failing: Mapping[str, str] = {}

    def look(self, statuses: Sequence[TaskStatus], now: float) -> Mapping[str, str]:
        """Restart flows whose rounds have ended, and those whose tasks hang.

        Args:
            statuses: the newest statuses of the run, its tasks' and the driver's own.
            now: monotonic seconds.

        Returns:
            Why flows fail repeatedly, by name.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        if now >= self._check_at:
            self._check_at = now + _CHECK_EVERY
            self._failing = self._session.check(now, self._watchdog.reported)
        failing = dict(self._failing)
        self._note_begun(now)
        self._note_read([status for status in statuses if status.is_held], now)
        silent = self._watchdog.silent([status for status in statuses if not status.is_held], now)
        for flow in silent.keys() & failing.keys():
            del silent[flow]
        if silent and (lacking := self._session.lacking_slots()):
            # Silent tasks wait for a slot; ending those that run would not help.
            failing |= dict.fromkeys(silent, lacking)
            silent = {}
        for flow, silence in silent.items():
            if self._is_stuck(silence, now):
                why = f"its task {silence.task} published no status for {now - silence.since:.0f} s"
                self._session.replace(flow, why, now)
        self._note_begun(now)
        self._publish(failing, silent, now)
        return failing

    def close(self) -> None:
        """Withdraw the driver's statuses."""
        for flow in list(self._statuses):
            self._withdraw(flow)
        flush_all(self._writers.values())

    def _note_begun(self, now: float) -> None:
        for flow, begun in self._session.begun.items():
            if begun != self._begun.get(flow):
                self._begun[flow] = begun
                self._watchdog.begun(flow, now)

    def _note_read(self, statuses: Sequence[TaskStatus], now: float) -> None:
        for status in statuses:
            own = self._statuses.get(status.flow)
            if own is not None and own.read_at is None and status.time >= own.first:
                own.read_at = now

    def _is_stuck(self, silence: Silence, now: float) -> bool:
        own = self._statuses.get(silence.flow)
        if own is None or own.since != silence.since or own.read_at is None:
            return False
        return now - own.read_at >= _GRACE

    def _publish(self, failing: Mapping[str, str], silent: Mapping[str, Silence], now: float) -> None:
        """Publish in the status topics why flows fail or are silent, as their tasks cannot."""
        for flow in self._statuses.keys() - failing.keys() - silent.keys():
            self._withdraw(flow)
        if now < self._publish_at:
            return
        self._publish_at = now + _PUBLISH_EVERY
        for flow in {*failing, *silent}:
            spec, silence = self._specs[flow], silent.get(flow)
            since = None if silence is None else silence.since
            waiting = None if silence is None else f"a status of its task {silence.task}, which publishes none any more"
            status = TaskStatus.of_process(spec.flow, spec.run, spec.digest, waiting, failing.get(flow))
            own = self._statuses.get(flow)
            if own is None or own.since != since:
                own = self._statuses[flow] = _OwnStatus(status, since, status.time)
            own.status = status
            self._post(spec, status)

    def _post(self, spec: FlowSpec, word: TaskStatus) -> None:
        try:
            self._writers.setdefault(spec.target, StatusWriter(spec.target, spec.topology)).post(word)
        except AnabranchError:
            # It is published again in a second.
            return

    def _withdraw(self, flow: str) -> None:
        own = self._statuses.pop(flow)
        writer = self._writers.get(self._specs[flow].target)
        if writer is not None:
            writer.withdraw(own.status)
