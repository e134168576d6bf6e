"""A stand-in for a ResourceManager over HTTP, and for the programs of Spark that talk to it.

It answers as that of Hadoop 3.5 did; which applications it has is set by the test.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from reconciler.model.planning.deployments import Process
from tests.support.deploying import PROCESS
from tests.support.programs import write_program

NODE = {"nodeHostName": "n1.example", "state": "RUNNING", "availMemoryMB": 6144, "availableVirtualCores": 4}
QUEUES = {
    "schedulerInfo": {
        "type": "capacityScheduler",
        "queueName": "root",
        "queuePath": "root",
        "queues": {"queue": [{"queueName": "mirrors", "queuePath": "root.mirrors", "state": "RUNNING"}]},
    }
}
# Keeps its arguments in a file; prints the content of one file, and ends with the code in another.
PROGRAM = """\
#!/bin/sh
printf '%s\\n' "${0##*/}" "$HADOOP_CONF_DIR" "$@" > {folder}/called.$$
cat {folder}/says
exit $(cat {folder}/code)
"""


class ManagerStandIn:
    """A ResourceManager on loopback.

    Args:
        folder: for the programs of Spark.

    Attributes:
        nodes: as it lists them.
        charge: its state for high availability.
        applications: as it lists them, by tag.
        answers: what it answers instead, status and body by path.
        home: where the programs of Spark are.
    """

    def __init__(self, folder: Path) -> None:
        self.nodes: list[dict[str, Any]] = [dict(NODE)]
        self.charge = "ACTIVE"
        self.applications: dict[str, list[dict[str, Any]]] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.home, self.configuration = folder / "spark", folder / "conf"
        self.configuration.mkdir(parents=True)
        (self.configuration / "yarn-site.xml").write_text("<configuration/>")
        self._calls = folder / "calls"
        self._calls.mkdir()
        self.programs_end_with(0)
        for name in ("spark-submit", "spark-class"):
            path = self.home / "bin" / name
            write_program(path, PROGRAM.replace("{folder}", str(self._calls)))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def programs_end_with(self, code: int, says: str = "") -> None:
        """Have the programs of Spark print something, and end with a code."""
        (self._calls / "code").write_text(str(code))
        (self._calls / "says").write_text(says)

    def calls(self) -> list[list[str]]:
        """Return how the programs were called: name, folder of the configuration, arguments."""
        return [path.read_text().splitlines() for path in sorted(self._calls.glob("called.*"))]

    def runs(self, tag: str, state: str, container: str = "", why: str = "", started: int = 1) -> None:
        """Have an application with a tag in a state."""
        logs = {"amContainerLogs": f"http://n1.example:8042/node/containerlogs/{container}/root"} if container else {}
        known = self.applications.setdefault(tag, [])
        name = f"application_17_{1 + len(known):04}"
        known.append({"id": name, "state": state, "startedTime": started, "diagnostics": why, **logs})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        manager = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                name = asked.path.rpartition("/")[2]
                told = manager.told(name, parse_qs(asked.query))
                status, data = manager.answers.get(name) or (200, json.dumps(told).encode())
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_arguments: Any) -> None:
                """Print nothing."""

        return Handler

    def told(self, name: str, query: dict[str, list[str]]) -> dict[str, Any]:
        """Return the answer to a request; of empty lists a ResourceManager has none."""
        if name == "info":
            return {"clusterInfo": {"id": 17, "state": "STARTED", "haState": self.charge}}
        if name == "nodes":
            return {"nodes": {"node": self.nodes} if self.nodes else None}
        if name == "scheduler":
            return {"scheduler": QUEUES}
        found = self.applications.get(query["applicationTags"][0], [])
        return {"apps": {"app": found} if found else {}}

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


def process(folder: Path, manager: ManagerStandIn, more: Sequence[tuple[str, str]] = (), **fields: Any) -> Process:
    """Return a process on a cluster."""
    limits = {
        "resource-managers": manager.url,
        "configuration": str(manager.configuration),
        "cores": "2",
        "memory": str(3 * 2**30),
    }
    one = replace(PROCESS, kind="yarn", folder=str(folder / "dc1"), python="/opt/anabranch/bin/python")
    return replace(one, limits=tuple((limits | dict(more)).items()), **fields)
