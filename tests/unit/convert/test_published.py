"""Twenty configurations in the styles that people publish, each with what came of it in a golden file, key by key."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.convert.conversion import Converted, convert
from reconciler.declare import load

FOLDER = Path(__file__).parents[2] / "data" / "converted"
FILES = sorted(path for path in FOLDER.iterdir() if not path.name.endswith(".golden.yaml"))
SECRETS = ("changeit", "sec=ret", "abc=", "'secret'")


def made(path: Path) -> Converted:
    here = Path.cwd()
    os.chdir(FOLDER)
    try:
        return convert([Path(path.name)], f"t{path.stem}")
    finally:
        os.chdir(here)


def test_there_are_twenty() -> None:
    assert len(FILES) == 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_is_converted_as_it_was_reviewed(path: Path, tmp_path: Path) -> None:
    found = made(path)
    golden = path.with_name(f"{path.stem}.golden.yaml")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(found.text, encoding="utf-8")
    assert found.text == golden.read_text(encoding="utf-8")
    file = tmp_path / "topology.yaml"
    file.write_text(found.text, encoding="utf-8")
    assert load([file]).flows
    assert not any(secret in found.text for secret in SECRETS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_setting_is_a_value_or_is_listed(path: Path) -> None:
    """One that another one counts before, or that has the value of another flow's, is neither: these are named here."""
    found = made(path)
    if path.suffix != ".properties":
        return
    for line in path.read_text().splitlines():
        key = line.partition("=")[0].strip()
        if "=" not in line or line[:1] in " #" or key == "clusters" or key.endswith(".enabled"):
            continue
        assert key in found.text or key in OVERRULED.get(path.stem, ()), key


OVERRULED = {
    "01-both-ways": ("B->A.topics", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor"),
    "02-stores-of-java": ("ssl.keystore.password",),
    "08-aggregation": ("store_2->center.topics",),
}
