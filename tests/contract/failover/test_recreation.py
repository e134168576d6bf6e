"""A topic made anew on a real broker: without its records, as it was in all else, also after it was broken off."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.failover.topics.recreation import recreate
from reconciler.failover.topics.topics import Shape, Topics
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import create, delete, names, partitions, set_config, topic_configs, topic_id
from tests.support.replicator.copying import log_end

SECONDS = 300.0
TOPOLOGY = "tests"
CONFIGS = {"cleanup.policy": "compact,delete", "retention.ms": "86400000"}


class Killed(Exception):
    """As if the process had ended here."""


@pytest.fixture
def topic(target_cluster: EmbeddedCluster, topic_name: str) -> str:
    """A topic of three partitions with settings of its own, and records in all of them."""
    create(target_cluster, topic_name, 3, CONFIGS)
    set_config(target_cluster, topic_name, "segment.bytes", "2097152")
    for partition in range(3):
        write(target_cluster, topic_name, partition)
    return topic_name


def write(broker: EmbeddedCluster, topic: str, partition: int = 0) -> None:
    producer = Producer(broker.client_config() | {"log_level": "2"})
    for number in range(5):
        producer.produce(topic, b"value", b"key-%d" % number, partition)
    assert producer.flush(SECONDS) == 0


def on_record(cluster: Cluster, topic: str) -> bool:
    return f"rebuild/{TOPOLOGY}/{topic}" in Journal(cluster, own(TOPOLOGY).owned).read()


def check_new(broker: EmbeddedCluster, cluster: Cluster, topic: str, old_id: str, new_id: str | None) -> None:
    assert new_id == topic_id(broker, topic) != old_id
    assert partitions(broker, topic) == 3
    assert topic_configs(broker, topic) == CONFIGS | {"segment.bytes": "2097152"}
    assert [log_end(cluster, topic, number) for number in range(3)] == [0, 0, 0]
    assert not on_record(cluster, topic)


def killed(cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch, method: str, *, after: bool = False) -> None:
    """Let making anew end before or after a step, as a kill would."""
    whole = getattr(Topics, method)

    def cut(*arguments: object) -> None:
        if after:
            whole(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Topics, method, cut)
        with pytest.raises(Killed):
            recreate(cluster, TOPOLOGY, topic)


def test_it_is_another_topic_with_the_same_partitions_and_settings(
    target_cluster: EmbeddedCluster, target: Cluster, topic: str
) -> None:
    before = topic_id(target_cluster, topic)
    first = recreate(target, TOPOLOGY, topic)
    check_new(target_cluster, target, topic, before, first)
    assert first is not None
    write(target_cluster, topic)
    check_new(target_cluster, target, topic, first, recreate(target, TOPOLOGY, topic))


@pytest.mark.parametrize(
    ("method", "after"), [("delete", False), ("delete", True), ("make", False), ("make", True), ("await_led", True)]
)
def test_broken_off_at_any_moment_it_is_finished_by_the_next_call(
    target_cluster: EmbeddedCluster,
    target: Cluster,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    *,
    after: bool,
) -> None:
    before = topic_id(target_cluster, topic)
    killed(target, topic, monkeypatch, method, after=after)
    assert on_record(target, topic)
    assert (topic in names(target_cluster)) == (
        (method, after) in (("delete", False), ("make", True), ("await_led", True))
    )
    made = topic_id(target_cluster, topic) if method == "await_led" else None
    new_id = recreate(target, TOPOLOGY, topic)
    check_new(target_cluster, target, topic, before, new_id)
    # What was made already is not made once more.
    assert made in (None, new_id)


def test_what_brokers_made_meanwhile_is_replaced_and_what_somebody_wrote_stays(
    target_cluster: EmbeddedCluster, target: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = topic_id(target_cluster, topic)
    killed(target, topic, monkeypatch, "make")
    create(target_cluster, topic, 1)
    write(target_cluster, topic)
    with pytest.raises(EnvironmentFault, match=r"made again by another client.*holds records.*\[AB727\]"):
        recreate(target, TOPOLOGY, topic)
    assert log_end(target, topic) == 5
    assert on_record(target, topic)
    delete(target_cluster, topic)
    create(target_cluster, topic, 1)
    check_new(target_cluster, target, topic, before, recreate(target, TOPOLOGY, topic))


def test_a_topic_that_was_made_between_deletion_and_creation_is_replaced(
    target_cluster: EmbeddedCluster, target: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = topic_id(target_cluster, topic)
    whole, made = Topics.make, list[bool]()

    def late(self: Topics, name: str, shape: Shape) -> bool:
        if not made:
            create(target_cluster, name, 1)
        made.append(whole(self, name, shape))
        return made[-1]

    monkeypatch.setattr(Topics, "make", late)
    check_new(target_cluster, target, topic, before, recreate(target, TOPOLOGY, topic))
    assert made == [False, True]


def test_a_topic_that_brokers_can_not_make_again_stays_on_record(
    target_cluster: EmbeddedCluster, target: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = topic_id(target_cluster, topic)
    whole = Topics.make

    def too_many(self: Topics, name: str, shape: Shape) -> bool:
        return whole(self, name, Shape(shape.partitions, 99, shape.configs))

    with monkeypatch.context() as patch:
        patch.setattr(Topics, "make", too_many)
        with pytest.raises(EnvironmentFault, match=r"CREATE failed: .*\[AB726\]"):
            recreate(target, TOPOLOGY, topic)
    assert on_record(target, topic)
    check_new(target_cluster, target, topic, before, recreate(target, TOPOLOGY, topic))


def test_unknown_and_internal_topics_are_refused(
    target_cluster: EmbeddedCluster, target: Cluster, topic_name: str
) -> None:
    with pytest.raises(EnvironmentFault, match=r"there is no such topic.*\[AB722\]"):
        recreate(target, TOPOLOGY, topic_name)
    assert not on_record(target, topic_name)
    name = f"mm2-offset-syncs.{topic_name}.internal"
    create(target_cluster, name)
    before = topic_id(target_cluster, name)
    for internal in (name, "__consumer_offsets", own(TOPOLOGY).owned.name):
        with pytest.raises(EnvironmentFault, match=r"never made anew.*\[AB728\]"):
            recreate(target, TOPOLOGY, internal)
    assert topic_id(target_cluster, name) == before


def test_a_topic_of_an_application_may_be_called_like_an_internal_one(
    target_cluster: EmbeddedCluster, target: Cluster, topic_name: str
) -> None:
    """A flow that names it copies it, so a failback may have to make it anew."""
    name = f"{topic_name}.internal"
    create(target_cluster, name)
    before = topic_id(target_cluster, name)
    assert recreate(target, TOPOLOGY, name) == topic_id(target_cluster, name) != before
