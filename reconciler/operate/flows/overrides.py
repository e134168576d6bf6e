"""Overrides: what is in force of them over the files, and how one more comes into force.

A target keeps them with the declaration in force, whose digest is that of the files with them. So an apply of the files
alone ends them, and a process that has the same files finds what it is to run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from reconciler.declare import lay_over
from reconciler.model.base.errors import DeclaredInputError, Problem, Refused
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.declaration import DeclarationHistory, DeclarationStanding, digest_into
from reconciler.operate.applying import ApplyOptions, Approval, put_in_force
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.state.declarations import Declarations

# Seconds for the lock that another apply may hold: a request waits for it.
_WAIT = 10.0
_TICK = 0.05
_MOST_TRIES = 20


def with_overrides(declared: Topology, standings: Mapping[str, DeclarationHistory]) -> Topology:
    """Return what files declare with the overrides that are in force; `declared` itself where none is.

    Args:
        declared: the files alone.
        standings: by alias of a target, what was put in force there.
    """
    kept: list[FlowOverride] = []
    for alias, history in standings.items():
        if not history.overrides or history.in_force is None:
            continue
        try:
            topology = lay_over(declared, history.overrides)
        except DeclaredInputError:
            # The files have changed, and it does not fit them any more: nothing but an apply of them goes on.
            continue
        if digest_into(topology, alias) == history.in_force.digest:
            kept += history.overrides
    return lay_over(declared, kept) if kept else declared


class _Overtaken(Exception):
    """Another change came into force at the target since this one was begun."""


class _Upon(Approval):
    """Agrees to plans of a change as long as the digest is in force that the change was made upon.

    Args:
        digest: this one.
        alias: of the target.
    """

    def __init__(self, digest: str, alias: str) -> None:
        self._digest = digest
        self._alias = alias

    def show(self, plan: Plan) -> None:
        """Compare, under the target's lock.

        Raises:
            _Overtaken: it is another.
        """
        for cluster in plan.clusters:
            if cluster.alias == self._alias and cluster.declared is not None:
                now = cluster.declared.in_force
                if now is not None and now.digest != self._digest:
                    raise _Overtaken


class Overriding:
    """The declaration of some files, and what is changed of it at run time.

    Args:
        declared: the files alone.
        reporter: receives what is applied.
    """

    def __init__(self, declared: Topology, reporter: Reporter = SILENT) -> None:
        self._declared = declared
        self._reporter = reporter
        self._lock = threading.Lock()
        self._journals: dict[str, Declarations] = {}
        self._standings: dict[str, DeclarationHistory] = {}
        self._topology = declared

    def topology(self) -> Topology:
        """Return what is declared with the overrides that are in force now.

        Raises:
            Unreachable: AB310, a target does not answer.
            EnvironmentFault: AB311, a target refuses.
        """
        with self._lock:
            return self._look()

    def _look(self) -> Topology:
        standings = {alias: self._journal(alias).current() for alias in self._declared.targets}
        if standings != self._standings:
            self._topology = with_overrides(self._declared, standings)
            self._standings = standings
        return self._topology

    def change(self, make: Callable[[Topology], FlowOverride]) -> Topology:
        """Put an override in force, in place of the one that its flow had, and return what is declared with it.

        Args:
            make: returns what is to be different of a flow from the files, of what is declared with the overrides that
                are in force; its time is now. It is called again where others change something meanwhile.

        Raises:
            DeclaredInputError: AB1xx, a flow cannot be declared so; or as `make` raises it.
            Refused: AB456, the target is none of these files, or something else than these files is in force there; or
                as `put_in_force` raises it.
            AnabranchError: a cluster does not answer or refuses; or as `put_in_force` raises it.
        """
        with self._lock:
            for _ in range(_MOST_TRIES):
                try:
                    return self._changed(make)
                except _Overtaken:
                    # By another process; what that has put in force may not be read here yet.
                    time.sleep(_TICK)
        message = f"others change its declaration all the time: {_MOST_TRIES} times since this change was begun"
        raise Refused(Problem("AB456", f"topology {self._declared.name}", message, "try again"))

    def _changed(self, make: Callable[[Topology], FlowOverride]) -> Topology:
        """Put an override in force upon what is.

        Raises:
            _Overtaken: that has changed meanwhile; nothing was done.
        """
        before = self._look()
        override = make(before)
        alias = override.target
        self._check(before, alias)
        others = [one for one in before.overrides if one.flow != override.flow]
        wanted = lay_over(self._declared, [*others, replace(override, since=time.time())])
        without = lay_over(self._declared, others)
        # What is as the files have it is not laid over them; but a new flow that is stopped is still shown.
        is_needless = digest_into(wanted, alias) == digest_into(without, alias)
        chosen = without if is_needless and (override.is_removed or not override.is_new) else wanted
        if _is_as(chosen, before, alias):
            return before
        upon = _Upon(digest_into(before, alias), alias)
        put_in_force(chosen, ApplyOptions(clusters=(alias,), wait=_WAIT), self._reporter, upon)
        return self._seen(digest_into(chosen, alias), alias)

    def _seen(self, digest: str, alias: str) -> Topology:
        """Return what is declared once a digest that was put in force is read here, as the next change needs it."""
        deadline = time.monotonic() + _WAIT
        while True:
            topology, now = self._look(), self._standings[alias].in_force
            if (now is not None and now.digest == digest) or time.monotonic() > deadline:
                return topology
            time.sleep(_TICK)

    def _check(self, topology: Topology, alias: str) -> None:
        where = f"cluster {alias}"
        if alias not in self._declared.targets:
            message = "no flow that the files declare leads into it: nothing is kept there, and no process reads it"
            raise Refused(Problem("AB456", where, message, "declare a flow into it, and apply that"))
        standing = self._standings[alias].standing(digest_into(topology, alias))
        if standing is not DeclarationStanding.IN_FORCE:
            message = f"what this process has of the files is {standing.value} there, and a change would come with it"
            remedy = "apply the files, and begin this process anew with the same"
            raise Refused(Problem("AB456", where, message, remedy))

    def _journal(self, alias: str) -> Declarations:
        if alias not in self._journals:
            self._journals[alias] = Declarations(self._declared.clusters[alias], self._declared.name)
        return self._journals[alias]

    def close(self) -> None:
        """Close all connections."""
        for journal in self._journals.values():
            journal.close()


def _is_as(one: Topology, other: Topology, target: str) -> bool:
    """Return whether two topologies of the same files are one at a target."""

    def laid_over(topology: Topology) -> set[tuple[str, bool]]:
        return {(override.flow, override.is_removed) for override in topology.overrides}

    return digest_into(one, target) == digest_into(other, target) and laid_over(one) == laid_over(other)
