"""The wire: typed requests over kafka-python's connections. Nothing outside this package touches kafka-python.

`requests` is what the replicator calls, with the values of `values` on the event loop of `loop`; `questions` is what an
opening asks, and `gather` asks it once for many of them. `commits` is what commits positions, `transactions` what is
asked seldom, and `group` what members of a group do. `manager` makes connections, over sockets of `dialing`;
`connection` makes kafka-python's fit for bulk data, within the `limits` of what a peer may send, as `decoding` does
with its decoders; `fetching` and `producing` encode what is asked all the time (`classic` for old brokers); `posting`
sends what nobody awaits; `sessions` keeps a fetch short; `ready` asks again while a coordinator is not.
"""

from reconciler.replicator.wire import trickle
from reconciler.replicator.wire.compact import string as compact_string
from reconciler.replicator.wire.direct import Direct
from reconciler.replicator.wire.ends import stable_ends
from reconciler.replicator.wire.fetching import Bounds
from reconciler.replicator.wire.fetching import opening as fetch_opening
from reconciler.replicator.wire.group import GroupWire, JoinAnswer, Listed, Membership
from reconciler.replicator.wire.loop import Bell, Job, Loop, Work
from reconciler.replicator.wire.posting import post
from reconciler.replicator.wire.questions import GROUP
from reconciler.replicator.wire.ready import when_ready
from reconciler.replicator.wire.requests import EARLIEST, LATEST, UNSUPPORTED_VERSION, Wire
from reconciler.replicator.wire.sessions import FetchSession
from reconciler.replicator.wire.trickle import Piece, Unreadable
from reconciler.replicator.wire.values import (
    BrokenAnswer,
    Closed,
    ConnectionLost,
    ErrorCode,
    FetchAnswer,
    FetchAsk,
    Leader,
    NotLetIn,
    ProduceAnswer,
    ProduceAsk,
    ProducerState,
    RecordError,
    TopicInfo,
    error_name,
)

__all__ = [
    "EARLIEST",
    "GROUP",
    "LATEST",
    "UNSUPPORTED_VERSION",
    "Bell",
    "Bounds",
    "BrokenAnswer",
    "Closed",
    "ConnectionLost",
    "Direct",
    "ErrorCode",
    "FetchAnswer",
    "FetchAsk",
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
    "Unreadable",
    "Wire",
    "Work",
    "compact_string",
    "error_name",
    "fetch_opening",
    "post",
    "stable_ends",
    "trickle",
    "when_ready",
]
