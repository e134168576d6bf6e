"""Whether a target takes the settings that flows declare for their copies, asked without changing anything.

Kafka answers a request that is to be validated only as it would answer the request: unknown keys, types and ranges.
Each declared value is asked about once, however many copies would get it, on one topic: a copy that is yet to be made,
or one that is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from reconciler.model.declared.flow import Flow
from reconciler.model.planning.observed import RefusedValue
from reconciler.observe.connection import Connection
from reconciler.state.confluent.faults import in_words, is_refusal

_STAND_IN = "anabranch-asks"
"""Original whose copy is asked about where a flow takes no topic yet; it is never made."""

Value = tuple[str, str]


def refused_values(
    connection: Connection, flows: Collection[Flow], taken: Collection[str], ours: Collection[str]
) -> tuple[tuple[RefusedValue, ...], str]:
    """Return the declared values that a target does not take, and why this could not be asked; empty where it could.

    Args:
        connection: to the target.
        flows: that end there.
        taken: names of the copies of all their topics.
        ours: names of topics there that we have made.

    Raises:
        Unreachable: AB310, no answer.
    """
    there = connection.metadata.topics
    asked: dict[Value, Future[Any]] = {}
    for flow in flows:
        copies = [name for name in sorted(taken) if flow.policy.original(flow.source, name) is not None] or sorted(
            taken
        )
        missing = next((name for name in copies if name not in there), None)
        existing = next((name for name in copies if name in there and name in ours), None)
        for pair in flow.configs.set:
            if pair in asked:
                continue
            if missing is None and existing is not None:
                asked[pair] = connection.validate_setting(existing, *pair)
            else:
                new = NewTopic(missing or stand_in(flow), 1, 1, config=dict([pair]))
                asked[pair] = connection.validate_topic(new)
    refused, unasked = [], ""
    for (key, value), error in _answers(asked):
        if error.code() == KafkaError.INVALID_CONFIG:
            refused.append(RefusedValue(key, value, _reason(in_words(error), key, value)))
        elif is_refusal(error):
            unasked = in_words(error)
    return tuple(refused), unasked


def stand_in(flow: Flow) -> str:
    """Return the name of a copy that a flow could have, to be asked about where none is to be made."""
    return _STAND_IN if flow.nameless(_STAND_IN) is not None else flow.remote_topic(_STAND_IN)


def _answers(asked: dict[Value, Future[Any]]) -> Iterator[tuple[Value, KafkaError]]:
    for pair, future in asked.items():
        try:
            future.result()
        except KafkaException as error:
            yield pair, error.args[0]


def _reason(message: str, key: str, value: str) -> str:
    """Return the reason in a cluster's refusal of a value, without value and key, which stand beside it anyway."""
    return message.removeprefix(f"Invalid value {value} for configuration {key}: ")
