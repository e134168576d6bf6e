"""Makes clients of confluent-kafka from a cluster's declaration, and sends their first request.

All packages get such clients here, so that errors in `security` have the same messages everywhere.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigEntry, ConfigResource, ResourceType, TopicMetadata

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import tls
from reconciler.state.confluent.faults import LOST, is_not_let_in, no_connection, unresolved, wrong_protocol
from reconciler.state.confluent.shared import Shared

Client = TypeVar("Client")
Answer = TypeVar("Answer")

LOOKUP: Mapping[str, object] = {"socket.connection.setup.timeout.ms": 3000}
"""Settings of clients that look something up."""
# librdkafka logs lost connections to stderr; the callers report them instead.
_QUIET = {"log_level": "2"}
# Fatal errors of a producer it prints at any level, unless a logger takes them.
_SILENT = logging.Logger("librdkafka, kept silent", level=logging.CRITICAL + 1)
_FIRST_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
# Connections may be lost once in a while; certificates and protocols are examined only after so long (seconds).
_LOOK_SECONDS = 1.0
_KEPT = 20
# How long a client whose login was refused is kept until another one is tried (seconds).
_RENEW_SECONDS = 2.0


class Reports:
    """The newest connection errors that librdkafka reports while a client is polled."""

    def __init__(self) -> None:
        self.errors: deque[KafkaError] = deque(maxlen=_KEPT)

    @property
    def not_let_in(self) -> bool:
        """Whether the cluster refused the credentials, or the client the cluster's certificate."""
        return any(is_not_let_in(error) for error in self.errors)


def make(
    kind: Callable[..., Client],
    cluster: Cluster,
    settings: Mapping[str, object] | None = None,
    reports: Reports | None = None,
    **options: Any,
) -> Client:
    """Return a new client of a cluster, its secrets looked up now.

    Args:
        kind: AdminClient, Consumer or Producer.
        cluster: which one.
        settings: further settings.
        reports: receives connection errors.
        options: further arguments of `kind`.

    Raises:
        EnvironmentFault: AB304 a secret cannot be resolved, AB306 `security` cannot be used on this machine, AB307 no
            token can be had.
    """
    if cluster.security.oauth is not None:
        # librdkafka without a token waits for ten seconds, and then gives no reason.
        cluster.token()
    callbacks: dict[str, Any] = {} if reports is None else {"error_cb": reports.errors.append}
    if kind is Producer:
        options.setdefault("logger", _SILENT)
    try:
        client = kind(cluster.librdkafka() | _QUIET | callbacks | dict(settings or {}), **options)
    except KafkaException as error:
        raise EnvironmentFault(_unusable(cluster, error.args[0].str())) from None
    if cluster.security.oauth is not None:
        # It requests its first token only when it is polled, and waits for ever otherwise.
        client.poll(0)  # type: ignore[attr-defined]
    return client


def _unusable(cluster: Cluster, reason: str) -> Problem:
    if cluster.security.kerberos is None or "GSSAPI" not in reason:
        return tls.unusable(cluster, RuntimeError(reason))
    remedy = "build confluent-kafka from source with a librdkafka that has libsasl2: its wheels lack GSSAPI"
    return Problem("AB306", cluster.where, f"{cluster.user} cannot log in with Kerberos here: {reason}", remedy)


def ask(
    cluster: Cluster,
    client: Any,
    reports: Reports,
    question: Callable[[float], Answer],
    seconds: float,
    longest: float | None = None,
) -> Answer:
    """Repeat a request until there is an answer; give up early where another try cannot succeed.

    Args:
        cluster: which one.
        client: of the cluster, made with `reports`.
        reports: connection errors of `client`.
        question: sends the request once, waits for the given seconds, and raises KafkaException without an answer.
        seconds: how long it may take.
        longest: seconds that it may take while no connection fails.

    Raises:
        Unreachable: AB310, no broker answers.
        EnvironmentFault: AB307 no token can be had, AB312 authentication failed, AB318 a certificate is refused,
            AB319 the port has another protocol.
    """
    start = time.monotonic()
    patience = min(_FIRST_SECONDS, seconds)
    has_looked = False
    while True:
        try:
            return question(patience)
        except KafkaException as error:
            failure = error.args[0]
        client.poll(0)
        left = start + (seconds if reports.errors else longest or seconds) - time.monotonic()
        if left <= 0 or reports.not_let_in:
            raise no_connection(cluster, failure, tuple(reports.errors))
        if (unknown := unresolved(cluster, tuple(reports.errors))) is not None:
            raise unknown
        if reports.errors and not has_looked and time.monotonic() - start > _LOOK_SECONDS:
            has_looked = True
            if (found := wrong_protocol(cluster, tuple(reports.errors))) is not None:
                raise found
        time.sleep(_PAUSE_SECONDS)
        patience = min(2 * patience, max(left, _FIRST_SECONDS))


def listed(client: Any, patience: float, topic: str | None = None) -> ClusterMetadata:
    """Return the brokers of a cluster that are ready, which are never none, and all topics, or one.

    Args:
        client: of the cluster.
        patience: seconds to wait.
        topic: by name; it is in the answer, with an error where there is none.

    Raises:
        KafkaException: no answer, or one without brokers, as of a broker that starts or stops.
    """
    one = {} if topic is None else {"topic": topic}
    try:
        found: ClusterMetadata = client.list_topics(timeout=patience, **one)
    except KafkaException as error:
        # librdkafka's code for an answer with neither brokers nor topics.
        if error.args[0].code() == KafkaError._PARTIAL:
            raise _none_ready() from None
        raise
    if not found.brokers:
        raise _none_ready()
    if topic is not None and topic not in found.topics:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"the answer does not have topic {topic}"))
    return found


