"""`anabranch serve` as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.commands.command import COMMAND
from tests.support.waiting import eventually


class Service(NamedTuple):
    """A service that answers."""

    url: str
    process: subprocess.Popen[str]

    def get(self, path: str) -> Any:
        return json.loads(answer(f"{self.url}{path}")[1])


def answer(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    context: Any = None,
) -> tuple[int, str]:
    """Return status and body."""
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    try:
        with urllib.request.urlopen(request, timeout=600, context=context) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextmanager
def serving(file: Path, *options: str, env: Mapping[str, str] | None = None, ends: int = 0) -> Iterator[Service]:
    """Run `anabranch serve`, yield it when it says that it serves, and end it."""
    command = [*COMMAND, "serve", str(file), "--listen", "127.0.0.1:0", "--log-format", "json", *options]
    environment = {**os.environ, **(env or {})}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            said = (json.loads(line)["message"] for line in process.stderr)
            url = next(text for text in said if text.startswith("serving at ")).removeprefix("serving at ")
            yield Service(url, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(120) == ends


def ready(service: Service) -> Service:
    """Wait until the service has read what its topology's targets report."""
    eventually("it is ready", lambda: answer(f"{service.url}/readyz")[0], lambda status: status == 200)
    return service
