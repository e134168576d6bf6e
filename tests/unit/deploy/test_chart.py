"""Charts of Helm: with the values that they bring they are the manifests, and other values go where these came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from reconciler.declare import load
from reconciler.operate.deployments.rendering import rendered
from tests.support.commands.command import anabranch
from tests.support.kubernetes.charts import filled
from tests.support.kubernetes.patterns import PATTERNS

pytestmark = pytest.mark.slow

YAML_SAFE = YAML(typ="safe", pure=True)


def texts(folder: Path, text: str, *, as_chart: bool) -> Mapping[str, Mapping[str, str]]:
    file = folder / "topology.yaml"
    file.write_text(text)
    return rendered(load([file]), as_chart=as_chart)


def objects(files: Mapping[str, str]) -> list[Any]:
    """All objects of some files, without the namespace: a chart has the one that it is installed in."""
    found = [one for text in files.values() for one in YAML_SAFE.load_all(text) if one["kind"] != "Kustomization"]
    for one in found:
        one["metadata"].pop("namespace", None)
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_chart_with_its_own_values_is_the_manifests(pattern: str, tmp_path: Path) -> None:
    plain = texts(tmp_path, PATTERNS[pattern], as_chart=False)
    charts = texts(tmp_path, PATTERNS[pattern], as_chart=True)
    assert charts.keys() == plain.keys()
    for name, files in charts.items():
        values = YAML_SAFE.load(files["values.yaml"])
        assert objects(filled(files, values)) == objects(plain[name])
        about = YAML_SAFE.load(files["Chart.yaml"])
        assert (about["apiVersion"], about["type"]) == ("v2", "application")
        assert about["version"].startswith("0.1.0+")


def test_values_go_everywhere_where_they_count(tmp_path: Path) -> None:
    files = texts(tmp_path, PATTERNS["active-passive"], as_chart=True)["dc2"]
    values = YAML_SAFE.load(files["values.yaml"]) | {
        "image": "other.example/anabranch:2",
        "secret": "other-secret",
        "pullSecret": "other-pull",
        "memoryMiB": 8192,
        "milliCpus": 4000,
        "mounts": {
            "/etc/kafka/east": "other-east",
            "/etc/kafka/west": "other-west",
            "/etc/anabranch/tls": "other-tls",
            "/etc/anabranch/tokens": "other-tokens",
        },
    }
    made = filled(files, values)
    everything = "".join(text for name, text in made.items() if name != "templates/topology.yaml")
    for former in ("images.example", "name: kafka", "kafka-east", "kafka-west", "serve-tls", "serve-tokens"):
        assert former not in everything, former
    (application,) = [one for one in objects(made) if one["kind"] == "SparkApplication"]
    conf = application["spec"]["sparkConf"]
    assert conf["spark.kubernetes.container.image"] == "other.example/anabranch:2"
    assert conf["spark.kubernetes.driver.limit.cores"] == "4000m"
    assert (conf["spark.driver.memory"], conf["spark.driver.memoryOverhead"]) == ("256m", "7936m")


def test_what_a_topology_has_in_braces_stays_text(tmp_path: Path) -> None:
    text = PATTERNS["fan-out"] + "# {{ .Values.image }} and }} and {{{{\n"
    files = texts(tmp_path, text, as_chart=True)["dc2"]
    assert "{{ .Values.image }} and" not in files["templates/topology.yaml"]
    made = filled(files, YAML_SAFE.load(files["values.yaml"]))
    (found,) = [one for one in objects(made) if one["kind"] == "ConfigMap"]
    assert found["data"]["topology.yaml"] == text


def test_a_folder_of_manifests_becomes_one_of_a_chart_and_back(tmp_path: Path) -> None:
    file, out = tmp_path / "topology.yaml", tmp_path / "out"
    file.write_text(PATTERNS["fan-out"])
    assert anabranch("render", file, "--out", out).code == 0
    plain = {path.name for path in (out / "dc2").iterdir()}
    (out / "dc2" / "mine.yaml").write_text("a: 1\n")
    assert anabranch("render", file, "--out", out, "--helm", "--check").code == 3
    assert anabranch("render", file, "--out", out, "--helm").code == 0
    there = {path.relative_to(out / "dc2").as_posix() for path in (out / "dc2").rglob("*.yaml")}
    assert there == {"Chart.yaml", "values.yaml", "mine.yaml"} | {
        f"templates/{name}" for name in plain if name != "kustomization.yaml"
    }
    assert anabranch("render", file, "--out", out, "--helm", "--check").code == 0
    assert anabranch("render", file, "--out", out).code == 0
    assert {path.name for path in (out / "dc2").rglob("*.yaml")} == plain | {"mine.yaml"}


def test_a_chart_needs_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text(PATTERNS["fan-out"])
    refused = anabranch("render", file, "--helm")
    assert (refused.code, "a chart is several files" in refused.stderr) == (2, True)
