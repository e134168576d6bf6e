"""`anabranch reconcile` on real brokers: copies follow their originals while nothing is copied."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, grow, names, partitions, set_config, topic_configs
from tests.support.commands.command import COMMAND, anabranch

REFUSED = 4
SECONDS = 300
FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, refresh-interval: 1s, topics: {{include: ["{topic}-.*"]}}}}
"""


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    path = tmp_path / "topology.yaml"
    facts = {"east": source_cluster.bootstrap, "west": target_cluster.bootstrap, "topic": topic_name}
    path.write_text(FILE.format(name=f"s{topic_name[-8:]}", **facts))
    return path


def test_one_look_follows_originals_and_nothing_else(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    one, two = f"{topic_name}-one", f"{topic_name}-two"
    create(source_cluster, one, 1, {"retention.ms": "86400000", "segment.ms": "86400000"})
    assert anabranch("apply", file, "--yes").code == 0
    nothing = anabranch("reconcile", file, "--once")
    assert (nothing.code, nothing.stdout) == (0, ""), nothing
    assert "looked at 1 flow: no change was needed" in nothing.stderr

    create(source_cluster, two, 2)
    grow(source_cluster, one, 3)
    set_config(source_cluster, one, "retention.ms", "3600000")
    set_config(target_cluster, f"east.{one}", "segment.ms", "3600000")
    ended = anabranch("reconcile", file, "--once")
    assert (ended.code, sorted(ended.stdout.splitlines())) == (
        0,
        [
            f"west: grow east.{one} to 3 partitions",
            f"west: make east.{two}",
            f"west: set retention.ms of east.{one}",
        ],
    ), ended
    assert (partitions(target_cluster, f"east.{one}"), partitions(target_cluster, f"east.{two}")) == (3, 2)
    found = topic_configs(target_cluster, f"east.{one}")
    assert (found["retention.ms"], found["segment.ms"]) == ("3600000", "3600000")
    plan = anabranch("plan", file).stdout
    assert "segment.ms  3600000 → 86400000   changed at the target since the last apply" in plan
    assert "0 to add, 1 to change, 0 to delete." in plan


def test_files_that_were_not_applied_change_nothing(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-one")
    assert anabranch("apply", file, "--yes").code == 0
    file.write_text(file.read_text().replace("refresh-interval: 1s", "refresh-interval: 2s"))
    create(source_cluster, f"{topic_name}-two")
    ended = anabranch("reconcile", file, "--once")
    assert (ended.code, ended.stdout, "[AB411]" in ended.stderr) == (REFUSED, "", True)
    assert f"east.{topic_name}-two" not in names(target_cluster)


def test_what_cannot_be_done_is_told_and_the_rest_is_done(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    for number in ("one", "two"):
        create(source_cluster, f"{topic_name}-{number}")
    create(target_cluster, f"east.{topic_name}-one", 7)
    ended = anabranch("reconcile", file, "--once")
    assert ended.code == 0, ended
    assert f"west: make east.{topic_name}-two" in ended.stdout
    assert "exists and is not ours" in ended.stdout
    assert partitions(target_cluster, f"east.{topic_name}-one") == 7


def test_it_looks_again_and_again_until_it_is_told_to_end(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-one")
    assert anabranch("apply", file, "--yes").code == 0
    command = [*COMMAND, "reconcile", str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            lines = running.stderr
            assert lines is not None
            for number in ("two", "three"):
                create(source_cluster, f"{topic_name}-{number}")
                # The line comes after the copy: who is told to end in between says nothing of it any more.
                while f"INFO west: make east.{topic_name}-{number}\n" not in (line := lines.readline()):
                    assert line, "it has ended"
                assert f"east.{topic_name}-{number}" in names(target_cluster)
            running.terminate()
            stdout, _ = running.communicate(timeout=SECONDS)
        finally:
            running.kill()
    assert (running.returncode, stdout) == (0, "")
