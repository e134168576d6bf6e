"""What tasks are told through a real control topic: who hears it, how long it holds, and how it is taken back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.seal import Seal, new_key
from reconciler.state import control
from reconciler.state.journals import home
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.shared_follower import SharedFollower
from reconciler.state.journals.topics import SHARED, JournalTopic, own
from reconciler.state.journals.user import user
from reconciler.state.listener import Listener, Restart, followed
from tests.support.clusters.kafka import declared
from tests.support.replicator.announced import announced
from tests.support.waiting import eventually

SHOP, AUDIT = "shop", "audit"
KEY = new_key()
Ears = Callable[..., Listener]


@pytest.fixture
def cluster(target_cluster: EmbeddedCluster) -> Cluster:
    made = declared("west", target_cluster)
    Journal(made, own(SHOP).control).ensure()
    return made


@pytest.fixture
def shared(cluster: Cluster) -> Iterator[JournalTopic]:
    """The control topic of a release before topics per topology, where both topologies are."""
    for one in (SHOP, AUDIT):
        home.hold(cluster, one, "shared")
    Journal(cluster, SHARED.control).ensure()
    yield SHARED.control
    for one in (SHOP, AUDIT):
        home.hold(cluster, one, "own")


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def listen(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Ears]:
    """Open ears that are closed with the test, each for itself or all of a topology together."""
    opened: list[Listener] = []
    shared: dict[str, SharedFollower] = {}

    def ear(run: str | Seal, flow: str = "east-west", topology: str = SHOP) -> Listener:
        if request.param and topology not in shared:
            shared[topology] = followed(cluster, topology)
        opened.append(Listener(cluster, seal_of(run, flow, topology), shared.get(topology)))
        return opened[-1]

    yield ear
    for one in opened:
        one.close()
    for follower in shared.values():
        follower.close()


def seal_of(run: str | Seal, flow: str = "east-west", topology: str = SHOP) -> Seal:
    return run if isinstance(run, Seal) else Seal(topology, run, flow, KEY)


def until(ear: Listener, heard: Callable[[], Any]) -> None:
    def look() -> Any:
        if not heard():
            ear.listen()
        return heard()

    eventually("the messages are read", look)


def test_a_run_alone_hears_that_it_is_to_stop(cluster: Cluster, listen: Ears, topic_name: str) -> None:
    mine, other = listen(topic_name), listen(f"{topic_name}-other")
    control.stop(cluster, [seal_of(topic_name)])
    until(mine, lambda: mine.stopped)
    until(other, lambda: other.heard >= mine.heard)
    assert not other.stopped
    assert listen(topic_name).stopped, "who begins later hears it too"
    control.withdraw(cluster, [seal_of(topic_name)])
    assert not listen(topic_name).stopped


def test_shares_are_for_one_flow_of_one_run_until_they_are_withdrawn(
    cluster: Cluster, listen: Ears, topic_name: str
) -> None:
    early, other = listen(topic_name), listen(topic_name, "west-east")
    control.announce(cluster, seal_of(topic_name), {"tasks": 2})
    until(early, lambda: early.shares == {"tasks": 2})
    until(other, lambda: other.heard >= early.heard)
    assert other.shares is None
    assert listen(topic_name).shares == {"tasks": 2}
    assert announced(cluster, seal_of(topic_name)) == {"tasks": 2}
    control.withdraw(cluster, [seal_of(topic_name)])
    assert announced(cluster, seal_of(topic_name)) is None
    assert listen(topic_name).shares is None


def test_a_pause_holds_for_those_who_listen_now_and_later(cluster: Cluster, listen: Ears, topic_name: str) -> None:
    flow = topic_name[:100]
    now, other = listen("now", flow), listen("now", f"{flow}-other")
    heard = control.pause(cluster, SHOP, [PauseScope(flow, "orders"), PauseScope(flow, "users", 1)])
    until(now, lambda: now.heard >= heard)
    until(other, lambda: other.heard >= heard)
    for ear in (now, listen("later", flow)):
        found = [ear.pauses.hold(flow, *place) for place in (("orders", 7), ("users", 1), ("users", 0))]
        assert found == [True, True, False]
    assert not other.pauses.rules

    heard = control.resume(cluster, SHOP, [PauseScope(flow)])
    until(now, lambda: now.heard >= heard)
    assert now.pauses.rules == listen("later", flow).pauses.rules == {}


def test_a_narrower_command_leaves_the_rest_as_it_was(cluster: Cluster, listen: Ears, topic_name: str) -> None:
    flow = topic_name[:100]
    rules = control.PauseRules(cluster, SHOP, 10.0)
    assert rules.current().of(flow) == (), "nothing was paused"
    control.pause(cluster, SHOP, [PauseScope(flow)])
    deadline = time.monotonic() + 30
    while not (told := rules.current().of(flow)):
        assert time.monotonic() < deadline
    rules.close()
    ((scope, said),) = told
    assert (scope, said.startswith("by ")) == (PauseScope(flow), True)
    control.resume(cluster, SHOP, [PauseScope(flow, "orders", 0)])
    pauses = listen("run", flow).pauses
    assert (pauses.hold(flow, "orders", 0), pauses.hold(flow, "orders", 1)) == (False, True)
    control.resume(cluster, SHOP, [PauseScope(flow)])
    assert listen("run", flow).pauses.rules == {}


def test_a_restart_is_heard_once_and_never_by_those_who_begin_later(
    cluster: Cluster, listen: Ears, topic_name: str
) -> None:
    flow = topic_name[:100]
    ear = listen("run", flow)
    scope = PauseScope(flow, "orders", 3)
    heard = control.restart(cluster, SHOP, [scope], parked_only=True)
    until(ear, lambda: ear.heard >= heard)
    assert ear.take_restarts() == [Restart(scope, parked_only=True)]
    assert ear.take_restarts() == listen("run", flow).take_restarts() == []


@pytest.mark.usefixtures("shared")
def test_a_flow_of_the_same_name_in_another_topology_is_left_alone(
    cluster: Cluster, listen: Ears, topic_name: str
) -> None:
    flow = topic_name[:100]
    ours, theirs = listen("run", flow), listen("other", flow, AUDIT)
    control.pause(cluster, SHOP, [PauseScope(flow)])
    heard = control.restart(cluster, SHOP, [PauseScope(flow)], parked_only=True)
    until(ours, lambda: ours.heard >= heard)
    until(theirs, lambda: theirs.heard >= heard)
    assert (ours.pauses.hold(flow, "orders", 0), theirs.pauses.hold(flow, "orders", 0)) == (True, False)
    assert (len(ours.take_restarts()), theirs.take_restarts()) == (1, [])
    control.pause(cluster, AUDIT, [PauseScope(flow)])
    control.resume(cluster, SHOP, [PauseScope(flow)])
    assert not listen("later", flow).pauses.rules
    assert listen("later", flow, AUDIT).pauses.hold(flow, "orders", 0)


def test_what_an_older_release_paused_holds_until_each_topology_resumes_it(
    cluster: Cluster, shared: JournalTopic, listen: Ears, topic_name: str
) -> None:
    flow, paused = topic_name[:100], {"command": "pause", "time": time.time()}
    Journal(cluster, shared).write_all(
        {f"pause/{flow}": paused, f"pause/{flow}/users": paused, f"pause/{flow}/users/first": paused}
    )
    ear = listen("run", flow)
    assert ear.pauses.hold(flow, "orders", 0)
    heard = control.resume(cluster, SHOP, [PauseScope(flow)])
    until(ear, lambda: ear.heard >= heard)
    for pauses in (ear.pauses, listen("later", flow).pauses):
        assert [pauses.hold(flow, topic, 0) for topic in ("orders", "users")] == [False, False]
    assert listen("later", flow, AUDIT).pauses.hold(flow, "users", 0)
    control.pause(cluster, SHOP, [PauseScope(flow, "users")])
    assert listen("later", flow).pauses.hold(flow, "users", 0)
    told = {"command": "restart", "time": time.time()}
    old = Journal(cluster, shared).write(f"restart/{flow}/orders", told)
    until(ear, lambda: ear.heard >= old)
    assert [restart.scope for restart in ear.take_restarts()] == [PauseScope(flow, "orders")]


def test_the_shares_of_runs_that_died_are_forgotten(
    cluster: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    control.announce(cluster, seal_of(topic_name, "fresh"), {"tasks": 1})
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: 1_000.0)
        control.announce(cluster, seal_of(topic_name, "old"), {"tasks": 1})
    control.forget_old(cluster, SHOP)
    assert announced(cluster, seal_of(topic_name, "old")) is None
    assert announced(cluster, seal_of(topic_name, "fresh")) is not None


def forged(kind: str, cluster: Cluster, seal: Seal) -> dict[str, Value | None]:
    """Return what a principal that may write the control topic sends to a run whose key it does not have."""
    stop, shares = f"stop/{seal.run}/{seal.flow}", f"shares/{seal.run}/{seal.flow}"
    loot = {"tasks": 1, "topics": {"orders-secret": ["us-east.orders-loot", [0], "identical", []]}}
    said = {"command": "shares", "time": time.time(), "shares": loot}
    if kind == "no seal":
        return {stop: {"command": "stop", "time": time.time()}, shares: said}
    if kind == "a seal of another key":
        other = Seal(SHOP, seal.run, seal.flow, new_key())
        return {stop: other.sealed(stop, {"command": "stop", "time": time.time()}), shares: other.sealed(shares, said)}
    if kind == "the seal of another message":
        control.announce(cluster, seal, {"tasks": 1})
        genuine = Journal(cluster, own(SHOP).control).read()[shares]
        return {stop: genuine, shares: {**genuine, "shares": loot}}
    assert kind == "what an older release obeyed"
    return {seal.run: {"command": "stop", "time": time.time()}}


@pytest.mark.parametrize(
    "kind", ["no seal", "a seal of another key", "the seal of another message", "what an older release obeyed"]
)
def test_a_message_to_a_run_without_its_seal_is_passed_over(
    cluster: Cluster, listen: Ears, topic_name: str, kind: str
) -> None:
    seal = seal_of(topic_name)
    ear = listen(seal)
    heard = Journal(cluster, own(SHOP).control).write_all(forged(kind, cluster, seal))
    until(ear, lambda: ear.heard >= heard)
    for one in (ear, listen(seal)):
        assert not one.stopped
        assert one.shares in (None, {"tasks": 1})
        assert one.unsealed == (0 if kind == "what an older release obeyed" else 2)
    assert announced(cluster, seal) in (None, {"tasks": 1})
    control.stop(cluster, [seal])
    until(ear, lambda: ear.stopped)


def test_an_old_message_that_is_written_again_changes_nothing(cluster: Cluster, listen: Ears, topic_name: str) -> None:
    seal = seal_of(topic_name)
    ear, key = listen(seal), f"shares/{topic_name}/east-west"
    control.announce(cluster, seal, {"tasks": 1})
    old = Journal(cluster, own(SHOP).control).read()[key]
    control.announce(cluster, seal, {"tasks": 2})
    heard = Journal(cluster, own(SHOP).control).write(key, old)
    until(ear, lambda: ear.heard >= heard)
    assert (ear.shares, ear.unsealed) == ({"tasks": 2}, 1)


def test_a_stop_cannot_be_taken_back_by_a_removal(cluster: Cluster, listen: Ears, topic_name: str) -> None:
    seal = seal_of(topic_name)
    ear = listen(seal)
    control.stop(cluster, [seal])
    until(ear, lambda: ear.stopped)
    heard = Journal(cluster, own(SHOP).control).write(f"stop/{topic_name}/east-west", None)
    until(ear, lambda: ear.heard >= heard)
    assert ear.stopped


def test_a_pause_says_who_made_it_and_one_of_an_older_release_nothing(
    cluster: Cluster, listen: Ears, topic_name: str
) -> None:
    flow = topic_name[:100]
    control.pause(cluster, SHOP, [PauseScope(flow, "orders")])
    Journal(cluster, own(SHOP).control).write(f"pause@{SHOP}/{flow}/users", {"command": "pause", "time": time.time()})
    Journal(cluster, own(SHOP).control).write(
        f"pause@{SHOP}/{flow}/audit", {"command": "pause", "time": 1e300, "by": "x"}
    )
    pauses = listen("run", flow).pauses
    assert pauses.why(flow, "orders", 0).startswith(f"by {user()} since 20")
    assert [pauses.why(flow, topic, 0) for topic in ("users", "audit", "others")] == ["", "", ""]
    assert [pauses.hold(flow, topic, 0) for topic in ("orders", "users", "audit")] == [True, True, False]
