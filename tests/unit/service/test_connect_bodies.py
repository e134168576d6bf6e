"""Hostile bodies and paths: each is answered with an error of its sender's, and none with a trace."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from fastapi import FastAPI

from reconciler.convert.settings import Setting, Settings
from reconciler.model.recorded.connector import ConnectorRecord, ConnectorState
from reconciler.service.access import Caller, Tokens
from reconciler.service.audit import AuditLog
from reconciler.service.connect import routes
from reconciler.service.connect.hosting import ConnectorView, TaskView
from reconciler.service.connect.validation import errors_of
from reconciler.service.context import AccessRules
from reconciler.service.failures import install
from tests.support.converting import connector

pytestmark = pytest.mark.slow

WORKER = Settings([Setting("bootstrap.servers", "w.example:9092", "worker.properties:1")])
GOOD = connector("Source", topics="orders") | {"tasks.max": "2", "name": "orders"}
WORDS = ["", "\0", "é" * 300, "${", "${env:X}", "-1", "1e99", "true", "[", "orders,orders", "(?=x)", "a\nb", "\u202e"]


class Kept:
    """Keeps connectors in memory, and validates them as a worker does."""

    worker_id = "here:8083"

    def __init__(self) -> None:
        self.kept: dict[str, ConnectorRecord] = {}

    def cluster_id(self) -> str:
        return "id"

    def records(self) -> Mapping[str, ConnectorRecord]:
        return self.kept

    def view(self, name: str) -> ConnectorView | None:
        return ConnectorView("RUNNING", [TaskView(0, "RUNNING", "run")])

    def topics(self, name: str) -> Sequence[str]:
        return ["b", "a"]

    def offsets(self, name: str) -> Sequence[Mapping[str, Any]]:
        return []

    def errors(self, record: ConnectorRecord) -> Mapping[str, Sequence[str]]:
        return errors_of(record, [one for one in self.kept.values() if one.name != record.name], WORKER, "workers")

    def put(self, record: ConnectorRecord, caller: Caller) -> None:
        self.kept[record.name] = record

    def remove(self, name: str, caller: Caller) -> None:
        del self.kept[name]

    def set_state(self, record: ConnectorRecord, state: ConnectorState, caller: Caller) -> None:
        self.kept[record.name] = ConnectorRecord(record.name, record.config, state)

    def restart(self, name: str, caller: Caller, *, parked_only: bool) -> None:
        """Nothing runs."""

    def alter_offsets(self, name: str, offsets: Sequence[Any] | None, caller: Caller) -> None:
        """Nothing is kept of them."""


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    app.state.access = AccessRules(Tokens((), Caller("local", "operate")), AuditLog(None))
    app.state.routers = [routes.router]
    install(app)
    routes.install(app, Kept())
    return app


def asked(app: FastAPI, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> tuple[int, Any]:
    """Return the status and the body of an answer, without a connection."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": place,
        "raw_path": place.encode(),
        "query_string": query.encode(),
        "headers": [(b"content-type", kind.encode()), (b"host", b"127.0.0.1")],
        "scheme": "http",
        "server": ("127.0.0.1", 8083),
        "client": ("127.0.0.1", 1),
        "root_path": "",
        "http_version": "1.1",
    }
    asyncio.run(app(scope, receive, send))
    text = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(text) if text else None


def mutated(chance: random.Random) -> bytes:
    """Return the body of a request, changed somewhere."""
    config: dict[str, Any] = dict(GOOD)
    for _ in range(chance.randint(1, 3)):
        key = chance.choice([*config, "surprise", "", "x" * 500])
        config[key] = chance.choice([*WORDS, None, 1, -1.5, True, [], {}, [1], {"a": "b"}, 10**40])
        if chance.random() < 0.2 and len(config) > 1:
            del config[chance.choice(list(config))]
    body: Any = chance.choice([config, {"name": "orders", "config": config}, [config], config.get("topics", 1)])
    data = json.dumps(body).encode()
    if chance.random() < 0.3:
        at = chance.randrange(len(data))
        data = data[:at] + bytes([chance.randrange(256)]) * chance.randint(0, 3) + data[at + chance.randint(0, 3) :]
    return data


def test_no_body_ends_in_a_trace(app: FastAPI) -> None:
    chance = random.Random(38)
    lines = [
        ("PUT", "/connectors/orders/config"),
        ("PATCH", "/connectors/orders/config"),
        ("POST", "/connectors"),
        ("PUT", "/connector-plugins/MirrorSourceConnector/config/validate"),
        ("PATCH", "/connectors/orders/offsets"),
    ]
    seen = set()
    for number in range(1_000):
        method, path = lines[number % len(lines)]
        status, body = asked(app, method, path, mutated(chance))
        assert status < 500, (method, path, body)
        if status >= 400:
            assert body["error_code"] == status
            assert body["message"]
        seen.add(status)
    assert seen >= {200, 400}


@pytest.mark.parametrize("task", ["-1", "٣", "1 ", "+1", "1_0", "9" * 400, "x"])
def test_the_number_of_a_task_is_a_number(app: FastAPI, task: str) -> None:
    assert asked(app, "PUT", "/connectors/orders/config", json.dumps(GOOD).encode())[0] == 201
    assert asked(app, "GET", "/connectors/orders/tasks/0/status")[0] == 200
    status, body = asked(app, "GET", f"/connectors/orders/tasks/{task}/status")
    assert (status, body["error_code"]) == (404, 404)


def test_words_of_json_are_texts_in_what_is_kept(app: FastAPI) -> None:
    body = {**GOOD, "tasks.max": 3, "sync.topic.acls.enabled": False}
    status, found = asked(app, "PUT", "/connectors/orders/config", json.dumps(body).encode())
    assert (status, found["config"]["tasks.max"], found["config"]["sync.topic.acls.enabled"]) == (201, "3", "false")


def test_what_is_no_json_is_of_another_type(app: FastAPI) -> None:
    status, body = asked(app, "PUT", "/connectors/orders/config", json.dumps(GOOD).encode(), "text/plain")
    assert (status, body) == (415, {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"})
