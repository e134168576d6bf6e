"""The wire: typed requests over kafka-python's connections. Nothing outside this package touches kafka-python.

`requests` is what the replicator calls, with the values of `values` on the event loop of `loop`; `lookups` is what an
opening asks, and `gather` asks it once for many of them. `commits` is what commits positions, `transactions` what is
asked seldom, and `group` what members of a group do. `manager` makes connections, over sockets of `sockets`;
`connection` makes kafka-python's fit for bulk data, within the `frame_limits` of what a peer may send, as
`bounded_decoding` does with its decoders; `fetching` and `producing` encode what is asked all the time (`classic` for
old brokers); `posting` sends what nobody awaits; `sessions` keeps a fetch short; `ready` asks again while a coordinator
is not.
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
