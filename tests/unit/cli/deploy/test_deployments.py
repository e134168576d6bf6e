"""What commands tell of deployments on this machine, without a cluster: what is missing, what runs, and its log."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler import declare
from reconciler.cli.main import main
from reconciler.deploy.local import LocalDeployer
from reconciler.embedded.ports import PortLease
from reconciler.model.planning.health import Check
from reconciler.operate.deployments.observed import Deployments
from tests.support.deploying import BROKEN, LIVES, interpreter
from tests.support.waiting import eventually

TOPOLOGY = """\
version: 1
name: shop
clusters:
  a: {{bootstrap: "127.0.0.1:1", datacenter: dc1,
       security: {{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: u, password: "env:ANABRANCH_TEST_PW"}}}}
  b: {{bootstrap: "127.0.0.1:2", datacenter: dc2}}
flows: [{{from: a, to: b}}]
datacenters:
  dc2: {{deploy: {fields}}}
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ANABRANCH_TEST_PW", "hunter2")


def written(folder: Path, **fields: object) -> Path:
    file = folder / "shop.yaml"
    declared = {"kind": "local", "folder": str(folder / "dc2")} | fields
    file.write_text(TOPOLOGY.format(fields=json.dumps(declared)))
    return file


def checks(file: Path) -> list[Check]:
    return list(Deployments(declare.load([file])).checks(["b"]))


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Path]:
    """A topology whose one process is deployed, and prints a line."""
    file = written(tmp_path, python=interpreter(tmp_path, LIVES))
    (process,) = Deployments(declare.load([file])).wanted()
    local = LocalDeployer(tmp_path / "dc2", {"PATH": "/usr/bin:/bin"})
    local.folder.make()
    local.folder.write_files(declare.load([file]).files)
    local.begin(process)
    eventually("it has begun", lambda: "began" in local.log("replicate", 10))
    yield file
    local.end(local.folder.generations())


def test_what_can_be_deployed_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    assert checks(written(tmp_path)) == [Check("deployment dc2", "ok", f"replicate: local, in {tmp_path}/dc2")]
    assert not (tmp_path / "dc2").exists()
    assert checks(written(tmp_path, kind="none")) == []
    assert checks(written(tmp_path, host="elsewhere.example")) == []


def test_everything_that_is_missing_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANABRANCH_TEST_PW")
    lease = PortLease.take(1)
    metrics = {"listen": f"127.0.0.1:{lease.ports[0]}"}
    with socket.create_server(("127.0.0.1", lease.ports[0])):
        found = checks(written(tmp_path, python="/nowhere/bin/python", metrics=metrics))
    assert {check.level for check in found} == {"failure"}
    assert [check.found for check in found] == [
        "no Anabranch is installed for /nowhere/bin/python",
        "environment variable ANABRANCH_TEST_PW is not set, and its processes need it",
        f"cannot listen at 127.0.0.1:{lease.ports[0]}: Address already in use",
    ]
    assert all(check.remedy for check in found)


def test_the_folder_of_another_data_centre_is_refused(deployed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(deployed.read_text().replace("name: shop", "name: other"))
    (check,) = checks(other)
    assert check.found == "holds the deployment of data centre dc2 of topology shop"


def test_what_runs_is_shown_with_its_log(deployed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deployments", str(deployed), "--detailed-exitcode"]) == 0
    shown = capsys.readouterr().out
    assert "shop · 1 of 1 processes run" in shown
    assert "dc2" in shown
    assert main(["deployments", str(deployed), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["processes"]
    assert (told["process"], told["running"], told["facts"]["variables"]) == ("replicate", True, "ANABRANCH_TEST_PW")
    assert "hunter2" not in shown
    assert main(["deployments", str(deployed), "--log", "replicate", "--lines", "1"]) == 0
    assert capsys.readouterr().out.startswith("began -m reconciler.cli.main replicate")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--log", "metrics"], "expected one deployed process metrics; there are replicate of dc2"),
        (["--restart", "replicate", "--datacenter", "dc9"], "there are replicate of dc2"),
        (["--log", "replicate", "--restart", "replicate"], "name one of --log and --restart"),
        (["--datacenter", "dc9"], "no process of dc9 is deployed or declared; there are dc2"),
    ],
)
def test_a_name_that_is_none_is_a_mistake_of_the_command_line(
    options: list[str], said: str, deployed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["deployments", str(deployed), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_what_is_declared_and_not_deployed_is_shown_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, python=interpreter(tmp_path, BROKEN))
    assert main(["deployments", str(file), "--detailed-exitcode"]) == 3
    assert "not deployed" in capsys.readouterr().out
    elsewhere = written(tmp_path, host="elsewhere.example")
    assert main(["deployments", str(elsewhere)]) == 0
    assert "deployed on elsewhere.example" in capsys.readouterr().out


def test_drift_is_that_of_this_machine(deployed: Path) -> None:
    assert Deployments(declare.load([deployed])).drift(["b"]) == ()
    declared = declare.load([deployed])
    place = declared.datacenters["dc2"]
    other = replace(place, deployment=replace(place.deployment, python=sys.executable))
    (drifted,) = Deployments(replace(declared, datacenters={"dc2": other})).drift(["b"])
    assert (drifted.fact, drifted.desired) == ("python", sys.executable)
