"""Deployments on YARN: what is submitted, how applications are followed, what stands against it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.deploy import driven, yarn
from reconciler.deploy.folder import Generation
from reconciler.deploy.resource_manager import ResourceManager
from reconciler.deploy.yarn import YarnDeployer, tag_of
from reconciler.model.base.errors import EnvironmentFault
from tests.support.deploying import FILE, PROCESS
from tests.support.yarn_manager import NODE, ManagerStandIn, process

pytestmark = pytest.mark.slow

FIRST, SECOND = "container_17_0001_01_000001", "container_17_0001_02_000001"


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ManagerStandIn]:
    made = ManagerStandIn(tmp_path)
    monkeypatch.setattr(yarn, "_spark_home", lambda: made.home)
    yield made
    made.close()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> YarnDeployer:
    monkeypatch.setattr(driven, "PATIENCE", 1.0)
    made = YarnDeployer(tmp_path / "dc1", {"PATH": "/usr/bin:/bin", "KAFKA_PW": "hunter2"})
    made.folder.make()
    made.folder.write_files([FILE])
    return made


def reports(cluster: YarnDeployer, generation: Generation, container: str, **fields: Any) -> None:
    told = {"driver": container, "host": "n1", "pid": 77, "since": 5.0, "restarts": 0, "why": ""} | fields
    (cluster.folder.run / f"{generation.name}.{container}.json").write_text(json.dumps(told))


def test_the_command_is_exactly_this_and_holds_no_value(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    more = [("queue", "mirrors"), ("conf.spark.yarn.stagingDir", "file:///staging")]
    generation = cluster.begin(process(tmp_path, manager, more, variables=("KAFKA_PW",)))
    (call,) = manager.calls()
    folder = tmp_path / "dc1"
    settings = {
        "spark.yarn.tags": tag_of(generation),
        "spark.yarn.submit.waitAppCompletion": "false",
        "spark.yarn.maxAppAttempts": "100",
        "spark.yarn.am.attemptFailuresValidityInterval": "10m",
        "spark.yarn.am.waitTime": "600s",
        "spark.driver.cores": "2",
        "spark.driver.memory": "512m",
        "spark.driver.memoryOverhead": "2560m",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.ui.enabled": "false",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": "/opt/anabranch/bin/python",
        "spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON": "/opt/anabranch/bin/python",
        "spark.yarn.stagingDir": "file:///staging",
    }
    assert call == [
        *("spark-submit", str(manager.configuration)),
        *("--master", "yarn", "--deploy-mode", "cluster"),
        *("--name", "anabranch shop dc1 replicate.1", "--queue", "mirrors"),
        *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}")),
        *(f"{folder}/driver.py", f"{folder}/run/replicate.1.description"),
    ]
    description = json.loads((folder / "run" / "replicate.1.description").read_text())
    assert (description["begins_context"], description["variables"]) == (True, ["KAFKA_PW"])
    written = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert "hunter2" not in written


@pytest.mark.parametrize(
    ("more", "python", "setting"),
    [
        (
            [("archive", "hdfs:///environment.tar.gz")],
            "environment/bin/python",
            "spark.yarn.dist.archives=hdfs:///environment.tar.gz#environment",
        ),
        ([], sys.executable, "spark.yarn.jars=local:{home}/jars/*"),
        ([("conf.spark.yarn.jars", "hdfs:///jars/*")], sys.executable, "spark.yarn.jars=hdfs:///jars/*"),
        ([("memory", str(2**30))], "/opt/anabranch/bin/python", "spark.driver.memoryOverhead=512m"),
    ],
)
def test_what_the_environment_needs_is_asked_for(
    more: list[tuple[str, str]],
    python: str,
    setting: str,
    tmp_path: Path,
    manager: ManagerStandIn,
    cluster: YarnDeployer,
) -> None:
    cluster.begin(process(tmp_path, manager, more, python=python))
    (call,) = manager.calls()
    assert setting.format(home=manager.home) in call
    assert sum(word.startswith(f"{setting.partition('=')[0]}=") for word in call) == 1


def test_the_configuration_of_this_machine_is_taken_where_none_is_declared(
    tmp_path: Path, manager: ManagerStandIn
) -> None:
    one = process(tmp_path, manager)
    one = replace(one, limits=tuple((key, value) for key, value in one.limits if key != "configuration"))
    for environ in ({"HADOOP_CONF_DIR": str(manager.configuration)}, {"YARN_CONF_DIR": str(manager.configuration)}):
        assert YarnDeployer(tmp_path / "dc1", environ).objections([one]) == []
    (problem,) = YarnDeployer(tmp_path / "dc1", {}).objections([one])
    assert (problem.code, problem.where) == ("AB768", "data centre dc1")
    assert problem.message.endswith("found neither yarn.configuration nor HADOOP_CONF_DIR")


def test_a_submission_that_fails_leaves_nothing_on_record(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    manager.programs_end_with(
        1,
        "26/11/29 WARN something\n"
        'Exception in thread "main" org.apache.spark.SparkException: Failed to submit: no such queue\n\tat org.x\n',
    )
    with pytest.raises(EnvironmentFault) as caught:
        cluster.begin(process(tmp_path, manager))
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB768", f"YARN cluster {manager.url}")
    assert problem.message == (
        'spark-submit for replicate ended with 1: Exception in thread "main" org.apache.spark.SparkException: '
        "Failed to submit: no such queue"
    )
    assert cluster.folder.generations() == []


def test_an_application_is_followed_from_its_submission_over_a_lost_driver_to_its_end(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    generation = cluster.begin(process(tmp_path, manager))
    tag = tag_of(generation)
    none = cluster.fares(generation)
    assert (none.why, none.restarts) == ("YARN has no application of it", 0)
    manager.runs(tag, "ACCEPTED", why="waiting for AM container to be allocated\nmore")
    found = cluster.fares(generation)
    assert found.why == "its application application_17_0001 is ACCEPTED: waiting for AM container to be allocated"
    assert (found.is_running, found.restarts) == (False, 0)
    manager.applications[tag] = []
    manager.runs(tag, "RUNNING", FIRST)
    reports(cluster, generation, FIRST)
    found = cluster.found()["replicate"]
    assert (found.is_running, found.pid, found.restarts, found.why) == (True, 77, 0, "")
    # The driver is lost: YARN has begun another attempt, which has not reported yet.
    manager.applications[tag] = []
    manager.runs(tag, "ACCEPTED", SECOND)
    found = cluster.fares(generation)
    assert (found.is_running, f"its driver {FIRST} on n1 is lost" in found.why) == (False, True)
    reports(cluster, generation, SECOND, pid=78, since=6.0)
    found = cluster.fares(generation)
    assert (found.is_running, found.pid, found.restarts) == (True, 78, 1)
    manager.applications[tag] = []
    manager.runs(tag, "FAILED", why="Application failed 2 times")
    found = cluster.fares(generation)
    assert (found.is_running, found.restarts) == (False, 1)
    assert found.why == "its application application_17_0001 ended: FAILED: Application failed 2 times"


def test_an_application_ends_by_itself_and_one_that_waits_is_killed(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cluster.begin(process(tmp_path, manager))
    manager.runs(tag_of(first), "FINISHED")
    cluster.end([first])
    assert [call[0] for call in manager.calls()] == ["spark-submit"]
    assert (cluster.found(), list(cluster.folder.run.iterdir())) == ({}, [])
    second = cluster.begin(process(tmp_path, manager))
    assert tag_of(second) == tag_of(first)
    manager.applications.clear()
    manager.runs(tag_of(second), "ACCEPTED")
    killed: list[tuple[str, ...]] = []

    def kill(_generation: Generation, *command: str) -> None:
        killed.append(command)
        manager.applications[tag_of(second)][0]["state"] = "KILLED"

    monkeypatch.setattr(cluster, "_spark", kill)
    cluster.end([second])
    assert killed == [
        (
            *("spark-class", "org.apache.hadoop.yarn.client.cli.ApplicationCLI"),
            *("application", "-kill", "application_17_0001"),
        )
    ]


def test_one_that_does_not_end_is_killed_and_told(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    generation = cluster.begin(process(tmp_path, manager))
    manager.runs(tag_of(generation), "RUNNING", FIRST)
    with pytest.raises(EnvironmentFault, match="replicate did not end") as caught:
        cluster.end([generation])
    assert caught.value.problems[0].code == "AB767"
    kill = next(call for call in manager.calls() if call[0] == "spark-class")
    assert kill[-3:] == ["application", "-kill", "application_17_0001"]


def test_where_no_manager_answers_nothing_is_stopped_and_what_runs_is_not_known(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    generation = cluster.begin(process(tmp_path, manager))
    manager.answers["apps"] = 503, b""
    found = cluster.found()["replicate"]
    assert (found.is_running, found.why) == (False, f"{manager.url}: HTTP status 503")
    manager.charge = "STANDBY"
    with pytest.raises(EnvironmentFault, match="it is STANDBY") as caught:
        cluster.end([generation])
    assert caught.value.problems[0].code == "AB768"
    assert cluster.folder.generations() == [generation]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([], "no node has 2 free cores and 3072 MiB for replicate; free are: none, as no node runs"),
        ([{"availableVirtualCores": 1}], "free are: n1.example 1 and 6144 MiB"),
        ([{"availMemoryMB": -100}], "free are: n1.example 4 and 0 MiB"),
        ([{"availMemoryMB": 3071}, {"availMemoryMB": 100}], "free are: n1.example 4 and 3071 MiB, n1.example 4 and"),
    ],
)
def test_too_little_room_is_told_before(
    nodes: list[dict[str, Any]], said: str, tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    one = process(tmp_path, manager)
    assert cluster.objections([one]) == []
    manager.nodes = [NODE | node for node in nodes]
    (problem,) = cluster.objections([one])
    assert (problem.code, problem.where, said in problem.message) == ("AB769", f"YARN cluster {manager.url}", True)


def test_several_processes_need_room_together(tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer) -> None:
    both = [process(tmp_path, manager), process(tmp_path, manager, name="replicate-2")]
    assert cluster.objections(both) == []
    manager.nodes[0]["availMemoryMB"] = 6143
    (problem,) = cluster.objections(both)
    assert "for replicate-2; free are" in problem.message


def test_a_queue_that_is_not_there_is_told_before(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    for queue in ("mirrors", "root.mirrors"):
        assert cluster.objections([process(tmp_path, manager, [("queue", queue)])]) == []
    (problem,) = cluster.objections([process(tmp_path, manager, [("queue", "mirors")])])
    assert (problem.code, problem.message) == (
        "AB768",
        "it has no queue mirors; there are mirrors, root, root.mirrors",
    )


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b'{"clusterInfo": {"state": "STARTED", "haState": "STANDBY"}}', "it is STANDBY"),
        (200, b"<html>", "its answer is none of a ResourceManager"),
        (200, b'{"clusterInfo": 7}', "its answer is none of a ResourceManager"),
        (200, b"[]", "its answer is none of a ResourceManager"),
        (307, b"", "HTTP status 307"),
        (401, b'{"RemoteException": {"message": "who are you\\n\\tat org.Secret"}}', "HTTP status 401: who are you"),
    ],
)
def test_what_is_no_manager_is_told_in_a_line(
    status: int, body: bytes, said: str, tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer
) -> None:
    manager.answers["info"] = status, body
    (problem,) = cluster.objections([process(tmp_path, manager)])
    assert (problem.code, said in problem.message, "Secret" in problem.message) == ("AB768", True, False)


@pytest.mark.parametrize("name", ["nodes", "apps", "scheduler"])
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b'{"nodes": 7, "apps": 7}', b'{"nodes": {"node": [7]}, "apps": {"app": [7]}}']
)
def test_lists_that_are_none_are_told(name: str, body: bytes, manager: ManagerStandIn) -> None:
    manager.answers[name] = 200, body
    asked = ResourceManager([manager.url])
    with pytest.raises(EnvironmentFault) as caught:
        asked.nodes() if name == "nodes" else asked.applications("x") if name == "apps" else asked.queues()
    assert caught.value.problems[0].code == "AB768"


def test_of_several_managers_the_one_in_charge_is_asked(tmp_path: Path, manager: ManagerStandIn) -> None:
    standby = ManagerStandIn(tmp_path / "standby")
    standby.charge = "STANDBY"
    try:
        ResourceManager([standby.url, manager.url]).check()
        with pytest.raises(EnvironmentFault, match="it is STANDBY"):
            ResourceManager([standby.url]).check()
    finally:
        standby.close()


def test_hosts_that_are_not_allowed_are_not_asked(
    tmp_path: Path, manager: ManagerStandIn, cluster: YarnDeployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_ALLOWED_HOSTS", "*.example")
    (problem,) = cluster.objections([process(tmp_path, manager)])
    assert problem.code == "AB309"


def test_a_record_without_a_manager_is_an_error(tmp_path: Path, cluster: YarnDeployer) -> None:
    one = Generation(replace(PROCESS, kind="yarn", folder=str(tmp_path / "dc1"), limits=(("cores", "1"),)), 1)
    with pytest.raises(EnvironmentFault, match=r"it has no yarn.resource-managers") as caught:
        cluster.fares(one)
    assert caught.value.problems[0].code == "AB761"
