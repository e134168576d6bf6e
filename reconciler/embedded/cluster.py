"""Embedded clusters: nodes that answer together, alone or several clusters side by side.

Called by the demo, the tests and the bench. It must not create topics or know what the clusters are used for.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from reconciler.embedded.broker import Broker
from reconciler.embedded.certificates import Authority
from reconciler.embedded.ports import HOST, PortLease
from reconciler.embedded.settings import ClusterOptions, NodePorts, kafka_uuid, server_properties, tls_settings
from reconciler.model.base.errors import EnvironmentFault, Problem

PORTS_PER_NODE = 3
START_ATTEMPTS = 3
ASK_SECONDS = 2.0
ANSWER_SECONDS = 30.0
PAUSE_SECONDS = 0.1
KILL_SECONDS = 10.0
# The fewest that Kafka takes: each of many short-lived clients counts them through.
_SCRAM_ITERATIONS = 4096


class EmbeddedCluster:
    """A Kafka cluster of child processes on 127.0.0.1.

    Nodes are numbered from 1. Node i lives in `<folder>/node-<i>` with `broker.log`, `server.properties` and `data`.
    A folder that is given stays, and a later cluster may be started on its data. Without one a temporary folder is made
    and removed by `stop`, unless `keep` is set or the start failed (its logs are then needed).

    Attributes:
        name: how the cluster is called in errors and folders.
        options: how it was made.
        folder: where its nodes live.
        cluster_id: Kafka's id of the cluster.
    """

    def __init__(
        self, name: str, options: ClusterOptions | None = None, *, folder: Path | None = None, keep: bool = False
    ) -> None:
        self.name = name
        self.options = options or ClusterOptions()
        self.folder = folder or Path(tempfile.mkdtemp(prefix="anabranch-")) / name
        self._temporary = self.folder.parent if folder is None and not keep else None
        nodes, jars = range(1, self.options.nodes + 1), self.options.jars
        self._brokers = {node: Broker(node, self.folder / f"node-{node}", jars) for node in nodes}
        self.cluster_id = self._formatted_for() or kafka_uuid()
        self._is_new = True
        self._has_passwords = False
        self._authority = Authority(name)
        self._certificates: dict[str, tuple[Path, Path]] = {}
        self._lease: PortLease | None = None
        self._ports: dict[int, NodePorts] = {}

    @property
    def bootstrap(self) -> str:
        """The addresses for clients, `host:port` joined by commas; they stay the same from start to stop."""
        return ",".join(f"{self.options.listen}:{ports.client}" for ports in self._ports.values())

    @property
    def bootstrap_within(self) -> str:
        """The addresses that brokers use among themselves, always in plaintext."""
        return ",".join(f"{HOST}:{ports.internal}" for ports in self._ports.values())

    @property
    def running_nodes(self) -> tuple[int, ...]:
        """The ids of the nodes whose processes run."""
        return tuple(node for node, broker in self._brokers.items() if broker.is_running())

    def broker(self, node: int = 1) -> Broker:
        """Return one node."""
        return self._brokers[node]

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Return what a librdkafka client needs to connect, as the given user or else as the first one, if any."""
        config = {"bootstrap.servers": self.bootstrap}
        if self.options.protocol != "PLAINTEXT":
            config["security.protocol"] = self.options.protocol
        if self.options.tls:
            config["ssl.ca.location"] = str(self.ca)
        if self.options.mutual:
            certificate, key = self._certificates.get(user or "client") or self.certificate(user or "client")
            config |= {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
        if self.options.users:
            name = user or next(iter(self.options.users))
            config |= {"sasl.mechanism": next(one for one in self.options.mechanisms if one != "OAUTHBEARER")}
            config |= {"sasl.username": name, "sasl.password": self.options.users[name]}
        return config

    @property
    def ca(self) -> Path:
        """The certificate of the private authority, as PEM, where clients connect with TLS."""
        return self.folder / "tls" / "ca.pem"

    def certificate(self, name: str, life: timedelta = timedelta(days=30)) -> tuple[Path, Path]:
        """Make a certificate for a client, `User:CN=<name>` to the brokers, and return the paths of it and its key.

        One that was made before for the same name is replaced.

        Args:
            name: whose.
            life: how long it is valid; below 0 it has expired.
        """
        self._certificates[name] = self._authority.issue(name, life=life).write(self.folder / "tls", name)
        return self._certificates[name]

    def set_password(self, user: str, password: str) -> None:
        """Give a user a SCRAM password, from now on.

        Raises:
            EnvironmentFault: AB303, the cluster does not take it.
        """
        kinds = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
        client = AdminClient({"bootstrap.servers": self.bootstrap_within, "log_level": "0"})
        for mechanism in self._scram:
            info = ScramCredentialInfo(kinds[mechanism], _SCRAM_ITERATIONS)
            # One mechanism in one request: a user may be named once.
            change = UserScramCredentialUpsertion(user, info, password.encode())
            try:
                client.alter_user_scram_credentials([change], request_timeout=ANSWER_SECONDS)[user].result()
            except KafkaException as error:
                what = f"user {user} was not given a password: {error.args[0].str()}"
                raise EnvironmentFault(Problem("AB303", f"cluster {self.name}", what, "start it again")) from None

    @property
    def _scram(self) -> list[str]:
        return [name for name in self.options.mechanisms if name.startswith("SCRAM-")]

    def _tls(self) -> dict[str, str]:
        """Make the nodes' certificate, and leave the authority's where clients find it."""
        if not self.options.tls:
            return {}
        self.ca.parent.mkdir(parents=True, exist_ok=True)
        self.ca.write_text(self._authority.pem)
        own = self._authority.issue("broker", (HOST, self.options.listen))
        return tls_settings(self._authority.pem, own, self.options.mutual)

    def start(self) -> None:
        """Start every node and return when all answer and know each other.

        Raises:
            EnvironmentFault: AB301 no Java, AB302 no jars, AB303 a node died or the time is up, AB305 no ports.
        """
        start_all([self])

    def launch(self) -> None:
        """Start every node's process and return at once; `await_ready` must follow."""
        self._is_new = self._formatted_for() is None
        self._has_passwords = self._has_passwords or not self._is_new
        if self._lease is None:
            self._lease = PortLease.take(PORTS_PER_NODE * len(self._brokers))
            free = iter(self._lease.ports)
            self._ports = {node: NodePorts(next(free), next(free), next(free)) for node in self._brokers}
        tls = self._tls()
        for node, broker in self._brokers.items():
            properties = server_properties(node, self._ports, broker.data, self.options, tls)
            broker.configure(properties)
            broker.start(self.cluster_id, tuple(self.options.jvm))

    def await_ready(self) -> None:
        """Wait until every launched node answers; on failure all nodes are ended and their logs stay.

        Raises:
            EnvironmentFault: AB303, with the end of the log.
        """
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                if self._lease is None:
                    self.launch()
                self._await(self._brokers)
                return
            except EnvironmentFault:
                stolen = any("Address already in use" in broker.log() for broker in self._brokers.values())
                self._give_up()
                # A program without our leases may take a port in between: then others are tried.
                if not stolen or attempt == START_ATTEMPTS:
                    raise

    def stop(self) -> None:
        """End every node in order (SIGTERM, after a limit SIGKILL) and remove a temporary folder; may be repeated."""
        stop_all([self])

    def ask_to_stop(self) -> None:
        """Send SIGTERM to every node and return at once; `await_stopped` must follow."""
        for broker in self._brokers.values():
            broker.signal(signal.SIGTERM)

    def await_stopped(self) -> None:
        """Wait until every node has ended, kill those that do not, and remove a temporary folder."""
        deadline = time.monotonic() + self.options.stop_seconds
        for broker in self._brokers.values():
            self._end(broker, max(0.0, deadline - time.monotonic()))
        self._release_ports()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def stop_broker(self, node: int = 1) -> None:
        """End one node in order and keep its data."""
        self._brokers[node].signal(signal.SIGTERM)
        self._end(self._brokers[node], self.options.stop_seconds)

    def kill_broker(self, node: int = 1) -> None:
        """End one node with SIGKILL, as a crash would, and keep its data."""
        self._end(self._brokers[node], 0)

    def start_broker(self, node: int = 1) -> None:
        """Start a stopped or killed node on its old ports and data, and wait until it answers and is known.

        Raises:
            EnvironmentFault: AB303, with the end of the log.
        """
        if not self._brokers[node].is_running():
            self._brokers[node].start(self.cluster_id, tuple(self.options.jvm))
        self._await([node])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _await(self, nodes: Collection[int]) -> None:
        """Wait until the given nodes answer and each of them lists all running nodes."""
        deadline = time.monotonic() + self.options.start_seconds
        if self._scram and not self._has_passwords:
            # No login works before passwords are set, which is done through the brokers' own listener.
            for node in nodes:
                self._await_node(node, {"bootstrap.servers": f"{HOST}:{self._ports[node].internal}"}, deadline)
            for user, password in self.options.users.items():
                self.set_password(user, password)
            self._has_passwords = True
        for node in nodes:
            config = {**self.client_config(), "bootstrap.servers": f"{self.options.listen}:{self._ports[node].client}"}
            self._await_node(node, config, deadline)

    def _await_node(self, node: int, config: Mapping[str, str], deadline: float) -> None:
        # A client logs every refused connection, and until the node listens there are many.
        client = AdminClient({**config, "log_level": "0", "socket.timeout.ms": str(int(ASK_SECONDS * 1000))})
        while (left := deadline - time.monotonic()) <= 0 or not _knows(client, self.running_nodes, left):
            for broker in self._brokers.values():
                if broker.node_id == node and not broker.is_running():
                    message = f"cluster {self.name}: the broker ended while starting"
                    raise broker.fault(message)
            if left <= 0:
                message = f"cluster {self.name}: no answer within {self.options.start_seconds:g} s"
                raise self._brokers[node].fault(message)
            time.sleep(PAUSE_SECONDS)

    def _formatted_for(self) -> str | None:
        return next((known for broker in self._brokers.values() if (known := broker.formatted_cluster_id())), None)

    def _give_up(self) -> None:
        """End a start that failed: no process, no lease, no data that was never used; the logs stay."""
        for broker in self._brokers.values():
            self._end(broker, 0)
            if self._is_new:
                shutil.rmtree(broker.data, ignore_errors=True)
        self._release_ports()

    def _end(self, broker: Broker, seconds: float) -> None:
        """Wait for a process that was asked to end, and kill it when the time is up."""
        if not broker.wait(seconds):
            broker.signal(signal.SIGKILL)
            broker.wait(KILL_SECONDS)

    def _release_ports(self) -> None:
        if self._lease is not None:
            self._lease.release()
            self._lease = None


def start_all(clusters: Sequence[EmbeddedCluster]) -> None:
    """Start several clusters side by side; when one fails the others are stopped.

    Raises:
        EnvironmentFault: AB301 no Java, AB302 no jars, AB303 a node died or the time is up, AB305 no ports.
    """
    failed: EmbeddedCluster | None = None
    try:
        for cluster in clusters:
            cluster.launch()
        for cluster in clusters:
            failed = cluster
            cluster.await_ready()
            failed = None
    except BaseException as error:
        # A cluster that gave up by itself has nothing left to stop but the logs that its error names.
        kept = failed if isinstance(error, EnvironmentFault) else None
        stop_all([cluster for cluster in clusters if cluster is not kept])
        raise


def stop_all(clusters: Sequence[EmbeddedCluster]) -> None:
    """Stop several clusters side by side."""
    for cluster in clusters:
        cluster.ask_to_stop()
    for cluster in clusters:
        cluster.await_stopped()


@contextmanager
def running(*clusters: EmbeddedCluster) -> Iterator[tuple[EmbeddedCluster, ...]]:
    """Start several clusters side by side for the length of a block."""
    start_all(clusters)
    try:
        yield clusters
    finally:
        stop_all(clusters)


def _knows(client: AdminClient, nodes: Collection[int], seconds: float) -> bool:
    """Return whether a node answers in time and lists all the given nodes among the brokers of its cluster."""
    try:
        answer = client.list_topics(timeout=min(ASK_SECONDS, seconds))
    except KafkaException:
        return False
    return set(nodes) <= set(answer.brokers)
