"""`/admin/loggers`: the levels of the rooms' logs, as Kafka Connect has those of its classes (KIP-495)."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query

from reconciler.service.connect.hosting import ConnectRefused
from reconciler.service.connect.routes import Body, Operator, Reader

_ROOT = "reconciler"
_CONNECT = "org.apache.kafka"
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_OURS = {
    "TRACE": logging.DEBUG,
    "WARN": logging.WARNING,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 1,
    **{name: getattr(logging, name) for name in ("DEBUG", "INFO", "ERROR")},
}
_NAMES = {logging.DEBUG: "DEBUG", logging.INFO: "INFO", logging.WARNING: "WARN", logging.ERROR: "ERROR"}
# By logger, when its level was changed here, in milliseconds since 1970.
_changed: dict[str, int] = {}

router = APIRouter(include_in_schema=False)


@router.get("/admin/loggers")
def get_loggers(_: Reader) -> dict[str, Any]:
    """Return the levels of all rooms."""
    return {name: _level(name) for name in _names()}


@router.get("/admin/loggers/{name}")
def get_logger(name: str, _: Reader) -> dict[str, Any]:
    """Return the level of a room, or of all as `root`."""
    if name != "root" and name not in _names():
        raise ConnectRefused(HTTPStatus.NOT_FOUND, f"Logger {name} not found.")
    return _level(_ROOT if name == "root" else name)


@router.put("/admin/loggers/{name}")
def put_logger(name: str, _: Operator, body: Body, scope: Annotated[str, Query()] = "worker") -> Any:
    """Set the level of a room, and of what is in it, of this worker."""
    level = str(body.get("level", "")) if isinstance(body, dict) else ""
    if level.upper() not in _LEVELS:
        raise ConnectRefused(HTTPStatus.NOT_FOUND, f"invalid log level '{level[:100]}'.")
    if scope == "cluster":
        message = "levels are those of one worker here: set them at each"
        raise ConnectRefused(HTTPStatus.BAD_REQUEST, message)
    # Tools that know Connect's classes mean all of it.
    begins = _ROOT if name == "root" or name.startswith(_CONNECT) else name
    if begins.partition(".")[0] != _ROOT:
        raise ConnectRefused(HTTPStatus.NOT_FOUND, f"Logger {name} not found.")
    found = sorted({begins, *(one for one in _names() if one.startswith(f"{begins}."))})
    for one in found:
        logging.getLogger(one).setLevel(_OURS[level.upper()])
        _changed[one] = int(time.time() * 1_000)
    return found


def _names() -> list[str]:
    there = (name for name in list(logging.root.manager.loggerDict) if name.partition(".")[0] == _ROOT)
    return sorted(there)


def _level(name: str) -> dict[str, Any]:
    number = logging.getLogger(name).getEffectiveLevel()
    return {"level": _NAMES.get(number, "OFF"), "last_modified": _changed.get(name)}
