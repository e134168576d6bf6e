"""What docs/reference/offsets.md tells users to type, typed, on clusters of its own, and the files that it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from reconciler.checkpoints.groups.files import read_file
from reconciler.cli.main import main
from reconciler.model.offsets.committed import COLUMNS, Asked
from tests.conftest import MakeClusters
from tests.support.clusters.consumers import hundred, leave_behind, offsets_of, rows, table
from tests.support.clusters.kafka import delete_records
from tests.support.commands.payments import write as declare

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "offsets.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_its_commands_do_what_it_says(
    make_clusters: MakeClusters,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    east, west = make_clusters("us-east", "eu-west")
    declare(tmp_path, east.bootstrap, west.bootstrap, "orders")
    monkeypatch.chdir(tmp_path)
    hundred(east, "orders", 2)
    delete_records(east, "orders", 10)
    leave_behind(east, "billing", {("orders", 0): 60, ("orders", 1): 70})
    leave_behind(east, "shipping", {("orders", 0): 50})
    assert main(["apply", "payments.yaml", "--yes"]) == 0
    capsys.readouterr()
    said: list[str] = []
    (commands,) = blocks("sh")
    for line in commands.splitlines():
        name, *arguments = shlex.split(line)
        assert (name, main(arguments)) == ("anabranch", 0), (line, capsys.readouterr())
        said.append(capsys.readouterr().out)

    groups, csv, positions, plan, moved, exported, imported, translated = said
    assert [row[:4] for row in table(groups)[1:]] == [
        ["billing", "orders", "0", "60"],
        ["billing", "orders", "1", "70"],
    ]
    assert [(row["group"], row["lag"]) for row in rows(csv)] == [("shipping", "50")]
    assert [(one["remote"], one["offset"]) for one in json.loads(positions)["offsets"]] == [
        ("us-east.orders", 0),
        ("us-east.orders", 0),
    ]
    assert table(plan)[1:] == [["billing", "orders", "0", "60", "41", "19", "offsets", "read", "again"]]
    assert table(moved)[1:] == [
        ["billing", "orders", "0", "60", "10", "50", "offsets", "read", "again"],
        ["billing", "orders", "1", "70", "0", "70", "offsets", "read", "again"],
    ]
    # Nothing is copied yet.
    assert [(row["offset"], row["how"]) for row in rows(translated)] == [("41", "ahead")]
    assert (exported, len(table(imported))) == ("", 4)
    assert offsets_of(east, "billing") == {("orders", 0): 10, ("orders", 1): 0}
    assert [one.owner for one in read_file(tmp_path / "offsets.csv").asked] == ["billing", "billing", "shipping"]


def test_its_files_can_be_read(tmp_path: Path) -> None:
    (shown,) = blocks("csv")
    (tmp_path / "shown.csv").write_text(shown)
    found = read_file(tmp_path / "shown.csv")
    assert ([one.offset for one in found.asked], found.problems) == ([41093, 40817], ())
    (shown,) = blocks("json")
    path = tmp_path / "shown.json"
    path.write_text(shown)
    assert read_file(path).asked == (Asked("billing", "orders", 0, 41093, "", f"{path}:1"),)


def test_it_names_every_column() -> None:
    named = set(re.findall(r"`([a-z_]+)`", "".join(re.findall(r"^\| (`[^|]*)\|", PAGE, re.MULTILINE))))
    assert named == {name for columns in COLUMNS.values() for name in columns}
