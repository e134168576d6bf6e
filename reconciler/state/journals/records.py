"""The shapes of records in the journals, against which readers check every value.

Each function raises Misfit for a value that does not fit, and nothing else. A kind of record that only a newer release
has is not checked, and its readers skip it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.acls.binding import OwnedBinding
from reconciler.model.base.shape import (
    COUNT,
    ID,
    MODE,
    MOST_PARTITIONS,
    MOST_TASKS,
    PARTITION,
    TEXT,
    TIME,
    WORD,
    Misfit,
    decimal,
    fields,
    flag,
    listed,
    mapped,
    maybe,
    row,
    text,
    topic_name,
    whole,
)
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.recorded.capabilities import Capabilities
from reconciler.model.recorded.connector import ConnectorRecord
from reconciler.model.recorded.declaration import DeclarationHistory
from reconciler.model.recorded.failover import PHASES, Cut
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.recorded.placed import Placed

Value = Mapping[str, Any]

SHARES, BEAT = "shares", "beat"
_LONGEST_GROUP = 32_767
_NUMBER = decimal()
_SHARED_TOPIC = row(topic_name, listed(whole(0, MOST_TASKS - 1)), MODE, listed(PARTITION))
_SHARES = {"topics": mapped(topic_name, _SHARED_TOPIC), "trouble": maybe(TEXT)}


def owned(key: str, value: Value) -> None:
    """Check a value of the journal of ownership by its kind, with which its key begins as well."""
    kind = fields(value, {"kind": WORD})["kind"]
    first = key.partition("/")[0]
    is_beat = first == "lock" and key.endswith("/beat")
    if (kind == BEAT) != is_beat or (first != kind and not is_beat):
        message = f"a record of kind {kind[:40]!a} under a key of another kind"
        raise Misfit(message)
    if kind in _KINDS:
        _KINDS[kind](key, value)


def copies(key: str, value: Value) -> None:
    """Check a value of the journal of copies: a flow, a remote topic and a partition are its key, or a cluster's id.

    What a target was seen to do is kept there as well, where a topology has topics of its own.
    """
    if key.startswith("probe/") and key.count("/") == 1:
        Capabilities.from_json(value)
        return
    parts = key.rsplit("/", 2)
    if len(parts) != len(("flow", "remote", "partition")):
        message = "a key without flow, topic and partition"
        raise Misfit(message)
    topic_name(parts[1])
    _NUMBER(parts[2])
    CopyRecord.from_json(value)


def control(key: str, value: Value) -> None:
    """Check a value of the control topic: when which command was given, and what else there is to it."""
    known = fields(
        value,
        {"command": WORD, "time": TIME},
        {"flow": WORD, "topic": maybe(WORD), "partition": maybe(PARTITION), "parked-only": flag, "by": TEXT},
    )
    if known["command"] == SHARES:
        fields(value, {"shares": shares})


def shares(value: Any) -> dict[str, Any]:
    """Return the fields of the partitions of each task (`replicator.partition.shares.Shares`)."""
    return fields(value, {"tasks": whole(1, MOST_TASKS)}, _SHARES)


def failed_over(value: Value) -> dict[str, Any]:
    """Return the fields of the record of a flow that is failed over."""
    return fields(value, {"flow": WORD, "phase": PHASES, "since": TIME, "by": TEXT})


def cut(value: Value) -> tuple[str, float, Cut]:
    """Return of which flow and which failover the cut of a copy is, and the cut."""
    known = fields(value, {"flow": WORD, "since": TIME})
    return known["flow"], known["since"], Cut.from_json(value)


def placed(value: Value) -> tuple[str, float, str, Placed]:
    """Return of which flow, failover and group it is what a failover or a failback has committed, and that."""
    known = fields(value, {"flow": WORD, "since": TIME, "group": text(_LONGEST_GROUP)})
    return known["flow"], known["since"], known["group"], Placed.from_json(value)


def rebuilt(value: Value) -> dict[str, Any]:
    """Return the fields of the record of a topic that is being made anew."""
    return fields(
        value,
        {
            "topology": WORD,
            "topic": topic_name,
            "id": maybe(ID),
            "partitions": whole(1, MOST_PARTITIONS),
            "replicas": whole(1, MOST_PARTITIONS),
            "configs": mapped(TEXT, TEXT),
        },
    )


def _topic(key: str, value: Value) -> None:
    if key != f"topic/{OwnedTopic.from_json(value).name}":
        message = "a record of a topic under the key of another one"
        raise Misfit(message)


def _connector(key: str, value: Value) -> None:
    if key != f"connector/{ConnectorRecord.from_json(value).name}":
        message = "a record of a connector under the key of another one"
        raise Misfit(message)


def _of_flow(read: Callable[[Value], Any]) -> Callable[[str, Value], None]:
    """Return the check of a record of a flow: its topology and its flow are in its key as well."""

    def check(key: str, value: Value) -> None:
        known = fields(value, {"topology": WORD, "flow": WORD})
        read(value)
        if key.split("/")[1:3] != [known["topology"], known["flow"]]:
            message = "a record of a flow under the key of another one"
            raise Misfit(message)

    return check


def _rebuilt(key: str, value: Value) -> None:
    known = rebuilt(value)
    if key != f"rebuild/{known['topology']}/{known['topic']}":
        message = "a record of a topic under the key of another one"
        raise Misfit(message)


_KINDS: dict[str, Callable[[str, Value], Any]] = {
    "topic": _topic,
    "acl": lambda _, value: OwnedBinding.from_json(value),
    "declaration": lambda _, value: DeclarationHistory.from_json(value),
    "failover": _of_flow(failed_over),
    "failover-cut": _of_flow(cut),
    "failover-moved": _of_flow(placed),
    "failover-returned": _of_flow(placed),
    "lock": lambda _, value: fields(value, {"by": TEXT, "since": TIME, "process": text(1_000)}),
    BEAT: lambda _, value: fields(value, {"count": COUNT}),
    "probe": lambda _, value: Capabilities.from_json(value),
    "rebuild": _rebuilt,
    "connector": _connector,
}
