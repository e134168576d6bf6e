"""Commands after a data centre is lost: flows that are failed over need no source, all others do."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.cli.common import load_topology
from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.recorded.failover import FailedOver
from reconciler.observe import topology
from reconciler.observe.connection import Connection
from reconciler.state.declarations import Declarations
from reconciler.state.failovers import Failovers
from tests.support.clusters.kafka import create

UNREACHABLE = 6
# Nothing listens there.
NOBODY = "127.0.0.1:1"
REPLICATOR = ", replicator: {principal: 'User:mirror'}"
LEFT_OUT = "east does not answer, and need not while all flows from it are failed over: it is left out"
FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]{replicator}}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, name: one, topics: {{include: ["{topic}-one"]}}, failed-over: {one}}}
  - {{from: east, to: west, name: two, topics: {{include: ["{topic}-two"]}}, failed-over: {two}}}
"""


@dataclass(frozen=True)
class Lost:
    """Two flows from `east`, which does not answer any more, to `west`."""

    path: Path
    facts: dict[str, str]
    west: Cluster
    failovers: Failovers

    def declare(self, one: bool = False, two: bool = False, replicator: bool = False) -> None:
        said = {"one": str(one).lower(), "two": str(two).lower(), "replicator": REPLICATOR if replicator else ""}
        self.path.write_text(FILE.format(**self.facts, **said))

    def note(self, flow: str) -> None:
        self.failovers.put(FailedOver(flow, "over", 1_800_000_000.0, "ops@host", {}))

    def in_force(self) -> str:
        declarations = Declarations(self.west, self.facts["name"])
        try:
            found = declarations.current().in_force
        finally:
            declarations.close()
        assert found is not None
        return found.digest

    def digest(self) -> str:
        return digest_into(load_topology([self.path]), "west")


@pytest.fixture(autouse=True)
def wait_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "Connection", functools.partial(Connection, seconds=1.0))


@pytest.fixture
def lost(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, target: Cluster, topic_name: str
) -> Iterator[Lost]:
    name = topic_name.lower().replace("_", "-")[-40:].strip("-")
    for number in ("one", "two"):
        create(source_cluster, f"{topic_name}-{number}")
    facts = {"east": source_cluster.bootstrap, "west": target_cluster.bootstrap, "topic": topic_name, "name": name}
    made = Lost(tmp_path / "topology.yaml", facts, target, Failovers(target, name))
    made.declare()
    assert main(["apply", str(made.path), "--yes"]) == 0
    facts["east"] = NOBODY
    made.declare()
    yield made
    made.failovers.close()


def test_what_is_failed_over_is_planned_and_applied_without_its_source(
    lost: Lost, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    before = lost.in_force()
    assert main(["plan", str(lost.path)]) == UNREACHABLE
    assert "AB310" in capsys.readouterr().err
    # One that is only on record, one that is only declared: neither needs its source.
    lost.note("two")
    assert main(["plan", str(lost.path)]) == UNREACHABLE, "the other one runs"
    assert "AB310" in capsys.readouterr().err
    lost.declare(one=True)
    assert main(["plan", str(lost.path), "--format", "json"]) == 0
    (west,) = json.loads(capsys.readouterr().out)["clusters"]
    assert west["steps"] == []
    told = [f"{one['subject']}: {one['message']}" for one in west["warnings"]]
    for flow in ("one", "two"):
        assert f"flow {flow}: east does not answer, and need not while this is failed over" in told
    assert main(["apply", str(lost.path), "--yes"]) == 0
    assert lost.in_force() == lost.digest() != before
    capsys.readouterr()
    # Nothing that could not be looked at is deleted, with whatever permission.
    assert (
        main(["plan", str(lost.path), "--allow-delete", "topic=9", "--allow-delete", "acl=9", "--format", "json"]) == 0
    )
    (west,) = json.loads(capsys.readouterr().out)["clusters"]
    assert west["steps"] == []


def test_a_target_that_does_not_answer_is_needed_as_ever(lost: Lost, capsys: pytest.CaptureFixture[str]) -> None:
    lost.facts["west"] = NOBODY
    lost.declare(one=True, two=True)
    capsys.readouterr()
    assert main(["plan", str(lost.path)]) == UNREACHABLE
    assert "cluster west" in capsys.readouterr().err


def test_topics_are_adopted_without_the_source_of_flows_that_are_failed_over(
    lost: Lost, capsys: pytest.CaptureFixture[str]
) -> None:
    lost.declare(one=True)
    capsys.readouterr()
    assert main(["adopt", str(lost.path), "--yes"]) == UNREACHABLE, "the other one runs"
    lost.note("two")
    capsys.readouterr()
    assert main(["adopt", str(lost.path), "--yes"]) == 0
    assert LEFT_OUT in " ".join(capsys.readouterr().err.split())


def test_a_lost_source_with_a_replicator_is_left_out_by_all(lost: Lost, capsys: pytest.CaptureFixture[str]) -> None:
    lost.declare(one=True, replicator=True)
    for command in (["drift"], ["plan"], ["destroy", "--yes"]):
        assert main([command[0], str(lost.path), *command[1:]]) == UNREACHABLE, "the other one runs"
    lost.declare(one=True, two=True, replicator=True)
    capsys.readouterr()
    assert main(["drift", str(lost.path), "--format", "json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["clusters"], found["unreachable"]) == (["west"], [])
    assert LEFT_OUT in " ".join(said.err.split())
    # Whoever names it means it.
    assert main(["drift", str(lost.path), "--clusters", "east"]) == UNREACHABLE
    assert main(["plan", str(lost.path)]) == 0
    assert main(["apply", str(lost.path), "--yes"]) == 0
    assert lost.in_force() == lost.digest()
    capsys.readouterr()
    assert main(["destroy", str(lost.path), "--yes", "--allow-delete", "topic=2", "--format", "json"]) == 0
    said = capsys.readouterr()
    assert LEFT_OUT in " ".join(said.err.split())
    (west,) = json.loads(said.out)["plan"]["clusters"]
    assert (west["alias"], len(west["steps"])) == ("west", 2)
