"""Both sides of a flow on the shared clusters, as a topology declares them; a test file with others overrides them."""

from __future__ import annotations

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.cluster import Cluster
from tests.contract.kafka import declared


@pytest.fixture
def source(source_cluster: EmbeddedCluster) -> Cluster:
    """Cluster `east`."""
    return declared("east", source_cluster)


@pytest.fixture
def target(target_cluster: EmbeddedCluster) -> Cluster:
    """Cluster `west`."""
    return declared("west", target_cluster)
