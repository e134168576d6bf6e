"""The gate at a real broker: a flow that is failed over does not run, the others do, and its status says why."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reconciler.cli.common import TERMINAL
from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Refused, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.recorded.failover import FailedOver
from reconciler.model.tasks.status import STALE_SECONDS, TaskStatus
from reconciler.operate.flows import gate as gates
from reconciler.operate.flows.gate import FlowGate
from reconciler.operate.flows.running import check_flows
from reconciler.state.failovers import Failovers
from reconciler.state.running import copying
from reconciler.state.status import StatusReader
from tests.support.clusters.kafka import create, names
from tests.support.waiting import eventually

SECONDS = 300.0
FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, name: {name}-one, topics: {{include: ["{topic}-one"]}}{one}}}
  - {{from: east, to: west, name: {name}-two, topics: {{include: ["{topic}-two"]}}}}
"""


@dataclass(frozen=True)
class Pair:
    """Two flows from `east` to `west`, and the record of failovers there."""

    path: Path
    facts: dict[str, str]
    west: Cluster
    failovers: Failovers

    @property
    def one(self) -> str:
        return f"{self.facts['name']}-one"

    @property
    def two(self) -> str:
        return f"{self.facts['name']}-two"

    def write(self, one: str = "") -> None:
        self.path.write_text(FILE.format(**self.facts, one=one))

    def state(self) -> FailedOver:
        return FailedOver(self.one, "over", 1_800_000_000.0, "ops@host", {})


@pytest.fixture
def pair(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, target: Cluster, topic_name: str
) -> Iterator[Pair]:
    name = topic_name.lower().replace("_", "-")[-40:].strip("-")
    facts = {"east": source_cluster.bootstrap, "west": target_cluster.bootstrap, "topic": topic_name, "name": name}
    made = Pair(tmp_path / "topology.yaml", facts, target, Failovers(target, name))
    made.write()
    yield made
    made.failovers.close()


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_LOOK_EVERY", 0.05)


def looked_again(gate: FlowGate) -> bool:
    gate._next_look = 0.0
    return gate.is_superseded()


def passing(gate: FlowGate) -> list[str]:
    return [flow.name for flow in gate.passed().flows]


def said(reader: StatusReader, flow: str) -> list[TaskStatus]:
    return [word for word in reader.current() if word.flow == flow and word.is_live(time.time())]


