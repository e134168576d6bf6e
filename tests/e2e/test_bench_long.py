"""The bench's longer measurements, cut short: that they run from end to end, not what they find."""

from __future__ import annotations

import pytest

from bench.competitors.mm2 import TUNINGS, MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.instruments.probe import Stream
from bench.measures.control import control, control_report
from bench.measures.crowd import crowd, crowd_report
from bench.measures.flows import Wanted, many_flows, many_flows_report
from bench.measures.latency import Peer, Setting, latency
from bench.measures.padding import padding, padding_report
from bench.measures.soak import Wear, soak
from bench.reports.latency import latency_report
from bench.reports.soak import soak_report
from bench.workload.load import Load

MB = 10**6

pytestmark = pytest.mark.long


def test_latency_is_measured_for_the_floor_and_both_replicators() -> None:
    setting = Setting(Stream(rate=100, partitions=2), seconds=3, warm_up=2)
    peers: list[Peer] = [
        Anabranch(1, ("--round", "2")),
        *(MirrorMaker2(1, tuning=how, label=name) for name, how in TUNINGS.items()),
    ]
    result = latency(setting, peers, 1, lambda _: None)
    for line in result.lines:
        (sight,) = line.sights
        assert sight.records > 0
        assert 0 < sight.milliseconds["p50"] <= sight.milliseconds["max"]
        assert (sight.cpu > 0) == (line.peer is not None)
    assert "Added to the floor" in latency_report(result, {}, "today")


def test_padding_is_measured_up_to_the_first_offset_of_the_source() -> None:
    result = padding(600_000, Load(100, partitions=2, alone=True), 1, lambda _: None)
    (one,) = result.starts
    assert 0 < one.padding <= one.records
    assert one.worker > 0
    assert "600,000" in padding_report(result, {}, "today")


def test_a_soak_looks_at_every_process_every_second() -> None:
    wear = Wear(seconds=6, warm_up=2, backlog=5 * MB, rate=MB, burst=2 * MB, burst_every=3, partitions=2)
    result = soak(wear, ("--round", "2"), lambda _: None)
    assert len(result.times) == len(result.resident["worker"]) >= 3
    assert all(max(looks) > 0 for looks in result.resident.values())
    assert result.bytes > wear.backlog
    assert "too short to tell" in soak_report(result, {}, "today")


def test_a_crowd_is_measured_from_its_start_to_a_record_now_and_then() -> None:
    setting = Setting(Stream(rate=20, partitions=40), seconds=3, warm_up=2)
    (one,) = found = crowd(setting, 1, 1, lambda _: None)
    assert one.start > 0
    assert one.start_cpu > 0
    assert min(one.plan, one.status) > 0
    assert one.sight.records > 0
    assert "40 partitions" in crowd_report(setting, found, {}, "today")


def test_many_flows_are_measured_until_all_have_copied_and_while_they_are_idle() -> None:
    wanted = Wanted(flows=5, partitions=2, nodes=1, groups=True, seconds=3, warm_up=2)
    (one,) = found = many_flows(wanted, 1, lambda _: None)
    assert min(one.apply, one.start, one.start_cpu, one.idle, one.plan, one.status) > 0
    assert 0 < one.workers < one.together
    assert "5 flows, each with a topic of 2 partitions" in many_flows_report(wanted, found, {}, "today")


def test_planning_many_topics_asks_as_often_as_planning_one() -> None:
    found = control(30, 2, 60, lambda _: None)
    for calls in (found.large, found.small):
        assert [call.name for call in calls] == ["plan", "apply", "plan, unchanged"]
        assert calls[1].requests["CreateAcls"] == 1
    assert found.large[1].requests["CreateTopics"] == found.small[1].requests["CreateTopics"] > 0
    kinds = ("DescribeAcls", "DescribeConfigs", "ListOffsets")
    large, small = (calls[-1].requests for calls in (found.large, found.small))
    assert [large[kind] for kind in kinds] == [small[kind] for kind in kinds]
    assert all(large[kind] for kind in kinds)
    assert "plan, unchanged" in control_report(30, 2, 60, found, {}, "today")
