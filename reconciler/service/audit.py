"""The audit log: actions and their callers, one JSON object in each line, those that were refused included."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.text import json_text


class AuditLog:
    """Appends to a file; a line is written whole, so that several processes may share one.

    Args:
        path: of the file; None for no log.

    Raises:
        EnvironmentFault: AB734, it cannot be written to.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            except OSError as error:
                raise _fault(path, error) from None

    def write(self, caller: str, action: str, result: str, about: Mapping[str, Any]) -> None:
        """Write one line.

        Args:
            caller: its name.
            action: what was asked for, such as `pause`.
            result: what became of it, such as `done` or a code.
            about: of what.

        Raises:
            EnvironmentFault: AB734, it cannot be written; what is not on record must not be done.
        """
        if self._file is None or self._path is None:
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json_text({"time": stamp, "caller": caller, "action": action, "result": result, **about})
        try:
            with self._lock:
                os.write(self._file, f"{line}\n".encode())
        except OSError as error:
            raise _fault(self._path, error) from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _fault(path: Path, error: OSError) -> EnvironmentFault:
    message = f"the audit log cannot be written: {error.strerror or error}"
    return EnvironmentFault(Problem("AB734", str(path), message, "make room or mend the path; nothing was changed"))
