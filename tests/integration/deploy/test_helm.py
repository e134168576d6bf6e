"""Charts as Helm itself takes them: no complaint, and the very objects of the manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.support.commands.command import anabranch
from tests.support.kubernetes.patterns import PATTERNS

HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(shutil.which("go") is None, reason="there is no go, which builds Helm"),
]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Helm, built from its Go module; Go's cache keeps what was built."""
    folder = tmp_path_factory.mktemp("helm")
    subprocess.run(["go", "install", HELM], env=os.environ | {"GOBIN": str(folder)}, check=True)
    return folder / "helm"


def objects(text: str) -> dict[tuple[str, str], Any]:
    """Objects by kind and name, without their namespaces."""
    found = {}
    for one in YAML(typ="safe", pure=True).load_all(text):
        if one is not None and one["kind"] != "Kustomization":
            one["metadata"].pop("namespace", None)
            found[one["kind"], one["metadata"]["name"]] = one
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_chart_is_taken_and_is_the_manifests(pattern: str, helm: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "topology.yaml", tmp_path / "charts"
    file.write_text(PATTERNS[pattern] + "# {{ .Values.image }}\n")
    assert anabranch("render", file, "--helm", "--out", out).code == 0
    for chart in out.iterdir():
        lint = subprocess.run([helm, "lint", "--strict", chart], capture_output=True, text=True, check=False)
        assert lint.returncode == 0, lint.stdout
        made = subprocess.run([helm, "template", "here", chart], capture_output=True, text=True, check=True).stdout
        plain = anabranch("render", file, "--datacenter", chart.name)
        assert objects(made) == objects(plain.stdout)
    other = [str(helm), "template", "here", str(chart), "--set", "image=other.example/a:2", "--set", "milliCpus=3000"]
    changed = subprocess.run(other, capture_output=True, text=True, check=True).stdout
    (application,) = [
        one for (kind, name), one in objects(changed).items() if kind == "SparkApplication" and name.endswith("cate")
    ]
    conf = application["spec"]["sparkConf"]
    assert conf["spark.kubernetes.container.image"] == "other.example/a:2"
    assert conf["spark.kubernetes.driver.limit.cores"] == "3000m"
