"""A failback whose groups cannot all be moved, on real brokers: the flow goes on, and each place is told exactly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.cli import failback as failbacks
from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.consumers import leave_behind, member_of, offsets_of
from tests.support.clusters.kafka import declared
from tests.support.commands.failing_over import Pair, copy_back, named, read_from, write
from tests.support.replicator.copying import log_end


def test_each_place_that_was_refused_is_told_and_can_be_written(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failbacks, "_copy_back", copy_back)
    pair = Pair((source_cluster, target_cluster), topic_name[-60:].strip("-"), "translated", tmp_path, capsys)
    busy, idle = pair.group("busy"), pair.group("idle")
    for group in (busy, idle):
        leave_behind(pair.east, group, {(pair.topic, 0): 40, (pair.topic, 1): 50})
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))
    end = log_end(declared("west", pair.west), pair.topic)
    for group in (busy, idle):
        leave_behind(pair.west, group, {(pair.topic, 0): end - 7, (pair.topic, 1): 60})
    with member_of(pair.east, busy, [pair.topic]):
        back = pair.back("--yes")
    assert (back.code, back.err.count("[AB626]"), pair.phase) == (1, 2, None), back
    expected = offsets_of(pair.east, idle)
    assert read_from(pair.east, pair.topic, expected[pair.topic, 0]) == named("new", 10)[4:]
    commands = re.findall(r"`anabranch (offsets write) FILE ([^`]*)`", back.err)
    assert len(commands) == 2, back.err
    for command, arguments in commands:
        assert main([*command.split(), str(pair.file), *arguments.split(), "--yes"]) == 0
    assert offsets_of(pair.east, busy) == expected
