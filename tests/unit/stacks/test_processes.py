"""What a stack records of processes: whatever a plan compares, without what differs from one machine to another."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.declare import load
from reconciler.model.declared.topology import Topology
from stacks.processes import declared_processes, found_processes, inputs_of
from tests.support.deploying import PROCESS, deployer, process
from tests.support.waiting import eventually

SECRET = "never-in-a-state-file"
DECLARATION = """\
version: 1
name: shop
clusters:
  a: {bootstrap: ["a.example:9092"], datacenter: dc2}
  b:
    bootstrap: ["b.example:9092"]
    datacenter: dc1
    security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: mirror, password: "env:B_PASSWORD"}
flows:
  - {from: a, to: b, topics: {include: [".*"]}}
datacenters:
  dc1: {deploy: {kind: local, folder: FOLDER, metrics: {}OPTIONS}}
"""


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("B_PASSWORD", SECRET)


def declared(folder: Path, options: str = "") -> Topology:
    path = folder / "shop.yaml"
    path.write_text(DECLARATION.replace("FOLDER", str(folder / "dc1")).replace("OPTIONS", options))
    return load((path,))


def test_a_process_has_whatever_a_plan_compares(tmp_path: Path) -> None:
    found = declared_processes(declared(tmp_path), "dc1")
    assert sorted(found) == ["metrics", "replicate"]
    assert dict(found["replicate"]) | {"files": ""} == {
        "kind": "local",
        "folder": str(tmp_path / "dc1"),
        "version": __version__,
        "command": "replicate --clusters b --wait=forever",
        "variables": "B_PASSWORD",
        "files": "",
    }
    assert SECRET not in str(found)
    assert declared_processes(declared(tmp_path), "dc2") == {}


def test_an_interpreter_is_recorded_where_it_is_declared(tmp_path: Path) -> None:
    # Pulumi may run the program with another path of the interpreter that `apply` has.
    assert "python" not in inputs_of(replace(PROCESS, python=sys.executable))
    found = declared_processes(declared(tmp_path, ", python: /opt/shop/bin/python"), "dc1")
    assert found["metrics"]["python"] == "/opt/shop/bin/python"


def test_only_what_runs_here_and_is_of_this_topology_is_found(tmp_path: Path) -> None:
    topology = declared(tmp_path)
    there = deployer(tmp_path)
    mine, other = process(tmp_path), replace(process(tmp_path, name="metrics"), topology="of-others")
    generations = [there.begin(mine), there.begin(other)]
    try:
        eventually("both run", lambda: all(there.fares(one).is_running for one in generations))
        assert found_processes(topology, "dc1") == {"replicate": inputs_of(mine)}
    finally:
        there.end(generations)
    assert found_processes(topology, "dc1") == {}
    elsewhere = declared(tmp_path, ", host: another-machine")
    assert found_processes(elsewhere, "dc1") is None
    assert found_processes(elsewhere, "dc2") == {}
