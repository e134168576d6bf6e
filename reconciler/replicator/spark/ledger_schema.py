"""The columns of the ledger, as Spark's types. It imports nothing: Spark starts processes that need no more of it."""

from __future__ import annotations

COLUMNS = {
    "flow": "STRING",
    "topic": "STRING",
    "partition": "INT",
    "remote": "STRING",
    "first_offset": "LONG",
    "last_offset": "LONG",
    "first_target_offset": "LONG",
    "last_target_offset": "LONG",
    "shift": "LONG",
    "records": "LONG",
    "bytes": "LONG",
    "fills": "LONG",
    "newest_timestamp": "LONG",
    "latency_avg": "LONG",
    "latency_max": "LONG",
}
"""Spark's type of each column of the ledger (`ledger.LedgerRow`), in their order."""
