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
from typing import Any

import psutil
import pyspark

from reconciler.embedded.ports import HOST, PortLease

CORES = 2
_SECONDS = 60.0
_EXECUTOR, _DRIVER = "CoarseGrainedExecutorBackend", "DriverWrapper"


class Standalone:
    """A master with workers.

    Args:
        folder: for its logs, and the work of its workers.
        workers: how many.
        port: where the master listens; any that is free by default.
        cores: of each worker.
        memory: of each worker, in Spark's words.

    Attributes:
        master: its URL.
        rest: the URL of its REST API.
        web: the URL of its page.
    """

    def __init__(
        self, folder: Path, workers: int, port: int | None = None, cores: int = CORES, memory: str = "2g"
    ) -> None:
        self._lease = PortLease.take(3 + 2 * workers)
        ports = iter(self._lease.ports)
        self._folder = folder
        own_port, rest, pages = next(ports), next(ports), next(ports)
        port = port or own_port
        self.master, self.rest, self.web = f"spark://{HOST}:{port}", f"http://{HOST}:{rest}", f"http://{HOST}:{pages}"
        # What it runs survives a master in this folder.
        recovery = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": str(folder / "master")}
        self._options = " ".join(
            (
                f"-Dspark.master.rest.enabled=true -Dspark.master.rest.host={HOST} -Dspark.master.rest.port={rest}",
                *(f"-Dspark.deploy.{name}={value}" for name, value in recovery.items()),
            )
        )
        at = ["--host", HOST, "--port"]
        commands = [["master.Master", "master", *at, str(port), "--webui-port", str(pages)]]
        for number in range(workers):
            own = [*at, str(next(ports)), "--webui-port", str(next(ports)), "--work-dir", str(folder / f"w{number}")]
            size = ["--cores", str(cores), "--memory", memory]
            commands.append(["worker.Worker", f"worker-{number}", *own, *size, self.master])
        self._commands = commands
        self._processes = [self._start(*command) for command in commands]
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
            "SPARK_MASTER_OPTS": self._options,
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{log}.log").open("ab") as file:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)

    def _await(self, workers: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            try:
                if self.state()["aliveworkers"] == workers:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        logs = "\n".join(file.read_text(errors="replace")[-1500:] for file in self._folder.glob("*.log"))
        message = f"{workers} workers were never there:\n{logs}"
        raise AssertionError(message)

    def state(self) -> dict[str, Any]:
        """Return the master's state, as its page gives it in JSON."""
        with urllib.request.urlopen(f"{self.web}/json/", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def drivers(self) -> list[list[psutil.Process]]:
        """Return, by worker, the JVMs of its drivers."""
        return self._those(_DRIVER)

    def kill_master(self) -> None:
        """Kill the master, start another one in its place, and wait until workers have found it."""
        self._renew(0)
        self._await(len(self._processes) - 1)

    def kill_worker(self, number: int) -> None:
        """Kill a worker and start another one in its place; what it runs is left to itself, as Spark has it."""
        self._renew(1 + number)

    def _renew(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait()
        self._processes[number] = self._start(*self._commands[number])

    def executors(self) -> list[list[psutil.Process]]:
        """Return, by worker, the processes of its executors."""
        return self._those(_EXECUTOR)

    def _those(self, program: str) -> list[list[psutil.Process]]:
        workers = [psutil.Process(worker.pid) for worker in self._processes[1:]]
        return [[child for child in one.children(recursive=True) if _runs(child, program)] for one in workers]

    def stop(self) -> None:
        """End all its processes."""
        for process in reversed(self._processes):
            for child in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            process.kill()
            process.wait()
        self._lease.release()


def _runs(process: psutil.Process, program: str) -> bool:
    try:
        return any(word.endswith(program) for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


@contextmanager
def standalone(folder: Path, workers: int = 2, cores: int = CORES, memory: str = "2g") -> Iterator[Standalone]:
    """Run a cluster for the length of a block."""
    cluster = Standalone(folder, workers, cores=cores, memory=memory)
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
