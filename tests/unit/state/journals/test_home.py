"""Where a topology's journals are, what they are called, and what they are made with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, BrokerMetadata, ClusterMetadata, NewTopic
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.base.errors import EnvironmentFault, Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import (
    SHARED_NAMES,
    lease_group,
    probe_names,
    probe_prefix,
    state_names,
    topology_of_owned,
    transactional_prefix,
    turn_group,
)
from reconciler.model.names.selection import is_reserved
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.partition.shares import Place
from reconciler.state.journals import home
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import SHARED, make, own

TOPOLOGIES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
WEST = Cluster("west", ("localhost:1",))
UNCLEAN = "unclean.leader.election.enable"
DECLARED = {"kind": "declaration", "history": [{"digest": "d", "since": 1.0, "by": "me"}]}
MOVED = {"kind": "declaration", "history": [{"digest": "moved", "since": 2.0, "by": "me"}]}


@given(TOPOLOGIES, TOPOLOGIES)
def test_no_name_of_one_topology_is_one_of_another(one: str, other: str) -> None:
    ours, theirs = state_names(one), state_names(other)
    assert bool({*ours} & {*theirs}) is (one == other)
    assert not {*ours} & {*SHARED_NAMES}
    assert all(map(is_reserved, (*ours, *SHARED_NAMES)))
    assert topology_of_owned(ours.owned) == one
    assert [topology_of_owned(name) for name in (*ours[1:], *SHARED_NAMES)] == [None] * 9


@given(TOPOLOGIES, TOPOLOGIES, TOPOLOGIES, TOPOLOGIES)
def test_no_group_or_transactional_id_of_one_topology_is_covered_by_what_another_needs(
    one: str, flow: str, other: str, theirs: str
) -> None:
    if one == other:
        return
    place = Place("orders.x", 0, "remote")
    ids = [ProducerNames(*names).transactional_id(place) for names in ((one, flow), probe_names(one))]
    prefixes = [transactional_prefix(other, theirs), probe_prefix(other)]
    assert not any(name.startswith(prefix) for name in ids for prefix in prefixes)
    assert ids[1].startswith(probe_prefix(one))
    assert not {lease_group(one, flow), turn_group(one, flow)} & {lease_group(other, theirs), turn_group(other, theirs)}


def test_journals_are_made_like_what_they_protect() -> None:
    for topic in own("shop").all:
        assert topic.full_config(3) == topic.full_config(1) | {"min.insync.replicas": "2"}
        assert topic.full_config(1)["min.insync.replicas"] == topic.full_config(2)["min.insync.replicas"] == "1"
        assert (topic.full_config(3)[UNCLEAN], topic.full_config(3)["cleanup.policy"]) == ("false", "compact")
        assert int(topic.full_config(3)["segment.ms"]) <= 3_600_000
    # Those that are there stay as they are.
    assert all(UNCLEAN not in topic.full_config(3) for topic in SHARED.all)


class Admin:
    """A cluster that makes topics, unless they have a key that it does not let be set, or it refuses all."""

    def __init__(self, refusal: int, refused: str = "") -> None:
        self.refusal = refusal
        self.refused = refused
        self.asked: list[Mapping[str, str]] = []

    def create_topics(
        self, topics: Collection[NewTopic], operation_timeout: float, request_timeout: float
    ) -> dict[str, Admin]:
        (topic,) = topics
        assert operation_timeout == request_timeout == 1.0
        self.asked.append(dict(topic.config))
        return {topic.topic: self}

    def result(self) -> None:
        if not self.refused or self.refused in self.asked[-1]:
            raise KafkaException(KafkaError(self.refusal))


def three_brokers() -> ClusterMetadata:
    seen = ClusterMetadata()
    seen.brokers = {number: BrokerMetadata() for number in range(3)}
    return seen


@pytest.mark.parametrize("code", [KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_REQUEST])
def test_a_cluster_that_does_not_let_leaders_be_chosen_is_asked_without(code: int) -> None:
    admin = Admin(code, UNCLEAN)
    assert make(cast("AdminClient", admin), own("shop").owned, three_brokers(), 1.0)
    first, second = admin.asked
    assert first == {**second, UNCLEAN: "false"}
    with pytest.raises(KafkaException):
        make(cast("AdminClient", Admin(code)), own("shop").owned, three_brokers(), 1.0)


def test_other_refusals_are_not_asked_twice() -> None:
    admin = Admin(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        make(cast("AdminClient", admin), own("shop").owned, three_brokers(), 1.0)
    assert len(admin.asked) == 1
    assert not make(
        cast("AdminClient", Admin(KafkaError.TOPIC_ALREADY_EXISTS)), own("shop").owned, three_brokers(), 1.0
    )


# --- which of them a topology has ------------------------------------------------------------------------------------


class Target:
    """What a target shows: names of topics, and what journals hold; or why they cannot be read."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.held: dict[str, dict[str, Any] | Exception] = {}
        self.looks = 0

    def is_visible(self, _cluster: Cluster, name: str, timeout: float) -> bool:
        assert timeout > 0
        self.looks += 1
        return name in self.names

    def reader(self) -> Callable[[Journal], dict[str, Any]]:
        def read(journal: Journal) -> dict[str, Any]:
            held = self.held.get(journal._topic.name, {})
            if isinstance(held, Exception):
                raise held
            return held

        return read


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    made = Target()
    monkeypatch.setattr(home, "_is_visible", made.is_visible)
    monkeypatch.setattr(Journal, "read", made.reader())
    home.forget(WEST, "shop")
    yield made
    home.forget(WEST, "shop")


