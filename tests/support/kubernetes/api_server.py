"""A real API server of Kubernetes, built from its Go module: one process with a database of its own, on loopback.

Building takes minutes the first time; Go's cache keeps what was built.
"""

from __future__ import annotations

import json
import secrets
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reconciler.embedded.ports import PortLease

_SOURCES = Path(__file__).parent / "apiserver"
_BUILD_SECONDS, _SECONDS = 3_000, 300
_OK = 200
_PLURALS = {"NetworkPolicy": "networkpolicies"}


def lacking() -> str:
    """Return what is missing to build it; empty where nothing is."""
    return "" if shutil.which("go") and shutil.which("openssl") else "there is no go, or no openssl"


class ApiServer:
    """A client of an API server.

    Args:
        port: where it listens.
        certificate: the file with its own.
        token: of a user in the group `system:masters`.
    """

    def __init__(self, port: int, certificate: Path, token: str) -> None:
        self._url = f"https://127.0.0.1:{port}"
        self._certificate, self._token = certificate, token

    def ask(self, path: str, body: Mapping[str, Any] | None = None, method: str = "GET") -> tuple[int, Any]:
        """Return the status and the JSON of an answer; the status is 0 where there is none yet."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/apply-patch+yaml"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            context = ssl.create_default_context(cafile=self._certificate)
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:
                return answer.status, _parsed(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _parsed(error.read())
        except OSError:
            return 0, None

    def kubeconfig(self, folder: Path, context: str) -> Path:
        """Write a configuration of kubectl with one context, and return its path."""
        cluster = {"server": self._url, "certificate-authority": str(self._certificate)}
        about = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": self._token}}],
            "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(about))
        return path

    def dry_run(self, one: Mapping[str, Any]) -> tuple[int, Any]:
        """Return what a server-side apply would answer that keeps nothing, and takes no field that is unknown."""
        group, kind, about = one["apiVersion"], one["kind"], one["metadata"]
        base = f"/api/{group}" if "/" not in group else f"/apis/{group}"
        plural = _PLURALS.get(kind, f"{kind.lower()}s")
        query = "dryRun=All&fieldManager=tests&fieldValidation=Strict"
        return self.ask(f"{base}/namespaces/{about['namespace']}/{plural}/{about['name']}?{query}", one, "PATCH")


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Build and run an API server for the length of a block."""
    program = folder / "apiserver"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=_SOURCES, check=True, timeout=_BUILD_SECONDS)
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},tests,tests,"system:masters"\n')
    key = folder / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    lease = PortLease.take(2)
    port, database = lease.ports
    # The path of a socket may have 107 characters, which that of a folder of pytest may exceed.
    with tempfile.TemporaryDirectory() as work, (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), str(folder), str(port), str(database)], cwd=work, stdout=log, stderr=log
        )
        try:
            server = ApiServer(port, folder / "apiserver.crt", token)
            _await(server, process, folder)
            yield server
        finally:
            process.kill()
            process.wait()
            lease.release()


def _await(server: ApiServer, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while not (folder / "apiserver.crt").exists() or server.ask("/readyz")[0] != _OK:
        is_in_time = process.poll() is None and time.monotonic() < deadline
        assert is_in_time, (folder / "log").read_text(errors="replace")[-3_000:]
        time.sleep(0.5)
