"""What `pause`, `resume` and `restart` understand by a name, and what they say of each flow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.status import TaskStatus
from reconciler.operate.flows.steering import Steered, SteeringWords, _deaf, _flows, _scope, _unknown, line
from reconciler.operate.targets import InvalidArgument

FLOW = Flow("east-west", "east", "west", Selection((".*",)))
BACK = Flow("west-east", "west", "east", Selection((".*",)))
OFF = Flow("off", "east", "west", Selection((".*",)), enabled=False)
CLUSTERS = {alias: Cluster(alias, ("127.0.0.1:1",)) for alias in ("east", "west")}
TOPOLOGY = Topology("tests", CLUSTERS, (FLOW, BACK, OFF))
KNOWN = {"orders": 4, "users": 1}
WORDS = SteeringWords("paused", "paused {what}; nobody runs")
BOTH = (PauseScope("east-west", "orders", 1), PauseScope("east-west", "users"))


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("orders", PauseScope("east-west", "orders")),
        ("orders/3", PauseScope("east-west", "orders", 3)),
        ("east.orders/0", PauseScope("east-west", "orders", 0)),
        ("orders/4", None),
        ("orders/", None),
        ("orders/-1", None),
        ("ordres", None),
    ],
)
def test_a_topic_or_partition_is_named_by_original_or_remote_name(name: str, scope: PauseScope | None) -> None:
    assert _scope(FLOW, KNOWN, name) == scope


def test_who_names_nothing_that_exists_is_told_what_does() -> None:
    assert _unknown("ordres", {FLOW: KNOWN, BACK: {}}) == (
        "no topic ordres in east-west, west-east; there are orders, users"
    )
    assert _unknown("orders/4", {FLOW: KNOWN}) == "orders/4 is no partition: topic orders of flow east-west has 0 to 3"
    assert _unknown("orders", {FLOW: {}}).endswith("there are none")
    many = {f"topic-{n:02}": 1 for n in range(15)}
    assert _unknown("orders", {FLOW: many}).endswith("topic-11 and 3 more")


def test_only_enabled_flows_are_meant() -> None:
    assert _flows(TOPOLOGY, None) == (FLOW, BACK)
    assert _flows(TOPOLOGY, "west-east") == (BACK,)
    for name in ("off", "nothing"):
        with pytest.raises(InvalidArgument, match=f"no enabled flow {name} .* east-west, west-east"):
            _flows(TOPOLOGY, name)


@pytest.mark.parametrize(
    ("live", "deaf", "said"),
    [
        (1, 0, "paused orders/1, users; confirmed by 1 running task"),
        (3, 0, "paused orders/1, users; confirmed by 3 running tasks"),
        (3, 2, "paused orders/1, users, but 2 of 3 running tasks did not confirm it within 15 s"),
        (0, 0, "paused orders/1, users; nobody runs"),
    ],
)
def test_it_says_who_confirmed(live: int, deaf: int, said: str) -> None:
    assert line(Steered(FLOW, BOTH, live, deaf), WORDS) == said


def test_a_task_confirms_by_having_listened_that_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 100.0)

    def said(task: int, heard: int, flow: str = "east-west", stopped: bool = False, time: float = 99.0) -> TaskStatus:
        said = TaskStatus(flow, "east", "west", "run", task, 4, time, stopped, None, 0, 0, 0.0, 0.0, partitions=())
        return replace(said, heard=heard, topology="tests")

    statuses = [
        said(0, 7),
        said(1, 6),
        said(2, 0, stopped=True),
        said(3, 0, time=1.0),
        said(0, 0, flow="west-east"),
    ]
    assert [status.task for status in _deaf(FLOW, statuses, 7)] == [1]
    assert _deaf(FLOW, statuses, 6) == []
    older = replace(said(0, 9), topology="")
    assert _deaf(FLOW, [older], 7) == [older], "an older release hears it and does not understand"
