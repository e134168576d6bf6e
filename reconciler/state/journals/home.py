"""Where the journals of a topology are on a target: in topics of its own, or in those that all topologies share.

A release before topics per topology made four journals on each target, for all topologies. A topology whose records
are there goes on with them until they are moved (`moving`); every other one has topics of its own from its beginning.
A process decides once for each target and topology, and keeps that; tasks get the decision of their driver.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from confluent_kafka import Consumer, KafkaError

from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import state_names
from reconciler.model.recorded.declaration import MOVED
from reconciler.state.confluent import clients
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import SHARED, Journals, JournalTopic, own

Home = Literal["own", "shared"]
Role = Literal["owned", "status", "control", "copies", "probes"]

_SECONDS = 10.0
_INVISIBLE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})
_known: dict[tuple[Cluster, str], Journals] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class JournalPlace:
    """One journal of a topology, wherever it is on a target; `Journal` resolves it at its first use.

    Attributes:
        topology: name of the topology.
        role: which journal; `probes` is the one with the capabilities of a cluster.
    """

    topology: str
    role: Role

    def at(self, cluster: Cluster, timeout: float) -> JournalTopic:
        """Return its topic; errors are those of `journals`."""
        found: JournalTopic = getattr(journals(cluster, self.topology, timeout), self.role)
        return found


def journals(cluster: Cluster, topology: str, timeout: float = _SECONDS) -> Journals:
    """Return the journals of a topology on a target, as this process has decided first.

    Args:
        cluster: the target.
        topology: name of the topology.
        timeout: seconds to wait for the cluster in each call.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: what `clients.ask` raises.
    """
    if (found := _known.get((cluster, topology))) is not None:
        return found
    return _keep(cluster, topology, decide(cluster, topology, timeout))


def seen(cluster: Cluster, topology: str, names: Collection[str]) -> Journals:
    """Return what `journals` does, where the names of the visible topics are given, without a request for them."""
    if (found := _known.get((cluster, topology))) is not None:
        return found
    return _keep(cluster, topology, _decided(cluster, topology, lambda name: name in names, _SECONDS))


def home_of(cluster: Cluster, topology: str) -> Home:
    """Return where the journals are, for a task to `hold`; errors are those of `journals`."""
    return "own" if journals(cluster, topology).is_own else "shared"


def hold(cluster: Cluster, topology: str, home: str) -> None:
    """Use the decision of a task's driver; with an empty text this process decides by itself."""
    if home:
        _keep(cluster, topology, own(topology) if home == "own" else SHARED)


def forget(cluster: Cluster, topology: str) -> None:
    """Forget the decision; the next use decides anew."""
    with _lock:
        _known.pop((cluster, topology), None)


def decide(cluster: Cluster, topology: str, timeout: float = _SECONDS) -> Journals:
    """Return where the journals of a topology are now, without the cached decision; arguments and errors of `journals`.

    They are its own where its status topic exists, which a move makes last, and where the shared ones hold nothing of
    it, are not there or may not be read.
    """
    is_visible = partial(_is_visible, cluster, timeout=timeout)
    return _decided(cluster, topology, is_visible, timeout)


def _decided(cluster: Cluster, topology: str, is_visible: Callable[[str], bool], timeout: float) -> Journals:
    is_shared = (
        not is_visible(state_names(topology).status)
        and is_visible(SHARED.owned.name)
        and _is_in_shared(cluster, topology, timeout)
    )
    return SHARED if is_shared else own(topology)


def _is_in_shared(cluster: Cluster, topology: str, timeout: float) -> bool:
    """Return whether the shared journals hold records of a topology that were not moved."""
    try:
        owned = Journal(cluster, SHARED.owned, timeout).read()
        if is_moved(owned, topology):
            return False
        # A pause may be written before anything is applied.
        return any(is_of(key, value, topology) for key, value in owned.items()) or any(
            key.startswith(f"pause@{topology}/") for key in Journal(cluster, SHARED.control, timeout).read()
        )
    except Unreachable:
        raise
    except EnvironmentFault as error:
        if all(problem.code == "AB311" for problem in error.problems):
            return False
        raise


def is_of(key: str, value: Value, topology: str) -> bool:
    """Return whether a record of a journal of ownership is a topology's, claims of locks aside."""
    return value.get("topology") == topology or key.startswith(f"declaration/{topology}/")


def is_moved(owned: Mapping[str, Value], topology: str) -> bool:
    """Return whether the shared journal of ownership has the digest `moved` in force for a topology."""
    for key, value in owned.items():
        if key.startswith(f"declaration/{topology}/"):
            with contextlib.suppress(LookupError, TypeError):
                if value["history"][-1]["digest"] == MOVED:
                    return True
    return False


def _keep(cluster: Cluster, topology: str, found: Journals) -> Journals:
    with _lock:
        _known[cluster, topology] = found
    return found


def _is_visible(cluster: Cluster, name: str, timeout: float) -> bool:
    """Return whether a topic exists and DESCRIBE on it is allowed."""
    # A consumer's metadata request creates no topic.
    reports = clients.Reports()
    settings = {"group.id": "anabranch-unused", "socket.connection.setup.timeout.ms": 3000}
    consumer = clients.make(Consumer, cluster, settings, reports)
    try:

        def ask(patience: float) -> bool:
            """Ask once. Raises KafkaException."""
            error = clients.one_topic(consumer, patience, name).error
            return error is None or error.code() not in _INVISIBLE

        return clients.ask(cluster, consumer, reports, ask, timeout, cluster.clients.admin.patience(timeout))
    finally:
        consumer.close()
