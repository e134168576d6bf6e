"""Which records of ownership are a flow's copies."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.ownership import copies_of
from reconciler.plan.copies.desired import desired_topics
from tests.unit.plan.facts import EAST, WEST, cluster, flow, record, topic, topology


def test_of_two_copies_of_one_original_it_is_the_one_that_is_filled_now() -> None:
    declared = topology()
    observed = {EAST: cluster(EAST, topic("orders")), WEST: cluster(WEST)}
    (former,) = desired_topics(declared, observed, [WEST])
    now = replace(former, name="orders")
    records = [record(former, declared), record(now, declared)]
    identity = flow(policy=ReplicationPolicy("identity"))
    for some in (records, records[::-1]):
        assert copies_of(some, declared.name, identity)["orders"].name == "orders"
        assert copies_of(some, declared.name, declared.flows[0])["orders"].name == f"{EAST}.orders"
    # Under any policy a copy is one, whatever it is called.
    assert copies_of(records[:1], declared.name, identity)["orders"].name == f"{EAST}.orders"
    assert copies_of(records, "of-others", identity) == {}
