"""The processes that a data centre is to run, and the steps from what was found to these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.datacenter import DataCenter, Spark
from reconciler.model.declared.deployment import (
    Deployment,
    KubernetesPods,
    SparkDrivers,
    SystemdUnits,
    YarnApplications,
)
from reconciler.model.declared.topology import Topology, TopologyFile
from reconciler.model.planning.deployments import (
    DeployedProcess,
    DeploymentPlan,
    DeployProcess,
    FactChange,
    Process,
    StopProcess,
    UpdateProcess,
)
from reconciler.plan.deployments import BY_OTHERS, deployment_drift, deployment_plans, removal_plans, wanted_processes
from tests.unit.plan.facts import flow, topology

LOCAL = Deployment("local", "/srv/dc", metrics=("--listen", "127.0.0.1:9404"))
PYTHON = "/opt/python"
FILE = TopologyFile("shop.yaml", "version: 1\n")


def shop(deployment: Deployment = LOCAL) -> Topology:
    """Return flows from a to b and c, which stand in one data centre with a deployment."""
    made = topology(flow("a", "b"), flow("a", "c"))
    password = Security("SASL_PLAINTEXT", "PLAIN", "u", Reference("env", "A_PW"))
    there = {
        "a": replace(made.clusters["a"], security=password),
        **{alias: replace(made.clusters[alias], datacenter="dc") for alias in "bc"},
    }
    places = {"dc": DataCenter("dc", deployment=deployment)}
    return replace(made, clusters=there, datacenters=places, files=(FILE,))


def wanted(one: Topology, version: str = "0.1.0") -> tuple[Process, ...]:
    return wanted_processes(one, one.datacenters["dc"], PYTHON, lambda *_: version)


def test_drivers_have_the_master_and_their_share_of_a_worker_as_facts() -> None:
    drivers = SparkDrivers("http://s1:6066", None, 2, 2**30, "/etc/a.env")
    made = shop(Deployment("standalone", "/mnt/dc", standalone=drivers))
    spark = Spark(Reference("env", "MASTERS"))
    made = replace(made, datacenters={"dc": replace(made.datacenters["dc"], spark=spark)})
    (process,) = wanted(made)
    assert dict(process.limits) == {
        "master": "env:MASTERS",
        "rest": "http://s1:6066",
        "cores": "2",
        "memory": "1073741824",
        "environment-file": "/etc/a.env",
    }
    assert process.variables == ("A_PW", "MASTERS")
    assert Process.from_json(process.to_json()) == process


def test_applications_have_what_yarn_is_asked_for_as_facts() -> None:
    applications = YarnApplications(("http://r1:8088", "http://r2:8088"), "/etc/hadoop/conf", None, "mirrors")
    conf = (("spark.yarn.stagingDir", "hdfs:///staging"), ("spark.executor.cores", "1"))
    made = shop(Deployment("yarn", "/mnt/dc", yarn=applications))
    made = replace(made, datacenters={"dc": replace(made.datacenters["dc"], spark=Spark(None, conf))})
    (process,) = wanted(made)
    assert dict(process.limits) == {
        "resource-managers": "http://r1:8088,http://r2:8088",
        "configuration": "/etc/hadoop/conf",
        "queue": "mirrors",
        "cores": "2",
        "memory": "4294967296",
        "conf.spark.yarn.stagingDir": "hdfs:///staging",
    }
    assert process.python == PYTHON
    assert Process.from_json(process.to_json()) == process
    packed = replace(applications, archive="hdfs:///environment.tar.gz")
    (process,) = wanted(shop(Deployment("yarn", "/mnt/dc", yarn=packed)))
    assert process.python == "environment/bin/python"


def test_pods_are_left_to_others_and_what_ran_here_before_is_stopped() -> None:
    made = shop(Deployment("kubernetes", kubernetes=KubernetesPods(image="a:1")))
    (process,) = wanted(made)
    assert process.python == "/opt/anabranch/bin/python"
    nothing = deployment_plans(made, made.targets, (), {}, "m1")
    assert nothing == (DeploymentPlan("dc", "kubernetes", 1, notices=(BY_OTHERS,)),)
    before = wanted(shop())
    (stopping,) = deployment_plans(made, made.targets, (), found(*before), "m1")
    assert stopping.steps == tuple(StopProcess(one) for one in before)


def found(*processes: Process, **fields: Any) -> Mapping[str, tuple[DeployedProcess, ...]]:
    return {"dc": tuple(DeployedProcess(one, **{"is_running": True, "pid": 7, **fields}) for one in processes)}


def plan(one: Topology, there: Mapping[str, tuple[DeployedProcess, ...]], here: str = "m1") -> DeploymentPlan:
    (made,) = deployment_plans(one, one.targets, wanted(one), there, here)
    return made


def test_a_data_centre_runs_the_flows_into_its_clusters_and_nothing_else() -> None:
    replicate, metrics = wanted(shop())
    assert (replicate.name, replicate.command) == ("replicate", ("replicate", "--clusters", "b,c", "--wait=forever"))
    assert metrics.command == ("metrics", "--clusters", "b,c", "--listen", "127.0.0.1:9404")
    assert (replicate.python, replicate.folder, replicate.variables) == (PYTHON, "/srv/dc", ("A_PW",))
    assert [name for name, _ in replicate.files] == ["shop.yaml"]
    assert wanted_processes(shop(), DataCenter("elsewhere", deployment=LOCAL), PYTHON, lambda *_: "0.1.0") == ()
    assert wanted(shop(replace(LOCAL, kind="none"))) == ()


def test_clusters_are_dealt_to_processes() -> None:
    processes = wanted(shop(replace(LOCAL, processes=2, metrics=None)))
    assert [(one.name, one.command[2]) for one in processes] == [("replicate", "b"), ("replicate-2", "c")]


def test_tokens_and_named_variables_are_given_too() -> None:
    serving = Deployment(
        "local", "/srv/dc", environment=("EXTRA",), serve=("--token", "read=env:READ", "--token", "operate=file:/x")
    )
    assert [(one.name, one.variables) for one in wanted(shop(serving))] == [
        ("replicate", ("A_PW", "EXTRA")),
        ("serve", ("A_PW", "EXTRA", "READ")),
    ]


def test_what_units_get_is_a_fact() -> None:
    units = SystemdUnits("system", "mirror", "/etc/x.env", 4_000_000_000, 1.5)
    (one,) = wanted(shop(Deployment("systemd", "/srv/dc", systemd=units)))
    limits = {
        "scope": "system",
        "user": "mirror",
        "environment-file": "/etc/x.env",
        "memory": "4000000000",
        "cpus": "1.5",
    }
    assert dict(one.limits) == limits
    assert one.facts.items() >= limits.items()
    assert Process.from_json(one.to_json()) == one


def test_what_is_not_there_is_deployed_and_what_is_as_wanted_is_kept() -> None:
    one = shop()
    replicate, metrics = wanted(one)
    assert plan(one, {}).steps == (DeployProcess(replicate), DeployProcess(metrics))
    kept = plan(one, found(replicate, metrics))
    assert (kept.steps, kept.kept, kept.notices) == ((), ("replicate", "metrics"), ())


def test_what_does_not_run_is_deployed_again() -> None:
    one = shop()
    replicate, _ = processes = wanted(one)
    made = plan(one, found(*processes, is_running=False, why="its keeper does not run"))
    assert made.steps[0] == DeployProcess(replicate, "it does not run: its keeper does not run")


@pytest.mark.parametrize(
    ("fields", "change", "restarts"),
    [
        ({"version": "0.0.9"}, FactChange("version", "0.0.9", "0.1.0"), (True, True)),
        ({"python": "/old"}, FactChange("python", "/old", PYTHON), (True, True)),
        ({"variables": ()}, FactChange("variables", "", "A_PW"), (True, True)),
        # A process that copies records reads its files anew by itself.
        ({"files": (("shop.yaml", "0" * 12),)}, None, (False, True)),
    ],
)
def test_other_facts_are_an_update(
    fields: dict[str, Any], change: FactChange | None, restarts: tuple[bool, bool]
) -> None:
    one = shop()
    made = plan(one, found(*(replace(process, **fields) for process in wanted(one))))
    assert all(isinstance(step, UpdateProcess) for step in made.steps)
    updates = [step for step in made.steps if isinstance(step, UpdateProcess)]
    assert change is None or [step.changes for step in updates] == [(change,)] * 2
    assert tuple(step.restarts for step in updates) == restarts


def test_an_older_one_that_was_left_running_ends() -> None:
    one = shop(replace(LOCAL, metrics=None))
    (step,) = plan(one, found(*wanted(one), generations=2)).steps
    assert isinstance(step, UpdateProcess)
    assert step.changes == (FactChange("generations", "2", "1"),)


def test_what_is_no_longer_declared_stops_last_and_what_moved_first() -> None:
    one = shop(replace(LOCAL, metrics=None))
    (replicate,) = wanted(one)
    metrics = replace(replicate, name="metrics")
    assert plan(one, found(metrics)).steps == (DeployProcess(replicate), StopProcess(metrics))
    elsewhere = replace(replicate, folder="/srv/old")
    assert plan(one, found(elsewhere)).steps == (
        StopProcess(elsewhere, "deployed by local in /srv/old"),
        DeployProcess(replicate),
    )
    ended = shop(Deployment())
    assert plan(ended, found(replicate)).steps == (StopProcess(replicate),)
    gone = replace(ended, datacenters={})
    assert plan_of_gone(gone, found(replicate)).steps == (StopProcess(replicate),)


def plan_of_gone(one: Topology, there: Mapping[str, tuple[DeployedProcess, ...]]) -> DeploymentPlan:
    (made,) = deployment_plans(one, one.targets, (), there, "m1")
    return made


def test_another_machine_leaves_it_as_it_is() -> None:
    one = shop(replace(LOCAL, host="m2"))
    made = plan(one, {})
    assert made.steps == ()
    assert made.notices == ("it is deployed on m2 alone, and this machine is m1: it is left as it is",)
    assert plan(one, {}, here="m2").steps


def test_data_centres_of_other_targets_are_left_out() -> None:
    one = topology(flow("a", "b"), flow("b", "a"))
    places = {f"dc-{alias}": DataCenter(f"dc-{alias}", deployment=replace(LOCAL, folder=f"/{alias}")) for alias in "ab"}
    one = replace(one, datacenters=places)
    made = deployment_plans(one, ["b"], (), found=dict.fromkeys(places, ()), here="m1")
    assert [plan.datacenter for plan in made] == ["dc-b"]


def test_a_part_of_the_clusters_changes_no_process() -> None:
    one = shop()
    (made,) = deployment_plans(one, ["b"], wanted(one), {}, "m1")
    assert made.steps == ()
    assert made.notices == ("its processes change where all its clusters are applied together, and c is not",)
    (kept,) = deployment_plans(one, ["b"], wanted(one), found(*wanted(one)), "m1")
    assert (kept.kept, kept.notices) == (("replicate", "metrics"), ())


def test_a_process_that_is_started_again_and_again_is_noticed() -> None:
    one = shop()
    made = plan(one, found(*wanted(one), restarts=3, why="ended with 3"))
    assert made.notices[0] == "replicate was started again 3 times since it was deployed; the last time it ended with 3"


def test_drift_is_what_runs_otherwise_and_no_file_that_is_not_applied() -> None:
    replicate, metrics = wanted(shop())
    older = replace(replicate, version="0.0.9", files=())
    told = list(deployment_drift([replicate, metrics], found(older)))
    assert [(one.process, one.fact, one.desired, one.found) for one in told] == [
        ("replicate", "version", "0.1.0", "0.0.9"),
        ("metrics", "process", "runs", "not deployed"),
    ]


def test_destroying_stops_what_feeds_nothing_else() -> None:
    one = shop()
    there = found(*wanted(one))
    (whole,) = removal_plans(one, ["b", "c"], there)
    assert [type(step) for step in whole.steps] == [StopProcess, StopProcess]
    (part,) = removal_plans(one, ["b"], there)
    assert (part.steps, part.notices) == ((), ("its processes go on, as they also feed c",))
