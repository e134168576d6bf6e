"""What stands behind Kafka Connect's REST interface: connectors, what they do, and what may be changed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, Protocol

from reconciler.model.recorded.connector import ConnectorRecord, ConnectorState
from reconciler.service.access import Caller

TaskState = Literal["RUNNING", "PAUSED", "FAILED", "UNASSIGNED", "RESTARTING"]


class ConnectRefused(Exception):
    """A request that is answered with an error in Kafka Connect's own words.

    Args:
        status: of the answer.
        message: of its body.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


def offsets_stay(name: str) -> ConnectRefused:
    """Return the answer to a request that would move a connector."""
    message = (
        f"Failed to modify offsets for connector {name} because it doesn't support external modification of "
        "offsets: what it has copied keeps the original's offsets, and its own end is the position"
    )
    return ConnectRefused(HTTPStatus.BAD_REQUEST, message)


@dataclass(frozen=True)
class TaskView:
    """One task of a connector.

    Attributes:
        task: its number, from 0.
        state: in Connect's words.
        run: which start of `replicate` it belongs to.
        trace: why it has failed; empty where it has not.
    """

    task: int
    state: TaskState
    run: str
    trace: str = ""


@dataclass(frozen=True)
class ConnectorView:
    """What a connector does.

    Attributes:
        state: in Connect's words: that of a task, or STOPPED.
        tasks: those that report.
        trace: why it has failed; empty where it has not.
    """

    state: TaskState | Literal["STOPPED"]
    tasks: Sequence[TaskView] = ()
    trace: str = ""


class ConnectorHost(Protocol):
    """What the paths of the interface stand on.

    Every method may raise AnabranchError: a cluster does not answer, or refuses.
    """

    worker_id: str

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster that the connectors are kept in."""

    def records(self) -> Mapping[str, ConnectorRecord]:
        """Return the connectors by name."""

    def view(self, name: str) -> ConnectorView | None:
        """Return what a connector does; None while that is not known yet."""

    def topics(self, name: str) -> Sequence[str]:
        """Return the topics that a connector writes to."""

    def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return how far a connector has come, as Connect has it: the offset of the last record that was copied."""

    def errors(self, record: ConnectorRecord) -> Mapping[str, Sequence[str]]:
        """Return what is wrong with a connector beside the others, by setting."""

    def put(self, record: ConnectorRecord, caller: Caller) -> None:
        """Keep a connector, anew or changed.

        Raises:
            ConnectRefused: it may not be changed here.
        """

    def remove(self, name: str, caller: Caller) -> None:
        """Forget a connector; errors are those of `put`."""

    def set_state(self, record: ConnectorRecord, state: ConnectorState, caller: Caller) -> None:
        """Have a connector run, pause or stop; errors are those of `put`."""

    def restart(self, name: str, caller: Caller, *, parked_only: bool) -> None:
        """Have what a connector copies tried again at once.

        Args:
            name: of it.
            caller: author.
            parked_only: whether partitions that run are left alone.
        """

    def alter_offsets(self, name: str, offsets: Sequence[Any] | None, caller: Caller) -> None:
        """Move a stopped connector, or begin anew.

        Args:
            name: of it.
            offsets: as `offsets` returns them; None for none.
            caller: author.

        Raises:
            ConnectRefused: positions may not be moved.
        """
