"""The ResourceManager of a YARN cluster: which nodes, queues and applications it has.

Source: https://hadoop.apache.org/docs/stable/hadoop-yarn/hadoop-yarn-site/ResourceManagerRest.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from reconciler.deploy.rest import RestService, first_line
from reconciler.model.base.shape import COUNT, TEXT, WORD, Check, Misfit, fields, listed

_CHARGE = "ACTIVE"
_CONTAINER = re.compile(r"/(container_[0-9A-Za-z_]+)(?:/|$)")
_DEEPEST = 20
_REMEDY = "start the ResourceManager, or correct yarn.resource-managers"


class YarnNode(NamedTuple):
    """A node that runs.

    Attributes:
        host: its host.
        cores: free ones.
        memory: free MiB.
    """

    host: str
    cores: int
    memory: int


class YarnApplication(NamedTuple):
    """An application.

    Attributes:
        id: as YARN has it.
        state: in YARN's words, such as `ACCEPTED`, `RUNNING` or `FAILED`.
        container: of its newest attempt; empty where it has none.
        started: milliseconds since 1970.
        why: the first line of its diagnostics; empty where there are none.
    """

    id: str
    state: str
    container: str
    started: int
    why: str

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state in ("FINISHED", "FAILED", "KILLED")


def _absent_or(check: Check) -> Check:
    """Return a check that takes null for nothing, as YARN has it for empty lists."""

    def checked(value: Any) -> Any:
        return None if value is None else check(value)

    return checked


def _whole(value: Any) -> int:
    """Return a number of a node, which YARN has below zero where more is used than there is."""
    if not isinstance(value, int) or isinstance(value, bool):
        message = "expected a whole number"
        raise Misfit(message)
    return max(0, value)


_INFO = {"clusterInfo": lambda one: fields(one, {"haState": WORD, "state": WORD})}
_NODE = {"nodeHostName": WORD, "state": WORD, "availMemoryMB": _whole, "availableVirtualCores": _whole}
_NODES = {"nodes": _absent_or(lambda one: fields(one, {}, {"node": listed(lambda node: fields(node, _NODE))}))}
_APPLICATION = {"id": WORD, "state": WORD, "startedTime": COUNT}
_MORE_OF_IT = {"diagnostics": TEXT, "amContainerLogs": TEXT}
_APPLICATIONS = {
    "apps": _absent_or(lambda one: fields(one, {}, {"app": listed(lambda app: fields(app, _APPLICATION, _MORE_OF_IT))}))
}
_SCHEDULER = {"scheduler": lambda one: one}


class ResourceManager:
    """The ResourceManagers of one cluster, of which one is in charge.

    Args:
        addresses: URLs of their web interfaces.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._bases = [one.rstrip("/") for one in addresses]
        self.where = f"YARN cluster {', '.join(self._bases)}"
        self._service = RestService(self.where, "a ResourceManager", _REMEDY, _refusal)

    def check(self) -> None:
        """Make sure that one is in charge.

        Raises:
            EnvironmentFault: AB768, none that is in charge answers; AB309, it may not be connected to from here.
        """
        self._service.first(
            self._urls("info"), _INFO, is_meant=lambda found: bool(found["clusterInfo"]["haState"] == _CHARGE)
        )

    def nodes(self) -> list[YarnNode]:
        """Return the nodes that run; errors are those of `check`."""
        told = self._service.first(self._urls("nodes", states="RUNNING"), _NODES)["nodes"] or {}
        return [
            YarnNode(one["nodeHostName"], one["availableVirtualCores"], one["availMemoryMB"])
            for one in told.get("node", ())
        ]

    def queues(self) -> set[str]:
        """Return the names of all queues, with and without those above them; errors are those of `check`."""
        return set(_names(self._service.first(self._urls("scheduler"), _SCHEDULER)["scheduler"]))

    def applications(self, tag: str) -> list[YarnApplication]:
        """Return the applications with a tag, the newest last; errors are those of `check`."""
        told = self._service.first(self._urls("apps", applicationTags=tag), _APPLICATIONS)["apps"] or {}
        found = []
        for one in told.get("app", ()):
            named = _CONTAINER.search(one.get("amContainerLogs", ""))
            container = named[1] if named else ""
            why = first_line(one.get("diagnostics", "").strip())
            found.append(YarnApplication(one["id"], one["state"], container, one["startedTime"], why))
        return sorted(found, key=lambda one: (one.started, one.id))

    def _urls(self, path: str, **query: str) -> list[str]:
        asked = f"?{urlencode(query)}" if query else ""
        return [f"{base}/ws/v1/cluster/{path}{asked}" for base in self._bases]


def _names(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield what stands under `queueName` and `queuePath`, however the scheduler nests its queues."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        yield from (str(one) for key, one in value.items() if key in ("queueName", "queuePath"))
        for one in value.values():
            yield from _names(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one, depth + 1)


def _refusal(told: Any) -> str:
    """Return why a ResourceManager does not do what it is asked, in a line."""
    if isinstance(told, dict) and isinstance(info := told.get("clusterInfo"), dict):
        return f"it is {str(info.get('haState'))[:40]}"
    error = told.get("RemoteException") if isinstance(told, dict) else None
    return first_line(error.get("message") if isinstance(error, dict) else None) or "it refuses"
