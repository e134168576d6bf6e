"""Without Spark, Arrow, Pulumi and FastAPI: what needs none of them works, and the rest names what to install."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create
from tests.support.commands import one_flow
from tests.support.commands.without import anabranch_without

ROOT = Path(__file__).parents[3]
EXTRAS = ("pyspark", "py4j", "pyarrow", "pulumi", "pulumi_kafka", "fastapi", "uvicorn", "starlette", "opentelemetry")


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    create(source_cluster, topic_name, 2)
    ends = source_cluster, target_cluster
    return one_flow.write(tmp_path / "shop.yaml", one_flow.name_of(topic_name), ends, topic_name)


def test_the_core_declares_none_of_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {Requirement(one).name.replace("-", "_") for one in project["dependencies"]}
    assert core.isdisjoint(EXTRAS)


def test_clusters_are_planned_applied_and_watched_without_them(file: Path) -> None:
    for command, text in (
        (["validate", file], "valid"),
        (["plan", file], "1 flow"),
        (["apply", file, "--yes"], "This declaration is now in force at west."),
        (["drift", file], "no drift"),
        (["status", file], "not running"),
        (["doctor", file], "west"),
        (["explain", file], "built in"),
        (["graph", file], "west"),
        (["metrics", file, "--once"], "anabranch_build"),
    ):
        ended = anabranch_without(EXTRAS, *command)
        assert ended.code == 0, ended
        assert text in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["serve"], "serve"),
        (["replicate"], "replicate"),
        (["reconcile", "--once"], "replicate"),
        (["verify"], "replicate"),
        (["metrics", "--otlp", "http://127.0.0.1:9"], "otlp"),
    ],
)
def test_a_command_that_needs_one_names_the_extra(file: Path, command: list[str], extra: str) -> None:
    ended = anabranch_without(EXTRAS, command[0], file, *command[1:])
    assert ended.code == 1, ended
    assert f"the extra {extra} of Anabranch is not installed" in ended.stderr
    assert f"[AB327]\n    → pip install 'anabranch[{extra}]'\n" in ended.stderr


DEPLOYED = """\
version: 1
name: shop
clusters:
  east: {bootstrap: "127.0.0.1:1", datacenter: dc1}
  west: {bootstrap: "127.0.0.1:1", datacenter: dc2}
flows: [{from: east, to: west}]
datacenters:
  dc2:
    deploy: {kind: kubernetes, kubernetes: {image: "127.0.0.1:1/anabranch:1", context: none}}
"""


def test_pods_and_drivers_are_of_a_version_of_spark(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(DEPLOYED)
    for command in (["render", file], ["doctor", file]):
        ended = anabranch_without(EXTRAS, *command)
        assert ended.code == 1, ended
        assert "the extra replicate of Anabranch is not installed: pyspark is missing" in ended.stdout + ended.stderr


def test_without_arrow_only_parquet_is_refused_and_before_anything_is_made(file: Path, tmp_path: Path) -> None:
    ledger = ("--ledger", tmp_path / "ledger", "--ledger-format", "parquet")
    ended = anabranch_without(("pyarrow",), "replicate", file, "--until-caught-up", *ledger)
    assert (ended.code, "→ pip install 'anabranch[stream]'\n" in ended.stderr) == (1, True), ended
    assert not (tmp_path / "ledger").exists()


def test_the_demo_starts_no_cluster_that_nothing_could_copy_from() -> None:
    ended = anabranch_without(EXTRAS, "demo")
    assert (ended.code, "[AB327]" in ended.stderr, ended.stdout) == (1, True, "")
