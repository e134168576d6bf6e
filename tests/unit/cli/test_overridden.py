"""`--override` of a worker: settings in place of those of its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from reconciler.cli.migrate.connect_distributed import overridden
from reconciler.convert.conversion import properties_of


def test_an_override_takes_the_place_of_a_setting_and_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "worker.properties"
    path.write_text("group.id=file\nbootstrap.servers=a:9092\n")
    given = ["group.id=first", "group.id = mirus", "producer.compression.type=lz4", "listeners=http://127.0.0.1:0"]
    made = overridden(properties_of(path), given)
    assert {one.key: one.value for one in made} == {
        "group.id": "mirus",
        "bootstrap.servers": "a:9092",
        "producer.compression.type": "lz4",
        "listeners": "http://127.0.0.1:0",
    }


@pytest.mark.parametrize("given", ["group.id", "=x", " = x"])
def test_what_is_no_setting_is_refused_without_its_value(given: str, tmp_path: Path) -> None:
    path = tmp_path / "worker.properties"
    path.write_text("")
    with pytest.raises(typer.BadParameter, match="expected KEY=VALUE"):
        overridden(properties_of(path), [given])
