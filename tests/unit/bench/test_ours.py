"""What Anabranch declares as a competitor is what it takes: long runs must not end at their first command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.competitors.base import Scene, alias_of
from bench.competitors.ours import Anabranch
from bench.workload.load import Load
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster

ALL = (
    Anabranch(1),
    Anabranch(2, offsets="translated"),
    Anabranch(4, executors=True),
    Anabranch(1, linger="1ms"),
)


@pytest.mark.parametrize("competitor", ALL, ids=[one.name for one in ALL])
@pytest.mark.parametrize("number", [0, 12])
def test_it_declares_what_is_valid(
    competitor: Anabranch, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Clusters that are not started have no address yet.
    monkeypatch.setattr(EmbeddedCluster, "bootstrap", "127.0.0.1:9092")
    clusters = EmbeddedCluster("source"), EmbeddedCluster("target")
    scene = Scene(*clusters, alias_of(competitor.name, number), "orders", Load(80), tmp_path)
    file = tmp_path / "topology.yaml"
    file.write_text(json.dumps(competitor.topology(scene)))
    (flow,) = load([file]).flows
    assert (flow.source, flow.target) == (scene.alias, "target")
