"""Data centres: where their flows run, what of Spark cannot be chosen, and names that nobody uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.declared.datacenter import DataCenter, Spark
from reconciler.operate.flows.running import spark_of
from reconciler.operate.targets import InvalidArgument
from tests.unit.declare.declaring import load, refused, warnings

MASTER = "spark://m1.example:7077,m2.example:7078"
TOPOLOGY = """
version: 1
name: shop
clusters:
  a: {{bootstrap: "a:9092", datacenter: dc1}}
  b: {{bootstrap: "b:9092", datacenter: dc2}}
  c: {{bootstrap: "c:9092"}}
flows: [{{from: a, to: b}}, {{from: b, to: a}}, {{from: a, to: c}}]
datacenters: {{{}}}
"""


def declared(*datacenters: str) -> str:
    return TOPOLOGY.format(", ".join(datacenters))


def test_flows_run_where_their_targets_stand(tmp_path: Path) -> None:
    conf = "{spark.executor.cores: 1, spark.eventLog.enabled: true, spark.executor.memory: 1g}"
    topology = load(tmp_path, declared(f"dc1: {{spark: {{master: '{MASTER}', conf: {conf}}}}}", "dc2: {spark: {}}"))
    settings = (("spark.executor.cores", "1"), ("spark.eventLog.enabled", "true"), ("spark.executor.memory", "1g"))
    there = Spark(MASTER, settings)
    assert topology.datacenters == {"dc1": DataCenter("dc1", there), "dc2": DataCenter("dc2")}
    assert [topology.spark(alias) for alias in "abc"] == [there, Spark(), Spark()]
    assert spark_of(topology, ("a",)) == there
    assert spark_of(topology, ("b", "c")) == Spark()
    with pytest.raises(InvalidArgument, match=r"b \(dc2\), a \(dc1\) run on different Spark clusters"):
        spark_of(topology, ("a", "b"))


def test_where_flows_run_changes_no_digest(tmp_path: Path) -> None:
    other = load(tmp_path, declared(f"dc1: {{spark: {{master: '{MASTER}'}}}}"))
    assert other.digest == load(tmp_path, declared("dc1: {spark: {}}")).digest


@pytest.mark.parametrize(
    ("datacenter", "where", "code", "said"),
    [
        ("dc1: {}", "datacenters.dc1", "AB104", "expected a data centre; found an empty mapping"),
        ("'dc 1': {spark: {}}", 'datacenters["dc 1"]', "AB104", "expected a name of letters, digits, ., _ and -"),
        ("dc1: {spark: {}, serve: {}}", "datacenters.dc1.serve", "AB103", "by `deploy` of the data centre"),
        ("dc1: {spark: {master: local}}", "datacenters.dc1.spark.master", "AB104", "expected spark://host:port"),
        ("dc1: {spark: {master: yarn}}", "datacenters.dc1.spark.master", "AB104", "found 'yarn'"),
        ("dc1: {spark: {mster: x}}", "datacenters.dc1.spark.mster", "AB103", "unknown field mster"),
        (
            "dc1: {spark: {conf: {executor.cores: 1}}}",
            'datacenters.dc1.spark.conf["executor.cores"]',
            "AB104",
            "expected a setting of Spark, such as spark.executor.cores; found 'executor.cores'",
        ),
        (
            "dc1: {spark: {conf: {spark.executor.cores: [1]}}}",
            'datacenters.dc1.spark.conf["spark.executor.cores"]',
            "AB104",
            "expected text, a number, true or false; found a list of 1",
        ),
        (
            "dc1: {spark: {conf: {spark.speculation: true}}}",
            'datacenters.dc1.spark.conf["spark.speculation"]',
            "AB104",
            "spark.speculation cannot be chosen: a task that ran twice",
        ),
        (
            "dc1: {spark: {conf: {spark.authenticate.secret: hunter2}}}",
            'datacenters.dc1.spark.conf["spark.authenticate.secret"]',
            "AB110",
            "expected no secrets under conf",
        ),
    ],
)
def test_what_cannot_be(tmp_path: Path, datacenter: str, where: str, code: str, said: str) -> None:
    (problem,) = refused(tmp_path, declared(datacenter))
    assert problem.code == code
    assert problem.where.endswith(f"({where})")
    assert said in problem.message
    assert "hunter2" not in str(problem)


def test_two_files_with_one_data_centre(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, declared("dc1: {spark: {}}"), "version: 1\ndatacenters: {dc1: {spark: {}}}\n")
    assert (problem.code, "data centre dc1 is declared twice" in problem.message) == ("AB106", True)


def test_nobody_stands_there(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, declared("dc3: {spark: {}}"))
    assert (warning.code, warning.message) == ("AB192", "no cluster stands in dc3")
