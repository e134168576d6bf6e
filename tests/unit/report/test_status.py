"""What `status` prints: flows summed up from their tasks' words, as lines and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.declare import load_with_fields
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.fields import Field
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import LastLook
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.declaration import DESTROYED, InForce, digest_into
from reconciler.model.recorded.failover import FailedOver
from reconciler.model.tasks.latency import Histogram, Latency, bucket_of
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.report.status.quotas import quota_lines
from reconciler.report.status.summary import FlowSummary, status_lines, summarise
from reconciler.report.status.to_json import status_json
from reconciler.report.status.unapplied import unapplied_lines
from reconciler.report.status.unread import unread_lines
from tests.support.replicator.words import (
    NOW,
    OPENING,
    PARKED,
    PAUSED,
    TOO_LARGE,
    flow,
    partition,
    said,
    with_groups,
)

FIGURES = Metrics(5_000, 70_000, Latency(10, 1, 30, 20, 1_500, 1_600), 12, 2.5, fills=17, retries=3)
OUTAGE = Reason("AB220", "west does not answer")


def histogram(latency: int, records: int) -> Histogram:
    return Histogram(((bucket_of(latency), records),), latency * records, latency, latency)


def measured(number: int, position: int, end: int, lag: float) -> PartitionStatus:
    return replace(partition(number, position, end), metrics=replace(FIGURES, lag_seconds=lag))


def summary(*statuses: TaskStatus) -> FlowSummary:
    (one,) = summarise([flow()], statuses, NOW)
    return one


def lines(*statuses: TaskStatus) -> list[str]:
    return [line.plain for line in status_lines([summary(*statuses)])]


def test_the_tasks_of_a_flow_are_added_up() -> None:
    one = summary(said(partition(0, 5, 9), partition(2, 3, 3)), said(partition(1, 90, 100), task=1))
    assert (one.state, one.lag, one.records, one.tasks) == ("running", 14, 200, 2)
    assert (one.records_per_second, one.bytes_per_second) == (21.0, 1_050.0)
    assert [p.partition for p in one.partitions] == [0, 2, 1]
    assert one.troubled == ()


def test_a_run_that_has_ended_waits_for_nothing() -> None:
    waiting = partition(0, 5, 9, PartitionState.WAITING, Reason("AB224", "no lease of group g now: the run ends"))
    parked = partition(1, 1, 9, PARKED, TOO_LARGE)
    one = summary(said(waiting, parked))
    assert [p.partition for p in one.troubled] == [0, 1]
    one = summary(replace(said(waiting, parked), stopped=True))
    assert (one.state, [p.partition for p in one.troubled]) == ("stopped", [1])


def test_it_says_of_how_many_partitions_the_lag_is_not_known() -> None:
    words = (
        said(partition(0, 5, 9), partition(1, -1, 100, PARKED, TOO_LARGE), partition(2, -1, -1, OPENING)),
        said(task=1),
    )
    one = said(partition(0, 5, 9), partition(2, -1, -1, OPENING)), said(task=1)
    assert "   lag 4 records, of 1 partition unknown" in lines(*one)[0]
    assert "   lag 4 records, of 2 partitions unknown   " in lines(*words)[0]
    assert status_json([summary(*words)], NOW)["flows"][0]["lagUnknown"] == 2
    assert "unknown" not in lines(said(partition(0, 5, 9)), said(task=1))[0]


def test_flows_keep_their_order_and_their_own_words() -> None:
    made = summarise([flow("a-b"), flow("c-d")], [said(partition(0, 1, 5), flow="c-d")], NOW)
    assert [(one.name, one.state, one.lag) for one in made] == [("a-b", "not running", None), ("c-d", "running", 4)]


def test_an_unknown_lag_is_not_zero() -> None:
    one = summary(said(partition(0, -1, -1, OPENING)))
    assert one.lag is None
    assert "lag unknown" in lines(said(partition(0, -1, -1, OPENING)))[0]


def test_silent_tasks_copy_nothing() -> None:
    one = summary(said(partition(0, 1, 1), ago=60))
    assert (one.records_per_second, one.tasks, one.silent_seconds) == (0.0, 0, 60.0)


def test_a_silent_task_beside_a_speaking_one_is_told() -> None:
    statuses = said(partition(0, 1, 1)), said(partition(1, 1, 1), task=1, ago=60)
    assert (summary(*statuses).tasks, summary(*statuses).silent_tasks) == (1, 1)
    assert lines(*statuses)[0].endswith("silent tasks 1")


def test_a_running_flow_is_one_line() -> None:
    assert lines(said(partition(0, 1_000, 2_234_567))) == [
        "east → west   running     10 rec/s   525 B/s   lag 2,233,567 records"
    ]


@pytest.mark.parametrize(("quota", "held"), [(600, True), (100_000, False), (None, False)])
def test_a_flow_that_copies_as_much_as_its_quota_allows_is_told_so(quota: int | None, held: bool) -> None:
    declared = replace(flow(), quota=quota)
    (line,) = status_lines(summarise([declared], [said(partition(0, 1, 9))], NOW))
    assert ("held at its quota of 600 B/s   lag 8" in line.plain) == held
    assert ("   quota 0.1 MB/s   lag 8" in line.plain) == (quota == 100_000)
    (caught_up,) = status_lines(summarise([declared], [said(partition(0, 9, 9))], NOW))
    assert "quota" not in caught_up.plain


def test_the_line_that_holds_a_flow_back_is_named(tmp_path: Path) -> None:
    file = tmp_path / "held.yaml"
    file.write_text(
        """\
