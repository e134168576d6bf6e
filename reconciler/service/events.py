"""Server-sent events: how flows do after each reading, and what changed of them.

event: flows      data: what GET /api/v1/flows returns
event: change     data: one of what GET /api/v1/changes returns; its id is the number
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from reconciler.model.base.errors import Problem
from reconciler.model.base.text import json_text
from reconciler.service.api import flows_json
from reconciler.service.context import Context, Reader, ServiceContext
from reconciler.service.failures import RequestFailed, answers

_TICK = 0.25
_KEEP_ALIVE = 15.0
_MOST_STREAMS = 100
_LONGEST_ID = 16

router = APIRouter(prefix="/api/v1", responses=answers(401, 422, 429))
_streams = threading.Semaphore(_MOST_STREAMS)


@router.get(
    "/events", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {"schema": {}}}}}
)
async def get_events(
    context: Context,
    _: Reader,
    last: Annotated[
        str,
        Header(alias="Last-Event-ID", max_length=_LONGEST_ID, description="the id of the last change that was read"),
    ] = "",
) -> StreamingResponse:
    """Send events until the client leaves: `flows` after each reading, `change` for each change of a flow."""
    if not _streams.acquire(blocking=False):
        problem = Problem("AB737", "events", f"{_MOST_STREAMS} streams are open", "close some, or try again later")
        raise RequestFailed(HTTPStatus.TOO_MANY_REQUESTS, problem, {"Retry-After": "5"})
    after = int(last) if last.isascii() and last.isdecimal() else 0
    return _Events(_events(context, after), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


class _Events(StreamingResponse):
    """Gives its place among the streams back when it ends, however that is."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            _streams.release()


async def _events(context: ServiceContext, after: int) -> AsyncIterator[str]:
    seen: object = None
    spoke = time.monotonic()
    yield "retry: 2000\n\n"
    while not context.stopping.is_set():
        for change in context.history.changes(after):
            after = change.number
            yield _event("change", json_text(asdict(change)), str(after))
        reading = context.exporter.reading
        if reading is not seen and reading is not None:
            seen, spoke = reading, time.monotonic()
            yield _event("flows", context.body("flows", lambda: flows_json(context)).decode())
        elif time.monotonic() > spoke + _KEEP_ALIVE:
            spoke = time.monotonic()
            yield ": nothing new\n\n"
        await asyncio.sleep(_TICK)


def _event(kind: str, data: str, number: str = "") -> str:
    # JSON has no line breaks of its own: names from clusters cannot end an event.
    return f"event: {kind}\n{f'id: {number}{chr(10)}' if number else ''}data: {data}\n\n"
