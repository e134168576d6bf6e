"""Replicas while brokers are down: how large a cluster is, what is made meanwhile, and what is told for ever after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from reconciler.model.base.errors import Refused
from reconciler.model.base.shape import Misfit
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import TARGETS_DEFAULT
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import CreateTopic, Plan
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.observe.brokers import brokers_of, fewest_replicas, most_replicas
from reconciler.plan.findings.drift import drift_of
from reconciler.state.confluent import replicas
from tests.unit.declare.declaring import HEAD, load
from tests.unit.declare.declaring import refused as declared_refused
from tests.unit.plan.facts import EAST, INTERNAL, WEST, carried_out, cluster, flow, plan_of, topic, topology

SOURCE = cluster(EAST, topic("orders"))
REMOTE = "us-east.orders"
AT = Cluster(WEST, ("west:1",))


def seen(up: Sequence[int], topics: Mapping[str, Sequence[Sequence[int]]] | None = None) -> Any:
    """What a list of topics tells: the brokers that are up, and who holds the partitions of each topic."""
    made = {
        name: SimpleNamespace(
            partitions={number: SimpleNamespace(replicas=list(one)) for number, one in enumerate(held)}
        )
        for name, held in (topics or {}).items()
    }
    return SimpleNamespace(brokers=dict.fromkeys(up), topics=made)


@pytest.mark.parametrize(
    ("told", "registered", "wanted", "expected"),
    [
        # All are up, and they are enough: the cluster is not asked.
        (seen([1, 2, 3]), "never", 3, (3, ())),
        # Nothing is on broker 3 yet, and only the controller knows of it.
        (seen([1, 2]), frozenset({1, 2, 3}), 3, (3, (3,))),
        # An older cluster does not tell; a topic shows broker 3.
        (seen([1, 2], {"a": [[1, 2], [3, 1]]}), None, 3, (3, (3,))),
        # A broker that was taken out of the cluster, with replicas that stayed behind, counts no longer.
        (seen([1, 2], {"a": [[7, 1]]}), frozenset({1, 2}), 3, (2, ())),
        (seen([1, 2]), None, 3, (2, ())),
    ],
)
def test_brokers_that_are_down_belong_to_a_cluster(
    told: Any, registered: object, wanted: int, expected: tuple[int, tuple[int, ...]]
) -> None:
    def ask(_: Cluster) -> Any:
        assert registered != "never"
        return registered

    assert brokers_of(AT, told, wanted, ask) == expected


def test_replicas_of_topics_are_counted_by_partition() -> None:
    told = seen([1, 2, 3], {"a": [[1, 2, 3], [1, 2]], "b": [[1]], "none": []})
    assert fewest_replicas(told, ["a", "b", "gone", "none"]) == {"a": 2, "b": 1}
    assert (most_replicas(told, ["a", "b"]), most_replicas(told, ["gone", "none"])) == (3, 0)


class Controller:
    """Makes topics while it has as many brokers."""

    def __init__(self, most: int, code: int = KafkaError.INVALID_REPLICATION_FACTOR) -> None:
        self.most, self.code, self.made = most, code, list[int]()

    def create(self, count: int) -> None:
        if count > self.most:
            raise KafkaException(KafkaError(self.code))
        self.made.append(count)


@pytest.mark.parametrize(
    ("told", "most", "made"),
    [
        (seen([1, 2, 3]), 3, [3]),
        # Kafka with KRaft puts replicas on brokers that are down.
        (seen([1]), 3, [3]),
        (seen([1]), 1, [1]),
        (seen([1, 2]), 2, [2]),
        # Others do not, and what shows the third broker keeps the topic from being made too small for good.
        (seen([1, 2], {"a": [[3, 1]]}), 2, []),
        (seen([1], {"a": [[2, 1]]}), 1, []),
    ],
)
def test_a_topic_of_our_own_is_never_made_too_small_for_good(told: Any, most: int, made: list[int]) -> None:
    controller = Controller(most)
    try:
        replicas.make(told, controller.create)
    except KafkaException as error:
        assert replicas.is_too_few(error.args[0])
        problem = replicas.refused_now(AT, "topic x", error.args[0], told).problems[0]
        assert (problem.code, problem.where) == ("AB450", "cluster eu-west (west:1), topic x")
        assert "down now: " in problem.message
        assert "fewer" not in problem.remedy
        assert "lower" not in problem.remedy
    assert controller.made == made


def test_what_is_refused_for_another_reason_is_not_tried_with_fewer() -> None:
    controller = Controller(2, KafkaError.POLICY_VIOLATION)
    with pytest.raises(KafkaException):
        replicas.make(seen([1, 2]), controller.create)
    assert controller.made == []


def test_a_declared_factor_of_our_own_topics_is_taken_as_it_is() -> None:
    controller = Controller(3)
    replicas.make(seen([1, 2, 3]), controller.create, 1)
    replicas.make(seen([1, 2, 3]), controller.create, 2)
    with pytest.raises(KafkaException):
        replicas.make(seen([1, 2, 3]), controller.create, 4)
    assert controller.made == [1, 2]


def with_state_factor(count: int) -> Topology:
    declared = topology()
    west = replace(declared.clusters[WEST], state_replication_factor=count)
    return replace(declared, clusters={**declared.clusters, WEST: west})


def test_topics_of_our_own_are_held_against_what_is_declared_of_them() -> None:
    there = replace(cluster(WEST, brokers=5), state_replicas={INTERNAL[0]: 3, INTERNAL[1]: 3})
    assert not told(plan_of(topology(), SOURCE, there))
    assert not told(plan_of(with_state_factor(1), SOURCE, there))
    asked = with_state_factor(5)
    ((subject, message),) = told(plan_of(asked, SOURCE, there))
    assert (subject, message.partition(":")[0]) == ("cluster eu-west", "2 topics have 3 replicas, and should have 5")
    assert [one.desired for one in drift_of(asked, {WEST: there})] == ["5", "5"]
    with pytest.raises(Refused, match=r"state-replication-factor 6 is declared, and it has 5 brokers.*\[AB403\]"):
        plan_of(with_state_factor(6), SOURCE, there)
    # Who declares nothing has the digest of releases that knew no such field.
    assert topology().digest != asked.digest


def test_the_targets_default_is_what_the_target_says() -> None:
    declared = topology(flow(replication_factor=TARGETS_DEFAULT))
    plan = plan_of(declared, SOURCE, replace(cluster(WEST), default_replicas=2))
    (step,) = plan.steps
    assert isinstance(step, CreateTopic)
    assert step.topic.replication_factor == 2
    made = replace(carried_out(plan, cluster(WEST)), default_replicas=2)
    assert plan_of(declared, SOURCE, made).is_empty
    assert not told(plan_of(declared, SOURCE, made))
    assert not drift_of(declared, {WEST: made})
    # The default is another one by now.
    assert told(plan_of(declared, SOURCE, replace(made, default_replicas=3)))[0][1].startswith(
        "has 2 replicas, and should"
    )
    assert "declared is 1" in told(plan_of(declared, SOURCE, replace(made, default_replicas=1)))[0][1]
    thinner = replace(made, topics={REMOTE: replace(made.topics[REMOTE], replication_factor=1)})
    assert [one.desired for one in drift_of(declared, {WEST: thinner})] == ["2"]


def test_a_target_that_does_not_tell_its_default_is_an_error() -> None:
    with pytest.raises(Refused, match=r"AB454") as refused:
        plan_of(
            topology(flow(replication_factor=TARGETS_DEFAULT, origin="a.yaml:3:5 (flows[0])")), SOURCE, cluster(WEST)
        )
    (problem,) = refused.value.problems
    assert problem.where == "flow us-east-eu-west (a.yaml:3:5 (flows[0]))"
    assert "does not show it" in problem.message


@pytest.mark.parametrize(("written", "meant"), [("-1", -1), ("3", 3), ("2.0", 2)])
def test_factors_are_read_from_files(tmp_path: Path, written: str, meant: int) -> None:
    (one,) = load(tmp_path, f"{HEAD}flows:\n- {{from: a, to: b, replication-factor: {written}}}\n").flows
    assert one.replication_factor == meant
    text = HEAD.replace("]}", f"], state-replication-factor: {written}}}", 1)
    if meant > 0:
        found = load(tmp_path, f"{text}flows:\n- {{from: a, to: b}}\n").clusters
        assert [found[alias].state_replication_factor for alias in ("a", "b")] == [meant, None]


def test_no_replica_at_all_is_refused_with_what_may_be_said(tmp_path: Path) -> None:
    (problem,) = declared_refused(tmp_path, f"{HEAD}flows:\n- {{from: a, to: b, replication-factor: 0}}\n")
    assert problem.message == "expected a whole number from 1, or -1 for the target's default; found 0"


def one_down(**fields: Any) -> ObservedCluster:
    return replace(cluster(WEST, brokers=3, **fields), down=(3,))


def told(plan: Plan) -> list[tuple[str, str]]:
    return [(one.subject, one.message) for one in plan.clusters[0].warnings]


def test_a_copy_gets_all_its_replicas_while_a_broker_is_down() -> None:
    plan = plan_of(topology(), SOURCE, one_down())
    (step,) = plan.steps
    assert isinstance(step, CreateTopic)
    assert step.topic.replication_factor == 3
    assert told(plan) == [
        (
            "cluster eu-west",
            "1 of 3 brokers are down (ids 3): topics are made with all their replicas, and those of brokers that are "
            "down follow when these are back",
        )
    ]
    assert plan_of(topology(flow(replication_factor=3)), SOURCE, one_down()).steps, "3 are not too many"


def test_the_remedy_for_too_many_replicas_is_no_smaller_number() -> None:
    with pytest.raises(Refused) as refused:
        plan_of(topology(flow(replication_factor=4)), SOURCE, one_down())
    (problem,) = refused.value.problems
    assert problem.code == "AB403"
    assert "eu-west has 3 brokers" in problem.message
    assert "lower" not in problem.remedy


def thin(declared: Topology, count: int = 2) -> ObservedCluster:
    """A target where an apply has made the copy, with fewer replicas than it should have."""
    there = carried_out(plan_of(declared, SOURCE, cluster(WEST)), cluster(WEST))
    copies = {name: replace(one, replication_factor=count) for name, one in there.topics.items()}
    return replace(there, topics=copies)


@pytest.mark.parametrize("declared", [topology(), topology(flow(replication_factor=3))])
def test_a_copy_with_too_few_replicas_is_told_for_ever(declared: Topology) -> None:
    said = "has 2 replicas, and should have 3: an apply moves no data: `kafka-reassign-partitions.sh` adds replicas"
    plan = plan_of(declared, SOURCE, thin(declared))
    assert told(plan) == [(REMOTE, said)]
    (drifted,) = drift_of(declared, {WEST: thin(declared)})
    assert (drifted.kind, drifted.topic, drifted.field) == ("changed", REMOTE, "replicas")
    assert (drifted.desired, drifted.found) == ("3", "2")
    assert not drift_of(declared, {WEST: thin(declared, 3)})
    assert not told(plan_of(declared, SOURCE, thin(declared, 3)))


def test_one_partition_with_too_few_replicas_is_enough() -> None:
    there = thin(topology(), 3)
    there = replace(there, topics={REMOTE: replace(there.topics[REMOTE], fewest_replicas=1)})
    assert told(plan_of(topology(), SOURCE, there))[0][1].startswith("has 1 replica, and should have 3")
    assert [one.found for one in drift_of(topology(), {WEST: there})] == ["1"]


def test_what_is_declared_by_now_decides_over_what_was_made() -> None:
    """Who asks for fewer has them; who asks for more is told."""
    there = thin(topology(flow(replication_factor=3)), 2)
    assert not drift_of(topology(flow(replication_factor=2)), {WEST: there})
    asked = topology(flow(replication_factor=1))
    assert told(plan_of(asked, SOURCE, there)) == [(REMOTE, "has replication 2, declared is 1: left as it is")]
    assert not drift_of(asked, {WEST: there})


def test_records_of_older_releases_say_nothing_of_replicas() -> None:
    there = thin(topology())
    value = asdict(there.owned[REMOTE])
    assert OwnedTopic.from_json(value) == there.owned[REMOTE]
    assert value.pop("replicas") == 3
    old = OwnedTopic.from_json(value)
    assert old.replicas is None
    before = replace(there, owned={REMOTE: old})
    assert not drift_of(topology(), {WEST: before})
    assert drift_of(topology(flow(replication_factor=3)), {WEST: before}), "the declaration says it"
    assert told(plan_of(topology(), SOURCE, before)), "the original says it"
    for wrong in (0, 40_000, "3", True):
        with pytest.raises(Misfit):
            OwnedTopic.from_json({**value, "replicas": wrong})


def test_many_thin_copies_are_one_line() -> None:
    source = cluster(EAST, *(topic(f"orders-{number}") for number in range(5)))
    there = carried_out(plan_of(topology(), source, cluster(WEST)), cluster(WEST))
    there = replace(there, topics={name: replace(one, replication_factor=1) for name, one in there.topics.items()})
    ((subject, message),) = told(plan_of(topology(), source, there))
    assert subject == "cluster eu-west"
    assert message.startswith("5 topics have 1 replica, and should have 3: ")
    assert message.endswith("(us-east.orders-0, us-east.orders-1, us-east.orders-2 and 2 more)")


def test_topics_of_our_own_state_are_looked_at_too() -> None:
    there = replace(
        cluster(WEST), state_replicas={INTERNAL[0]: 2, INTERNAL[1]: 3, "mm2-offset-syncs.us-east.internal": 1}
    )
    assert [subject for subject, _ in told(plan_of(topology(), SOURCE, there))] == [
        "mm2-offset-syncs.us-east.internal",
        INTERNAL[0],
    ]
    # Another tool may have made the topic of offset syncs: it is no drift.
    assert [(one.topic, one.desired, one.found) for one in drift_of(topology(), {WEST: there})] == [
        (INTERNAL[0], "3", "2")
    ]
    small = replace(there, brokers=2)
    assert not drift_of(topology(), {WEST: small})


def test_the_json_form_comes_back_with_brokers_that_are_down() -> None:
    there = replace(thin(topology()), down=(3,), state_replicas={INTERNAL[0]: 2}, declaration=None)
    assert ObservedCluster.from_json(there.to_json()) == there
