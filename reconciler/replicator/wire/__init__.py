"""The wire: typed requests over kafka-python's connections. Nothing outside this package touches kafka-python.

`requests` is what the replicator calls, and `transactions` what it seldom does, with the values of `values` on the
event loop of `loop`; `connection` makes kafka-python's connections fit for bulk data; `records` decodes batches for
comparing them.
"""

from reconciler.replicator.wire.loop import Bell, Job, Loop, Work
from reconciler.replicator.wire.records import Record, decode
from reconciler.replicator.wire.requests import EARLIEST, LATEST, Wire
from reconciler.replicator.wire.values import (
    ConnectionLost,
    ErrorCode,
    FetchAnswer,
    FetchAsk,
    Leader,
    ProduceAnswer,
    ProduceAsk,
    ProducerState,
    TopicInfo,
    error_name,
)

__all__ = [
    "EARLIEST",
    "LATEST",
    "Bell",
    "ConnectionLost",
    "ErrorCode",
    "FetchAnswer",
    "FetchAsk",
    "Job",
    "Leader",
    "Loop",
    "ProduceAnswer",
    "ProduceAsk",
    "ProducerState",
    "Record",
    "TopicInfo",
    "Wire",
    "Work",
    "decode",
    "error_name",
]
