"""Typed requests over kafka-python's connections. No module outside this package imports kafka-python.

README.md lists the modules in reading order.
"""

from reconciler.wire.net.direct import Direct
from reconciler.wire.net.loop import Bell, Job, Loop, Work
from reconciler.wire.net.ready import when_ready
from reconciler.wire.protocol.compact import string as compact_string
from reconciler.wire.protocol.error_codes import COORDINATOR_NOT_READY, ErrorCode, error_name
from reconciler.wire.protocol.fast_path import Piece, UnreadableAnswer
from reconciler.wire.protocol.fetching import FetchBounds
from reconciler.wire.protocol.fetching import opening as fetch_opening
from reconciler.wire.protocol.sessions import FetchSession
from reconciler.wire.protocol.values import (
    BrokenAnswer,
    BrokerError,
    Closed,
    ConnectionLost,
    FetchAnswer,
    FetchAsk,
    Leader,
    NotLetIn,
    ProduceAnswer,
    ProduceAsk,
    ProducerState,
    RecordError,
    TopicInfo,
)
from reconciler.wire.requests.client import EARLIEST, LATEST, Wire
from reconciler.wire.requests.group import GroupWire, JoinAnswer, Listed, Membership
from reconciler.wire.requests.lookups import GROUP
from reconciler.wire.requests.posting import post
from reconciler.wire.requests.stable_ends import stable_ends

__all__ = [
    "COORDINATOR_NOT_READY",
    "EARLIEST",
    "GROUP",
    "LATEST",
    "Bell",
    "BrokenAnswer",
    "BrokerError",
    "Closed",
    "ConnectionLost",
    "Direct",
    "ErrorCode",
    "FetchAnswer",
    "FetchAsk",
    "FetchBounds",
    "FetchSession",
    "GroupWire",
    "Job",
    "JoinAnswer",
    "Leader",
    "Listed",
    "Loop",
    "Membership",
    "NotLetIn",
    "Piece",
    "ProduceAnswer",
    "ProduceAsk",
    "ProducerState",
    "RecordError",
    "TopicInfo",
    "UnreadableAnswer",
    "Wire",
    "Work",
    "compact_string",
    "error_name",
    "fetch_opening",
    "post",
    "stable_ends",
    "when_ready",
]