def _none_ready() -> KafkaException:
    return KafkaException(KafkaError(KafkaError.BROKER_NOT_AVAILABLE, "no broker of it is ready just now"))


def one_topic(client: Any, patience: float, topic: str) -> TopicMetadata:
    """Return the metadata of one topic; arguments and errors are those of `listed`."""
    found: TopicMetadata = listed(client, patience, topic).topics[topic]
    return found


def watermarks(consumer: Any, topic: str, partition: int, seconds: float) -> tuple[int, int]:
    """Return the first offset of a partition and the one behind its last record.

    Over a new connection where one is lost: brokers end those of clients that log in again too late, and librdkafka
    those to a broker that has left the cluster's metadata.

    Args:
        consumer: of the cluster.
        topic: by name.
        partition: by number.
        seconds: to wait.

    Raises:
        KafkaException: no answer, or another one.
    """
    place = TopicPartition(topic, partition)
    found: tuple[int, int] = settled(partial(consumer.get_watermark_offsets, place, timeout=seconds), LOST, seconds)
    return found


def settled(request: Callable[[], Answer], passing: Collection[int], seconds: float) -> Answer:
    """Return the answer to a request, sent again while it ends with what passes.

    Args:
        request: called with nothing.
        passing: codes after which another one may be answered.
        seconds: after which none is sent any more.

    Raises:
        KafkaException: it ended with another code, or still with one of these.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return request()
        except KafkaException as error:
            if error.args[0].code() not in passing or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)


def metadata(cluster: Cluster, seconds: float, longest: float | None = None) -> tuple[AdminClient, ClusterMetadata]:
    """Make a client and request the metadata of all topics; arguments and errors are those of `ask` and `make`."""
    reports = Reports()
    client = make(AdminClient, cluster, LOOKUP, reports)
    longest = cluster.clients.admin.patience(longest or seconds)
    return client, ask(cluster, client, reports, partial(listed, client), seconds, longest)


def broker_settings(cluster: Cluster, seconds: float) -> dict[int, dict[str, ConfigEntry]]:
    """Return the settings of each broker, by its id; without brokers whose settings the user may not see.

    Raises:
        Unreachable: AB310, no answer.
        EnvironmentFault: what `metadata` raises.
    """
    client, seen = metadata(cluster, seconds)
    asked = [ConfigResource(ResourceType.BROKER, str(node)) for node in seen.brokers]
    found: dict[int, dict[str, ConfigEntry]] = {}
    for resource, future in client.describe_configs(asked, request_timeout=seconds).items():
        with contextlib.suppress(KafkaException):
            found[int(resource.name)] = future.result()
    return found


def shared(kind: Callable[..., Client], cluster: Cluster, settings: Mapping[str, object]) -> Renewed[Client]:
    """Return the client of a cluster that this process shares; arguments are those of `Renewed`.

    It lives as long as something holds it. Each client of confluent-kafka has half a dozen threads and connections:
    those of a hundred flows took more of a processor than the flows did.
    """
    key = kind, cluster, tuple(sorted(settings.items()))
    return _shared.get(key, lambda: Renewed(kind, cluster, settings))


class Renewed(Generic[Client]):
    """A client for a long time: after a refused login it is replaced by one with the credentials of that time.

    Args:
        kind: AdminClient, Consumer or Producer.
        cluster: of which cluster.
        settings: further settings.

    Attributes:
        client: the newest, if one was made.
        reports: its connection errors.
    """

    def __init__(self, kind: Callable[..., Client], cluster: Cluster, settings: Mapping[str, object]) -> None:
        self._kind = kind
        self._cluster = cluster
        self._settings = settings
        self._renew_at = 0.0
        # Threads that share it must not make two.
        self._lock = threading.Lock()
        self.client: Client | None = None
        self.reports = Reports()

    def get(self) -> Client:
        """Return the client, or a new one; what the old one had queued is lost.

        Raises:
            EnvironmentFault: AB304 or AB306, there is none and none can be made.
        """
        with self._lock:
            now = time.monotonic()
            if self.client is not None and not (self.reports.not_let_in and now >= self._renew_at):
                return self.client
            self._renew_at = now + _RENEW_SECONDS
            reports = Reports()
            try:
                new = make(self._kind, self._cluster, self._settings, reports)
            except EnvironmentFault:
                # Files that are just being replaced are there the next time.
                if self.client is None:
                    raise
                return self.client
            self.close()
            self.client, self.reports = new, reports
            return new

    def ask(self, question: Callable[[Client, float], Answer], seconds: float, longest: float | None = None) -> Answer:
        """Send a request, with a new client where the login of the current one was refused.

        Args:
            question: sends the request once over a client, waits for the given seconds, and raises KafkaException
                without an answer.
            seconds: how long it may take.
            longest: seconds that it may take while no connection fails.

        Raises:
            AnabranchError: those of `ask` and `get`.
        """
        is_last = False
        while True:
            client = self.get()
            reports = self.reports
            if isinstance(client, AdminClient):
                # It gets new tokens only when it is polled; consumers would be given messages.
                client.poll(0)
            if not reports.not_let_in:
                # Earlier connection errors have nothing to do with this request.
                reports.errors.clear()
            try:
                return ask(self._cluster, client, reports, partial(question, client), seconds, longest)
            except EnvironmentFault:
                # The current credentials are tried once: a cluster may take longer to refuse than a client is kept.
                if is_last or self.get() is client:
                    raise
                is_last = True

    def close(self) -> None:
        """Close the connection."""
        client, self.client = self.client, None
        if isinstance(client, Consumer):
            # A broker that is away is no reason to keep it.
            with contextlib.suppress(KafkaException):
                client.close()


_shared: Shared[Renewed[Any]] = Shared()
