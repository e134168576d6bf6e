"""Which declaration is in force on a target cluster, kept in the topology's journal of ownership.

`provision` puts one in force; `observe`, `replicate` and `status` read it. `model.recorded.declaration` has the rules.
"""

from __future__ import annotations

import time
from dataclasses import replace

from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.declaration import DeclarationHistory, Declared, InForce
from reconciler.state.journals import following
from reconciler.state.journals.encoding import Value, encoded
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import LARGEST_WHOLE
from reconciler.state.journals.user import user

_KIND = "declaration"


class Declarations:
    """What was put in force for one topology on one cluster.

    Args:
        cluster: the target.
        topology: name of the topology.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, topology: str, timeout: float = 10.0) -> None:
        self._journal = Journal(cluster, JournalPlace(topology, "owned"), timeout)
        # One cluster may be declared twice, and then each alias has flows of its own.
        self._alias = cluster.alias
        self._key = f"{_KIND}/{topology}/{cluster.alias}"
        self._follower: Follower | None = None
        self._value: Value | None = None
        self._others: dict[str, DeclarationHistory] = {}

    def current(self) -> DeclarationHistory:
        """Return the history; only the first call waits for the cluster, later ones take in what has arrived.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        if self._follower is None:
            self._follower, values = following.begin(self._journal)
            self._value = values.get(self._key)
            start = self._key.removesuffix(self._alias)
            self._others = {
                key.removeprefix(start): _history(value)
                for key, value in values.items()
                if key.startswith(start) and key != self._key
            }
        # What comes at once is only a part of what a large apply has written.
        while arrived := list(self._follower.poll(0.0)):
            self._value = dict(arrived).get(self._key, self._value)
        return _history(self._value)

    def others(self) -> dict[str, DeclarationHistory]:
        """Return the histories of the same topology for this cluster under other aliases, by alias, as they were first.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        if self._follower is None:
            self.current()
        return self._others

    def put_in_force(self, digest: str, declared: Declared | None = None) -> None:
        """Put a digest in force, now and in the name of this user, and record what it declares; wait for that.

        Where it is in force as it is declared, what lacks beside the digest, or has changed, is recorded alone.

        Args:
            digest: of the declaration, or a reserved one (`MOVED`, `DESTROYED`).
            declared: what is declared; of a declaration that is larger than a record may be the digest alone is kept.

        Raises:
            EnvironmentFault: AB311, the cluster did not take it.
            Unreachable: AB310, the cluster does not answer.
        """
        history = _history(self._journal.read().get(self._key))
        now = history.in_force
        owner, targets = (None, ()) if declared is None else (declared.owner, declared.targets)
        declaration, overrides = (None, ()) if declared is None else (declared.declaration, declared.overrides)
        if now is not None and (now.digest, now.owner) == (digest, owner):
            is_recorded = history.declaration is not None and history.overrides == overrides
            if declared is None or (now.targets == targets and is_recorded):
                return
            history = DeclarationHistory((*history.entries[:-1], replace(now, targets=targets)), declaration, overrides)
        else:
            entry = InForce(digest, time.time(), user(), owner, targets)
            history = history.followed_by(entry, declaration, overrides)
        self._journal.ensure()
        if _fits(history):
            # Brokers may have lower limits, and the digest alone decides which processes may run.
            try:
                self._journal.write(self._key, _value(history))
            except Unreachable:
                raise
            except EnvironmentFault:
                if history.declaration is None:
                    raise
            else:
                return
        self._journal.write(self._key, _value(replace(history, declaration=None)))

    def close(self) -> None:
        """Close the connection."""
        if self._follower is not None:
            self._follower.close()


def _value(history: DeclarationHistory) -> Value:
    return {"kind": _KIND} | history.to_json()


def _fits(history: DeclarationHistory) -> bool:
    return len(encoded(_value(history)) or b"") <= LARGEST_WHOLE


def _history(value: Value | None) -> DeclarationHistory:
    return DeclarationHistory() if value is None else DeclarationHistory.from_json(value)
