"""`offsets export` and `import` on a real broker: whole files, checked before anything is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.checkpoints.groups import asking, bounds
from reconciler.checkpoints.groups import groups as checkpoints_groups
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.consumers import Run, hundred, leave_behind, member_of, offsets_of, places_of, rows, table
from tests.support.clusters.kafka import delete_records

ERROR, REFUSED = 1, 4


def said(group: str) -> str:
    """Return what a group says with its offsets: its last letter is one that confluent-kafka's consumers add."""
    return f'"{group}",\r\n two\n\rthree\x00'


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_what_is_exported_is_imported_as_it_was(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path, suffix: str
) -> None:
    hundred(source_cluster, topic_name, 3)
    path = tmp_path / f"offsets{suffix}"
    before = {
        f"{name}-{topic_name}": {(topic_name, number): 10 * number + len(name) for number in range(3)}
        for name in ("billing", "shipping")
    }
    for group, offsets in before.items():
        leave_behind(source_cluster, group, offsets, metadata=said(group))
    code, out, err = run("export", "--group", f".*-{topic_name}", "--out", path)
    assert (code, out, err.startswith("wrote 6 offsets to ")) == (0, "", True)
    for group in before:
        assert run("write", "--group", group, "--topic", topic_name, "--to", "latest", "--yes")[0] == 0
        assert set(offsets_of(source_cluster, group).values()) == {100}
    code, out, _ = run("import", "--from", path, "--dry-run")
    assert (code, len(table(out))) == (0, 7)
    assert set(offsets_of(source_cluster, group).values()) == {100}
    code, _, err = run("import", "--from", path, "--yes")
    assert (code, err) == (0, "wrote 6 offsets of 2 groups")
    for group, offsets in before.items():
        assert offsets_of(source_cluster, group) == offsets
        assert {place.metadata for place in places_of(source_cluster, group).values()} == {said(group)}


def test_all_that_is_wrong_is_told_and_nothing_written(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    hundred(source_cluster, topic_name, 2)
    delete_records(source_cluster, topic_name, 10)
    group, path = f"billing-{topic_name}", tmp_path / "offsets.csv"
    leave_behind(source_cluster, group, {(topic_name, 0): 40})
    lines = [
        "group,topic,partition,offset",
        f"{group},{topic_name},0,50",
        f"{group},{topic_name},one,1",
        f"{group},{topic_name},1,101",
        f"{group},{topic_name},2,1",
        f"{group},{topic_name}x,0,1",
        f"{group}x,{topic_name},0,9",
        f"{group},{topic_name},0,50",
        f"{group}x,{topic_name},1,9",
    ]
    path.write_text("\n".join(lines))
    code, out, err = run("import", "--from", path, "--yes")
    assert (code, out) == (ERROR, "")
    found = [
        (number, code)
        for number in range(10)
        for code in ("AB621", "AB622", "AB623", "AB624", "AB625")
        if any(part.startswith(f"{number}: ") and f"[{code}]" in part for part in err.split(f"{path}:"))
    ]
    assert found == [(3, "AB621"), (4, "AB624"), (5, "AB623"), (6, "AB623"), (7, "AB624"), (7, "AB625"), (8, "AB622")]
    assert offsets_of(source_cluster, group) == {(topic_name, 0): 40}
    assert offsets_of(source_cluster, f"{group}x") == {}

    path.write_text("\n".join([lines[0], lines[3], lines[6]]))
    code, out, _ = run("import", "--from", path, "--clamp", "--create", "--yes", "--format", "json")
    assert [(one["from"], one["to"], one["asked"]) for one in json.loads(out)["moves"]] == [
        (None, 100, 101),
        (None, 10, 9),
    ]
    assert (code, offsets_of(source_cluster, f"{group}x")) == (0, {(topic_name, 0): 10})

    path.write_text(lines[0] + "\n")
    code, out, err = run("import", "--from", path, "--yes")
    assert (code, out, err) == (0, "", "nothing to write")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("group,topic,partition,offset,ofset", 'column "ofset" is not known'),
        ("group,topic,partition,ofset", "expected a column offset"),
        ("team,topic,partition,offset", "expected a column group, or a column flow"),
        ("group,topic,partition,offset,offset", "offset"),
    ],
)
def test_a_file_with_a_wrong_column_writes_nothing(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path, columns: str, told: str
) -> None:
    """However well its rows could be guessed."""
    hundred(source_cluster, topic_name)
    group, path = f"billing-{topic_name}", tmp_path / "offsets.csv"
    leave_behind(source_cluster, group, {(topic_name, 0): 40})
    row = [group, topic_name, 0, 50, 50][: columns.count(",") + 1]
    path.write_text(f"{columns}\n{','.join(map(str, row))}\n")
    for how in ("--dry-run", "--yes"):
        code, out, err = run("import", "--from", path, how)
        assert (code, out) == (ERROR, "")
        assert told in err
        assert f"{path}:1" in err
        assert "[AB620]" in err
    assert offsets_of(source_cluster, group) == {(topic_name, 0): 40}


def test_a_group_that_has_members_leaves_the_others_to_be_written(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    hundred(source_cluster, topic_name)
    busy, idle, path = f"busy-{topic_name}", f"idle-{topic_name}", tmp_path / "offsets.csv"
    for group in (busy, idle):
        leave_behind(source_cluster, group, {(topic_name, 0): 40})
    path.write_text(f"group,topic,partition,offset\n{busy},{topic_name},0,1\n{idle},{topic_name},0,2\n")
    with member_of(source_cluster, busy, [topic_name]):
        code, _, err = run("import", "--from", path, "--yes")
        assert (code, "wrote 1 offset of 1 group; 1 not written" in err, "[AB626]" in err) == (REFUSED, True, True)
    assert (offsets_of(source_cluster, busy), offsets_of(source_cluster, idle)) == (
        {(topic_name, 0): 40},
        {(topic_name, 0): 2},
    )


def test_many_groups_and_partitions_go_in_several_requests(
    run: Run, source_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_GROUPS_AT_ONCE", 7)
    monkeypatch.setattr(asking, "_COMMITS_AT_ONCE", 3)
    monkeypatch.setattr(bounds, "_LOGS_AT_ONCE", 11)
    monkeypatch.setattr(checkpoints_groups, "_COMMIT_BYTES", 1_000)
    hundred(source_cluster, topic_name, 25)
    path = tmp_path / "offsets.csv"
    asked = [
        [f"{number}-{topic_name}", topic_name, str(partition), str((number * partition) % 100)]
        for number in range(20)
        for partition in range(25)
    ]
    path.write_text("\n".join(",".join(row) for row in [["group", "topic", "partition", "offset"], *asked]))
    code, _, err = run("import", "--from", path, "--create", "--yes")
    assert (code, err) == (0, "wrote 500 offsets of 20 groups")
    _, out, _ = run("read", "--group", f".+-{topic_name}", "--format", "csv")
    found = [[row[name] for name in ("group", "topic", "partition", "offset")] for row in rows(out)]
    assert sorted(found) == sorted(asked)
    assert {row["log_end"] for row in rows(out)} == {"100"}
