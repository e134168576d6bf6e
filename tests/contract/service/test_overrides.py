"""Flows changed through `serve`: in force at once, known to every process, shown by `drift`, ended by `apply`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Refused
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology
from reconciler.operate.flows import gate as gates
from reconciler.operate.flows.gate import FlowGate
from reconciler.operate.flows.overrides import Overriding
from reconciler.operate.reporter import SILENT
from reconciler.state.declarations import Declarations
from tests.support.clusters.kafka import create, declared
from tests.support.commands import one_flow
from tests.support.commands.command import anabranch
from tests.support.commands.one_flow import FLOW
from tests.support.commands.serving import Service, answer, ready, serving
from tests.support.waiting import eventually

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Shop:
    """A topology file of one flow, which is applied."""

    path: Path
    name: str
    topic: str
    ends: tuple[EmbeddedCluster, EmbeddedCluster]

    def write(self, tasks: int) -> None:
        one_flow.write(self.path, self.name, self.ends, self.topic, tasks)

    def apply(self) -> None:
        ended = anabranch("apply", self.path, "--yes")
        assert ended.code == 0, ended

    def drifted(self) -> list[tuple[str, str, str, str | None, str | None]]:
        found = json.loads(anabranch("drift", self.path, "-o", "json").stdout)
        return [tuple(one[key] for key in ("kind", "topic", "field", "desired", "found")) for one in found["drift"]]


@pytest.fixture
def shop(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Shop:
    create(source_cluster, topic_name, 2)
    create(source_cluster, f"{topic_name}-more", 1)
    name, ends = one_flow.name_of(topic_name), (source_cluster, target_cluster)
    made = Shop(tmp_path / "shop.yaml", name, topic_name, ends)
    made.write(1)
    made.apply()
    return made


@pytest.fixture
def gate(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlowGate]:
    monkeypatch.setattr(gates, "_LOOK_EVERY", 0.05)
    opened = FlowGate((shop.path,), None, waits=True, reporter=SILENT)
    yield opened
    opened.close()


def asked(service: Service, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Return status and body of a request."""
    data = None if body is None else json.dumps(body).encode()
    status, text = answer(f"{service.url}/connectors{path}", method, data, JSON)
    return status, json.loads(text) if text else None


def passing(gate: FlowGate) -> dict[str, int]:
    """Wait until the gate hears of something else that is in force; return the tasks of the flows that it lets pass."""
    eventually("it hears of it", gate._has_changed)
    return {flow.name: flow.tasks for flow in gate.passed().flows}


def test_a_change_is_in_force_at_once_and_until_the_next_apply(shop: Shop, gate: FlowGate) -> None:
    assert [flow.tasks for flow in gate.passed().flows] == [1]
    with serving(shop.path, "--operate") as service, serving(shop.path) as other:
        config = asked(ready(service), "GET", f"/{FLOW}/config")[1]
        status, made = asked(service, "PUT", f"/{FLOW}/config", config | {"tasks.max": "3"})
        assert (status, made["config"]["tasks.max"]) == (200, "3")
        assert asked(service, "GET", f"/{FLOW}/config")[1]["tasks.max"] == "3"
        assert passing(gate) == {FLOW: 3}
        eventually("another service goes by it", lambda: asked(other, "GET", f"/{FLOW}/config")[1]["tasks.max"] == "3")
        anew = FlowGate((shop.path,), None, waits=False, reporter=SILENT)
        try:
            assert [flow.tasks for flow in anew.passed().flows] == [3], "a process that begins goes by it, too"
        finally:
            anew.close()
        by_files = FlowGate((shop.path,), None, waits=False, reporter=SILENT, overrides=False)
        try:
            with pytest.raises(Refused, match="AB411"):
                by_files.passed()
        finally:
            by_files.close()
        assert shop.drifted() == [("changed", f"flow {FLOW}", "tasks", "1", "3")]
        assert "tasks 3 → 1" in " ".join(anabranch("plan", shop.path).stdout.split())
        assert asked(service, "PATCH", f"/{FLOW}/config", {"topics": f"{shop.topic}.*"})[0] == 200
        assert passing(gate) == {FLOW: 3}
        assert str(gate.topology.flows[0].topics.include[0]) == f"{shop.topic}.*"
    # The file says the same by now, and then it does not.
    shop.write(3)
    assert [one[2] for one in shop.drifted()] == ["topics.include", "topics.include"]
    shop.apply()
    assert shop.drifted() == []
    assert passing(gate) == {FLOW: 3}
    declarations = Declarations(declared("west", shop.ends[1]), shop.name)
    try:
        assert declarations.current().overrides == ()
    finally:
        declarations.close()


