"""Drivers that keep processes on a Spark cluster: begun, followed wherever they go, ended; and what stands against."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.deploy.bootstrap import is_on_record
from reconciler.deploy.folder import Generation
from reconciler.deploy.standalone import StandaloneDeployer
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.planning.deployments import DeployedProcess
from tests.support.deploying import PROCESS, lives
from tests.support.spark_master import ENVIRON, MasterStandIn, process
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


def runs(cluster: StandaloneDeployer) -> DeployedProcess:
    return eventually("it runs", lambda: cluster.found()["replicate"], lambda one: one.is_running)


def why(cluster: StandaloneDeployer, text: str) -> DeployedProcess:
    return eventually(text, lambda: cluster.found()["replicate"], lambda one: text in one.why)


def test_a_driver_keeps_the_process_until_it_is_off_the_record(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    generation = cluster.begin(process(tmp_path, master, variables=("ANABRANCH_TEST_ON_WORKER",)))
    found = runs(cluster)
    eventually("it has begun", lambda: "began" in cluster.log("replicate", 10))
    folder = tmp_path / "dc1"
    assert cluster.log("replicate", 1) == (
        f"began -m reconciler.cli.main replicate {folder}/topology/shop.yaml --clusters b --wait=forever"
        f" --state-dir {folder}/state/replicate\n"
    )
    told = Path(f"/proc/{found.pid}/environ").read_text()
    assert "ANABRANCH_TEST_ON_WORKER=hunter2" in told
    assert "ANABRANCH_TEST_OTHER" not in told
    assert not any(path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*")))
    cluster.end([generation])
    assert (lives(found.pid), cluster.found()) == (False, {})
    assert "ended" in cluster.log("replicate", 1)
    assert master.processes["driver-0"].wait(60) == 0
    assert list((folder / "run").iterdir()) == []


def test_what_is_submitted_runs_beside_a_driver_and_holds_no_value(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_TEST_ON_WORKER", "hunter3")
    one = process(tmp_path, master, variables=("ANABRANCH_TEST_ON_WORKER",))
    cluster.begin(one)
    (request,) = master.requests
    folder = tmp_path / "dc1"
    name = "anabranch shop dc1 replicate.1"
    assert request == {
        "action": "CreateSubmissionRequest",
        "appResource": "",
        "mainClass": "org.apache.spark.deploy.SparkSubmit",
        "appArgs": [
            *("--master", "spark://127.0.0.1:7077", "--name", name),
            *(f"{folder}/driver.py", f"{folder}/run/replicate.1.description"),
        ],
        "clientSparkVersion": request["clientSparkVersion"],
        "environmentVariables": {"PYSPARK_PYTHON": one.python, "PYSPARK_DRIVER_PYTHON": one.python},
        "sparkProperties": {
            "spark.app.name": name,
            "spark.master": "spark://127.0.0.1:7077",
            "spark.submit.deployMode": "cluster",
            "spark.driver.supervise": "true",
            "spark.driver.cores": "1",
            "spark.driver.memory": "1024m",
            "spark.jars": "",
        },
    }
    runs(cluster)
    written = "".join(path.read_text() for path in (tmp_path / "dc1").rglob("*") if path.is_file())
    assert "hunter" not in written


def test_a_driver_that_dies_takes_its_process_along_and_is_begun_again(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    cluster.begin(process(tmp_path, master))
    first = runs(cluster).pid
    master.processes["driver-0"].kill()
    eventually("the process has ended", lambda: not lives(first))
    why(cluster, "is lost, and no other one has begun yet")
    # As the master does: on the same worker, under the same id.
    master.start("driver-0")
    second = why(cluster, "its driver had ended")
    assert second.restarts == 1
    # And on another one, under another id.
    master.processes["driver-0"].kill()
    master.start("driver-9", like="driver-0")
    third = eventually("it runs there", lambda: cluster.found()["replicate"], lambda one: one.restarts == 2)
    assert third.is_running
    assert third.pid not in (first, second.pid)


def test_two_drivers_of_one_generation_both_end_with_it(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    generation = cluster.begin(process(tmp_path, master))
    first = runs(cluster).pid
    master.start("driver-9", like="driver-0")
    both = eventually("both run", lambda: cluster.fares(generation), lambda one: one.pid not in (0, first))
    cluster.end([generation])
    assert not any(map(lives, (first, both.pid)))


def test_a_driver_that_comes_after_its_generation_was_ended_does_nothing(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    generation = cluster.begin(process(tmp_path, master))
    runs(cluster)
    cluster.end([generation])
    master.start("driver-8", like="driver-0")
    assert master.processes["driver-8"].wait(60) == 0
    cluster.folder.clear()
    master.start("driver-9", like="driver-0")
    assert master.processes["driver-9"].wait(60) == 0
    # Where the shared disk is away Spark tries again.
    there = [sys.executable, str(tmp_path / "dc1" / "driver.py"), "/nowhere/dc1/run/replicate.1.description"]
    assert subprocess.run(there, capture_output=True, check=False).returncode == 1


def test_a_process_ends_when_the_jvm_of_its_driver_does(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    """The JVM is gone without a signal to what it started, as when a worker is lost."""
    cluster.begin(process(tmp_path, master))
    runs(cluster)
    description = tmp_path / "dc1" / "run" / "replicate.1.description"
    work = tmp_path / "driver-8"
    work.mkdir()
    program = [sys.executable, str(tmp_path / "dc1" / "driver.py"), str(description)]
    jvm = subprocess.Popen(["sh", "-c", '"$@" & wait', "sh", *program], cwd=work, env=ENVIRON)
    report = description.with_name("replicate.1.driver-8.json")
    eventually("it reports", report.exists)
    pid = json.loads(report.read_text())["pid"]
    jvm.kill()
    jvm.wait()
    eventually("its process has ended", lambda: not lives(pid))


def test_a_process_that_ends_is_started_again_by_its_driver(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    cluster.begin(process(tmp_path, master))
    first = runs(cluster).pid
    os.kill(first, signal.SIGKILL)
    found = eventually("another runs", lambda: cluster.found()["replicate"], lambda one: one.pid not in (0, first))
    assert (found.restarts, found.why) == (1, "ended by SIGKILL")


def test_what_a_worker_lacks_is_told(tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer) -> None:
    file = tmp_path / "dc1.env"
    limits = (("environment-file", str(file)),)
    cases = [
        (process(tmp_path, master, version="0.0.9"), f"expected Anabranch 0.0.9; found Anabranch {__version__}"),
        (process(tmp_path, master, variables=("ANABRANCH_TEST_NONE",)), "ANABRANCH_TEST_NONE, which replicate needs"),
        (process(tmp_path, master, limits=limits), f"the environment file {file} cannot be read"),
    ]
    for one, said in cases:
        generation = cluster.begin(one)
        found = why(cluster, said)
        assert (found.is_running, found.restarts) == (False, 1)
        cluster.end([generation])


def test_an_environment_file_of_a_worker_gives_variables(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    file = tmp_path / "dc1.env"
    file.write_text('# secrets\nANABRANCH_TEST_ON_WORKER="of the file"\nANABRANCH_TEST_OTHER=else\n')
    one = process(tmp_path, master, variables=("ANABRANCH_TEST_ON_WORKER",), limits=(("environment-file", str(file)),))
    assert cluster.objections([one]) == []
    cluster.begin(one)
    place = Path(f"/proc/{runs(cluster).pid}/environ")
    # It is empty for the moment in which a process becomes another program.
    told = eventually("it has variables", lambda: place.read_text().split("\0"), lambda found: found != [""])
    assert "ANABRANCH_TEST_ON_WORKER=of the file" in told
    assert not any(entry.startswith("ANABRANCH_TEST_OTHER") for entry in told)
    file.write_text("ANABRANCH_TEST_OTHER=else\n")
    (problem,) = cluster.objections([one])
    assert (problem.code, "ANABRANCH_TEST_ON_WORKER of replicate is not in" in problem.message) == ("AB763", True)


def test_a_driver_that_no_worker_takes_is_told_and_ended(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    master.takes = False
    generation = cluster.begin(process(tmp_path, master))
    assert cluster.fares(generation).why == "its driver driver-0 is SUBMITTED"
    cluster.end([generation])
    assert (cluster.found(), master.processes) == ({}, {})
    second = cluster.begin(process(tmp_path, master))
    master.fail("driver-1")
    found = cluster.fares(second)
    assert (found.restarts, found.why) == (1, "its driver driver-1 ended: ERROR")


def test_where_no_master_answers_nothing_is_stopped_and_what_runs_is_not_known(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    generation = cluster.begin(process(tmp_path, master))
    pid = runs(cluster).pid
    master.status = "RECOVERING"
    found = cluster.found()["replicate"]
    assert (found.is_running, "the master is RECOVERING" in found.why) == (False, True)
    with pytest.raises(EnvironmentFault, match="the master is RECOVERING") as caught:
        cluster.end([generation])
    assert caught.value.problems[0].code == "AB768"
    assert (lives(pid), cluster.folder.generations()) == (True, [generation])
    master.status = "ALIVE"
    assert runs(cluster).pid == pid


def test_a_refused_submission_leaves_nothing_on_record(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    master.status = "STANDBY"
    with pytest.raises(EnvironmentFault, match="Current state is not alive: STANDBY"):
        cluster.begin(process(tmp_path, master))
    assert cluster.folder.generations() == []


@pytest.mark.parametrize("text", ["", "[]", '{"driver": 7}', "\x00", '{"restarts": -1}'])
def test_reports_that_others_have_changed_are_passed_over(
    text: str, tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    master.takes = False
    generation = cluster.begin(process(tmp_path, master))
    report = tmp_path / "dc1" / "run" / "replicate.1.driver-0.json"
    report.write_text(text)
    assert cluster.fares(generation).why == "its driver driver-0 is SUBMITTED"
    master.start("driver-0")
    assert runs(cluster).restarts == 0


def test_a_record_without_a_master_is_an_error(tmp_path: Path, cluster: StandaloneDeployer) -> None:
    one = replace(PROCESS, kind="standalone", folder=str(tmp_path / "dc1"), limits=(("cores", "1"),))
    cluster.folder.write_record([Generation(one, 1)])
    with pytest.raises(EnvironmentFault, match="it has no spark") as caught:
        cluster.fares(Generation(one, 1))
    assert caught.value.problems[0].code == "AB761"
    cluster.folder.write_record([])


def test_a_generation_stays_on_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    record = tmp_path / "dc1" / "deployment.json"
    # The shared disk is away: what runs goes on.
    assert is_on_record(record, "replicate", 1)
    record.parent.mkdir()
    assert not is_on_record(record, "replicate", 1)
    for broken in ("", "[]", "7", '{"processes": 7}', '{"processes": [7]}', "\x00"):
        record.write_text(broken)
        assert is_on_record(record, "replicate", 1), broken
    record.write_text('{"processes": [{"name": "replicate", "number": 2}]}')
    assert not is_on_record(record, "replicate", 1)
    assert is_on_record(record, "replicate", 2)


def test_a_driver_of_a_generation_that_is_off_the_record_does_nothing(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    master.takes = False
    generation = cluster.begin(process(tmp_path, master))
    cluster.folder.write_record([Generation(generation.process, 2)])
    master.start("driver-0")
    assert master.processes["driver-0"].wait(60) == 0
    assert cluster.log("replicate", 10) == ""
