"""Files of one node: options, `server.properties`, the logging configuration and the storage format.

Called by `broker` and `cluster`. It writes files and runs Kafka's storage tool once per cache; it must not start a
broker.
"""

from __future__ import annotations

import base64
import contextlib
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from reconciler.embedded.certificates import Certificate
from reconciler.embedded.jars import class_path
from reconciler.embedded.ports import HOST
from reconciler.model.base.errors import EnvironmentFault, Problem

# For tests and the demo: the second compiler would cost more than a short-lived broker gives back.
QUICK_JVM = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# For the bench: what Kafka's own start script chooses, with a heap that holds still.
STEADY_JVM = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")

_USER_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_LOGIN_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
}
MECHANISMS = tuple(_LOGIN_MODULES)

_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
"""

_SMALL = {
    "auto.create.topics.enable": "false",
    # Records of any age stay, so that fixtures may carry old timestamps.
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "1",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "1",
    "background.threads": "2",
    # The default of 128 MiB is allocated at the start and would take a quarter of a small heap.
    "log.cleaner.dedupe.buffer.size": str(8 << 20),
    # A killed broker is given up, and may register again, sooner than after the default 9 s.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
}


@dataclass(frozen=True)
class ClusterOptions:
    """How an embedded cluster is made.

    Attributes:
        nodes: how many nodes, each broker and controller in one.
        overrides: broker settings that win over the room's own.
        users: names and passwords (SASL); the first user is the super user, the others need ACLs. Without users
            there is no login and no authorizer.
        mechanisms: how users may log in, of `MECHANISMS`. OAUTHBEARER takes any unsecured token (RFC 7515, A.5), and
            stands beside one with a password.
        tls: whether clients connect with TLS; a private authority is made at the start.
        mutual: whether clients must have a certificate of that authority.
        racks: where the nodes stand, one after the other; consumers with `client.rack` read from a replica there.
        advertised: the ports in the nodes' advertised listeners, one after the other, where a relay stands between; by
            default those that they listen on.
        listen: the address at which the nodes listen for clients.
        told: the address in their advertised listeners, where a relay stands between; by default that of `listen`.
        jvm: options of the Java virtual machine.
        jars: the folder with the jars of another version of Kafka, 3.7 or newer; by default those of `KAFKA_VERSION`.
        start_seconds: how long the start may take.
        stop_seconds: how long an orderly stop may take before SIGKILL.
    """

    nodes: int = 1
    overrides: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    mechanisms: Sequence[str] = ("PLAIN",)
    tls: bool = False
    mutual: bool = False
    racks: Sequence[str] = ()
    advertised: Sequence[int] = ()
    listen: str = HOST
    told: str = ""
    jvm: Sequence[str] = QUICK_JVM
    jars: Path | None = None
    start_seconds: float = 90.0
    stop_seconds: float = 20.0

    def __post_init__(self) -> None:
        if self.nodes < 1:
            message = f"nodes: expected at least 1, found {self.nodes}"
            raise ValueError(message)
        for name in self.users:
            if not _USER_NAME.fullmatch(name):
                message = f"users: expected a name of letters, digits, '.', '_' and '-', found {name!r}"
                raise ValueError(message)
        for mechanism in self.mechanisms:
            if mechanism not in MECHANISMS:
                message = f"mechanisms: expected some of {', '.join(MECHANISMS)}, found {mechanism!r}"
                raise ValueError(message)
        if self.users and not set(self.mechanisms) - {"OAUTHBEARER"}:
            message = "mechanisms: expected one with a password among them, found none"
            raise ValueError(message)
        for name in ("racks", "advertised"):
            if (found := len(getattr(self, name))) not in (0, self.nodes):
                message = f"{name}: expected one for each of {self.nodes} nodes, found {found}"
                raise ValueError(message)
        if self.mutual and not self.tls:
            message = "mutual: goes with tls alone"
            raise ValueError(message)

    @property
    def protocol(self) -> str:
        """Kafka's name for how clients connect."""
        return ("SASL_" if self.users else "") + ("SSL" if self.tls else "PLAINTEXT")


@dataclass(frozen=True)
class NodePorts:
    """The three listeners of a node: for clients, between brokers, between controllers."""

    client: int
    internal: int
    controller: int


def tls_settings(trusted: str, own: Certificate, mutual: bool) -> dict[str, str]:
    """Return the settings by which a node's listener for clients uses TLS.

    Args:
        trusted: the authority's certificate, in PEM.
        own: the node's.
        mutual: whether clients must have one, too.
    """
    prefix = "listener.name.client.ssl"
    return {
        f"{prefix}.keystore.type": "PEM",
        f"{prefix}.keystore.certificate.chain": own.pem,
        f"{prefix}.keystore.key": own.key,
        f"{prefix}.truststore.type": "PEM",
        f"{prefix}.truststore.certificates": trusted,
        f"{prefix}.client.auth": "required" if mutual else "none",
    }