def test_a_run_is_superseded_by_a_failover_and_by_its_end(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    gate, reader = (
        FlowGate((pair.path,), None, waits=True, reporter=TERMINAL),
        StatusReader(pair.west, pair.facts["name"]),
    )
    try:
        assert passing(gate) == [pair.one, pair.two]
        assert not looked_again(gate)
        pair.failovers.put(replace(pair.state(), phase="ending"))
        eventually("it hears of it", lambda: looked_again(gate))
        heard = " ".join(capsys.readouterr().err.split())
        assert f"flow {pair.one}: failing over since 2027-01-15 08:00:00 UTC by ops@host" in heard
        assert passing(gate) == [pair.two]
        pair.failovers.put(pair.state())
        since = "failed over since 2027-01-15 08:00:00 UTC by ops@host"
        why = f"{since}: nothing is copied until `anabranch failback --flow {pair.one}`"

        def told() -> bool:
            assert not looked_again(gate), "another phase changes nothing"
            return [word.waiting for word in said(reader, pair.one)] == [why]

        eventually("status tells since when and by whom", told)
        (word,) = said(reader, pair.one)
        assert word.digest == digest_into(gate.topology, "west"), "its digest stays that of its file"
        assert copying(pair.west, gate.topology.name, pair.one) == [], "who says that it waits copies nothing"
        assert "[AB435]" in capsys.readouterr().err
        pair.failovers.forget(pair.state())
        eventually("it hears of the end", lambda: looked_again(gate))
        assert f"flow {pair.one}: failed over no longer; it runs again" in " ".join(capsys.readouterr().err.split())
        assert passing(gate) == [pair.one, pair.two]
        eventually("what was said is taken back", lambda: said(reader, pair.one) == [])
    finally:
        gate.close()
        reader.close()


def test_a_run_that_begins_is_heard_of_until_its_tasks_speak(pair: Pair) -> None:
    gate = FlowGate((pair.path,), None, waits=True, reporter=TERMINAL)

    def spoken() -> list[TaskStatus]:
        return [word for one in (pair.one, pair.two) for word in copying(pair.west, gate.topology.name, one)]

    def spoken_meanwhile() -> list[TaskStatus]:
        """Listen while the driver looks again and again, as it does: what stands is said every second."""
        with ThreadPoolExecutor(1) as pool:
            heard = pool.submit(spoken)
            while not heard.done():
                assert not looked_again(gate)
                time.sleep(0.1)
            return heard.result()

    try:
        flows = gate.passed().flows
        assert spoken() == []
        assert gate.announce(flows)
        assert len(spoken()) == 2
        time.sleep(STALE_SECONDS)
        assert len(spoken()) == 2, "it is repeated while nobody looks"
        one, two = (replace(TaskStatus.of_process(flow, "run", ""), task=0, tasks=2) for flow in flows)
        gate.heard([one, two, replace(two, task=1)])
        assert not looked_again(gate)
        assert [word.flow for word in spoken_meanwhile()] == [pair.one], "of one not all tasks speak yet"
        # A driver's own word says more.
        gate.heard([TaskStatus.of_process(flows[0], "run", "", failing="no slots")])
        assert not looked_again(gate)
        assert spoken_meanwhile() == []
        pair.failovers.put(pair.state())
        eventually("it sees who was faster", lambda: not gate.announce(flows))
        assert passing(gate) == [pair.two]
        assert spoken() == []
    finally:
        gate.close()


def test_what_its_file_declares_suffices(pair: Pair) -> None:
    pair.write(", failed-over: true")
    gate = FlowGate((pair.path,), None, waits=True, reporter=TERMINAL)
    try:
        assert passing(gate) == [pair.two]
        assert gate.topology.flows[0].failed_over
    finally:
        gate.close()


def test_where_no_flow_is_left_it_waits_or_refuses(pair: Pair) -> None:
    pair.write(", failed-over: true")
    other = replace(pair.state(), flow=pair.two)
    pair.failovers.put(other)
    refusing, waiting = (
        FlowGate((pair.path,), None, waits=False, reporter=TERMINAL),
        FlowGate((pair.path,), None, waits=True, reporter=TERMINAL),
    )
    try:
        with pytest.raises(Refused) as caught:
            refusing.passed()
        assert [problem.code for problem in caught.value.problems] == ["AB435", "AB435"]
        assert caught.value.exit_code == 4
        with ThreadPoolExecutor(1) as pool:
            passed = pool.submit(passing, waiting)
            time.sleep(0.5)
            assert not passed.done()
            pair.failovers.forget(other)
            assert passed.result(SECONDS) == [pair.two]
    finally:
        refusing.close()
        waiting.close()


def test_the_source_of_a_flow_that_is_failed_over_need_not_answer(pair: Pair) -> None:
    pair.write()
    with_gone = pair.path.read_text().replace(
        "flows:\n", '  gone: {bootstrap: ["127.0.0.1:1"]}\nflows:\n  - {from: gone, to: west, name: from-gone}\n'
    )
    pair.path.write_text(with_gone)
    gate, over = FlowGate((pair.path,), None, waits=True, reporter=TERMINAL), replace(pair.state(), flow="from-gone")
    try:
        with pytest.raises(Unreachable, match="gone"):
            check_flows(gate)
        pair.failovers.put(over)
        eventually("it hears of it", lambda: "from-gone" in gate.failed_over())
        check_flows(gate)
        assert passing(gate) == [pair.one, pair.two]
    finally:
        gate.close()


def test_reconcile_leaves_its_copies_alone(
    pair: Pair, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    for number in ("one", "two"):
        create(source_cluster, f"{topic_name}-{number}", 1)
    pair.failovers.put(pair.state())
    assert main(["reconcile", str(pair.path), "--once"]) == 0
    made = {name for name in names(target_cluster) if topic_name in name}
    assert made == {f"east.{topic_name}-two"}
