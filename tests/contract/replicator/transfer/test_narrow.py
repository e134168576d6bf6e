"""A target that closes the connection on requests larger than it takes (`socket.request.max.bytes`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import OffsetsMode
from reconciler.model.tasks.status import PartitionState
from reconciler.state import syncs
from tests.contract.replicator.task.test_parking import write
from tests.support.clusters.kafka import create, declared, set_config
from tests.support.replicator.copying import REMOTE, Running, code, fill, spec_of
from tests.support.replicator.translated import contents

MOST = 300_000
MODES: tuple[OffsetsMode, ...] = ("identical", "translated")


@pytest.mark.long
def test_requests_become_smaller_until_they_pass_and_it_is_said(
    source_cluster: EmbeddedCluster, source: Cluster, topic_name: str
) -> None:
    """No other cluster may have so small a bound. One record is beyond it, and parks alone."""
    overrides = {"socket.request.max.bytes": str(MOST)}
    with running(EmbeddedCluster("narrow", ClusterOptions(overrides=overrides))) as (narrow,):
        target = declared("west", narrow)
        syncs.ensure(target, "east", 60)
        for mode in MODES:
            topics = [f"{topic_name}-{mode}-{name}" for name in ("many", "large")]
            create(source_cluster, topics[0], 4)
            create(narrow, f"east.{topics[0]}", 4, REMOTE)
            create(source_cluster, topics[1], 1)
            set_config(source_cluster, topics[1], "max.message.bytes", "4000000")
            create(narrow, f"east.{topics[1]}", 1, REMOTE)
            # Batches of up to a megabyte, in requests of several.
            fill(source_cluster, topics[0], 20_000, 4)
            write(source_cluster, topics[1], b"1", b"x" * 2 * MOST, b"2")
            spec = spec_of(source, target, f"{topic_name}-{mode}.*", round_seconds=180)
            with Running(replace(spec, flow=replace(spec.flow, offsets=mode))) as copying:
                status = copying.wait(
                    lambda word: (
                        sorted(one.state.value for one in word.partitions) == ["parked", *["running"] * 4]
                        and all(one.lag == 0 for one in word.partitions if one.state is PartitionState.RUNNING)
                    ),
                    180,
                )
            (parked,) = [one for one in status.partitions if one.state is PartitionState.PARKED]
            assert (parked.topic, parked.position, code(parked)) == (topics[1], 1, "AB239")
            assert "raise socket.request.max.bytes of its brokers" in str(parked.reason)
            for number in range(4):
                remote = contents(target, f"east.{topics[0]}", number)
                assert remote == contents(source, topics[0], number)
