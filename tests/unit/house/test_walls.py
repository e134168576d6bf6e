"""The contracts between rooms refuse what they are there for: tried on a copy of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# By module that is added, what it imports: kafka-python where it must not be, then rooms above.
TRIED = {
    "replicator/transfer/wall_tried.py": "kafka",
    "checkpoints/groups/wall_tried.py": "kafka.errors",
    "verify/wall_tried.py": "kafka",
    "failover/logs/wall_tried.py": "kafka.net",
    "wire/requests/wall_tried.py": "kafka.protocol",
    "replicator/partition/wall_tried.py": "reconciler.replicator.task.task",
    "wire/protocol/wall_tried.py": "reconciler.wire.requests.client",
    "model/wall_tried_upwards/__init__.py": "reconciler.plan",
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what import-linter reports of a copy of the package with forbidden imports."""
    copy = tmp_path_factory.mktemp("walls")
    shutil.copytree(ROOT / "reconciler", copy / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "stacks", copy / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for name, imported in TRIED.items():
        (copy / "reconciler" / name).parent.mkdir(exist_ok=True)
        (copy / "reconciler" / name).write_text(f"import {imported}\n", encoding="utf-8")
    command = Path(sys.executable).with_name("lint-imports")
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [command, "--no-cache"], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    return done.stdout


@pytest.mark.parametrize("name", TRIED)
def test_what_the_contracts_forbid_is_refused(refused: str, name: str) -> None:
    module = ".".join(("reconciler", *Path(name).with_suffix("").parts)).removesuffix(".__init__")
    assert f"{module} -> " in refused or f"{module} is not allowed to import" in refused, refused


def test_a_room_without_a_floor_is_refused(refused: str) -> None:
    listed = refused.partition("not listed as layers:")[2]
    assert "- reconciler.model.wall_tried_upwards\n" in listed, refused
