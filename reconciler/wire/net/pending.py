"""The pending responses of a produce request; a caller may await them.

`requests` returns it; a caller that sends ahead gets its responses by callbacks and awaits nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import kafka.errors as kafka_errors

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.cluster import Cluster
from reconciler.wire.net.connection import ENDED_THERE, LOGIN_REFUSED, NotLetInError
from reconciler.wire.protocol import classic
from reconciler.wire.protocol.frames import UnfitError
from reconciler.wire.protocol.producing import Produced
from reconciler.wire.protocol.values import BrokenAnswer, Closed, ConnectionLost, NotLetIn, ProduceAnswer, error_text


class PendingProduce:
    """The answers to a produce request.

    Args:
        cluster: the cluster that it was sent to.
        pending: the library's future.
    """

    def __init__(self, cluster: Cluster, pending: Any) -> None:
        self._cluster = cluster
        self._pending = pending

    def __await__(self) -> Generator[Any, Any, list[ProduceAnswer]]:
        try:
            answer = yield from self._pending.__await__()
        except Exception as error:
            raise connection_lost(self._cluster, error) from None
        return answers_of(answer)


def answers_of(answer: Any) -> list[ProduceAnswer]:
    """Return the answers in a response that the library or `producing` decoded."""
    return (answer if isinstance(answer, Produced) else classic.produced(answer)).answers


def connection_lost(cluster: Cluster, error: BaseException) -> ConnectionLost:
    """Return the exception for the caller of a request that failed with an error of the library or a connection."""
    text = error_text(error)
    if isinstance(error, NotLetInError | AnabranchError):
        return NotLetIn(text)
    if isinstance(error, LOGIN_REFUSED):
        return NotLetIn(f"{cluster.where} does not let {cluster.user} in: {text}; check security and what it refers to")
    if isinstance(error, kafka_errors.KafkaProtocolError):
        return BrokenAnswer(text if isinstance(error, UnfitError) else f"{cluster.where}: {text}")
    return (Closed if error.args and isinstance(error.args[0], ENDED_THERE) else ConnectionLost)(text)
