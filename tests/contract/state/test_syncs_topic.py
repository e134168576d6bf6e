"""The topic of offset syncs: made so that it keeps what is told, and put right where an older release has made it."""

from __future__ import annotations

import uuid

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.state import syncs
from tests.support.clusters.kafka import create, set_config, topic_configs

SECONDS = 300.0
LAG = "min.compaction.lag.ms"


def test_syncs_are_kept_for_a_week_also_in_a_topic_that_is_there(
    target_cluster: EmbeddedCluster, target: Cluster
) -> None:
    made, old, theirs = (f"east{uuid.uuid4().hex[:8]}" for _ in range(3))
    create(target_cluster, syncs_topic(old), 1, {"cleanup.policy": "compact"})
    create(target_cluster, syncs_topic(theirs), 1, {"cleanup.policy": "compact", LAG: "5000"})
    for source in (made, old, theirs, made, old):
        assert syncs.ensure(target, source, SECONDS) is None
    found = {source: topic_configs(target_cluster, syncs_topic(source)) for source in (made, old, theirs)}
    assert {source: configs[LAG] for source, configs in found.items()} == {
        made: "604800000",
        old: "604800000",
        theirs: "5000",
    }
    assert {configs["cleanup.policy"] for configs in found.values()} == {"compact"}
    set_config(target_cluster, syncs_topic(made), LAG, "0")
    assert syncs.ensure(target, made, SECONDS) is None
    assert topic_configs(target_cluster, syncs_topic(made))[LAG] == "0"
