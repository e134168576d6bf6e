"""What a real Kafka Connect 4.3 answered to a row of requests, and how ours answers the same.

`tests/data/connect/answers.json` has the requests in their order, the status of each answer, and the shape of its body:
each value stands as the name of its type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_FILE = Path(__file__).parents[2] / "data" / "connect" / "answers.json"
_REFUSED, _FAULT = 400, 500
_BIG = 3_000_000


class Difference(NamedTuple):
    """Where ours answers otherwise.

    Attributes:
        status: of our answer.
        why: it does.
    """

    status: int
    why: str


DIFFERENCES: Mapping[int, Difference] = {
    47: Difference(403, "the topics are those that are copied now; Connect answers so where resetting is not allowed"),
    59: Difference(400, "a Mirus source is taken, and this one lacks brokers"),
    62: Difference(201, "KIP-382's MirrorSinkConnector is taken"),
    82: Difference(204, "KIP-382 restarts by PUT"),
    94: Difference(400, "a copy with its original's offsets has no other position than its end"),
    99: Difference(400, "likewise"),
    119: Difference(405, "nothing asks for it"),
    129: Difference(404, "a name is a name"),
    130: Difference(404, "likewise"),
    131: Difference(404, "likewise"),
    132: Difference(404, "likewise"),
    137: Difference(413, "the body is too large, which is no fault of the service"),
    140: Difference(400, "levels are those of one worker"),
}
# Where the other has failed for what KIP-382 and the guides print, ours copies.
_RUNS = {64, 67}
# Two clusters are not called the same.
_OF_OTHER_CLUSTERS = ("far", "kip382")
# What depends on the moment.
_OF_THE_MOMENT = {26, 142}
_WITH_TASKS = {27, 35, 37, 43, 70, 83, 84, 85, 146, 147, 151}
"""What has tasks, which report once Spark has started."""
Answer = Callable[[str, str, bytes | None, Mapping[str, str]], tuple[int, str]]


class Recorded(NamedTuple):
    """One request with its answer.

    Attributes:
        number: as it stands in the file.
        what: it is about.
        method: of the request.
        path: likewise, with its query.
        body: likewise.
        headers: likewise.
        status: of the answer.
        shape: of its body; None for an error, or none.
        state: of the connector in it; empty where it has none.
        needs_tasks: whether tasks must report before.
    """

    number: int
    what: str
    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]
    status: int
    shape: Any
    state: str
    needs_tasks: bool

    def __str__(self) -> str:
        return f"{self.number} {self.what}: {self.method} {self.path}"


def recorded(source: str, target: str) -> list[Recorded]:
    """Return the requests, with the brokers of two clusters in them."""
    return [_read(one, source, target) for one in json.loads(_FILE.read_text(encoding="utf-8"))]


def _read(one: dict[str, Any], source: str, target: str) -> Recorded:
    number = one["number"]
    body = one.get("raw")
    if "body" in one:
        text = json.dumps(_apart(one["body"]))
        body = text.replace("{source}", source).replace("{target}", target).replace("{big}", "x" * _BIG)
    headers = {}
    if body is not None or one["method"] in ("PUT", "POST", "PATCH"):
        headers = {"Content-Type": one.get("content-type", "application/json")}
    expected = DIFFERENCES[number].status if number in DIFFERENCES else one["status"]
    # A malformed request is no fault of the service.
    status = 400 if expected == _FAULT else expected
    shape = None if number in DIFFERENCES or number in _RUNS else one.get("json")
    state = "" if number in _RUNS else one.get("state", "")
    data = None if body is None else body.encode()
    needs = number in _WITH_TASKS or number in _RUNS
    return Recorded(number, one["what"], one["method"], one["path"], data, headers, status, shape, state, needs)


def _apart(body: Any) -> Any:
    """Have connectors of other names copy other topics: here none is copied twice to one place."""
    if not isinstance(body, dict):
        return body
    config = body.get("config", body)
    name = body.get("name")
    if isinstance(config, dict) and "topics" in config and name not in (None, "us-west-source"):
        changed = {**config, "topics": f"topics-of-{name}"}
        if name in _OF_OTHER_CLUSTERS:
            changed["source.cluster.alias"] = name
        return {**body, "config": changed} if "config" in body else changed
    return body


def is_of_the_moment(one: Recorded) -> bool:
    return one.number in _OF_THE_MOMENT


def wrong_with(one: Recorded, status: int, body: str) -> str:
    """Return how an answer differs from the recorded one; empty where it does not."""
    if status != one.status:
        return f"{one}: {status} in place of {one.status}: {body[:300]}"
    if one.method in ("HEAD", "OPTIONS") or not body:
        return ""
    found = json.loads(body)
    if status >= _REFUSED:
        is_error = {"error_code", "message"} <= found.keys() and found["error_code"] == status
        return "" if is_error else f"{one}: {body[:300]}"
    if one.state and found["connector"]["state"] != one.state:
        return f"{one}: {found['connector']['state']} in place of {one.state}"
    where = "" if one.shape is None else misfit(one.shape, found, needs=one.needs_tasks)
    return f"{one}: {where}" if where else ""


def misfit(expected: Any, found: Any, place: str = "", *, needs: bool = False) -> str:
    """Return where an answer lacks what the recorded one has, or has it otherwise; empty where it does not.

    Args:
        expected: the recorded shape.
        found: the answer.
        place: where in the answer it is.
        needs: whether lists that had something must have something.
    """
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return f"{place}: {found!r} is no object"
        if "*" in expected:
            expected = dict.fromkeys(found, expected["*"])
        # Configurations have the keys that were given.
        keys = () if place.endswith(".config") else expected
        if missing := [key for key in keys if key not in found]:
            return f"{place}: {missing} is missing"
        inner = (misfit(expected[key], found[key], f"{place}.{key}", needs=needs) for key in keys)
        return next(filter(None, inner), "")
    if isinstance(expected, list):
        if not isinstance(found, list) or (needs and expected and not found):
            return f"{place}: {found!r} in place of a list"
        return misfit(expected[0], found[0], f"{place}[0]", needs=needs) if expected and found else ""
    kinds = {"text": str, "number": int | float, "boolean": bool}
    # What was null there may be known here.
    return "" if expected == "null" or found is None or isinstance(found, kinds[expected]) else f"{place}: {found!r}"
