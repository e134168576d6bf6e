"""The master of a standalone Spark cluster: what it has, and what is submitted to it.

Its page lists workers and drivers as JSON; its REST API takes submissions. Neither is checked by it: a
driver for which no worker has room waits for ever, and a client of another version is taken as well.

Sources: https://spark.apache.org/docs/latest/spark-standalone.html#rest-api and the master's `/json/`.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import quote

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, parse_json
from reconciler.model.base.shape import COUNT, TEXT, WORD, Check, Misfit, fields, flag, listed
from reconciler.model.connection import hosts
from reconciler.model.connection.redirects import NoRedirects

_REST_PORT, _WEB_PORT = 6066, 8080
_SECONDS = 15.0
_LARGEST = 2**24
_ALIVE = "ALIVE"
_CODE = "AB768"


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
        self._opener = urllib.request.build_opener(NoRedirects)

    def cluster(self) -> SparkCluster:
        """Return what there is.

        Raises:
            EnvironmentFault: AB768, no master that is in charge answers; AB309, it may not be connected to from here.
        """
        told = self._first(self._web, "/json/", None, _CLUSTER, lambda found: found["status"] == _ALIVE)
        workers = (
            SparkWorker(one["id"], one["host"], one["coresfree"], one["memoryfree"])
            for one in told["workers"]
            if one["state"] == _ALIVE
        )
        return SparkCluster(tuple(workers), {one["id"]: one.get("worker", "") for one in told["activedrivers"]})

    def version(self) -> str:
        """Return Spark's version; errors are those of `cluster`."""
        told = self._first(self._rest, "/v1/submissions/status/none", None, {"serverSparkVersion": WORD})
        return str(told["serverSparkVersion"])

    def submit(self, request: Mapping[str, Any]) -> str:
        """Submit a driver, and return the id of the submission; errors are those of `cluster`."""
        told = self._first(self._rest, "/v1/submissions/create", request, _ANSWER, _is_taken)
        return str(told["submissionId"])

    def submitted(self, submission: str) -> Submitted:
        """Return what became of a submission; errors are those of `cluster`."""
        path = f"/v1/submissions/status/{quote(submission, safe='')}"
        told = self._first(self._rest, path, None, _ANSWER)
        return Submitted(told.get("driverState", ""), told.get("workerHostPort", ""))

    def kill(self, submission: str) -> None:
        """End a driver, if the master has it; errors are those of `cluster`."""
        self._first(self._rest, f"/v1/submissions/kill/{quote(submission, safe='')}", {}, _ANSWER)

    # --- requests ----------------------------------------------------------------------------------------------------

    def _first(
        self,
        bases: Iterable[str],
        path: str,
        body: Mapping[str, Any] | None,
        shape: Mapping[str, Check],
        is_meant: Callable[[dict[str, Any]], bool] = lambda _: True,
    ) -> dict[str, Any]:
        """Return the answer of the first master that gives the one that is meant."""
        failures = []
        for base in bases:
            hosts.check(f"Spark cluster {self.address}", (), [base])
            try:
                told = self._answer(base + path, body)
                found = fields(told, shape, _MORE)
            except _NoAnswer as error:
                failures.append(f"{base}: {error}")
            except (Misfit, UnreadableFile) as error:
                failures.append(f"{base}: its answer is none of a Spark master: {error}")
            else:
                if is_meant(found):
                    return found
                failures.append(f"{base}: {_refusal(told)}")
        remedy = "start the master with spark.master.rest.enabled, or correct standalone.rest and standalone.web"
        raise EnvironmentFault(Problem(_CODE, f"Spark cluster {self.address}", "; ".join(failures), remedy))

    def _answer(self, url: str, body: Mapping[str, Any] | None) -> Any:
        """Return an answer as JSON types.

        Raises:
            _NoAnswer: there is none, or it is an error.
            UnreadableFile: it is no JSON.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json;charset=UTF-8"})
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return parse_json(answer.read(_LARGEST).decode(errors="replace"))
        except urllib.error.HTTPError as error:
            # The body may hold a stack trace behind the first line.
            raise _NoAnswer(_said(error)) from None
        except urllib.error.URLError as error:
            raise _NoAnswer(str(error.reason)) from None
        except (OSError, HTTPException) as error:
            raise _NoAnswer(str(error) or type(error).__name__) from None


def _is_taken(answer: dict[str, Any]) -> bool:
    return bool(answer["success"] and answer.get("submissionId"))


class _NoAnswer(Exception):
    """A master gives no answer."""


def _said(error: urllib.error.HTTPError) -> str:
    try:
        told = parse_json(error.read(_LARGEST).decode(errors="replace"))
        return f"HTTP status {error.code}: {_refusal(told)}"
    except (OSError, HTTPException, UnreadableFile):
        return f"HTTP status {error.code}"


def _refusal(told: Any) -> str:
    """Return why a master does not do what it is asked, in a line."""
    if isinstance(told, dict) and told.get("status") not in (None, _ALIVE):
        return f"the master is {str(told['status'])[:40]}"
    message = told.get("message") if isinstance(told, dict) else None
    lines = str(message or "").splitlines()
    return lines[0][:300] if lines else "it refuses"
