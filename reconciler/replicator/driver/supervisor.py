"""Keeps the tasks of a run alive, and says of a flow why they do not live.

`drive` has one look several times a second. A task that says nothing for long is ended with its process, whatever it
does, and begun anew. Before that the driver says a word of its own, in the same topic: only when that was heard, and
the task still says nothing, it is the task that stands still and not the way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import TaskStatus
from reconciler.replicator.driver.spark_session import ReplicationSession
from reconciler.replicator.driver.watchdog import Silence, Watchdog
from reconciler.state.status import StatusWriter, flush_all

_SAY_EVERY = 1.0
# Spark answers each question in its virtual machine.
_CHECK_EVERY = 1.0
# How long a task may still be silent once the driver's own word was heard: its connections may take that long.
_GRACE = 15.0


@dataclass
class _OwnStatus:
    """What the driver says of a flow.

    Attributes:
        said: the newest word.
        since: when the silence began of which it speaks, if it speaks of one (monotonic seconds).
        first: the time in the first word on that.
        heard_at: when one of these words was read in the topic (monotonic seconds).
    """

    said: TaskStatus
    since: float | None
    first: float
    heard_at: float | None = None


class Supervisor:
    """Looks after the tasks of one run.

    Args:
        specs: its flows.
        session: where they run.
    """

    def __init__(self, specs: Sequence[FlowSpec], session: ReplicationSession) -> None:
        self._specs = {spec.flow.name: spec for spec in specs}
        self._session = session
        self._watchdog = Watchdog()
        self._begun: dict[str, int] = {}
        self._words: dict[str, _OwnStatus] = {}
        self._writers: dict[Cluster, StatusWriter] = {}
        self._say_at = self._check_at = -math.inf
        self._failing: Mapping[str, str] = {}

    def look(self, statuses: Sequence[TaskStatus], now: float) -> Mapping[str, str]:
        """Begin anew what has ended or stands still.

        Args:
            statuses: the newest words of the run, its tasks' and the driver's own.
            now: monotonic seconds.

        Returns:
            Why flows fail again and again, by their names.

        Raises:
            EnvironmentFault: AB320, Spark has ended.
        """
        if now >= self._check_at:
            self._check_at = now + _CHECK_EVERY
            self._failing = self._session.check(now, self._watchdog.spoken)
        failing = dict(self._failing)
        self._note_begun(now)
        self._hear([status for status in statuses if status.is_held], now)
        silent = self._watchdog.silent([status for status in statuses if not status.is_held], now)
        for flow in silent.keys() & failing.keys():
            del silent[flow]
        if silent and (lacking := self._session.lacking_slots()):
            # Whoever is silent waits for a slot; ending those that run would help nobody.
            failing |= dict.fromkeys(silent, lacking)
            silent = {}
        for flow, silence in silent.items():
            if self._is_stuck(silence, now):
                why = f"its task {silence.task} said nothing for {now - silence.since:.0f} s"
                self._session.replace(flow, why, now)
        self._note_begun(now)
        self._say(failing, silent, now)
        return failing

    def close(self) -> None:
        """Take back what was said."""
        for flow in list(self._words):
            self._take_back(flow)
        flush_all(self._writers.values())

    def _note_begun(self, now: float) -> None:
        for flow, begun in self._session.begun.items():
            if begun != self._begun.get(flow):
                self._begun[flow] = begun
                self._watchdog.begun(flow, now)

    def _hear(self, statuses: Sequence[TaskStatus], now: float) -> None:
        for status in statuses:
            word = self._words.get(status.flow)
            if word is not None and word.heard_at is None and status.time >= word.first:
                word.heard_at = now

    def _is_stuck(self, silence: Silence, now: float) -> bool:
        word = self._words.get(silence.flow)
        if word is None or word.since != silence.since or word.heard_at is None:
            return False
        return now - word.heard_at >= _GRACE

    def _say(self, failing: Mapping[str, str], silent: Mapping[str, Silence], now: float) -> None:
        """Say in the status topic of their targets what is amiss with flows, as no task of theirs can."""
        for flow in self._words.keys() - failing.keys() - silent.keys():
            self._take_back(flow)
        if now < self._say_at:
            return
        self._say_at = now + _SAY_EVERY
        for flow in {*failing, *silent}:
            spec, silence = self._specs[flow], silent.get(flow)
            since = None if silence is None else silence.since
            waiting = None if silence is None else f"a word of its task {silence.task}, which has stopped talking"
            said = TaskStatus.of_process(spec.flow, spec.run, spec.digest, waiting, failing.get(flow))
            word = self._words.get(flow)
            if word is None or word.since != since:
                word = self._words[flow] = _OwnStatus(said, since, said.time)
            word.said = said
            self._post(spec, said)

    def _post(self, spec: FlowSpec, word: TaskStatus) -> None:
        try:
            self._writers.setdefault(spec.target, StatusWriter(spec.target, spec.topology)).post(word)
        except AnabranchError:
            # It is said again in a second.
            return

    def _take_back(self, flow: str) -> None:
        word = self._words.pop(flow)
        writer = self._writers.get(self._specs[flow].target)
        if writer is not None:
            writer.withdraw(word.said)
