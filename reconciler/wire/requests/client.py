"""Typed requests to one cluster over kafka-python's connections.

`connections` makes a `Loop` and some `Wire`s for a task, and all its parts send through them. Each method is one
request and one response; retries, positions and meaning belong to the callers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from reconciler.model.declared.clients import LineSettings
from reconciler.model.declared.cluster import Cluster
from reconciler.wire.net.direct import Direct
from reconciler.wire.net.loop import Loop
from reconciler.wire.net.manager import socket_options
from reconciler.wire.net.pending import PendingProduce, answers_of, connection_lost
from reconciler.wire.protocol import classic, fast_path, fetching, producing
from reconciler.wire.protocol.error_codes import ErrorCode
from reconciler.wire.protocol.fetching import FetchBounds, Fetched, FetchTurn, RawFetch
from reconciler.wire.protocol.frame_limits import LARGEST_BATCH, LONGEST_SETUP_MS
from reconciler.wire.protocol.library import FetchRequest, Future, InitProducerIdRequest, ProduceRequest, kafka_errors
from reconciler.wire.protocol.producing import RawProduce
from reconciler.wire.protocol.sessions import FetchSession
from reconciler.wire.protocol.values import (
    BrokerError,
    ConnectionLost,
    FetchAnswer,
    FetchAsk,
    ProduceAnswer,
    ProduceAsk,
)
from reconciler.wire.requests.lookups import Questions

EARLIEST, LATEST = -2, -1
# The epoch of a fetch without a session, and how often a session is begun anew before an error is an error.
_NO_SESSION, _SESSION_TRIES = -1, 2
_NOT_CONNECTED = "not connected yet"
BUILT_IN = LineSettings()


class Wire(Questions):
    """Requests to one cluster.

    Args:
        loop: the task's loop.
        cluster: the cluster to connect to.
        client_id: for brokers' logs and quotas.
        timeout: seconds until a request without an answer closes its connection.
        may_send: called right before each write to a socket; when it returns False, the connection breaks instead.
        line: the declared settings of connections that carry records; by default the built-in ones.
    """

    def __init__(
        self,
        loop: Loop,
        cluster: Cluster,
        client_id: str,
        timeout: float,
        may_send: Callable[[], bool] | None = None,
        line: LineSettings = BUILT_IN,
    ) -> None:
        self.cluster = cluster
        super().__init__(loop, int(timeout * 1000))
        self._manager = loop.manager(
            cluster,
            {
                "client_id": client_id,
                "request_timeout_ms": self._timeout_ms,
                "receive_message_max_bytes": LARGEST_BATCH,
                # The windows are ours; the manager only must not refuse.
                "max_in_flight_requests_per_connection": 1_000,
                "reconnect_backoff_ms": line.reconnect_backoff_ms,
                "reconnect_backoff_max_ms": line.reconnect_backoff_max_ms,
                "connections_max_idle_ms": line.connections_max_idle_ms,
                "metadata_max_age_ms": line.metadata_max_age_ms,
                "socket_options": socket_options(line),
                # A host that sends nothing must not hold a request up for longer than a request may take, nor for
                # minutes where a request may take them.
                "socket_connection_setup_timeout_ms": min(self._timeout_ms, LONGEST_SETUP_MS),
                "socket_connection_setup_timeout_max_ms": min(self._timeout_ms, LONGEST_SETUP_MS),
            },
        )
        # By broker and request: the versions that the broker supports, and the version chosen of them.
        self._versions: dict[tuple[int | None, Any, int], tuple[Any, int]] = {}
        self._direct: dict[tuple[int, int], Direct] = {}
        self._manager.cluster.set_topics([])
        self._manager.may_send = may_send

    def allow(self, largest_batch: int) -> None:
        """Let answers hold batches of so many bytes, where that is more than brokers usually take; before connecting.

        What was asked for comes on top of that.
        """
        self._manager.config["receive_message_max_bytes"] = max(LARGEST_BATCH, largest_batch)

    async def connect(self) -> None:
        """Reach any broker of the cluster; where none could be reached for some time, by the declared addresses.

        Raises:
            ConnectionLost: none answered in time, or authentication failed.
        """
        if self._manager.is_cut_off:
            self._manager.forget_bootstrap()
        if not self._manager.bootstrapped:
            self._manager.failure = None
            try:
                await self._answer(self._manager.bootstrap_async(timeout_ms=min(self._timeout_ms, LONGEST_SETUP_MS)))
            except ConnectionLost:
                if self._manager.failure is None:
                    raise
                raise connection_lost(self.cluster, self._manager.failure) from None

    async def reach(self, node: int) -> None:
        """Connect to one broker, and learn the versions that it supports.

        Raises:
            ConnectionLost: it cannot be reached now.
        """
        try:
            pending = self._manager.get_connection(node).init_future
        except kafka_errors.KafkaError as error:
            raise connection_lost(self.cluster, error) from None
        await self._answer(pending)

    @property
    def nodes(self) -> list[int]:
        """The brokers that are known."""
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())

    def close(self) -> None:
        """Close all connections."""
        self._manager.close()

    def drop(self, why: str) -> None:
        """Break all connections at once, with whatever is still to be sent over them; later requests make new ones."""
        self._manager.drop(kafka_errors.KafkaConnectionError(why))

    async def fetch(
        self, node: int, asks: Sequence[FetchAsk], wait_ms: int, max_bytes: int, committed: bool
    ) -> list[FetchAnswer]:
        """Fetch from one broker; it answers at once with data, or empty after `wait_ms`.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the whole request was refused.
        """
        names = {ask.topic_id.bytes: ask.topic for ask in asks if ask.topic_id is not None}
        turn = FetchTurn(0, _NO_SESSION, asks)
        by_id = all(ask.topic_id is not None for ask in asks)
        fetched, _ = await self._fetch(node, FetchBounds(wait_ms, max_bytes, committed), turn, names, by_id)
        if fetched.error:
            raise BrokerError(fetched.error)
        return fetched.answers

    async def fetch_more(self, session: FetchSession, wait_ms: int, max_bytes: int) -> list[FetchAnswer]:
        """Fetch the partitions of a session from its broker, which answers only for partitions with something new.

        Raises:
            ConnectionLost: no answer.
            BrokerError: the whole request was refused.
        """
        bounds = FetchBounds(wait_ms, max_bytes, session.committed, session.rack)
        for _ in range(_SESSION_TRIES):
            try:
                turn = session.turn()
                fetched, session.waited = await self._fetch(session.node, bounds, turn, session.names, session.by_id)
            except BaseException:
                session.broken()
                raise
            if session.answered(fetched):
                break
        if fetched.error:
            raise BrokerError(fetched.error)
        return fetched.answers

    def decoded(self, session: FetchSession, data: bytes) -> Fetched:
        """Return the answers to a request that went on with a session.

        Raises:
            UnreadableAnswer: the response has another layout.
        """
        with fast_path.reading():
            return fetching.decode(session.names, memoryview(data))

    def fetched(self, session: FetchSession, data: bytes) -> list[FetchAnswer]:
        """Return what came, as `fetch_more` does, of an answer to a request that went on with a session.

        Raises:
            BrokerError: the whole request was refused.
            UnreadableAnswer: the response has another layout.
        """
        fetched = self.decoded(session, data)
        if not session.answered(fetched):
            return []
        if fetched.error:
            raise BrokerError(fetched.error)
        return fetched.answers

    async def _fetch(
        self, node: int, bounds: FetchBounds, turn: FetchTurn, names: dict[bytes, str], by_id: bool
    ) -> tuple[Fetched, float]:
        """Return the response, and the seconds until its first bytes; 0 if unknown."""
        newest = fetching.LAST_RAW if by_id else fetching.FIRST_WITH_IDS - 1
        if not self._manager.bootstrapped:
            raise ConnectionLost(_NOT_CONNECTED)
        if not self._manager.is_connected(node):
            await self.reach(node)
        version = self._version(node, FetchRequest, newest)
        if version is None:
            raise ConnectionLost(_NOT_CONNECTED)
        # The usual wait is part of the time that a request may take.
        patience = max(0, bounds.wait_ms - self.cluster.clients.consumer.fetch_max_wait_ms) / 1000
        if version < fetching.FIRST_RAW:
            return classic.fetched(await self._send(classic.fetch_request(bounds, turn.asks), node, patience)), 0.0
        request = RawFetch(version, bounds, turn, names)
        answer: Fetched = await self._send(request, node, patience)
        return answer, request.header.waited

    def produce(
        self,
        node: int,
        asks: Sequence[ProduceAsk],
        lost: Callable[[ConnectionLost], None] | None,
        answered: Callable[[Sequence[ProduceAnswer]], None] | None = None,
        transactional_id: str | None = None,
    ) -> Awaitable[list[ProduceAnswer]]:
        """Write one batch to each of some partitions that one broker leads, and wait for all replicas.

        The request leaves before this returns, so requests leave in the order of the calls.

        Args:
            node: the broker.
            asks: at most one batch for each partition.
            lost: called at once when no response will come: while the connection breaks, and before the next batch of
                a partition could be sent over a new one. The batches may or may not be in the log. None if the
                caller awaits the answers and needs no callback.
            answered: called at once with the answers; it must not raise.
            transactional_id: of the producer whose transaction the batches are in, if they are in one.

        Returns:
            What may be awaited for the answers; awaiting it raises ConnectionLost, after `lost`, when none comes.
        """
        pending = self._begin_produce(node, asks, transactional_id)
        if lost is not None:
            pending.add_errback(lambda error: lost(connection_lost(self.cluster, error)))
        if answered is not None:
            pending.add_callback(lambda answer: answered(answers_of(answer)))
        return PendingProduce(self.cluster, pending)

    async def write_one(self, node: int, ask: ProduceAsk, transactional_id: str | None = None) -> ProduceAnswer:
        """Write one batch as soon as the broker may be asked, and wait for all replicas.

        A quota may hold the broker back, and a connection that is held back would look like a lost one.

        Args:
            node: the broker.
            ask: the batch.
            transactional_id: of the producer whose transaction it is in, if it is in one.

        Raises:
            ConnectionLost: no answer: it may or may not be in the log.
        """
        await self.rest(node)
        (answer,) = await self.produce(node, [ask], None, None, transactional_id)
        return answer

    def throttled(self, node: int) -> float:
        """Return the seconds that are left of the broker's throttle time (a quota); 0 without one."""
        return self._manager.throttled(node)

    async def rest(self, node: int) -> None:
        """Wait for the end of the broker's throttle time."""
        while pause := self._manager.throttled(node):
            await self._loop.sleep(pause)

    def _begin_produce(self, node: int, asks: Sequence[ProduceAsk], transactional_id: str | None) -> Any:
        version = self._version(node, ProduceRequest, producing.newest(producing.have_ids(asks)))
        if version is None:
            return Future().failure(kafka_errors.KafkaConnectionError(_NOT_CONNECTED))
        if version >= producing.FIRST_RAW:
            request: Any = RawProduce(version, self._timeout_ms, asks, transactional_id)
        else:
            request = classic.produce_request(asks, self._timeout_ms, transactional_id)
        try:
            return self._manager.send(request, node, request_timeout_ms=self._timeout_ms)
        except kafka_errors.KafkaError as error:
            return Future().failure(error)

    def _version(self, node: int | None, request: Any, newest: int) -> int | None:
        """Return the newest version of a request that this side and a broker support; None before a connection."""
        known = self._manager.versions(node)
        if known is None:
            return None
        found = self._versions.get((node, request, newest))
        if found is None or found[0] is not known:
            found = self._versions[node, request, newest] = known, int(known.api_version(request, max_version=newest))
        return found[1]

    def direct_fetch(self, node: int) -> Direct | None:
        """Return a connection for fetches that name topics by their ids; None where there is none now."""
        return self._direct_for(node, FetchRequest, fetching.FIRST_WITH_IDS, fetching.LAST_RAW)

    def direct_produce(self, node: int, by_id: bool) -> Direct | None:
        """Return a connection for produce requests; None where there is none now.

        They name topics by ids where these are known (`by_id`) and the broker knows such requests; some know ids alone.
        """
        return self._direct_for(node, ProduceRequest, producing.FIRST_RAW, producing.newest(by_id))

    def produced(self, names: dict[bytes, str] | None, data: memoryview) -> list[ProduceAnswer]:
        """Return the answers to a direct produce request; `names` are topics by their ids, where it has ids.

        Raises:
            UnreadableAnswer: the response has another layout.
        """
        with fast_path.reading():
            return producing.decode(names, data).answers

    def lost(self, error: BaseException) -> ConnectionLost:
        """Return what it means that a direct request has no answer."""
        return connection_lost(self.cluster, error)

    @property
    def timeout_ms(self) -> int:
        """How long an answer may take."""
        return self._timeout_ms

    def _direct_for(self, node: int, request: Any, oldest: int, newest: int) -> Direct | None:
        version = self._version(node, request, newest)
        connection = self._manager.connection(node)
        if connection is None or version is None or version < oldest:
            return None
        key = node, int(request.API_KEY)
        found = self._direct.get(key)
        if found is None or not found.is_of(connection, version):
            found = self._direct[key] = Direct(connection, key[1], version, self._timeout_ms / 1000)
        return found

    async def producer_id(self, transactional_id: str) -> int:
        """Return the producer id that belongs to `transactional_id`.

        Raises:
            ConnectionLost: no answer.
            BrokerError: refused, or the coordinator is not ready.
        """
        node = await self.coordinator(transactional_id)
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
            max_version=4,
        )
        answer = await self._send(request, node)
        if answer.error_code:
            raise BrokerError(answer.error_code)
        return int(answer.producer_id)

    def _met(self, brokers: Iterable[int]) -> None:
        if set(brokers) - {broker.node_id for broker in self._manager.cluster.brokers()}:
            self._manager.cluster.request_update()

    def _begin_anew(self) -> None:
        self._manager.forget_bootstrap()

    async def ask(self, request: Any, node: int | None) -> Any:
        """Send a request of the library to one broker, or to any, for the other modules of this package.

        Raises:
            ConnectionLost: no answer.
            BrokerError: ErrorCode.UNSUPPORTED_VERSION, the broker does not support the request.
        """
        return await self._send(request, node)

    async def _send(self, request: Any, node: int | None, patience: float = 0.0) -> Any:
        """Send a request; the broker may take `patience` seconds longer than others for its answer."""
        if node is not None:
            await self.rest(node)
        timeout_ms = self._timeout_ms + int(patience * 1000)
        try:
            pending = self._manager.send(request, node, request_timeout_ms=timeout_ms)
        except kafka_errors.KafkaError as error:
            raise connection_lost(self.cluster, error) from None
        return await self._answer(pending)

    async def _answer(self, pending: Any) -> Any:
        try:
            return await pending
        except kafka_errors.IncompatibleBrokerVersion as error:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
        except Exception as error:
            # The library hands on whatever broke the connection, its own errors and others.
            raise connection_lost(self.cluster, error) from None