@pytest.mark.parametrize(
    ("held", "told", "is_own"),
    [
        ({}, {}, True),
        ({"topic/x": {"kind": "topic", "name": "x", "topology": "billing"}}, {}, True),
        ({"topic/x": {"kind": "topic", "name": "x", "topology": "shop"}}, {}, False),
        ({"declaration/shop/west": DECLARED}, {}, False),
        ({"declaration/shop-2/west": DECLARED}, {}, True),
        # A claim that a dead apply has left is no record.
        ({"lock/shop/west/1": {"kind": "lock"}}, {}, True),
        ({"topic/x": {"kind": "topic", "name": "x", "topology": "shop"}, "declaration/shop/west": MOVED}, {}, True),
        # What was said under another alias moves with it.
        ({"declaration/shop/west": DECLARED, "declaration/shop/other": MOVED}, {}, True),
        ({"declaration/shop/west": {"history": "nonsense"}}, {}, False),
        ({}, {"pause@shop/flow": {"command": "pause"}}, False),
        ({}, {"pause@billing/flow": {"command": "pause"}, "pause/flow": {"command": "pause"}}, True),
    ],
)
def test_what_the_shared_journals_hold_decides(
    target: Target, held: dict[str, Any], told: dict[str, Any], is_own: bool
) -> None:
    target.names = {SHARED_NAMES.owned, SHARED_NAMES.control}
    target.held = {SHARED_NAMES.owned: held, SHARED_NAMES.control: told}
    assert home.decide(WEST, "shop") == (own("shop") if is_own else SHARED)
    # Where its own status topic is there nothing else is asked.
    target.names.add(state_names("shop").status)
    target.held = {SHARED_NAMES.owned: AssertionError("it was read")}
    assert home.decide(WEST, "shop").is_own


def test_it_is_asked_once_and_held(target: Target) -> None:
    target.names = {SHARED_NAMES.owned}
    target.held = {SHARED_NAMES.owned: {"declaration/shop/west": DECLARED}}
    assert home.journals(WEST, "shop") == SHARED
    assert home.JournalPlace("shop", "probes").at(WEST, 1.0) == SHARED.owned
    looks, target.names = target.looks, {state_names("shop").status}
    assert home.home_of(WEST, "shop") == "shared"
    assert home.seen(WEST, "shop", target.names) == SHARED
    assert target.looks == looks
    home.forget(WEST, "shop")
    assert home.seen(WEST, "shop", target.names) == own("shop")
    assert (home.JournalPlace("shop", "probes").at(WEST, 1.0), target.looks) == (own("shop").copies, looks)
    home.hold(WEST, "shop", "")
    assert home.home_of(WEST, "shop") == "own"
    home.hold(WEST, "shop", "shared")
    assert home.home_of(WEST, "shop") == "shared"


def test_what_may_not_be_read_is_as_good_as_not_there_and_what_does_not_answer_is_not(target: Target) -> None:
    target.names = {SHARED_NAMES.owned}
    target.held = {SHARED_NAMES.owned: EnvironmentFault(Problem("AB311", "west", "not allowed", "grant it"))}
    assert home.decide(WEST, "shop").is_own
    for error in (
        Unreachable(Problem("AB310", "west", "does not answer", "start it")),
        EnvironmentFault(Problem("AB312", "west", "does not let us in", "log in")),
    ):
        target.held = {SHARED_NAMES.owned: error}
        with pytest.raises(EnvironmentFault) as told:
            home.journals(WEST, "shop")
        assert told.value is error
