"""Both sides of a flow on the shared clusters, as a topology declares them; a test file with others overrides them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli import failback
from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.consumers import Run, Said
from tests.support.clusters.kafka import declared
from tests.support.commands.failing_over import MakePair, Pair, copy_back
from tests.support.commands.payments import write as declare
from tests.support.replicator.trickles import Line
from tests.support.replicator.trickles import make as make_topics


@pytest.fixture
def source(source_cluster: EmbeddedCluster) -> Cluster:
    """Cluster `east`."""
    return declared("east", source_cluster)


@pytest.fixture
def target(target_cluster: EmbeddedCluster) -> Cluster:
    """Cluster `west`."""
    return declared("west", target_cluster)


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    """A topology file with clusters us-east and eu-west, and a flow between them."""
    return declare(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


@pytest.fixture
def run(file: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command of `offsets` for the groups of us-east."""

    def run(command: str, *arguments: object) -> Said:
        code = main(["offsets", command, str(file), "--cluster", "us-east", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, " ".join(said.err.split())

    return run


@pytest.fixture
def make(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> MakePair:
    """Makes a flow that can be failed over, of some mode and with some topics; it is brought back without Spark."""
    monkeypatch.setattr(failback, "_copy_back", copy_back)
    topic = topic_name[-60:].strip("-")
    return lambda offsets, *more: Pair((source_cluster, target_cluster), topic, offsets, tmp_path, capsys, more=more)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    """Watches the expresses of all tasks."""
    return Line(monkeypatch)


@pytest.fixture
def topics(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> tuple[str, str]:
    """Two topics and their remote ones."""
    return make_topics(source_cluster, target_cluster, topic_name)
