"""Anabranch as a competitor: a topology file, `anabranch apply --yes`, `anabranch replicate --until-caught-up`.

Nothing is tuned: the file holds what a user would write, with the number of tasks. A row with another `linger` says so.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psutil

from bench.competitors.base import Replicator, Scene, end, fault
from reconciler.embedded import EmbeddedCluster
from reconciler.embedded.launch import start_child
from reconciler.embedded.ports import HOST, PortLease
from reconciler.model.declared.flow import OffsetsMode

_COMMAND = (sys.executable, "-m", "reconciler.cli.main")
_END_SECONDS = 60.0
# A Spark cluster beside the command, which is of the same tree of processes then.
_BESIDE_SPARK = (sys.executable, "-m", "bench.competitors.standalone")
_WORKERS = "2"
_CONF = {"spark.driver.host": HOST, "spark.executor.cores": 1, "spark.executor.memory": "512m"}


class Anabranch(Replicator):
    """Anabranch with some tasks.

    Args:
        tasks: how many.
        options: further options of `anabranch replicate`; without any it ends when it has caught up.
        offsets: the mode that the flow declares.
        executors: whether the tasks run on a standalone Spark cluster with two workers, an executor for each.
        linger: what the flow declares of that; None declares nothing.
    """

    guarantee = "exactly once"

    def __init__(
        self,
        tasks: int,
        options: Sequence[str] = ("--until-caught-up",),
        offsets: OffsetsMode = "auto",
        executors: bool = False,
        linger: str | None = None,
    ) -> None:
        super().__init__()
        self._linger = linger
        self._executors = executors
        self._lease: PortLease | None = None
        self._tasks = tasks
        self._offsets = offsets
        self.keeps_offsets = offsets != "translated"
        self._options = tuple(options)
        kind = ("" if self.keeps_offsets else ", translated") + (", on executors" if executors else "")
        kind += f", linger {linger}" if linger else ""
        self.name = f"anabranch-{tasks}{kind.replace(', ', '-').replace(' ', '-')}"
        self.title = f"Anabranch, {tasks} task{'s' if tasks > 1 else ''}{kind}"

    def prepare(self, scene: Scene) -> None:
        """Write the topology and apply it, which makes the remote topic.

        Raises:
            EnvironmentFault: AB350, the apply failed.
        """
        # JSON is YAML.
        scene.topology.write_text(json.dumps(self.topology(scene), indent=2))
        timed(scene, "apply", str(scene.topology), "--yes")

    def topology(self, scene: Scene) -> dict[str, Any]:
        """Return what it declares, as JSON types."""
        topology: dict[str, Any] = {
            "version": 1,
            "name": scene.alias,
            "clusters": {
                scene.alias: declared(scene.source),
                "target": declared(scene.target) | {"datacenter": "here"},
            },
            "flows": [
                {
                    "from": scene.alias,
                    "to": "target",
                    "tasks": self._tasks,
                    "offsets": self._offsets,
                    "topics": {"include": [scene.topic]},
                    **({"linger": self._linger} if self._linger else {}),
                }
            ],
        }
        if self._executors:
            self._lease = PortLease.take(1)
            spark = {"master": f"spark://{HOST}:{self._lease.ports[0]}", "conf": _CONF}
            topology["datacenters"] = {"here": {"spark": spark}}
        return topology

    def start(self, scene: Scene) -> subprocess.Popen[bytes]:
        """Start `anabranch replicate`."""
        command = replicate(scene, *self._options)
        if self._lease is not None:
            command = [*_BESIDE_SPARK, str(scene.folder / "spark"), _WORKERS, str(self._lease.ports[0]), *command]
        self._process = start_child(command, scene.log)
        return self._process

    def clear(self, scene: Scene) -> None:
        """Kill what still runs and remove the remote topic."""
        if self._lease is not None and self._process is not None and self._process.poll() is None:
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    child.kill()
        super().clear(scene)
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def stop(self) -> None:
        """End it in order when it would run for ever."""
        if self._process is not None:
            end(self._process, signal.SIGTERM, _END_SECONDS)

    def finish(self, scene: Scene) -> None:
        """Wait for it to find out that it has caught up.

        Raises:
            EnvironmentFault: AB350, it did not end, or not with 0.
        """
        assert self._process is not None, "it was started"
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            raise fault(scene, f"caught up, but did not end within {_END_SECONDS:g} s") from None
        if code != 0:
            raise fault(scene, f"`anabranch replicate` ended with {code}")


def timed(scene: Scene, *words: str) -> float:
    """Run a command to its end, and return the seconds from its start, Python's own included.

    Raises:
        EnvironmentFault: AB350, it failed.
    """
    began = time.monotonic()
    with scene.log.open("wb") as output:
        done = subprocess.run(
            [*_COMMAND, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode != 0:
        raise fault(scene, f"`anabranch {words[0]}` ended with {done.returncode}")
    return time.monotonic() - began


def replicate(scene: Scene, *options: str) -> list[str]:
    """Return the command that copies what a scene's topology declares."""
    return [*_COMMAND, "replicate", str(scene.topology), *options, "--state-dir", str(scene.folder / "state")]


def declared(cluster: EmbeddedCluster) -> dict[str, object]:
    """Return a cluster as a topology declares it; a password is handed to the process in its environment."""
    bootstrap: dict[str, object] = {"bootstrap": cluster.bootstrap}
    client = cluster.client_config()
    if "sasl.password" not in client:
        return bootstrap
    variable = f"BENCH_PASSWORD_{cluster.name.upper()}"
    os.environ[variable] = client["sasl.password"]
    security = {
        "protocol": client["security.protocol"],
        "mechanism": client["sasl.mechanism"],
        "username": client["sasl.username"],
        "password": f"env:{variable}",
        "ca": f"file:{client['ssl.ca.location']}",
    }
    return {**bootstrap, "security": security}
