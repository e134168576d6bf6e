"""The wheel stands alone: installed into an empty environment, outside the repository, it has all it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release import lock

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def run(*command: object, folder: Path, path: Path | None = None) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if path is not None:
        environment["PATH"] = os.pathsep.join((str(path), environment["PATH"]))
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, (command, ended.stdout[-2000:], ended.stderr[-2000:])
    return ended.stdout


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_schema_validate_and_demo_from_an_installed_wheel(tmp_path: Path) -> None:
    run(sys.executable, "-m", "release", "build", "--allow-dirty", "--into", tmp_path / "dist", folder=ROOT)
    run(sys.executable, "-m", "venv", tmp_path / "env", folder=tmp_path)
    binaries = tmp_path / "env" / "bin"
    # As the jobs of a pipeline do it: by the hashes in the locks, with no other version and no other file.
    shutil.copytree(ROOT / "ci", tmp_path / "ci")
    for made in (tmp_path / "dist").glob("anabranch*[lk]"):
        shutil.copy(made, tmp_path / "ci")
    run("sh", "ci/install.sh", folder=tmp_path, path=binaries)
    pinned = {f"{pin.name}=={pin.version}" for pin in lock.read(lock.RUNTIME)}
    frozen = run(binaries / "pip", "freeze", folder=tmp_path).lower().replace("_", "-").replace(".yaml", "-yaml")
    assert pinned <= set(frozen.split())
    schema = run(binaries / "anabranch", "schema", folder=tmp_path)
    assert '"$schema": "http://json-schema.org/draft-07/schema#"' in schema
    (packaged,) = (tmp_path / "env").glob("lib/*/site-packages/reconciler/_data/topology/examples/fan-out.yaml")
    assert "valid" in run(binaries / "anabranch", "validate", packaged, folder=tmp_path)
    assert run(binaries / "anabranch", "explain", "AB407", folder=tmp_path).startswith("AB407  Guardrails\n")
    assert run(binaries / "anabranch", "graph", packaged, "--format", "svg", folder=tmp_path).endswith("</svg>\n")
    (pipelines,) = (tmp_path / "env").glob("lib/*/site-packages/reconciler/_data/ci")
    assert len([*pipelines.glob("git*/*.yml")]) == 4
    for script in ("plan", "comment", "reviewed", "drift"):
        copied = pipelines / "scripts" / f"{script}.py"
        assert f"usage: {script}.py" in run(binaries / "python", copied, "--help", folder=tmp_path)
    story = run(binaries / "anabranch", "demo", "fan-out", "--seconds", "2", folder=tmp_path)
    assert "identical, offset by offset" in story
