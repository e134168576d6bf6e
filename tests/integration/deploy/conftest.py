"""What tests of a data centre on shared clusters begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create


@pytest.fixture
def site_name(tmp_path: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a topology and of its one topic, which is there; where deployments are registered is a new folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    name = f"s{topic_name[-8:]}"
    create(source_cluster, name, 2)
    return name
