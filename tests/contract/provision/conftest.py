"""What most tests of provisioners begin with: the stand-in for Pulumi, and a topology from a broker to itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.support.provision.provisioning import Way, make_way, write


@pytest.fixture
def way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Way:
    return make_way("stand-in", tmp_path, monkeypatch)


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, topic_name: str) -> Path:
    """A topology from a broker to itself: remote topics have the prefix `north.`."""
    return write(tmp_path, source_cluster, source_cluster, topic_name)
