"""The master of a standalone Spark cluster: what it has, and what is submitted to it.

Its page lists workers and drivers as JSON; its REST API takes submissions. Neither is checked by it: a
driver for which no worker has room waits for ever, and a client of another version is taken as well.

Sources: https://spark.apache.org/docs/latest/spark-standalone.html#rest-api and the master's `/json/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from reconciler.deploy.rest import RestService, first_line
from reconciler.model.base.shape import COUNT, TEXT, WORD, fields, flag, listed
from reconciler.model.connection import hosts

_REST_PORT, _WEB_PORT = 6066, 8080
_ALIVE = "ALIVE"
_REMEDY = "start the master with spark.master.rest.enabled, or correct standalone.rest and standalone.web"


class SparkWorker(NamedTuple):
    """A worker that lives.

    Attributes:
        id: as the master has it.
        host: its host.
        cores: free ones.
        memory: free MiB.
    """

    id: str
    host: str
    cores: int
    memory: int


@dataclass(frozen=True)
class SparkCluster:
    """What a master has.

    Attributes:
        workers: those that live.
        drivers: by id, the worker of each driver that runs; empty where it waits for one.
    """

    workers: tuple[SparkWorker, ...]
    drivers: Mapping[str, str]

    def host(self, driver: str) -> str:
        """Return the host of a driver that runs; empty where it is not known."""
        return next((one.host for one in self.workers if one.id == self.drivers.get(driver)), "")


class Submitted(NamedTuple):
    """What became of a submission.

    Attributes:
        state: in Spark's words, such as `SUBMITTED` or `RUNNING`; empty where the master does not know it.
        worker: `host:port` of its worker; empty where it has none.
    """

    state: str
    worker: str


_WORKERS = {"id": WORD, "host": WORD, "coresfree": COUNT, "memoryfree": COUNT, "state": WORD}
_DRIVERS = {"id": WORD, "state": WORD}
_CLUSTER = {
    "status": WORD,
    "workers": listed(lambda one: fields(one, _WORKERS)),
    "activedrivers": listed(lambda one: fields(one, _DRIVERS, {"worker": TEXT})),
}
_ANSWER = {"success": flag}
_MORE = {"submissionId": WORD, "driverState": WORD, "workerHostPort": TEXT}


class SparkMaster:
    """The masters of one cluster, of which one is in charge.

    Args:
        address: `spark://host:port`, with further hosts after commas.
        rest: URL of the REST API; None for port 6066 of each host.
        web: URL of the page; None for port 8080 of each host.
    """

    def __init__(self, address: str, rest: str | None = None, web: str | None = None) -> None:
        self.address = address
        names = [hosts.host_of(one) for one in address.removeprefix("spark://").split(",")]
        self._rest = [rest.rstrip("/")] if rest else [f"http://{name}:{_REST_PORT}" for name in names]
        self._web = [web.rstrip("/")] if web else [f"http://{name}:{_WEB_PORT}" for name in names]
        self._service = RestService(f"Spark cluster {address}", "a Spark master", _REMEDY, _refusal)

    def cluster(self) -> SparkCluster:
        """Return what there is.

        Raises:
            EnvironmentFault: AB768, no master that is in charge answers; AB309, it may not be connected to from here.
        """
        urls = [f"{base}/json/" for base in self._web]
        told = self._service.first(urls, _CLUSTER, is_meant=lambda found: found["status"] == _ALIVE)
        workers = (
            SparkWorker(one["id"], one["host"], one["coresfree"], one["memoryfree"])
            for one in told["workers"]
            if one["state"] == _ALIVE
        )
        return SparkCluster(tuple(workers), {one["id"]: one.get("worker", "") for one in told["activedrivers"]})

    def version(self) -> str:
        """Return Spark's version; errors are those of `cluster`."""
        told = self._service.first(self._submissions("status/none"), {"serverSparkVersion": WORD})
        return str(told["serverSparkVersion"])

    def submit(self, request: Mapping[str, Any]) -> str:
        """Submit a driver, and return the id of the submission; errors are those of `cluster`."""
        told = self._service.first(self._submissions("create"), _ANSWER, _MORE, request, _is_taken)
        return str(told["submissionId"])

    def submitted(self, submission: str) -> Submitted:
        """Return what became of a submission; errors are those of `cluster`."""
        told = self._service.first(self._submissions(f"status/{quote(submission, safe='')}"), _ANSWER, _MORE)
        return Submitted(told.get("driverState", ""), told.get("workerHostPort", ""))

    def kill(self, submission: str) -> None:
        """End a driver, if the master has it; errors are those of `cluster`."""
        self._service.first(self._submissions(f"kill/{quote(submission, safe='')}"), _ANSWER, _MORE, {})

    def _submissions(self, path: str) -> list[str]:
        return [f"{base}/v1/submissions/{path}" for base in self._rest]


def _is_taken(answer: dict[str, Any]) -> bool:
    return bool(answer["success"] and answer.get("submissionId"))


def _refusal(told: Any) -> str:
    """Return why a master does not do what it is asked, in a line."""
    if isinstance(told, dict) and told.get("status") not in (None, _ALIVE):
        return f"the master is {str(told['status'])[:40]}"
    return first_line(told.get("message") if isinstance(told, dict) else None) or "it refuses"
