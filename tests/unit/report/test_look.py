"""The tables of `flows`, `topics` and `groups`, and what `describe` shows."""

from __future__ import annotations

import json
from dataclasses import replace

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules, LastLook, SyncedGroup
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.declaration import InForce
from reconciler.model.recorded.event import RecordedEvent
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.report.describe import (
    MOST_EVENTS,
    MOST_TOPICS,
    DescribedFlow,
    DescribedTopic,
    flow_json,
    flow_lines,
    topic_json,
    topic_lines,
    topics_of,
)
from reconciler.report.explain import ExplainedFlow, explained
from reconciler.report.flows import flow_lines as declared_lines
from reconciler.report.flows import flows_json
from reconciler.report.status.groups import all_groups_json, group_lines
from reconciler.report.status.lag import lag_rows
from reconciler.report.status.summary import FlowSummary, summarise
from reconciler.report.status.topics import topic_lines as topic_table
from reconciler.report.status.topics import topic_rows, topics_json
from reconciler.report.text.line import Line
from tests.unit.plan.facts import topology

NOW = 1_000.0
EAST_WEST = Flow("east-west", "east", "west", Selection(("orders.*", "users"), (".*-tmp",)))
TAKING = replace(EAST_WEST, groups=GroupRules(("reports.*",)))


def partition(number: int, topic: str, position: int, end: int, age: float | None = None) -> PartitionStatus:
    metrics = Metrics(lag_seconds=age)
    return PartitionStatus(topic, number, f"east.{topic}", PartitionState.RUNNING, position, end, None, metrics)


def summary(*partitions: PartitionStatus) -> FlowSummary:
    (one,) = summarise([EAST_WEST], [said(*partitions)], NOW, {"west": InForce("digest", 1.0, "root@vm")})
    return one


def said(*partitions: PartitionStatus) -> TaskStatus:
    return TaskStatus("east-west", "east", "west", "run", 0, 1, NOW - 0.5, False, None, 0, 0, 0.0, 0.0, partitions)


def text(lines: list[Line]) -> list[str]:
    return [line.plain for line in lines]


def told() -> ExplainedFlow:
    (one,) = explained(topology(EAST_WEST), [EAST_WEST], [], {})
    return one | {
        "fields": [
            {"field": "tasks", "value": 2, "place": "a.yaml:5:3"},
            {"field": "quota", "value": None, "place": ""},
        ]
    }


def test_flows_are_listed_with_what_they_take() -> None:
    lines = text(declared_lines([EAST_WEST, replace(TAKING, name="other", enabled=False, tasks=2)]))
    assert lines == [
        "flow       from  to    topics           without  groups     tasks  offsets  policy   note",
        "east-west  east  west  orders.*, users  .*-tmp                  1  auto     default",
        "other      east  west  orders.*, users  .*-tmp   reports.*      2  auto     default  disabled",
    ]
    assert text(declared_lines([])) == ["no flows are declared"]
    (value,) = json.loads(json.dumps(flows_json([replace(TAKING, failed_over=True)])))
    assert value["topics"] == {"include": ["orders.*", "users"], "exclude": [".*-tmp"]}
    assert (value["flow"], value["groups"], value["enabled"], value["failedOver"]) == (
        "east-west",
        ["reports.*"],
        True,
        True,
    )


def test_topics_are_summed_up_the_worst_first() -> None:
    parked = replace(partition(1, "audit", 5, 7, 3.0), state=PartitionState.PARKED, reason=Reason("AB212", "large"))
    one = summary(
        partition(0, "users", 9, 9),
        partition(0, "audit", 1, 4, 60.0),
        parked,
        partition(0, "orders", -1, -1),
        partition(1, "orders", 1, 9),
    )
    rows = topic_rows([one])
    assert [(row.topic, row.partitions, row.lag, row.lag_seconds, row.parked) for row in rows] == [
        ("orders", 2, None, 0.0, 0),
        ("audit", 2, 5, 60.0, 1),
        ("users", 1, 0, 0.0, 0),
    ]
    assert text(topic_table(rows)) == [
        "flow       topic   remote       partitions  lag  behind  parked",
        "east-west  orders  east.orders           2    -     0 s",
        "east-west  audit   east.audit            2    5   1 min       1",
        "east-west  users   east.users            1    0     0 s",
    ]
    value = topics_json(rows, NOW, ["north"])
    assert value["topics"][1] == {
        "flow": "east-west",
        "topic": "audit",
        "remote": "east.audit",
        "partitions": 2,
        "lag": 5,
        "lagSeconds": 60.0,
        "parked": 1,
        "paused": 0,
    }
    assert (value["time"], value["unreachable"]) == (NOW, ["north"])
    assert text(topic_table([], "anabranch replicate")) == [
        "no topics: no task has reported; start: anabranch replicate"
    ]


