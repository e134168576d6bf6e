"""The service's paths: what they answer, whom they refuse, and what they leave out; no broker is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from reconciler.metrics import exporter as exporters
from reconciler.metrics.exporter import Exporter
from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.groups import LastLook, SyncedGroup
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.pauses import PauseScope
from reconciler.operate.flows.steering import Steered
from reconciler.operate.targets import InvalidArgument
from reconciler.operate.watching import StatusView
from reconciler.service import steering
from reconciler.service.access import Caller, Tokens
from reconciler.service.app import application
from reconciler.service.audit import AuditLog
from reconciler.service.context import ServiceContext
from reconciler.service.history import History
from tests.support.replicator.words import NOW, PARKED, TOO_LARGE, partition, said, with_groups
from tests.unit.metrics.test_server import FixedLookout

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"
TOPOLOGY = Topology(
    "shop", {alias: Cluster(alias, (f"{alias}:9092",)) for alias in ("east", "west", "north")}, (with_groups(),)
)
READ, OPERATE = "r" * 20, "o" * 20
TOKENS = Tokens([(READ, Caller("eyes", "read")), (OPERATE, Caller("hands", "operate"))], Caller("local", "read"))
AS_OPERATOR = {"Authorization": f"Bearer {OPERATE}"}

Ask = Callable[..., TestClient]


def seen(now: float = NOW) -> StatusView:
    hostile = replace(partition(2, 1, 1), topic=HOSTILE, remote=HOSTILE)
    status = said(partition(0, 5, 9), partition(1, 4, 4, PARKED, TOO_LARGE), hostile)
    last = LastLook(now - 5, 2, (SyncedGroup("stuck", 0, "AB621"), SyncedGroup("<b>app</b>", now - 5)))
    return StatusView(now, TOPOLOGY.flows, (status,), {}, last_looks={"east-west": last})


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Ask]:
    monkeypatch.setattr("reconciler.metrics.exporter.time.time", lambda: NOW)
    opened: list[ServiceContext] = []

    def make(
        view: StatusView | None = None, role: str = "", is_local: bool = True, host: str = "127.0.0.1"
    ) -> TestClient:
        monkeypatch.setattr(exporters, "status_lookout", lambda *_: FixedLookout(view or seen()))
        history = History()
        exporter = Exporter(TOPOLOGY, on_look=history.take)
        tokens = Tokens((), Caller("local", "operate" if role == "operate" else "read")) if role else TOKENS
        context = ServiceContext(TOPOLOGY, exporter, tokens, AuditLog(tmp_path / "audit"), levels.append, history)
        opened.append(context)
        exporter.look()
        app = application(context, is_local)
        return TestClient(app, base_url=f"http://{host}", raise_server_exceptions=False)

    levels: list[str] = []
    make.levels = levels  # type: ignore[attr-defined]
    yield make
    for context in opened:
        context.exporter.close()
        context.audit.close()


def audited(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]


OURS = ["caller", "topology", "status", "flows", "lag", "changes", "graph.svg"]
OF_FLOW = ["", "/topics", "/partitions", "/groups", "/readiness", "/history"]
KIP = [
    "/clusters", "/status", "/metrics", "/cluster/west/status", "/cluster/west/metrics", "/from:east/to:west/status",
    "/from:east/to:west/metrics", "/from:east/to:west/connectors",
    "/from:east/to:west/connectors/MirrorSourceConnector/config",
    "/from:east/to:west/connectors/MirrorCheckpointConnector/status",
]  # fmt: skip
PATHS = [*(f"/api/v1/{one}" for one in OURS), *(f"/api/v1/flows/east-west{one}" for one in OF_FLOW), *KIP]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_answers_with_a_token_and_to_nobody_without(ask: Ask, path: str) -> None:
    client = ask()
    assert client.get(path, headers={"Authorization": f"Bearer {READ}"}).status_code == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {READ}"}, {"Authorization": ""}):
        refused = client.get(path, headers=headers)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="anabranch"')
        assert refused.json()["problems"][0]["code"] == "AB733"
        assert READ not in refused.text and OPERATE not in refused.text


@pytest.mark.parametrize(
    "path", ["/", "/page/app.js", "/page/picture.css", "/page/vendor/uplot.js", "/livez", "/readyz"]
)
def test_what_holds_no_data_needs_no_token(ask: Ask, path: str) -> None:
    found = ask().get(path)
    assert found.status_code == 200
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self'" in found.headers["content-security-policy"]


def test_figures_are_those_of_status_and_lag(ask: Ask) -> None:
    client = ask(role="read")
    (flow,) = client.get("/api/v1/status").json()["flows"]
    assert (flow["lag"], flow["parked"], len(flow["partitions"])) == (4, 1, 3)
    assert "partitions" not in client.get("/api/v1/flows").json()["flows"][0]
    lag = client.get("/api/v1/lag?limit=1").json()
    assert (lag["count"], [one["lag"] for one in lag["partitions"]]) == (3, [4])
    assert client.get("/api/v1/lag?limit=1&offset=3").json()["partitions"] == []
    assert client.get("/api/v1/flows/east-west/partitions?topic=orders").json()["count"] == 2
    topics = client.get("/api/v1/flows/east-west/topics").json()
    assert [(one["topic"], one["partitions"], one["parked"]) for one in topics] == [("orders", 2, 1), (HOSTILE, 1, 0)]
    (change,) = client.get("/api/v1/changes").json()
    assert (change["flow"], change["state"], change["was"]) == ("east-west", "degraded", None)
    assert client.get("/api/v1/flows/east-west/history").json()["lag"] == [4]


def test_readiness_names_what_stays_behind_and_groups_that_do_not_move(ask: Ask) -> None:
    found = ask(role="read").get("/api/v1/flows/east-west/readiness").json()
    assert (found["ready"], found["recordsBehind"]) == (False, 4)
    assert found["groups"] == {"exact": 1, "all": 3, "refused": [{"group": "stuck", "code": "AB621"}]}
    assert "1 of 3 partitions are parked or paused" in found["reasons"]


def test_a_flow_that_is_caught_up_with_all_groups_is_ready(ask: Ask) -> None:
    last = LastLook(NOW - 5, 1, (SyncedGroup("app", NOW - 5),))
    view = StatusView(NOW, TOPOLOGY.flows, (said(partition(0, 9, 9)),), {}, last_looks={"east-west": last})
    found = ask(view, role="read").get("/api/v1/flows/east-west/readiness").json()
    assert (found["ready"], found["reasons"], found["recordsBehind"]) == (True, [], 0)
    assert found["groups"] == {"exact": 1, "all": 1, "refused": []}


@pytest.mark.parametrize(
    "path",
    ["/api/v1/flows/x", "/api/v1/flows/x/history", "/api/v1/flows/x/groups", "/cluster/x/status", "/cluster/x/metrics",
     "/from:west/to:east/status", "/from:x/to:west/connectors", "/from:east/to:west/connectors/X/status", "/x"],
)  # fmt: skip
def test_unknown_names_are_404_in_one_shape(ask: Ask, path: str) -> None:
    found = ask(role="read").get(path)
    body = found.json()
    assert (found.status_code, body["error_code"]) == (404, 404)
    assert body["message"] and body["problems"][0]["code"] in ("AB735", "AB736")


def test_a_target_that_is_away_is_503_and_not_ready(ask: Ask) -> None:
    away = Unreachable(Problem("AB310", "cluster west", "does not answer", "check that it runs"))
    client = ask(StatusView(NOW, (), (), {"west": away}), role="read")
    assert client.get("/readyz").status_code == 503
    found = client.get("/api/v1/flows/east-west")
    assert (found.status_code, found.json()["problems"][0]["code"]) == (503, "AB310")
    assert client.get("/status").json()["unreachable"] == ["west"]


def test_a_reading_that_is_old_counts_no_longer(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    client = ask(role="read")
    monkeypatch.setattr("reconciler.metrics.exporter.time.time", lambda: NOW + 31)
    found = client.get("/api/v1/flows")
    assert (found.status_code, found.json()["problems"][0]["code"]) == (503, "AB325")
    assert client.get("/livez").status_code == 200


def test_metrics_of_a_route_are_of_that_route_alone(ask: Ask) -> None:
    client = ask(role="read")
    one = client.get("/from:east/to:west/metrics").text
    assert 'flow="east-west"' in one and "anabranch_build_info" not in one
    assert 'target="west"' not in client.get("/cluster/north/metrics").text
    assert client.get("/metrics", headers={"Accept": "application/openmetrics-text"}).text.endswith("# EOF\n")


def test_a_reader_changes_nothing_and_that_is_on_record(ask: Ask, tmp_path: Path) -> None:
    client = ask()
    for method, path in (
        ("POST", "/api/v1/flows/east-west/pause"),
        ("PUT", "/from:east/to:west/connectors/MirrorSourceConnector/pause"),
        ("PUT", "/api/v1/log-level"),
    ):
        found = client.request(method, path, headers={"Authorization": f"Bearer {READ}"}, json={"rooms": ""})
        assert (found.status_code, found.json()["problems"][0]["code"]) == (403, "AB733")
    assert [(one["caller"], one["action"]) for one in audited(tmp_path)] == [("eyes", "refused")] * 3


def test_an_operator_pauses_and_is_on_record(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[object, ...]] = []

    def steered(topology: Topology, flow: str, topics: list[str], _tell: object) -> list[Steered]:
        told.append((topology.name, flow, tuple(topics)))
        if "nothing" in topics:
            message = "no topic nothing in east-west"
            raise InvalidArgument(message, "topic")
        return [Steered(TOPOLOGY.flows[0], (PauseScope(flow, "orders", 1),), 2, 0)]

    monkeypatch.setattr(steering, "steered", steered)
    client = ask()
    found = client.post("/api/v1/flows/east-west/pause", headers=AS_OPERATOR, json={"topics": ["orders/1"]})
    scope = {"flow": "east-west", "topic": "orders", "partition": 1}
    assert found.json() == {"flows": [{"flow": "east-west", "scopes": [scope], "tasks": 2, "unconfirmed": 0}]}
    assert client.post("/api/v1/flows/east-west/resume", headers=AS_OPERATOR).status_code == 200
    wrong = client.post("/api/v1/flows/east-west/restart", headers=AS_OPERATOR, json={"topics": ["nothing"]})
    assert wrong.status_code == 404
    assert told == [("shop", "east-west", one) for one in (("orders/1",), (), ("nothing",))]
    record = [(one["caller"], one["action"], one["result"]) for one in audited(tmp_path)]
    assert record == [
        ("hands", "pause", "begins"), ("hands", "pause", "done"), ("hands", "resume", "begins"),
        ("hands", "resume", "done"), ("hands", "restart", "begins"), ("hands", "restart", "AB735"),
    ]  # fmt: skip
    route = "/from:east/to:west/connectors"
    assert client.put(f"{route}/MirrorSourceConnector/pause", headers=AS_OPERATOR).status_code == 202
    assert client.put(f"{route}/MirrorCheckpointConnector/pause", headers=AS_OPERATOR).status_code == 409


def test_configuration_is_read_and_not_changed_where_files_alone_are_to_count(ask: Ask) -> None:
    client = ask(role="operate")
    route = "/from:east/to:west/connectors/MirrorSourceConnector"
    assert client.get(f"{route}/config").json()["source.cluster.alias"] == "east"
    refused = client.put(f"{route}/config", json={"topics": "a"})
    assert (refused.status_code, "--no-overrides" in refused.json()["message"]) == (409, True)
    assert client.put(f"{route}/config", json={"topics": "a", "foo": 3}).status_code == 400
    assert client.put(f"{route}/config", json={"topics": ["a"]}).status_code == 422
    found = client.delete(route)
    assert (found.status_code, found.json()["problems"][0]["code"]) == (409, "AB738")


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 422),
        (b'{"topics": "orders"}', "application/json", 422),
        (b'{"topics": [], "secret": "hunter2"}', "application/json", 422),
        (b'{"topics": [""]}', "application/json", 422),
        (b"[" * 100_000, "application/json", 400),
        (b'{"topics": []}', "text/plain", 422),
        (b" " * 10_000_000, "application/json", 413),
    ],
    ids=["broken", "no-list", "more", "empty", "nested", "text", "large"],
)
def test_bodies_that_are_wrong_are_refused_without_a_trace(ask: Ask, body: bytes, kind: str, status: int) -> None:
    client = ask(role="operate")
    found = client.post("/api/v1/flows/east-west/pause", content=body, headers={"Content-Type": kind})
    assert found.status_code == status
    assert found.json()["error_code"] == status
    assert "hunter2" not in found.text and "Traceback" not in found.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1"])
def test_names_of_other_machines_are_refused_on_loopback(ask: Ask, host: str) -> None:
    found = ask(role="operate").get("/api/v1/flows", headers={"Host": host})
    assert (found.status_code, found.json()["problems"][0]["where"]) == (403, "Host")


@pytest.mark.parametrize("host", ["localhost", "localhost:8083", "127.0.0.1:1", "[::1]:8083"])
def test_names_of_this_machine_are_taken(ask: Ask, host: str) -> None:
    assert ask(role="read").get("/api/v1/flows", headers={"Host": host}).status_code == 200


def test_pages_of_other_sites_change_nothing(ask: Ask) -> None:
    client = ask(role="operate")
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://[::1"):
        found = client.put("/api/v1/log-level", headers={"Origin": origin}, json={"rooms": "wire"})
        assert (found.status_code, found.json()["problems"][0]["where"]) == (403, "Origin")
    own = client.put("/api/v1/log-level", headers={"Origin": "http://127.0.0.1"}, json={"rooms": "wire"})
    assert (own.status_code, ask.levels) == (200, ["wire"])  # type: ignore[attr-defined]


def test_a_fault_shows_no_trace(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        message = "password=hunter2"
        raise ValueError(message)

    client = ask(role="read")
    monkeypatch.setattr("reconciler.service.api.readiness", fail)
    found = client.get("/api/v1/flows/east-west/readiness")
    assert (found.status_code, found.json()["problems"][0]["code"]) == (500, "AB330")
    assert "hunter2" not in found.text and "ValueError" not in found.text


def test_wrong_methods_are_405(ask: Ask) -> None:
    client = ask(role="operate")
    for method, path in (("DELETE", "/api/v1/flows"), ("POST", "/clusters"), ("GET", "/api/v1/flows/east-west/pause")):
        found = client.request(method, path)
        assert found.status_code == 405 and found.headers["allow"]
        assert found.json()["error_code"] == 405
    config = client.options("/from:east/to:west/connectors/MirrorSourceConnector/config")
    assert (config.status_code, config.headers["allow"]) == (405, "GET, PUT")


def test_names_from_clusters_are_text_in_every_answer(ask: Ask) -> None:
    client = ask(role="read")
    for path in PATHS:
        found = client.get(path)
        assert not found.headers["content-type"].startswith("text/html")
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "\x1b" not in found.text or path.endswith("metrics")


def test_one_request_at_a_time_asks_the_clusters(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    client = ask(role="read")

    def plan(_topology: Topology) -> None:
        found = client.get("/api/v1/plan")
        assert (found.status_code, found.json()["problems"][0]["code"]) == (429, "AB737")
        raise Unreachable(Problem("AB310", "cluster east", "does not answer", ""))

    monkeypatch.setattr("reconciler.service.api.plan", plan)
    assert client.get("/api/v1/plan").status_code == 503
    # The place is free again.
    assert client.get("/api/v1/plan").status_code == 503
