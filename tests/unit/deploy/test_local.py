"""Processes under keepers: started again whenever they end, replaced side by side, and stopped for good."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.deploy.folder import Generation
from reconciler.deploy.local import LocalDeployer
from reconciler.deploy.programs import version_of
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.base.files import read_json
from reconciler.model.planning.deployments import DeployedProcess
from tests.support.deploying import DIES, FILE, deployer, interpreter, lives, process
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalDeployer]:
    made = deployer(tmp_path, ANABRANCH_TEST_GIVEN="given", ANABRANCH_TEST_OTHER="hunter2")
    yield made
    made.end(made.folder.generations())


def running(local: LocalDeployer, name: str = "replicate") -> DeployedProcess:
    eventually("it runs", lambda: local.found()[name].is_running)
    return local.found()[name]


def keeper_of(local: LocalDeployer, generation: Generation) -> int:
    told = read_json(local.folder.path / "run" / f"{generation.name}.json")
    return int(told["keeper"])


def test_a_process_runs_with_its_files_and_no_variable_that_it_does_not_name(
    tmp_path: Path, local: LocalDeployer
) -> None:
    one = replace(process(tmp_path), variables=("ANABRANCH_TEST_GIVEN",))
    local.begin(one)
    pid = running(local).pid
    eventually("it has begun", lambda: "began" in local.log("replicate", 10))
    folder = tmp_path / "dc1"
    assert local.log("replicate", 1) == (
        f"began -m reconciler.cli.main replicate {folder}/topology/shop.yaml --clusters b --wait=forever"
        f" --state-dir {folder}/state/replicate\n"
    )
    variables = dict(
        entry.split("=", 1) for entry in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in entry
    )
    assert variables["ANABRANCH_TEST_GIVEN"] == "given"
    assert variables["PYSPARK_PYTHON"] == one.python
    assert "ANABRANCH_TEST_OTHER" not in variables
    assert "hunter2" not in "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert not any(path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*")))


def test_a_process_that_dies_is_started_again_and_what_it_said_is_kept(tmp_path: Path, local: LocalDeployer) -> None:
    local.begin(process(tmp_path))
    first = running(local).pid
    eventually("it has begun", lambda: "began" in local.log("replicate", 10))
    os.kill(first, signal.SIGKILL)
    eventually("another one runs", lambda: local.found()["replicate"].pid not in (0, first))
    found = local.found()["replicate"]
    assert (found.is_running, found.restarts, found.why) == (True, 1, "ended by SIGKILL")
    eventually("it began twice", lambda: local.log("replicate", 10).count("began") == 2)


def test_a_killed_keeper_takes_its_process_along_and_is_seen(tmp_path: Path, local: LocalDeployer) -> None:
    generation = local.begin(process(tmp_path))
    pid = running(local).pid
    os.kill(keeper_of(local, generation), signal.SIGKILL)
    eventually("it has ended", lambda: not lives(pid))
    found = local.found()["replicate"]
    assert (found.is_running, found.why) == (False, "its keeper does not run")


def test_two_generations_run_side_by_side_until_the_older_ends(tmp_path: Path, local: LocalDeployer) -> None:
    old = local.begin(process(tmp_path))
    first = running(local).pid
    new = local.begin(replace(process(tmp_path), version="0.2.0"))
    eventually("it runs", lambda: local.fares(new).is_running)
    assert (new.number, local.found()["replicate"].generations) == (2, 2)
    assert lives(first)
    local.end([old])
    assert not lives(first)
    found = local.found()["replicate"]
    assert (found.process.version, found.generations, found.is_running) == ("0.2.0", 1, True)


def test_what_cannot_run_is_tried_again_with_growing_breaks(tmp_path: Path, local: LocalDeployer) -> None:
    local.begin(process(tmp_path, DIES))
    eventually("it was started again", lambda: local.found()["replicate"].restarts >= 2)
    found = local.found()["replicate"]
    assert found.why == "ended with 3"
    assert "no such thing" in local.log("replicate", 5)


def test_an_interpreter_that_is_gone_is_told(tmp_path: Path, local: LocalDeployer) -> None:
    local.begin(replace(process(tmp_path), python=str(tmp_path / "nowhere")))
    eventually("it was started again", lambda: local.found()["replicate"].restarts >= 1)
    assert local.found()["replicate"].why.startswith("ended with")
    assert "nowhere" in local.log("replicate", 5)


def test_stopping_leaves_logs_alone(tmp_path: Path, local: LocalDeployer) -> None:
    generation = local.begin(process(tmp_path))
    pid = running(local).pid
    eventually("it has begun", lambda: "began" in local.log("replicate", 10))
    local.end([generation])
    assert (lives(pid), local.found(), local.folder.generations()) == (False, {}, [])
    local.folder.clear()
    left = sorted(str(path.relative_to(tmp_path / "dc1")) for path in (tmp_path / "dc1").rglob("*"))
    assert left == ["logs", "logs/replicate.log"]


def test_files_are_what_stands_in_the_folder(tmp_path: Path, local: LocalDeployer) -> None:
    local.begin(process(tmp_path))
    running(local)
    assert local.found()["replicate"].process.files == process(tmp_path).files
    local.folder.write_files([replace(FILE, text="version: 1\nname: other\n")])
    assert local.found()["replicate"].process.files != process(tmp_path).files


def test_a_variable_that_is_not_set_is_told_before(tmp_path: Path, local: LocalDeployer) -> None:
    needs = replace(process(tmp_path), variables=("ANABRANCH_TEST_GIVEN", "ANABRANCH_TEST_MISSING"))
    (problem,) = local.objections([needs])
    assert problem.code == "AB763"
    assert "ANABRANCH_TEST_MISSING is not set" in problem.message


def test_a_record_that_others_have_changed_is_an_error(tmp_path: Path, local: LocalDeployer) -> None:
    generation = local.begin(process(tmp_path))
    running(local)
    whole = local.folder.record.read_text()
    local.folder.record.write_text('{"format": 1, "processes": [{"number": 1}]}')
    with pytest.raises(EnvironmentFault, match="cannot be read") as caught:
        local.found()
    assert caught.value.problems[0].code == "AB761"
    local.folder.record.write_text(whole)
    local.end([generation])


def test_the_version_beside_an_interpreter_is_read_and_the_interpreter_is_not_run(tmp_path: Path) -> None:
    assert version_of(sys.executable) == __version__
    marked = tmp_path / "ran"
    other = interpreter(tmp_path, f"#!/bin/sh\ntouch {marked}\n")
    assert version_of(other) == __version__
    assert not marked.exists()
    assert version_of(str(tmp_path / "nowhere")) == ""
    Path(other).unlink()
    assert version_of(other) == ""
