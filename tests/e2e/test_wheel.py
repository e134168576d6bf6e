"""The wheel stands alone: installed into an empty environment, outside the repository, it has all it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def run(*command: object, folder: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
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
def test_schema_validate_and_demo_from_an_installed_wheel(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, folder=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("anabranch-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "env", folder=tmp_path)
    binaries = tmp_path / "env" / "bin"
    run(binaries / "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel, folder=tmp_path)
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