version: 1
name: both
clusters: {east: {bootstrap: ["127.0.0.1:9"]}, west: {bootstrap: ["127.0.0.1:9"]}, north: {bootstrap: ["127.0.0.1:7"]}}
flows:
  - {name: east-west, from: east, to: west, quota: 600B/s}
  - {name: east-north, from: east, to: north}
"""
    )
    topology, fields = load_with_fields([file])
    told = [said(partition(0, 1, 9)), replace(said(partition(0, 1, 9)), flow="east-north", target="north")]
    (line,) = quota_lines(summarise(topology.flows, told, NOW), fields)
    assert line.plain == (
        f"{file}:5:52 (flows[0].quota): this quota holds east → west back: raise or remove it, and `anabranch apply`, "
        "where it is to catch up sooner"
    )
    assert quota_lines(summarise(topology.flows, [said(partition(0, 9, 9))], NOW), fields) == []
    both = {"east-west": (Field("quota", "600B/s", "a.yaml:2:1 (defaults.quota)"),)}
    both["east-north"] = both["east-west"]
    flows = [replace(one, quota=600) for one in topology.flows]
    (line,) = quota_lines(summarise(flows, told, NOW), both)
    assert "(defaults.quota): this quota holds east → west, east → north back: raise" in line.plain


def test_a_flow_whose_target_was_not_read_has_a_line() -> None:
    flows = [flow(), flow("east-north"), replace(flow("east-south"), enabled=False)]
    assert [one.plain for one in unread_lines(flows, {"north", "south"})] == [
        "east → north   unknown     north does not answer [AB310]"
    ]


def test_every_partition_with_a_reason_gets_a_line() -> None:
    first, second, third = lines(
        said(partition(0, 4, 9, PARKED, TOO_LARGE), partition(1, 3, 4, OPENING, OUTAGE), partition(2, 1, 1))
    )
    assert first.startswith("east → west   degraded")
    assert first.endswith("parked 1")
    assert second == "  east.orders/0  parked    the batch at offset 4 has 2,000,000 bytes [AB212]"
    assert third == "  east.orders/1  opening   west does not answer [AB220]"


def test_a_paused_partition_gets_a_line_and_a_paused_flow_gets_none() -> None:
    first, second = lines(said(partition(0, 4, 9, PAUSED), partition(1, 9, 9)))
    assert first.startswith("east → west   running ")
    assert first.endswith("   paused 1")
    assert second == "  east.orders/0  paused  "
    assert lines(said(partition(0, 4, 9, PAUSED), partition(1, 8, 9, PAUSED))) == [
        "east → west   paused      10 rec/s   525 B/s   lag 6 records   paused 2"
    ]


def test_a_waiting_flow_says_what_for() -> None:
    assert lines(said(waiting="no topic matches yet")) == ["east → west   waiting     no topic matches yet"]


@pytest.mark.parametrize(
    ("ago", "words"), [(12, "12 s"), (59, "59 s"), (120, "2 min"), (3 * 3_600, "3 h"), (5 * 86_400, "5 d")]
)
def test_a_lost_flow_says_when_it_was_heard(ago: float, words: str) -> None:
    assert lines(said(partition(0, 1, 1), ago=ago)) == [f"east → west   lost        last report {words} ago"]


def test_a_flow_without_any_word_is_not_running() -> None:
    assert [line.plain.rstrip() for line in status_lines(summarise([flow()], [], NOW))] == ["east → west   not running"]


def test_columns_line_up_between_flows() -> None:
    made = summarise([flow("a-b"), flow("longer-name")], [], NOW)
    starts = {line.plain.index("not running") for line in status_lines(made)}
    assert len(starts) == 1


def test_no_flow_is_no_line() -> None:
    assert status_lines([]) == []
    assert status_lines([], whole=True) == []
    assert status_json([], NOW, ["west"]) == {"time": NOW, "flows": [], "unreachable": ["west"]}


def test_the_age_of_the_lag_and_the_latency_of_all_tasks_are_told() -> None:
    one, two = measured(0, 4, 9, lag=0.26), measured(1, 8, 9, lag=120.0)
    first, second = (
        replace(said(one), latency=histogram(20, 98), bytes_per_second=10.46e6),
        replace(said(two, task=1), latency=histogram(4_000, 2)),
    )
    found = summary(first, second)
    assert (found.lag_seconds, found.latency) == (120.0, Latency(100, 20, 100, 20, 4_000, 4_000))
    assert lines(first, second) == [
        "east → west   running     21 rec/s   10.5 MB/s   lag 6 records, 2 min   p99 4.0 s",
    ]


def test_the_latency_of_a_silent_task_is_history() -> None:
    assert summary(replace(said(partition(0, 1, 1), ago=60), latency=histogram(20, 98))).latency is None


def test_every_partition_is_listed_when_asked_for() -> None:
    quiet, busy = partition(0, 9, 9), measured(11, 1_004, 12_009, lag=7 * 86_400.0)
    parked = partition(2, -1, -1, PARKED, TOO_LARGE)
    made = status_lines([summary(said(quiet, busy, parked))], whole=True)
    assert [line.plain for line in made[1:]] == [
        "  remote          state    position     end     lag  behind    p50    p99  copied  retries  filled  reason",
        "  east.orders/0   running         9       9       0       -      -      -       0",
        "  east.orders/11  running     1,004  12,009  11,005     7 d  20 ms  1.5 s   5,000        3      17",
        "  east.orders/2   parked          -       -       -       -      -      -       0"
        "                   the batch at offset 4 has 2,000,000 bytes [AB212]",
    ]


def test_json_has_everything_and_only_json_types() -> None:
    measured = replace(partition(0, 4, 9, PARKED, TOO_LARGE), metrics=FIGURES)
    value = json.loads(json.dumps(status_json([summary(said(measured))], NOW)))
    (one,) = value["flows"]
    assert (
        one.items()
        >= {
            "name": "east-west",
            "source": "east",
            "target": "west",
            "state": "degraded",
            "lag": 5,
            "lagSeconds": 2.5,
            "parked": 1,
            "paused": 0,
            "latencyMs": None,
            "tasks": 1,
            "waiting": None,
        }.items()
    )
    assert one["partitions"] == [
        {
            "topic": "orders",
            "partition": 0,
            "remote": "east.orders",
            "state": "parked",
            "position": 4,
            "end": 9,
            "lag": 5,
            "lagSeconds": 2.5,
            "latencyMs": {"records": 10, "min": 1, "avg": 30, "p50": 20, "p99": 1_500, "max": 1_600},
            "recordAgeMs": 12,
            "records": 5_000,
            "bytes": 70_000,
            "fills": 17,
            "retries": 3,
            "shifted": 0,
            "reason": {"code": "AB212", "text": "the batch at offset 4 has 2,000,000 bytes"},
        }
    ]


def keys(value: object) -> object:
    """What a JSON value looks like without its figures."""
    if isinstance(value, dict):
        return {name: keys(one) for name, one in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value else None


def test_json_has_the_documented_shape() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "status.md"
    (documented,) = re.findall(r"^```json\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    word = replace(said(measured(0, 4, 9, lag=1.0)), latency=histogram(20, 98), digest="one")
    made = summarise([with_groups()], [word], NOW, {"west": IN_FORCE}, {"east-west": LastLook(NOW, 12)})
    assert keys(json.loads(documented)) == keys(status_json(made, NOW))


IN_FORCE = InForce("one", 1_800_000_000.0, "ops@host")


def held(digest: str, ago: float = 0.0) -> TaskStatus:
    word = replace(said(), run=f"run-of-{digest}", tasks=0, waiting="until it is in force", digest=digest)
    return replace(word, time=word.time - ago)


def told(*statuses: TaskStatus, in_force: InForce | None = IN_FORCE) -> list[str]:
    here = {"west": in_force} if in_force else {}
    return [line.plain.rstrip() for line in status_lines(summarise([flow()], statuses, NOW, here))]


def test_a_run_with_another_declaration_than_the_one_in_force_is_named() -> None:
    running = replace(said(partition(0, 1, 5)), digest="one")
    another = "has digest {}; digest one is in force since 2027-01-15 08:00:00 UTC, applied by ops@host"
    assert len(told(running)) == 1
    assert told(replace(running, digest="two"))[1:] == [f"  run {running.run} {another.format('two')}"]
    assert len(told(replace(running, digest=""))) == 1, "a release that knows no digests"
    assert len(told(replace(running, digest="two"), in_force=None)) == 1
    assert told(running, held("two"))[1:] == [f"  run run-of-two {another.format('two')}"]
    assert told(running, held("two"))[0] == told(running)[0], "who waits does not count as a task"


def test_a_flow_whose_processes_all_wait_says_so() -> None:
    first, second = told(held("two"))
    assert first == "east → west   waiting     until it is in force"
    assert second.startswith("  run run-of-two has digest two; digest one is in force")
    assert told(held("two", ago=60.0)) == ["east → west   not running"]
    stopped = replace(said(partition(0, 1, 5)), stopped=True)
    assert told(stopped, held("two"))[0] == first, "whatever ran before"
    (value,) = status_json(summarise([flow()], [stopped, held("two")], NOW, {"west": IN_FORCE}), NOW)["flows"]
    assert (value["tasks"], value["silentTasks"], len(value["partitions"])) == (0, 0, 1)
    assert value["runs"] == [{"run": "run-of-two", "digest": "two"}]
    assert value["inForce"] == {"digest": "one", "since": 1_800_000_000.0, "by": "ops@host", "owner": None}


OVER = FailedOver(flow().name, "over", 1_800_000_000.0, "ops@host", {})


def resting(*statuses: TaskStatus, one: Flow, state: FailedOver | None) -> tuple[list[str], dict[str, Any]]:
    here = {"west": {state.flow: state}} if state else {}
    summaries = summarise([one], statuses, NOW, None, None, here)
    (value,) = status_json(summaries, NOW)["flows"]
    return [line.plain.rstrip() for line in status_lines(summaries)], value


def test_a_flow_that_is_failed_over_says_since_when_and_by_whom() -> None:
    since = "since 2027-01-15 08:00:00 UTC by ops@host"
    nothing = f"nothing is copied until `anabranch failback --flow {OVER.flow}`"
    lines, value = resting(one=flow(), state=OVER)
    assert lines == [f"east → west   failed over   {since}: {nothing}"]
    assert (value["state"], value["failedOver"]["phase"], value["failedOver"]["by"]) == (
        "failed over",
        "over",
        "ops@host",
    )
    assert resting(held("two"), one=flow(), state=OVER)[0] == lines, "whoever waits for it"
    ending, returning = replace(OVER, phase="ending"), replace(OVER, phase="returning")
    assert resting(one=flow(), state=ending)[0] == [
        f"east → west   failed over   failing over {since}: nothing is copied any more"
    ]
    assert resting(one=flow(), state=returning)[0] == [
        f"east → west   failed over   failing back, failed over {since}: {nothing} is done"
    ]
    declared, value = resting(one=replace(flow(), failed_over=True), state=None)
    assert declared == ["east → west   failed over   as its file declares (failed-over: true): nothing is copied"]
    assert value["failedOver"] == {"phase": None, "since": None, "by": None}
    assert resting(one=flow(), state=None)[1]["failedOver"] is None
    assert resting(one=flow(), state=replace(OVER, flow="other"))[1]["state"] == "not running"


def test_while_it_drains_what_its_tasks_do_is_told() -> None:
    first, second = resting(said(partition(0, 1, 5)), one=flow(), state=OVER)[0]
    assert first.startswith("east → west   running")
    assert second.endswith(f"`anabranch failback --flow {OVER.flow}`; its tasks are drained")


def test_files_that_are_not_in_force_are_named() -> None:
    flows = (flow("east-west"), replace(flow("east-south"), target="south"))
    clusters = {alias: Cluster(alias, ("localhost:1",)) for alias in ("east", "west", "south")}
    topology = Topology("shop", clusters, flows)
    applied = InForce(digest_into(topology, "west"), NOW, "me@host")
    assert unapplied_lines(topology, {"west": applied}) == []
    edited = replace(topology, flows=(replace(flows[0], quota=20_000), flows[1]))
    (line,) = unapplied_lines(edited, {"west": applied, "south": replace(applied, digest=DESTROYED)})
    assert line.plain.startswith("west: what runs is not what the files declare: `anabranch plan`")
