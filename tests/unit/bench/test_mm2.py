"""What MirrorMaker 2 is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.competitors.base import Scene
from bench.competitors.mm2 import MirrorMaker2
from bench.workload.load import Load
from reconciler.embedded import EmbeddedCluster


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    source, target = (EmbeddedCluster(name, folder=tmp_path / name) for name in ("source", "target"))
    return Scene(source, target, "mm2-2-1", "orders", Load(80, codec="lz4"), tmp_path)


def test_it_replicates_one_topic_one_way_and_nothing_else(scene: Scene) -> None:
    told = MirrorMaker2(2).properties(scene)
    assert told["clusters"] == "mm2-2-1,target"
    assert told["mm2-2-1->target.enabled"] == "true"
    assert told["mm2-2-1->target.topics"] == "orders"
    assert told["tasks.max"] == "2"
    assert told["emit.heartbeats.enabled"] == told["emit.checkpoints.enabled"] == "false"
    assert [key for key, value in told.items() if key.endswith("replication.factor") and value != "1"] == []
    assert scene.remote == "mm2-2-1.orders"


def test_it_is_tuned_and_keeps_the_codec(scene: Scene) -> None:
    told = MirrorMaker2(2).properties(scene)
    assert told["target.producer.batch.size"] == "262144"
    assert told["mm2-2-1.consumer.max.poll.records"] == "2000"
    assert told["target.producer.compression.type"] == "lz4"
    assert not any(key.startswith("source.") for key in told)
    assert len(told) == len(MirrorMaker2(2, exactly_once=True).properties(scene)) - 2


def test_its_exactly_once_mode_is_off_unless_asked_for(scene: Scene) -> None:
    assert "target.exactly.once.source.support" not in MirrorMaker2(2).properties(scene)
    exact = MirrorMaker2(2, exactly_once=True)
    assert exact.properties(scene)["target.exactly.once.source.support"] == "enabled"
    assert exact.properties(scene)["mm2-2-1.consumer.isolation.level"] == "read_committed"
    assert (exact.guarantee, exact.name) == ("exactly once", "mm2-2-eos")


def test_its_files_are_written(scene: Scene) -> None:
    MirrorMaker2(1).prepare(scene)
    assert "tasks.max = 1\n" in (scene.folder / "mm2.properties").read_text()
    assert "rootLogger.level" in (scene.folder / "log4j2.properties").read_text()
