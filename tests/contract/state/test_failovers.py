"""Which flows are failed over, in the journal of a real broker: what is written is read, followed, and taken away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.base.errors import Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.failover import Cut, FailedOver
from reconciler.state.failovers import Failovers
from tests.support.waiting import eventually


def test_a_state_is_kept_followed_and_taken_away(target: Cluster, topic_name: str) -> None:
    cut = Cut("orders", f"{topic_name}.orders", "translated", ((10, 12), (0, 0)))
    ending = FailedOver(topic_name, "ending", 1_700_000_000.5, "me@here", {})
    over = replace(ending, phase="over", cuts={"orders": cut})
    ours, others = Failovers(target, topic_name), Failovers(target, f"{topic_name}-2")
    try:
        assert ours.current() == {}
        ours.put(ending)
        _until(ours, {topic_name: ending})
        ours.put(over)
        # Who writes reads what it wrote at once.
        assert ours.current() == {topic_name: over}
        # Flows of several topologies may have one name.
        assert others.current() == {}
        fresh = Failovers(target, topic_name)
        assert fresh.current() == {topic_name: over}
        fresh.close()
        ours.forget(over)
        _until(ours, {})
        ours.put(ending)
        # What was cut last time is gone.
        _until(ours, {topic_name: ending})
        ours.put(replace(over, cuts={}))
        _until(ours, {topic_name: replace(over, cuts={})})
    finally:
        ours.close()
        others.close()


def test_what_another_has_just_written_is_seen_by_who_asks_under_the_lock(target: Cluster, topic_name: str) -> None:
    ours, theirs = Failovers(target, topic_name), Failovers(target, topic_name)
    state = FailedOver(topic_name, "ending", 1_700_000_000.5, "other@there", {})
    try:
        assert ours.current() == {}
        for number in range(20):
            seen = replace(state, since=float(number))
            theirs.put(seen)
            with pytest.raises(Refused, match=r"another process has changed its state.*\[AB407\]"):
                ours.check_same(topic_name, None)
            ours.check_same(topic_name, seen)
            theirs.forget(seen)
            ours.check_same(topic_name, None)
    finally:
        ours.close()
        theirs.close()


def _until(failovers: Failovers, expected: dict[str, FailedOver]) -> None:
    eventually("the journal is read", failovers.current, lambda found: found == expected)
