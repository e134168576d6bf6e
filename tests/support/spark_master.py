"""A stand-in for the master of a Spark cluster and its workers: over HTTP as the real one, drivers as real processes.

It answers as a real master of 4.3 did, and runs what a driver would run beside itself, without any JVM.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from reconciler import __version__
from reconciler.model.planning.deployments import Process
from tests.support.deploying import LIVES, PROCESS, interpreter

ENVIRON = {"PATH": "/usr/bin:/bin", "ANABRANCH_TEST_ON_WORKER": "hunter2", "ANABRANCH_TEST_OTHER": "other"}
TASKS = 2
WORKER = {"id": "worker-1", "host": "w1.example", "coresfree": 4, "memoryfree": 4096, "state": "ALIVE"}


class MasterStandIn:
    """A master on loopback.

    Args:
        folder: for the work of its drivers.
        environ: the variables of its worker.

    Attributes:
        workers: as its page lists them.
        status: its own.
        version: of Spark.
        requests: the submissions that it got.
        answers: what it answers instead, status and body by path.
        takes: whether its worker begins drivers.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder, self._environ = folder, dict(environ)
        self.workers: list[dict[str, Any]] = [dict(WORKER)]
        self.status, self.version, self.takes = "ALIVE", "4.3.0", True
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._states: dict[str, str] = {}
        self._commands: dict[str, list[str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        master = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: Any) -> None:
                status, data = master.answers.get(self.path) or (200, json.dumps(master.told(self.path, body)).encode())
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_arguments: Any) -> None:
                """Print nothing."""

        return Handler

    def told(self, path: str, body: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        if path == "/json/":
            drivers = [
                {"id": name, "state": "RUNNING", "worker": "worker-1"}
                for name, one in self.processes.items()
                if one.poll() is None
            ]
            unbegun = [name for name, state in self._states.items() if not state]
            waiting = [{"id": name, "state": "SUBMITTED", "worker": "None"} for name in unbegun]
            return {"status": self.status, "workers": self.workers, "activedrivers": [*drivers, *waiting]}
        action, _, name = path.removeprefix("/v1/submissions/").partition("/")
        return {"serverSparkVersion": self.version, **getattr(self, f"_{action}")(name, body)}

    def _create(self, _name: str, body: Any) -> dict[str, Any]:
        if self.status != "ALIVE":
            return {"success": False, "message": f"Current state is not alive: {self.status}."}
        self.requests.append(body)
        name = f"driver-{len(self._commands)}"
        self._commands[name] = [sys.executable, *body["appArgs"][-2:]]
        self._states[name] = ""
        if self.takes:
            self.start(name)
        return {"success": True, "submissionId": name}

    def _status(self, name: str, _body: Any) -> dict[str, Any]:
        if name not in self._states:
            return {"success": False, "submissionId": name}
        state = self._states[name]
        worker = {"workerHostPort": "w1.example:7078"} if state == "RUNNING" else {}
        return {"success": True, "driverState": state or "SUBMITTED", **worker}

    def _kill(self, name: str, _body: Any) -> dict[str, Any]:
        known = self._states.pop(name, None) is not None
        if name in self.processes:
            self.processes[name].kill()
        return {"success": known}

    def start(self, name: str, like: str = "") -> None:
        """Have the worker begin a driver, or another one that runs the same."""
        work = self._folder / name
        work.mkdir(parents=True, exist_ok=True)
        self._states[name] = "RUNNING"
        with (work / "stderr").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self._commands[like or name], cwd=work, env=self._environ, stdout=log, stderr=log
            )

    def fail(self, name: str) -> None:
        """Say that a driver could not be begun."""
        self._states[name] = "ERROR"

    def close(self) -> None:
        """End everything."""
        self._server.shutdown()
        self._server.server_close()
        for process in self.processes.values():
            process.kill()
            process.wait()


def process(folder: Path, master: MasterStandIn, text: str = LIVES, **fields: Any) -> Process:
    """Return a process on the cluster of a master, whose interpreter is a script."""
    limits = (
        ("master", "spark://127.0.0.1:7077"),
        *(("rest", master.url), ("web", f"{master.url}/")),
        *(("cores", "1"), ("memory", str(2**30))),
        *fields.pop("limits", ()),
    )
    python = interpreter(folder, text)
    made = replace(PROCESS, kind="standalone", folder=str(folder / "dc1"), python=python, version=__version__)
    return replace(made, limits=limits, **fields)
