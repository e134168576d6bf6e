"""A broker's quotas slow a copy down, and nothing else: no connection counts as lost, no partition takes over."""

from __future__ import annotations

from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

from reconciler.embedded import ClusterOptions
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import TaskStatus
from reconciler.wire import Wire
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, Running, all_running, assert_counted, fill, identical, spec_of
from tests.support.wire.wires import ask

# Quotas are measured over two seconds instead of eleven, so that a pause is short.
IMPATIENT = ClusterOptions(overrides={"quota.window.num": "2", "quota.window.size.seconds": "1"})
BYTES_PER_SECOND = 350_000.0
RECORDS = 6_000


def slow_down(cluster: Cluster, client_id: str, quota: str) -> None:
    """Set one quota for one client."""
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client_id)],
                ops=[entry.OpData(key=quota, value=BYTES_PER_SECOND, remove=False)],
            )
        ],
        validate_only=False,
    )

    async def question(wire: Wire) -> int:
        answer = await wire._send(request, None)
        return int(answer.entries[0].error_code)

    assert ask(cluster, question) == 0


def test_a_throttled_copy_is_only_slow(make_clusters: MakeClusters, topic_name: str) -> None:
    (cluster,) = make_clusters("impatient", options=IMPATIENT)
    source, target = declared("slow", cluster), declared("west", cluster)
    for quota in ("consumer_byte_rate", "producer_byte_rate"):
        slow_down(source, "anabranch-slow-west-0", quota)
    create(cluster, topic_name, 2)
    create(cluster, f"slow.{topic_name}", 2, REMOTE)
    reasons: set[object] = set()

    def arrived(status: TaskStatus) -> bool:
        reasons.update(partition.reason for partition in status.partitions)
        positions = [partition.position for partition in status.partitions]
        return all_running(status.partitions) and positions == [RECORDS // 2] * 2

    spec = spec_of(source, target, topic_name)
    with Running(spec) as running:
        # Piece by piece, or the first answer would hold everything and the pause come behind the end.
        for _ in range(3):
            fill(cluster, topic_name, RECORDS // 3, 2)
        assert_counted((last := running.wait(arrived)).records, RECORDS, last)
    # A new cluster's coordinators take a moment; whatever else there was came of the quota.
    of_new = ("transactional id", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE")
    assert not [one for one in reasons if one is not None and not any(word in str(one) for word in of_new)]
    assert identical(spec, topic_name) == RECORDS
