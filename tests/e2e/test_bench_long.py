"""The bench's longer measurements, cut short: that they run from end to end, not what they find."""

from __future__ import annotations

import pytest

from bench.latency import Setting, latency
from bench.latency_report import latency_report
from bench.mm2 import PROMPT, MirrorMaker2
from bench.ours import Anabranch
from bench.probe import Stream

pytestmark = pytest.mark.long


def test_latency_is_measured_for_the_floor_and_both_replicators() -> None:
    setting = Setting(Stream(rate=100, partitions=2), seconds=3, warm_up=2)
    result = latency(setting, [Anabranch(1, ("--round", "2")), MirrorMaker2(1, tuning=PROMPT)], 1, lambda _: None)
    for line in result.lines:
        (sight,) = line.sights
        assert sight.records > 0
        assert 0 < sight.milliseconds["p50"] <= sight.milliseconds["max"]
        assert (sight.cpu > 0) == (line.peer is not None)
    assert "Added to the floor" in latency_report(result, {}, "today")
