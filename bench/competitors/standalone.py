"""A standalone Spark cluster on this machine: a master and workers, started from the installed package.

Run as a program, `python -m bench.competitors.standalone FOLDER WORKERS PORT COMMAND...`, it runs a command beside a
cluster whose master listens at a port, as the root of the processes of both; it ends with the command, and with its
exit code.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

from reconciler.embedded.ports import HOST, PortLease

CORES = 2
_SECONDS = 60.0
_EXECUTOR = "CoarseGrainedExecutorBackend"


class Standalone:
    """A master with workers.

    Args:
        folder: for its logs, and the work of its workers.
        workers: how many, of `CORES` cores each.
        port: where the master listens; any that is free by default.

    Attributes:
        master: its URL.
    """

    def __init__(self, folder: Path, workers: int, port: int | None = None) -> None:
        self._lease = PortLease.take(2 + 2 * workers)
        ports = iter(self._lease.ports)
        self._folder = folder
        own_port, self._pages = next(ports), next(ports)
        port = port or own_port
        self.master = f"spark://{HOST}:{port}"
        at = ["--host", HOST, "--port"]
        self._processes = [self._start("master.Master", "master", *at, str(port), "--webui-port", str(self._pages))]
        for number in range(workers):
            own = [*at, str(next(ports)), "--webui-port", str(next(ports)), "--work-dir", str(folder / f"w{number}")]
            size = ["--cores", str(CORES), "--memory", "2g"]
            self._processes.append(self._start("worker.Worker", f"worker-{number}", *own, *size, self.master))
        try:
            self._await(workers)
        except BaseException:
            self.stop()
            raise

    def _start(self, name: str, log: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{log}.log").open("wb") as file:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)

    def _await(self, workers: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://{HOST}:{self._pages}/json/", timeout=2) as answer:
                    if json.load(answer)["aliveworkers"] == workers:
                        return
            except OSError:
                pass
            time.sleep(0.2)
        logs = "\n".join(file.read_text(errors="replace")[-1500:] for file in self._folder.glob("*.log"))
        message = f"{workers} workers were never there:\n{logs}"
        raise AssertionError(message)

    def executors(self) -> list[Sequence[psutil.Process]]:
        """Return, by worker, the processes of its executors."""
        return [
            [child for child in psutil.Process(worker.pid).children(recursive=True) if _is_executor(child)]
            for worker in self._processes[1:]
        ]

    def stop(self) -> None:
        """End all its processes."""
        for process in reversed(self._processes):
            for child in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            process.kill()
            process.wait()
        self._lease.release()


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(word.endswith(_EXECUTOR) for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """Run a cluster for the length of a block."""
    cluster = Standalone(folder, workers)
    try:
        yield cluster
    finally:
        cluster.stop()


def _beside(folder: Path, workers: int, port: int, command: Sequence[str]) -> int:
    cluster = Standalone(folder, workers, port)
    try:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        signal.signal(signal.SIGTERM, lambda *_: running.terminate())
        return running.wait()
    finally:
        cluster.stop()


if __name__ == "__main__":
    sys.exit(_beside(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
