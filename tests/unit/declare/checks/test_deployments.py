"""Deployments: what is declared becomes values, what does not fit together is reported with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import declare
from reconciler.model.declared.deployment import (
    NO_DEPLOYMENT,
    Deployment,
    SparkDrivers,
    SystemdUnits,
    YarnApplications,
)
from reconciler.model.recorded.declaration import digest_into
from tests.unit.declare.declaring import load, refused

TOPOLOGY = """
version: 1
name: shop
clusters:
  a: {{bootstrap: "a:9092", datacenter: dc1}}
  b: {{bootstrap: "b:9092", datacenter: dc2}}
  c: {{bootstrap: "c:9092", datacenter: dc2}}
flows: [{{from: a, to: b}}, {{from: a, to: c}}]
datacenters:
  dc2: {{deploy: {{{}}}}}
"""
ON_SPARK = TOPOLOGY.replace("dc2: {{deploy", "dc2: {{spark: {{master: 'spark://s1:7077'}}, deploy")


def test_what_is_declared_becomes_values(tmp_path: Path) -> None:
    fields = (
        "kind: systemd, folder: /var/lib/anabranch, host: m1, python: /opt/a/bin/python, processes: 2, "
        "metrics: {listen: '127.0.0.1:9404'}, "
        "serve: {listen: '[::1]:8083', drift-every: 5min, tokens: ['read:x=env:X', 'operate=file:/y']}, "
        "systemd: {scope: user, environment-file: /etc/a.env, memory: 4GB, cpus: 1.5}"
    )
    topology = load(tmp_path, TOPOLOGY.format(fields))
    found = topology.datacenters["dc2"].deployment
    assert found == Deployment(
        kind="systemd",
        folder="/var/lib/anabranch",
        host="m1",
        python="/opt/a/bin/python",
        processes=2,
        metrics=("--listen", "127.0.0.1:9404"),
        serve=(
            *("--listen", "[::1]:8083", "--drift-every", "5min"),
            *("--token", "read:x=env:X", "--token", "operate=file:/y"),
        ),
        systemd=SystemdUnits("user", "anabranch", "/etc/a.env", 4_000_000_000, 1.5),
        place=found.place,
    )
    assert found.place == f"{tmp_path}/0.yaml:10:17 (datacenters.dc2.deploy)"
    (file,) = topology.files
    assert (file.name, file.text) == ("0.yaml", TOPOLOGY.format(fields))


def test_drivers_are_declared_beside_the_cluster_that_has_them(tmp_path: Path) -> None:
    plain = load(tmp_path, ON_SPARK.format("kind: standalone, folder: /mnt/a"))
    assert plain.datacenters["dc2"].deployment.standalone == SparkDrivers(None, None, 1, 2**30, None)
    fields = "rest: 'https://s1:6066', web: 'http://[::1]:8080/', cores: 2, memory: 2GB, environment-file: /etc/a.env"
    full = load(tmp_path, ON_SPARK.format(f"kind: standalone, folder: /mnt/a, standalone: {{{fields}}}"))
    found = SparkDrivers("https://s1:6066", "http://[::1]:8080/", 2, 2_000_000_000, "/etc/a.env")
    assert full.datacenters["dc2"].deployment.standalone == found


def test_applications_are_declared_with_their_managers(tmp_path: Path) -> None:
    plain = load(
        tmp_path, TOPOLOGY.format("kind: yarn, folder: /mnt/a, yarn: {resource-managers: ['http://rm:8088/']}")
    )
    managers = ("http://rm:8088",)
    assert plain.datacenters["dc2"].deployment.yarn == YarnApplications(managers, None, None, None, 2, 2**32, None)
    fields = (
        "resource-managers: ['https://rm1:8090', 'https://rm2:8090'], configuration: /etc/hadoop/conf, "
        "archive: 'hdfs:///a/environment.tar.gz', queue: root.mirrors, cores: 3, memory: 2GB, "
        "environment-file: /etc/a.env"
    )
    full = load(tmp_path, TOPOLOGY.format(f"kind: yarn, folder: /mnt/a, yarn: {{{fields}}}"))
    assert full.datacenters["dc2"].deployment.yarn == YarnApplications(
        ("https://rm1:8090", "https://rm2:8090"),
        "/etc/hadoop/conf",
        "hdfs:///a/environment.tar.gz",
        "root.mirrors",
        3,
        2_000_000_000,
        "/etc/a.env",
    )


@pytest.mark.parametrize(
    ("fields", "path", "code", "said"),
    [
        ("metrics: {}", "metrics", "AB104", "kind standalone runs what copies records; found metrics"),
        ("serve: {}", "serve", "AB104", "kind standalone runs what copies records; found serve"),
        ("environment: [X]", "environment", "AB104", "environment is of kind local"),
        ("systemd: {}", "systemd", "AB104", "systemd is of kind systemd"),
        ("standalone: {memory: 4MB}", "standalone.memory", "AB104", "a size from 1GB on"),
    ],
)
def test_what_a_spark_cluster_does_not_run_is_told(
    fields: str, path: str, code: str, said: str, tmp_path: Path
) -> None:
    (problem,) = refused(tmp_path, ON_SPARK.format(f"kind: standalone, folder: /x, {fields}"))
    assert problem.where.endswith(f"(datacenters.dc2.deploy.{path})"), problem.where
    assert (problem.code, said in problem.message) == (code, True), problem.message


def test_without_one_nothing_is_deployed(tmp_path: Path) -> None:
    plain = load(tmp_path, TOPOLOGY.replace("deploy: {{{}}}", "wave: 1").format())
    assert plain.datacenters["dc2"].deployment == NO_DEPLOYMENT


def test_a_deployment_is_part_of_what_a_plan_was_made_from_and_of_no_flow(tmp_path: Path) -> None:
    one, other = (load(tmp_path, TOPOLOGY.format(f"kind: local, folder: /{name}")) for name in ("x", "y"))
    none = load(tmp_path, TOPOLOGY.format("kind: none"))
    assert len({one.digest, other.digest, none.digest}) == 3
    assert digest_into(one, "b") == digest_into(other, "b") == digest_into(none, "b")


def test_files_of_one_name_get_names_of_their_own(tmp_path: Path) -> None:
    head, flows = TOPOLOGY.format("kind: none").split("flows:")
    paths = [tmp_path / "x" / "shop.yaml", tmp_path / "y" / "shop.yaml"]
    for path, text in zip(paths, (head, f"version: 1\nflows:{flows}"), strict=True):
        path.parent.mkdir()
        path.write_text(text)
    assert [file.name for file in declare.load(paths).files] == ["shop.yaml", "2-shop.yaml"]


@pytest.mark.parametrize(
    ("fields", "path", "code", "said"),
    [
        ("kind: nomad, folder: /x", "kind", "AB104", "expected none, local, systemd, standalone, yarn or kubernetes"),
        ("folder: /x", "", "AB114", "kind is missing"),
        ("kind: local", "", "AB114", "expected a folder, as kind local keeps files"),
        ("kind: local, folder: x", "folder", "AB104", "expected an absolute path"),
        ("kind: local, folder: /x, processes: 3", "processes", "AB104", "flows lead into 2 clusters of dc2"),
        ("kind: local, folder: /x, processes: 0", "processes", "AB104", "expected a whole number from 1 to 100"),
        ("kind: standalone, folder: /x", "", "AB114", "runs drivers on the cluster of spark.master; found none"),
        ("kind: yarn, folder: /x", "", "AB114", "expected yarn with resource-managers"),
        ("kind: local, folder: /x, yarn: {resource-managers: ['http://rm:8088']}", "yarn", "AB104", "is of kind yarn"),
        (
            "kind: yarn, folder: /x, yarn: {resource-managers: ['http://rm:8088']}, serve: {}",
            "serve",
            "AB104",
            "kind yarn runs what copies records; found serve",
        ),
        ("kind: local, folder: /x, standalone: {cores: 1}", "standalone", "AB104", "standalone is of kind standalone"),
        ("kind: systemd, folder: /x, environment: [X]", "environment", "AB104", "environment is of kind local"),
        ("kind: local, folder: /x, systemd: {cpus: 1}", "systemd", "AB104", "systemd is of kind systemd"),
        ("kind: systemd, folder: /x, systemd: {scope: user, user: y}", "systemd.user", "AB104", "run as that user"),
        (
            "kind: local, folder: /x, environment: [A=b]",
            "environment[0]",
            "AB104",
            "the name of an environment variable",
        ),
        ("kind: local, folder: /x, serve: {tls-key: /k}", "serve", "AB114", "belong together"),
        ("kind: local, folder: /x, serve: {tokens: ['read=hunter2']}", "serve.tokens[0]", "AB104", "expected ROLE="),
        ("kind: local, folder: /x, metrics: {listen: '9404'}", "metrics.listen", "AB104", "expected HOST:PORT"),
        ("kind: systemd, folder: /x, systemd: {memory: 4MB}", "systemd.memory", "AB104", "a size from 1GB on"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(fields: str, path: str, code: str, said: str, tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, TOPOLOGY.format(fields))
    assert problem.where.endswith(f"(datacenters.dc2.deploy{'.' if path else ''}{path})"), problem.where
    assert problem.code == code
    assert said in problem.message, problem.message
    assert "hunter2" not in str(problem)


def test_two_data_centres_have_two_folders(tmp_path: Path) -> None:
    text = TOPOLOGY.format("kind: local, folder: /x") + "  dc1: {deploy: {kind: local, folder: /x}}\n"
    (problem,) = refused(tmp_path, text)
    assert (problem.code, problem.where) == ("AB106", f"{tmp_path}/0.yaml:11:39 (datacenters.dc1.deploy.folder)")
