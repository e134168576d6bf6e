"""The reconcile loop and what must not be copied: copies that two sources would share, and clusters nobody can ask."""

from __future__ import annotations

import uuid

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.tasks.spec import FlowSpec
from reconciler.operate.flows.following import growing
from reconciler.replicator.driver.refresh import Refresh
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import create, declared, names

NOBODY = Cluster("south", ("127.0.0.1:1",))


class Aggregation:
    """Two sources whose topics keep their names, and the loop of the first one's flow."""

    def __init__(self, east: Cluster, south: Cluster, west: Cluster, topic: str) -> None:
        identity = ReplicationPolicy("identity")
        flows = (
            Flow(f"e-{topic[-8:]}", "east", "west", Selection((f"{topic}.*",)), identity),
            Flow(f"s-{topic[-8:]}", "south", "west", Selection((f"{topic}-shared",)), identity),
        )
        self.topology = Topology(topic, {"east": east, "south": south, "west": west}, flows)
        self.spec = FlowSpec.compile(self.topology, flows[0], uuid.uuid4().hex)
        Journal(west, own(topic).control).ensure()

    def look(self, make: bool = True) -> tuple[Refresh, list[str]]:
        said: list[str] = []
        refresh = Refresh(self.spec, growing(self.topology, make), said.append, lambda _: None)
        refresh.look()
        return refresh, said


def copied(refresh: Refresh) -> list[str]:
    return sorted(refresh._shares.topics)


def test_a_copy_of_two_originals_gets_offsets_of_its_own_and_others_keep_theirs(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    own, shared = f"{topic_name}-own", f"{topic_name}-shared"
    create(source_cluster, own)
    create(source_cluster, shared)
    east, south = declared("east", source_cluster), declared("south", source_cluster)
    refresh, said = Aggregation(east, south, declared("west", target_cluster), topic_name).look()
    assert copied(refresh) == [own, shared]
    made = {name for name in names(target_cluster) if topic_name in name and not name.startswith("anabranch.")}
    assert made == {own, shared}
    assert (said, refresh.left_out) == ([], {})
    modes = {place.topic: place.offsets for one in refresh._shares.assignments() for place in one.places}
    assert modes == {own: "identical", shared: "translated"}
    # Who is told of no modes asks the owners' records.
    blind = Refresh(refresh._spec, None, said.append, lambda _: None)
    blind.look()
    assert {place.topic: place.offsets for one in blind._shares.assignments() for place in one.places} == modes


def test_what_a_silent_source_may_have_too_waits_and_the_rest_goes_on(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    own, shared = f"{topic_name}-own", f"{topic_name}-shared"
    create(source_cluster, own)
    create(source_cluster, shared)
    west = declared("west", target_cluster)
    refresh, said = Aggregation(declared("east", source_cluster), NOBODY, west, topic_name).look()
    assert copied(refresh) == [own]
    (warning,) = said
    assert f"{shared} may be the copy of south's {shared}" in warning


def test_without_reconciling_nothing_is_made_and_foreign_topics_are_not_touched(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    own, foreign = f"{topic_name}-own", f"{topic_name}-foreign"
    create(source_cluster, own)
    create(source_cluster, foreign)
    create(target_cluster, foreign, configs={"message.timestamp.type": "LogAppendTime"})
    east, south = declared("east", source_cluster), declared("south", source_cluster)
    refresh, said = Aggregation(east, south, declared("west", target_cluster), topic_name).look(make=False)
    assert copied(refresh) == [own]
    assert own not in names(target_cluster)
    (warning,) = said
    assert "message.timestamp.type is LogAppendTime" in warning


def test_a_target_that_cannot_be_looked_at_begins_nothing(source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, f"{topic_name}-own")
    east, south = declared("east", source_cluster), declared("south", source_cluster)
    here = Aggregation(east, south, declared("west", source_cluster), topic_name)
    silent = Topology(
        topic_name, {**here.topology.clusters, "west": Cluster("west", NOBODY.bootstrap)}, here.topology.flows
    )
    said: list[str] = []
    refresh = Refresh(here.spec, growing(silent), said.append, lambda _: None)
    refresh.look()
    assert copied(refresh) == []
    assert any("cannot look after remote topics" in warning and "AB310" in warning for warning in said)
