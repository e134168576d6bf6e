"""One node of an embedded cluster: its folder, its process and its log.

Called by `cluster` alone. The other nodes appear only in the properties text that it is given, and it holds no
client.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from reconciler.embedded.jars import class_path, fetch_kafka, java_executable
from reconciler.embedded.launch import start_child
from reconciler.embedded.settings import format_storage, formatted_cluster_id, logging_properties, storage_form
from reconciler.model.base.errors import EnvironmentFault, Problem

TAIL_LINES = 20


class Broker:
    """A node process and the folder it lives in: `server.properties`, `broker.log` and `data`.

    Attributes:
        node_id: the node's id in its cluster.
        folder: the node's folder, kept across restarts.
        jars: the folder with Kafka's jars; None for those of `KAFKA_VERSION`.
    """

    def __init__(self, node_id: int, folder: Path, jars: Path | None = None) -> None:
        self.node_id = node_id
        self.folder = folder
        self.jars = jars
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def log_path(self) -> Path:
        """The log of all starts of this node, the last one at the end."""
        return self.folder / "broker.log"

    @property
    def data(self) -> Path:
        """The folder of records and metadata."""
        return self.folder / "data"

    @property
    def pid(self) -> int | None:
        """The process id while the node runs."""
        return self._process.pid if self._process is not None and self.is_running() else None

    def is_running(self) -> bool:
        """Return whether the process is there; it may not answer yet."""
        return self._process is not None and self._process.poll() is None

    def formatted_cluster_id(self) -> str | None:
        """Return the cluster this node's data belongs to, or None when there is no data yet."""
        return formatted_cluster_id(self.data)

    def configure(self, properties: str) -> None:
        """Write the node's files; `properties` may hold passwords, so only the owner may read them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "server.properties"
        config.touch(mode=0o600)
        config.write_text(properties)
        (self.folder / "log4j2.properties").write_text(logging_properties())

    def start(self, cluster_id: str, jvm: tuple[str, ...]) -> None:
        """Start the process on its formatted data and return without waiting for it to answer.

        Raises:
            EnvironmentFault: AB301 without Java, AB302 without jars, AB303 when the storage cannot be formatted.
        """
        java, jars = java_executable(), self.jars or fetch_kafka()
        format_storage(self.data, self.node_id, cluster_id, storage_form(java, jars))
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        command = [str(java), *jvm, logging, "-cp", class_path(jars), "kafka.Kafka"]
        self._process = start_child([*command, str(self.folder / "server.properties")], self.log_path)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """Wait for the process to end; return whether it did."""
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def log(self) -> str:
        """Return what the node has logged since its last start."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def fault(self, message: str) -> EnvironmentFault:
        """Return the error AB303 about this node, with the end of its log."""
        # Frames of a stack trace would push out the lines with the cause.
        lines = [line for line in self.log().splitlines() if not line.startswith("\tat ")]
        message = f"{message}; the end of its log is below"
        return EnvironmentFault(
            Problem("AB303", f"node {self.node_id}", message, f"see {self.log_path}"), lines[-TAIL_LINES:]
        )
