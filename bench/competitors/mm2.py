"""MirrorMaker 2 as a competitor: dedicated mode, tuned for a backlog, on the jars that Maven Central has.

Every setting that is not its default is in `properties` or `TUNING`, with the reason. The virtual machine gets what
Kafka's own `connect-mirror-maker.sh` gives it.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bench.competitors.base import Replicator, Scene, end
from reconciler.embedded import EmbeddedCluster
from reconciler.embedded.jars import class_path, fetch_kafka, java_executable
from reconciler.embedded.launch import start_child
from reconciler.embedded.settings import logging_properties

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_JVM = (
    "-Xms256m",
    "-Xmx2g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
_END_SECONDS = 30.0

# What makes it faster on a backlog, the same in every profile; `source` and `target` stand for the aliases of the
# clusters. Larger fetches and buffers made no difference on one machine when tried alone; they are set as they would be
# on a network. `replication.factor` is the original's, and exactly-once mode reads under `read_committed`, as it must.
TUNING = {
    # As large as the batches of the topic that it reads; 16 KiB by default.
    "target.producer.batch.size": str(256 * 1024),
    "target.producer.linger.ms": "20",
    # Connect sends one request at a time, to keep the order; an idempotent producer keeps it with five.
    "target.producer.enable.idempotence": "true",
    "target.producer.max.in.flight.requests.per.connection": "5",
    # Room for all batches that five requests to each broker may hold; 32 MiB by default.
    "target.producer.buffer.memory": str(64 << 20),
    # Fewer turns of the task's loop; 500 by default.
    "source.consumer.max.poll.records": "2000",
    # 1 MiB by default; the whole answer may have 50 MiB anyway.
    "source.consumer.max.partition.fetch.bytes": str(4 << 20),
    # As large as the system lets them grow; 64 and 128 KiB by default, which is little for a long line.
    "source.consumer.receive.buffer.bytes": "-1",
    "target.producer.send.buffer.bytes": "-1",
}

# For records that come one by one: nothing waits for more, which is what is best for its latency; the rest as above.
PROMPT = TUNING | {"target.producer.linger.ms": "0"}
# What the latency is measured with, by label: as in the race, as it comes, and at its quickest.
TUNINGS: dict[str, Mapping[str, str]] = {"tuned as in the race": TUNING, "its own settings": {}, "linger 0": PROMPT}


class MirrorMaker2(Replicator):
    """MirrorMaker 2 with some tasks.

    Args:
        tasks: `tasks.max`.
        exactly_once: whether its own exactly-once mode is on.
        tuning: settings, `source` and `target` standing for the aliases of the clusters.
        label: says in its name and title how it is tuned, where it takes part more than once.
    """

    def __init__(
        self, tasks: int, exactly_once: bool = False, tuning: Mapping[str, str] = TUNING, label: str = ""
    ) -> None:
        super().__init__()
        self._tuning = tuning
        self._tasks = tasks
        self._exactly_once = exactly_once
        self.guarantee = "exactly once" if exactly_once else "at least once"
        self.name = f"mm2-{tasks}{'-eos' if exactly_once else ''}{label and '-' + label.replace(' ', '-')}"
        mode = ", exactly once" if exactly_once else ""
        self.title = f"MirrorMaker 2, {tasks} task{'s' if tasks > 1 else ''}{mode}{label and ', ' + label}"

    def prepare(self, scene: Scene) -> None:
        """Write its properties; it makes the remote topic by itself."""
        lines = [f"{key} = {value}\n" for key, value in self.properties(scene).items()]
        (scene.folder / "mm2.properties").write_text("".join(lines))
        (scene.folder / "log4j2.properties").write_text(logging_properties())

    def start(self, scene: Scene) -> subprocess.Popen[bytes]:
        """Start its virtual machine.

        Raises:
            EnvironmentFault: AB301 without Java, AB302 when its jars cannot be fetched.
        """
        jars = fetch_mirror_maker()
        logging = f"-Dlog4j2.configurationFile={scene.folder / 'log4j2.properties'}"
        command = [str(java_executable()), *_JVM, logging, "-cp", class_path(jars), _MAIN]
        self._process = start_child([*command, str(scene.folder / "mm2.properties")], scene.log)
        return self._process

    def finish(self, scene: Scene) -> None:
        """Stop it; it would wait for more records for ever."""
        self.stop()

    def stop(self) -> None:
        """End it in order."""
        if self._process is not None:
            end(self._process, signal.SIGTERM, _END_SECONDS)

    def properties(self, scene: Scene) -> dict[str, str]:
        """Return its configuration."""
        flow, target, replicas = f"{scene.alias}->target", "target", str(scene.replicas)
        settings = {
            "clusters": f"{scene.alias},{target}",
            f"{scene.alias}.bootstrap.servers": scene.source.bootstrap,
            f"{target}.bootstrap.servers": scene.target.bootstrap,
            f"{flow}.enabled": "true",
            f"{flow}.topics": scene.topic,
            "tasks.max": str(self._tasks),
            "replication.factor": replicas,
            "offset-syncs.topic.replication.factor": replicas,
            "offset.storage.replication.factor": replicas,
            "status.storage.replication.factor": replicas,
            "config.storage.replication.factor": replicas,
            # What it would do beside replicating, and the other competitor would not; offset syncs stay on.
            "emit.heartbeats.enabled": "false",
            "emit.checkpoints.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "groups": "",
            # Fewer internal partitions to make at the start.
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            **{key.replace("source.", f"{scene.alias}.", 1): value for key, value in self._tuning.items()},
            **_security(scene.alias, scene.source),
            **_security(target, scene.target),
            # Remote batches as large as the originals; by default it would store them uncompressed.
            f"{target}.producer.compression.type": scene.load.codec,
        }
        if self._exactly_once:
            settings[f"{target}.exactly.once.source.support"] = "enabled"
            settings[f"{scene.alias}.consumer.isolation.level"] = "read_committed"
        return settings


def _security(alias: str, cluster: EmbeddedCluster) -> dict[str, str]:
    """Return how it connects to a cluster; nothing where that asks for nothing."""
    client = cluster.client_config()
    if "sasl.password" not in client:
        return {}
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    login = f'username="{client["sasl.username"]}" password="{client["sasl.password"]}"'
    return {
        f"{alias}.security.protocol": client["security.protocol"],
        f"{alias}.sasl.mechanism": client["sasl.mechanism"],
        f"{alias}.sasl.jaas.config": f"{module} {login};",
        f"{alias}.ssl.truststore.type": "PEM",
        f"{alias}.ssl.truststore.location": client["ssl.ca.location"],
    }


def fetch_mirror_maker() -> Path:
    """Return the folder with its jars, fetching them on first use."""
    return fetch_kafka("connect-mirror")
