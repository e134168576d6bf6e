"""`anabranch connect-distributed` as a process of its own, and its REST interface as curl uses it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.commands.command import COMMAND
from tests.support.commands.serving import answer
from tests.support.commands.trees import kill_tree
from tests.support.waiting import DEADLINE_SECONDS, eventually

_SERVES = re.compile(r"connectors at (\S+);")


class Worker(NamedTuple):
    """A worker that answers."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status of an answer, and its body as JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        status, text = answer(f"{self.url}{path}", method, data, headers)
        return status, json.loads(text) if text else None

    def get(self, path: str) -> Any:
        status, found = self.ask("GET", path)
        assert status == 200, found
        return found

    def state(self, name: str) -> str:
        """Return the state of a connector; empty while there is none."""
        status, found = self.ask("GET", f"/connectors/{name}/status")
        return str(found["connector"]["state"]) if status == 200 else ""

    def wait_until(self, name: str, state: str) -> None:
        """Wait until a connector is in a state, and has tasks if it runs."""
        eventually(
            f"{name} is {state}",
            lambda: self.ask("GET", f"/connectors/{name}/status"),
            lambda found: (
                found[0] == 200
                and found[1]["connector"]["state"] == state
                and (bool(found[1]["tasks"]) or state == "STOPPED")
            ),
            detail=lambda: self.log.read_text(errors="replace"),
        )


@contextmanager
def connecting(folder: Path, bootstrap: str, group: str, *options: str, more: str = "") -> Iterator[Worker]:
    """Run a worker, yield it when it says that it answers, and end it."""
    folder.mkdir(parents=True, exist_ok=True)
    file, log = folder / "worker.properties", folder / f"worker-{time.monotonic_ns()}.log"
    file.write_text(f"bootstrap.servers={bootstrap}\ngroup.id={group}\nlisteners=http://127.0.0.1:0\n{more}")
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, "connect-distributed", str(file), *options],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
        )
    try:
        said = eventually(
            "it answers",
            lambda: (process.poll(), _SERVES.search(log.read_text(errors="replace").replace("\n", " "))),
            lambda found: found[0] is not None or found[1],
            detail=lambda: log.read_text(errors="replace"),
        )
        assert said[1] is not None, log.read_text(errors="replace")
        yield Worker(said[1][1], process, log)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 0, log.read_text(errors="replace")[-3000:]
    finally:
        kill_tree(process.pid)
        process.wait()