def test_groups_are_listed_with_the_reason_where_they_are_refused() -> None:
    looks: dict[str, LastLook | None] = {
        "east-west": LastLook(NOW - 5, 2, (SyncedGroup("bad", 0.0, "AB621"), SyncedGroup("good", NOW - 20)))
    }
    flows = [TAKING, replace(EAST_WEST, name="plain"), replace(TAKING, name="new"), replace(TAKING, name="none")]
    lines = text(group_lines(flows, looks | {"none": LastLook(NOW, 0)}, NOW))
    assert lines == [
        "flow       group  synced    refused",
        "east-west  bad    never     AB621",
        "east-west  good   20 s ago",
        "plain: takes no groups along (groups.include is empty)",
        "new: no round is known: nothing has copied groups",
        "none: no group matches groups.include",
    ]
    first, second = all_groups_json(flows[:2], looks, NOW)["flows"]
    assert (second["taken"], second["groups"]) == (False, [])
    assert first["groups"] == [
        {"group": "bad", "ageSeconds": None, "code": "AB621"},
        {"group": "good", "ageSeconds": 20.0, "code": None},
    ]
    assert (first["flow"], first["taken"], first["count"], first["silentSeconds"]) == ("east-west", True, 2, 5.0)


def test_groups_of_a_record_without_names_are_counted() -> None:
    found = group_lines([TAKING], {"east-west": LastLook(NOW, 3_000)}, NOW)
    assert text(found) == ["east-west: 3,000 groups, not recorded by name"]
    assert text(group_lines([TAKING], {"east-west": LastLook(NOW)}, NOW)) == [
        "east-west: how many groups there are is not known"
    ]


def test_a_flow_is_described_with_what_is_declared_what_runs_and_what_is_on_record() -> None:
    events = [RecordedEvent(float(at), "west", "applied", f"digest {at}", "root@vm") for at in range(9)]
    partitions = [partition(0, f"orders-{number:02}", 1, 2) for number in range(MOST_TOPICS + 3)]
    one = DescribedFlow(TAKING, told(), summary(*partitions), {}, events, NOW)
    lines = text(flow_lines(one))
    assert lines[0] == "east-west   east → west"
    sections = [line for line in lines[1:] if not line.startswith(" ")]
    assert sections == ["declared", "status", "topics", "groups", "on record"]
    assert "  tasks  2      a.yaml:5:3" in lines
    assert not any("quota" in line for line in lines), "only what a file sets"
    assert "  and 3 more: anabranch topics --flow east-west" in lines
    assert len(lines[lines.index("on record") :]) == 2 + MOST_EVENTS
    assert "digest 8" in lines[-1]
    value = json.loads(json.dumps(flow_json(one)))
    assert len(value["topics"]) == MOST_TOPICS + 3
    assert len(value["events"]) == len(events)
    assert "partitions" not in value["status"]
    assert value["status"]["inForce"]["digest"] == "digest"


def test_a_flow_whose_target_is_away_is_described_as_far_as_it_is_known() -> None:
    one = DescribedFlow(TAKING, told(), None, {}, (), NOW)
    assert text(flow_lines(one))[-1] == "  unknown: west was not read"
    value = flow_json(one, ["west"])
    assert (value["status"], value["unreachable"]) == (None, ["west"])


def test_a_topic_is_described_by_either_name() -> None:
    assert topics_of("east.orders", [EAST_WEST]) == topics_of("orders", [EAST_WEST]) == {"east-west": "orders"}
    (fates,) = explained(topology(EAST_WEST), [EAST_WEST], ["orders", "orders-tmp"], {})
    rows = lag_rows([EAST_WEST], [said(partition(0, "orders", 1, 5, 2.0))], NOW, "orders")
    copied = DescribedTopic("east-west", ("east", "west"), fates["topics"][0], rows)
    silent = DescribedTopic("again", ("east", "west"), fates["topics"][0], [])
    left = DescribedTopic("other", ("east", "west"), fates["topics"][1], [])
    lines = text(topic_lines("orders", [copied, silent, left]))
    assert lines[:2] == ["orders", "  east → west   flow east-west   orders → east.orders"]
    assert lines[3].split() == ["flow", "topic", "state", "position", "end", "lag", "behind", "p50", "p99"]
    assert "    no task has reported it" in lines
    parked = replace(partition(0, "orders", 1, 5), state=PartitionState.PARKED, reason=Reason("AB212", "it is large"))
    (row,) = lag_rows([EAST_WEST], [said(parked)], NOW)
    assert text(topic_lines("orders", [replace(copied, partitions=[row])]))[-1] == "    orders/0: it is large [AB212]"
    assert lines[-2] == "  east → west   flow other   not copied"
    value = json.loads(json.dumps(topic_json("orders", [copied, left], NOW)))
    first, second = value["flows"]
    assert (first["flow"], first["remote"], first["partitions"][0]["lag"]) == ("east-west", "east.orders", 4)
    assert (second["remote"], second["partitions"]) == (None, [])