def server_properties(
    node_id: int,
    ports: Mapping[int, NodePorts],
    data: Path,
    options: ClusterOptions,
    tls: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the text of a node's `server.properties`.

    Args:
        node_id: which of the nodes.
        ports: the ports of every node of the cluster by node id.
        data: the folder of the node's logs and metadata.
        options: the cluster's options.
        tls: what `tls_settings` returned, where clients connect with TLS.
    """
    own = ports[node_id]
    told = options.advertised[node_id - 1] if options.advertised else own.client
    replicas = str(min(3, len(ports)))
    in_sync = str(min(2, len(ports)))
    settings = {
        **_SMALL,
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{node}@{HOST}:{at.controller}" for node, at in ports.items()),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        "listeners": (
            f"CLIENT://{options.listen}:{own.client},INTERNAL://{HOST}:{own.internal},CONTROLLER://{HOST}:{own.controller}"
        ),
        "advertised.listeners": f"CLIENT://{options.told or options.listen}:{told},INTERNAL://{HOST}:{own.internal}",
        "listener.security.protocol.map": f"CLIENT:{options.protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        **(_security(options) if options.users else {}),
        **(_rack(options.racks[node_id - 1]) if options.racks else {}),
        **tls,
        **options.overrides,
    }
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def logging_properties() -> str:
    """Return a log4j2 configuration that writes to standard output, which is the node's log file."""
    return _LOGGING


def format_storage(data: Path, node_id: int, cluster_id: str, form: Path) -> None:
    """Format a node's data folder as `kafka-storage.sh format` does, unless it is formatted already.

    Args:
        data: the folder to format.
        node_id: the node it belongs to.
        cluster_id: the cluster it belongs to.
        form: what `storage_form` returned.
    """
    meta = data / "meta.properties"
    if meta.exists():
        return
    shutil.copytree(form, data, dirs_exist_ok=True)
    meta.write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={kafka_uuid()}\n")


def formatted_cluster_id(data: Path) -> str | None:
    """Return the id of the cluster that a data folder was formatted for, or None when it is not formatted."""
    meta = data / "meta.properties"
    if not meta.exists():
        return None
    pairs = dict(line.split("=", 1) for line in meta.read_text().splitlines() if "=" in line)
    return pairs.get("cluster.id")


def storage_form(java: Path, jars: Path) -> Path:
    """Return a folder with the files of a newly formatted node, as Kafka's own storage tool writes them.

    They name the feature levels of the Kafka version and nothing of a node or cluster, so one run of the tool (a whole
    virtual machine start) serves every node of every cluster; the result is kept beside the jars.

    Raises:
        EnvironmentFault: AB303, the tool failed.
    """
    kept = jars / "formatted"
    if kept.exists():
        return kept
    # Beside the jars, so that the rename that publishes the result stays within one file system.
    with tempfile.TemporaryDirectory(dir=jars) as scratch:
        data, config = Path(scratch) / "data", Path(scratch) / "server.properties"
        config.write_text(server_properties(1, {1: NodePorts(1, 2, 3)}, data, ClusterOptions()))
        command = [str(java), *QUICK_JVM, "-cp", class_path(jars), "kafka.tools.StorageTool"]
        command += ["format", "--cluster-id", kafka_uuid(), "--config", str(config)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        (data / "meta.properties").unlink(missing_ok=True)
        # Before 4.4 the file lay in the folder itself (KIP-1170).
        if done.returncode != 0 or not any(data.rglob("*.checkpoint")):
            message = f"Kafka's storage tool ended with {done.returncode}; its output is below"
            problem = Problem("AB303", str(jars), message, f"remove {jars} to fetch Kafka again")
            raise EnvironmentFault(problem, done.stdout.splitlines())
        # Another process may have been quicker.
        with contextlib.suppress(OSError):
            data.rename(kept)
    return kept


def kafka_uuid() -> str:
    """Return a random id in the form Kafka gives its clusters and directories: 22 characters of URL-safe base64."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # As Kafka does: a leading dash would look like an option on a command line.
        if not text.startswith("-"):
            return text


def _security(options: ClusterOptions) -> dict[str, str]:
    """Require passwords of clients, and ACLs; the brokers' own listeners use plaintext, as ANONYMOUS."""
    first = next(iter(options.users))
    settings = {
        "listener.name.client.sasl.enabled.mechanisms": ",".join(options.mechanisms),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{first};User:ANONYMOUS",
    }
    for mechanism in options.mechanisms:
        entries = ""
        if mechanism == "PLAIN":
            entries = " ".join(f'user_{name}="{_quoted(password)}"' for name, password in options.users.items())
        elif mechanism == "OAUTHBEARER":
            # A broker logs in to itself.
            entries = f'unsecuredLoginStringClaim_sub="{first}"'
        module = f"org.apache.kafka.common.security.{_LOGIN_MODULES[mechanism]} required"
        settings[f"listener.name.client.{mechanism.lower()}.sasl.jaas.config"] = f"{module} {entries};"
    return settings


def _rack(name: str) -> dict[str, str]:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    return {"broker.rack": name, "replica.selector.class": selector}


def _quoted(text: str) -> str:
    """Escape text for the inside of a quoted JAAS value."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped(value: str) -> str:
    """Escape a value for a Java properties file, whose only encoding is Latin-1."""
    plain = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    units = plain.encode("utf-16-be")
    pairs = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(unit) if ord(" ") <= unit <= ord("~") else f"\\u{unit:04x}" for unit in pairs)