def test_kip_382s_put_is_one_and_is_on_record(shop: Shop, gate: FlowGate) -> None:
    assert list(gate.passed().flows)
    with serving(shop.path, "--operate") as service:
        ready(service)
        # As KIP-382 has it: what is given changes, and nothing else.
        route = f"{service.url}/from:east/to:west/connectors/MirrorSourceConnector/config"
        more = f"{shop.topic}-more"
        body = json.dumps({"topics": more}).encode()
        status, text = answer(route, "PUT", body, JSON)
        assert (status, json.loads(text)["topics"], json.loads(text)["tasks.max"]) == (200, more, "1")
        assert passing(gate) == {FLOW: 1}
        assert answer(route, "PUT", body, JSON)[0] == 200, "nothing is to be done"
        assert not gate._has_changed()
    assert anabranch("pause", shop.path, "--topic", f"{shop.topic}/1").code == 0
    recalled = json.loads(anabranch("events", shop.path, "--format", "json").stdout)["events"]
    assert [(one["kind"], one["about"].partition(" ")[0]) for one in recalled] == [
        ("applied", "digest"),
        ("changed", "flow"),
        ("applied", "digest"),
        ("paused", f"{shop.topic}/1"),
    ]
    assert all(one["by"] and one["cluster"] == "west" for one in recalled)
    assert recalled[-3]["by"].startswith("local through ")
    assert f"flow {FLOW}" in anabranch("events", shop.path).stdout
    assert anabranch("resume", shop.path).code == 0


def test_flows_are_stopped_begun_and_ended(shop: Shop, gate: FlowGate) -> None:
    second = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "east",
        "target.cluster.alias": "west",
        "topics": f"{shop.topic}-more",
    }
    assert list(gate.passed().flows)
    with serving(shop.path, "--operate") as service:
        ready(service)
        assert asked(service, "POST", "", {"name": "second", "config": second})[0] == 201
        assert asked(service, "POST", "", {"name": "second", "config": second})[0] == 409
        assert sorted(asked(service, "GET", "")[1]) == [FLOW, "second"]
        assert passing(gate) == {FLOW: 1, "second": 1}
        assert asked(service, "PUT", "/second/stop")[0] == 204
        assert asked(service, "GET", "/second/status")[1]["connector"]["state"] == "STOPPED"
        assert passing(gate) == {FLOW: 1}
        assert asked(service, "PUT", "/second/resume")[0] == 202
        assert passing(gate) == {FLOW: 1, "second": 1}
        assert asked(service, "DELETE", f"/{FLOW}")[0] == 204
        assert asked(service, "GET", f"/{FLOW}")[0] == 404
        assert passing(gate) == {"second": 1}
        assert asked(service, "DELETE", "/second")[0] == 204
        assert asked(service, "GET", "")[1] == []
        assert ("changed", f"flow {FLOW}", "enabled", "true", "false") in shop.drifted()
    shop.apply()
    assert passing(gate) == {FLOW: 1}
    assert shop.drifted() == []


def test_what_cannot_be_changed_is_refused_and_nothing_is_kept(shop: Shop, tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    with serving(shop.path, "--operate", "--audit-log", str(audit)) as service:
        config = asked(ready(service), "GET", f"/{FLOW}/config")[1]
        for settings, text in (
            ({"tasks.max": "5000"}, "expected a whole number from 1 to 1000"),
            ({"source.cluster.sasl.mechanism": "PLAIN"}, "it is not changed here"),
            ({"topics": "(?=x)"}, "look-ahead"),
        ):
            status, body = asked(service, "PUT", f"/{FLOW}/config", config | settings)
            assert (status, body["error_code"]) == (400, 400), body
            assert text in body["message"]
        # The file of another service is applied meanwhile: what this one has is not in force any more.
        shop.write(2)
        shop.apply()
        status, body = asked(service, "PUT", f"/{FLOW}/config", config | {"tasks.max": "3"})
        assert (status, "AB456" in body["message"]) == (409, True), body
    said = [(one["action"], one["result"]) for one in map(json.loads, audit.read_text().splitlines())]
    assert said[:2] == [("configure", "begins"), ("configure", "AB104")]
    assert said[-1] == ("configure", "AB456")
    assert shop.drifted() == []
    with serving(shop.path, "--operate", "--no-overrides") as service:
        status, body = asked(ready(service), "PUT", f"/{FLOW}/config", config | {"tasks.max": "3"})
        assert (status, "--no-overrides" in body["message"]) == (409, True)


def test_of_two_changes_at_once_none_is_lost(shop: Shop) -> None:
    (target,) = {flow.target for flow in load((shop.path,)).flows}
    ours, theirs = (Overriding(load((shop.path,))) for _ in range(2))
    calls = 0

    def tasks(topology: Topology) -> FlowOverride:
        nonlocal calls
        calls += 1
        if calls == 1:
            # Another `serve` is quicker.
            theirs.change(
                lambda _: FlowOverride(
                    "more", "east", "west", {"topics": {"include": [f"{shop.topic}-more"]}}, is_new=True
                )
            )
        return FlowOverride(FLOW, "east", "west", {"tasks": 3})

    try:
        ours.change(tasks)
        assert calls == 2
        now = theirs.topology()
    finally:
        ours.close()
        theirs.close()
    assert {flow.name: flow.tasks for flow in now.flows} == {FLOW: 3, "more": 1}
    with closing(Declarations(declared(target, shop.ends[1]), shop.name)) as journal:
        assert {one.flow for one in journal.current().overrides} == {FLOW, "more"}
