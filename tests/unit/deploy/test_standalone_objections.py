"""What stands against deploying on a Spark cluster: too little room, another version, no master that is in charge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.deploy.spark_master import SparkMaster
from reconciler.deploy.standalone import StandaloneDeployer
from tests.support.spark_master import ENVIRON, MasterStandIn, process

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([], "no worker has 1 free cores and 1024 MiB for the driver of replicate; free are: none, as no worker lives"),
        ([{"state": "DEAD"}], "none, as no worker lives"),
        ([{"coresfree": 0}], "free are: w1.example 0 and 4096 MiB"),
        ([{"memoryfree": 1000}], "free are: w1.example 4 and 1000 MiB"),
        ([{"coresfree": 2}], "1 free cores are left beside 1 of drivers, for 2 tasks, all at once"),
    ],
)
def test_too_little_room_is_told_before(
    workers: list[dict[str, Any]], said: str, tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    one = process(tmp_path, master)
    assert cluster.objections([one]) == []
    master.workers = [master.workers[0] | worker for worker in workers]
    (problem,) = cluster.objections([one])
    assert (problem.code, problem.where) == ("AB769", "Spark cluster spark://127.0.0.1:7077")
    assert said in problem.message


def test_several_drivers_need_room_together(tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer) -> None:
    both = [process(tmp_path, master), process(tmp_path, master, name="replicate-2")]
    (problem,) = cluster.objections(both)
    assert "2 free cores are left beside 2 of drivers, for 4 tasks" in problem.message
    master.workers.append(master.workers[0] | {"id": "worker-2", "coresfree": 2})
    assert cluster.objections(both) == []


def test_another_version_of_spark_is_told_before(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    master.version = "3.5.1"
    (problem,) = cluster.objections([process(tmp_path, master)])
    assert (problem.code, "found 3.5.1" in problem.message) == ("AB768", True)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b'{"status": "STANDBY", "workers": [], "activedrivers": []}', "the master is STANDBY"),
        (200, b"<html>", "its answer is none of a Spark master"),
        (200, b'{"status": 7}', "its answer is none of a Spark master"),
        (200, b"\xff\x00", "its answer is none of a Spark master"),
        (302, b"", "HTTP status 302"),
        (400, b'{"message": "no good\\n\\tat org.apache.Secret"}', "HTTP status 400: no good"),
        (468, b"", "HTTP status 468"),
    ],
)
def test_what_is_no_master_is_told_in_a_line(
    status: int, body: bytes, said: str, tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer
) -> None:
    master.answers["/json/"] = status, body
    (problem,) = cluster.objections([process(tmp_path, master)])
    assert (problem.code, said in problem.message, "Secret" in problem.message) == ("AB768", True, False)


def test_a_master_that_is_away_is_told(tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer) -> None:
    one = process(tmp_path, master)
    limits = dict(one.limits) | {"web": "http://127.0.0.1:1"}
    (problem,) = cluster.objections([replace(one, limits=tuple(limits.items()))])
    assert (problem.code, "http://127.0.0.1:1: " in problem.message) == ("AB768", True)


def test_of_several_masters_the_one_in_charge_is_asked(
    master: MasterStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standby = MasterStandIn(tmp_path / "standby", ENVIRON)
    standby.status = "STANDBY"
    try:
        both = SparkMaster("spark://a.example:7077,b.example:7077")
        monkeypatch.setattr(both, "_web", [standby.url, master.url])
        monkeypatch.setattr(both, "_rest", [standby.url, master.url])
        assert [one.host for one in both.cluster().workers] == ["w1.example"]
        master.takes = False
        assert both.submit({"appArgs": ["", ""]}) == "driver-0"
        assert (len(standby.requests), len(master.requests)) == (0, 1)
    finally:
        standby.close()


def test_hosts_that_are_not_allowed_are_not_asked(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_ALLOWED_HOSTS", "*.example")
    (problem,) = cluster.objections([process(tmp_path, master)])
    assert problem.code == "AB309"


def test_a_master_behind_a_reference_is_looked_up(
    tmp_path: Path, master: MasterStandIn, cluster: StandaloneDeployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = process(tmp_path, master)
    one = replace(one, limits=tuple((dict(one.limits) | {"master": "env:ANABRANCH_TEST_MASTER"}).items()))
    (problem,) = cluster.objections([one])
    assert problem.code == "AB304"
    monkeypatch.setenv("ANABRANCH_TEST_MASTER", "spark://127.0.0.1:7077")
    assert cluster.objections([one]) == []
