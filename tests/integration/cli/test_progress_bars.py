"""The bars that commands draw on a terminal, and that a comparison which was killed goes on where it was."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared, delete_records, names
from tests.support.commands.payments import write as declare
from tests.support.commands.terminal import OnTerminal
from tests.support.provision.provisioning import Kind, make_way
from tests.support.records.batches import build
from tests.support.records.longlogs import PER_BATCH, contents, pieces, write
from tests.support.replicator.copying import REMOTE

DIFFERENT = 1
SECONDS = 300
TOPICS = 9
RECORDS = 200_000
EARLY, LATE = 2_002, RECORDS - 2


@pytest.fixture
def topology(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    return declare(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


@pytest.mark.parametrize("kind", ["direct", "stand-in"])
def test_apply_shows_how_far_it_is_and_takes_that_away_again(
    topology: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    kind: Kind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    way = make_way(kind, topology.parent, monkeypatch)
    by = () if kind == "direct" else ("--provisioner", "pulumi", "--pulumi-dir", way.project)
    for number in range(TOPICS):
        create(source_cluster, f"{topic_name}-{number}")
    with OnTerminal("apply", topology, "--yes", *by) as running:
        ended = running.end()
        assert (ended.code, ended.stderr) == (0, ""), running.frames
        assert any(frame.endswith("looking at the clusters") for frame in running.frames), running.frames
        bars = [frame for frame in running.frames if "%" in frame]
        assert all(frame.startswith("applying ") for frame in bars), bars
        # It begins with nothing, and ends with all.
        assert (running.percents[0], running.percents[-1]) == (0, 100)
        assert all(before <= after for before, after in pairwise(running.percents))
    remotes = {f"us-east.{topic_name}-{number}" for number in range(TOPICS)}
    assert remotes <= names(target_cluster)
    with OnTerminal("apply", topology, "--yes", *by) as running:
        ended = running.end()
        # Nothing is to be done, so there is no bar.
        assert (ended.code, ended.stderr, running.percents) == (0, "", [])


@pytest.mark.spark
def test_verify_shows_how_far_it_is_and_goes_on_there_after_a_kill(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    topology.write_text(topology.read_text().replace("tasks: 2", "tasks: 2, offsets: identical"))
    make(source_cluster, target_cluster, topic_name)
    kept = tmp_path / "progress.json"
    command = ("verify", topology, "--format", "json", "--resume", kept, "--state-dir", tmp_path / "state")

    # So slow that only the first pieces are done when it is killed.
    with OnTerminal(*command, "--quota", "1MB/s") as running:
        running.wait_until(lambda one: any("1 partition with differences" in frame for frame in one.frames), SECONDS)
        running.kill()
        seen = running.frames
    assert any(frame.startswith("starting Spark ") for frame in seen), seen
    drawn = [frame for frame in seen if "%" in frame]
    assert all(frame.startswith("comparing ") and " records   " in frame and "/s" in frame for frame in drawn), drawn
    assert running.percents[0] == 0
    assert 0 < running.percents[-1] < 100
    (progress,) = progress_of(kept)
    reached = progress["source"]
    assert EARLY < reached < LATE
    assert [one["source"] for one in progress["findings"]["told"]] == [EARLY]

    # Whatever was compared is gone: who began anew would find less.
    delete_records(source_cluster, topic_name, reached)
    with OnTerminal(*command) as running:
        ended = running.end(SECONDS)
        assert (ended.code, ended.stderr) == (DIFFERENT, ""), running.frames
        assert running.percents[-1] == 100
        assert min(running.percents) >= round(reached * 100 / RECORDS) > 0
    (found,) = json.loads(ended.stdout)["partitions"]
    told = [(one["code"], one["source"], one["target"]) for one in found["first"]]
    assert told == [("AB600", EARLY, EARLY), ("AB600", LATE, LATE)]
    counts = found["counts"]
    assert (found["source_range"], counts["records"], counts["expired"]) == ([0, RECORDS], RECORDS - 2, 0)


def make(source: EmbeddedCluster, target: EmbeddedCluster, topic: str) -> None:
    """Make an original, and a copy of which one record near the beginning and one near the end have lost a header."""

    def headless(at: int) -> bytes:
        some = contents(0, at // PER_BATCH * PER_BATCH, PER_BATCH)
        some[at % PER_BATCH] = replace(some[at % PER_BATCH], headers=())
        return build(some)

    create(source, topic)
    create(target, f"us-east.{topic}", configs=REMOTE)
    copies = list(pieces(0, RECORDS))
    write(declared("us-east", source), topic, [iter(copies)])
    for at in (EARLY, LATE):
        copies[at // PER_BATCH] = headless(at)
    write(declared("eu-west", target), f"us-east.{topic}", [iter(copies)])


def progress_of(kept: Path) -> list[dict[str, Any]]:
    flows = json.loads(kept.read_text())["flows"]
    return [progress for flow in flows.values() for _, progress in flow["partitions"]]
