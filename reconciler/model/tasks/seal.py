"""The seal on messages of a run to its own tasks: a key that both have, and that no topic ever holds.

The control topic carries these messages, and other principals may write there, too. The key is made with a flow
specification and travels with it through Spark alone, so a message that bears the seal comes from the driver of the
run.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_KEY_BYTES = 32
_MAC, _SERIAL = "mac", "serial"


def new_key() -> str:
    """Return a new random key: 256 bits, as hexadecimal digits."""
    return secrets.token_hex(_KEY_BYTES)


@dataclass(frozen=True)
class Seal:
    """The seal of one flow in one run.

    Attributes:
        topology: name of the flow's topology.
        run: the run.
        flow: name of the flow.
        key: as `new_key` returns it; without one nothing can be sealed, and nothing bears the seal.
    """

    topology: str
    run: str
    flow: str
    key: str = field(repr=False)

    def sealed(self, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a value with a serial number and the code that authenticates it.

        Args:
            key: under which it will be stored: the code covers it, so a message cannot be moved to another key.
            value: JSON types.

        Raises:
            ValueError: this seal has no key.
        """
        if not self.key:
            message = f"run {self.run} has no key: messages to its tasks cannot be sealed"
            raise ValueError(message)
        numbered = {**value, _SERIAL: time.time_ns()}
        return {**numbered, _MAC: self._mac(key, numbered)}

    def serial(self, key: str, value: Mapping[str, Any]) -> int | None:
        """Return the serial number of a value that bears this seal; None where it does not.

        Numbers grow with each message of a driver, so one that is written again by others is known by its number.

        Args:
            key: under which the value was found.
            value: what was found.
        """
        mac, number = value.get(_MAC), value.get(_SERIAL)
        if not self.key or not isinstance(mac, str) or type(number) is not int:
            return None
        rest = {name: said for name, said in value.items() if name != _MAC}
        try:
            expected = self._mac(key, rest)
        except (ValueError, RecursionError):
            # Numbers and nesting that JSON cannot hold were not sealed.
            return None
        # Bytes: of text `compare_digest` takes ASCII alone.
        return number if hmac.compare_digest(expected.encode(), mac.encode(errors="replace")) else None

    def _mac(self, key: str, value: Mapping[str, Any]) -> str:
        """Return HMAC-SHA-256 (RFC 2104) over a key and a value, as hexadecimal digits."""
        text = json.dumps([key, value], sort_keys=True, separators=(",", ":"))
        return hmac.new(bytes.fromhex(self.key), text.encode(), hashlib.sha256).hexdigest()
