"""Holds the locks of the targets that `apply` changes, so that two of them never work on one at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from reconciler.model.base.errors import Locked, Problem
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan
from reconciler.operate.interrupts import Interrupts
from reconciler.operate.reporter import SILENT, Reporter

if TYPE_CHECKING:
    from reconciler.state.lock import Lock


class Locks:
    """The locks of some targets, from before the plan is made until everything is carried out.

    A target that nothing was ever applied to has nowhere to keep one; `take_rest` makes that once the plan is agreed.
    A signal meanwhile releases them.

    Args:
        topology: whose things are changed.
        targets: aliases of the targets.
        wait: seconds to wait for each lock.
        reporter: receives progress and what becomes of signals.

    Raises:
        Locked: AB501, another apply is at work and did not end in time; AB323, the journals were moved meanwhile.
        Unreachable: AB310, some clusters do not answer; all problems of all clusters are named.
        EnvironmentFault: AB304, AB306, AB307, AB311, AB312, AB318 or AB319, they refuse the login, or the write.
    """

    def __init__(self, topology: Topology, targets: Sequence[str], wait: float, reporter: Reporter = SILENT) -> None:
        self._topology = topology
        # In one order, whatever the order in the files: two processes that wait for each other would never end.
        self._targets = sorted(targets)
        self._wait = wait
        self._held: dict[str, Lock] = {}
        self.reporter = reporter
        self.interrupts = Interrupts(reporter)

    def __enter__(self) -> Self:
        from reconciler.observe.topology import connect
        from reconciler.state.journals import home

        self.interrupts.begin()
        try:
            # The problems of all clusters are raised at once, together.
            there = connect(self._topology, self._targets, resting_may_be_away=True)
            for alias in self._targets:
                if alias not in there:
                    continue
                names, cluster = there[alias].metadata.topics, self._topology.clusters[alias]
                if home.seen(cluster, self._topology.name, names).owned.name in names:
                    self._take(alias)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._release()

    def take_rest(self, plan: Plan) -> bool:
        """Take the locks of targets that the plan changes and that had none; return whether there were any.

        Args:
            plan: it is agreed on; what it rests on is to be looked at again where something was taken.
        """
        from reconciler.state.journals.home import JournalPlace
        from reconciler.state.journals.journal import Journal

        changed = {step.cluster for step in plan.steps} | {alias for alias, _ in plan.to_put_in_force}
        rest = [alias for alias in self._targets if alias in changed and alias not in self._held]
        for alias in rest:
            Journal(self._topology.clusters[alias], JournalPlace(self._topology.name, "owned")).ensure()
            self._take(alias)
        return bool(rest)

    @property
    def held(self) -> Collection[str]:
        """Aliases of the targets whose locks are ours."""
        return self._held.keys()

    def check(self, alias: str) -> None:
        """Check that a target's lock is still held, and that no signal has come.

        Raises:
            Locked: AB502, another process may have taken it.
            AnabranchError: AB504, a signal has come.
        """
        self.interrupts.check()
        self._held[alias].check()

    def _take(self, alias: str) -> None:
        from reconciler.state.journals import home
        from reconciler.state.lock import Lock

        cluster, name = self._topology.clusters[alias], self._topology.name
        lock = Lock(cluster, name)
        with self.reporter.working(f"waiting for the lock of {alias}"):
            lock.take(self._wait)
        self._held[alias] = lock
        if not home.journals(cluster, name).is_own and home.decide(cluster, name).is_own:
            message = "its journals were moved to topics of their own while the lock was waited for"
            raise Locked(Problem("AB323", cluster.where, message, "run it again: it finds them there"))

    def _release(self) -> None:
        try:
            for lock in self._held.values():
                lock.release()
            self._held.clear()
        finally:
            self.interrupts.end()
