"""Values as anybody may write them: random JSON, and records of ours with something changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
POISON: tuple[bytes, ...] = (
    DEEP,
    b"not json at all",
    b"\xff\xfe\x00{}",
    b'["a", "list"]',
    b'{"kind": "topic", "command": "shares", "of": 1, "runs": 1}',
    b'{"time": 1e999, "since": NaN, "kind": "failover"}',
    b'{"tasks": ' + b"9" * 5_000 + b"}",
    b'{"kind": "\\ud800", "flow": "\\u0000", "pages": 100000000, "tasks": 1000000000}',
)
"""Eight kinds of records that nobody of ours writes."""

_NUMBERS = st.sampled_from(
    [0, -1, 2**31, 2**63 - 1, 2**63, 10**30, -(10**30), 1e300, -1e300, 1e17, 0.5, 253_402_300_800]
)
_TEXTS = st.text(max_size=20) | st.sampled_from(["", "\0", "\ud800", "x" * 300, "9" * 5_000, "../../x", "a/b/c", "٣"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | _NUMBERS | _TEXTS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4), max_leaves=12
)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@st.composite
def changed(draw: st.DrawFn, valid: Mapping[str, Any]) -> Any:
    """Return a record of ours after some changes: fields that are gone, of another type, or out of all bounds."""
    value: Any = copy.deepcopy(dict(valid))
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = value
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(holder[key], dict | list) and holder[key] and draw(st.booleans()):
                holder = holder[key]
                continue
            how = draw(st.sampled_from(["drop", "replace", "replace", "more"]))
            if how == "drop":
                del holder[key]
            elif how == "replace":
                holder[key] = draw(JSON | st.just(nested(200)))
            elif isinstance(holder, dict):
                holder[draw(_TEXTS)] = draw(JSON)
            else:
                holder.append(draw(JSON))
            break
    return value


def stored(value: Any) -> bytes:
    """Return a value as a program would store it that knows no bounds."""
    return json.dumps(value).encode()
