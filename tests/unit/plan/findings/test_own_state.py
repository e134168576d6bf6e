"""Topics of our own state that do not keep their records are told of in every plan, and are drift."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.recorded.remembered import RememberedCopy
from reconciler.plan.findings.drift import drift_of
from tests.unit.plan.facts import EAST, INTERNAL, WEST, cluster, plan_of, topic, topology

OWNED = INTERNAL[0]


@pytest.mark.parametrize("found", ["delete", "compact,delete", "delete,compact"])
def test_state_that_is_deleted_from_is_told(found: str) -> None:
    there = replace(cluster(WEST), state_policies={OWNED: found, INTERNAL[1]: "compact"})
    plan = plan_of(topology(), cluster(EAST, topic("orders")), there)
    (notice,) = [one for one in plan.clusters[0].warnings if one.subject == OWNED]
    assert notice.message.startswith(f"has cleanup.policy={found}, and records of what is ours vanish by that: set it")
    (drifted,) = drift_of(topology(), {WEST: there})
    assert (drifted.topic, drifted.field, drifted.desired, drifted.found) == (
        OWNED,
        "cleanup.policy",
        "compact",
        found,
    )


def test_of_state_that_is_compacted_or_hidden_nothing_is_said() -> None:
    there = replace(cluster(WEST), state_policies={OWNED: "compact"})
    for one in (there, cluster(WEST)):
        assert drift_of(topology(), {WEST: one}) == ()
        assert OWNED not in str(plan_of(topology(), cluster(EAST, topic("orders")), one).clusters[0].warnings)


def test_the_json_form_comes_back_with_what_is_remembered() -> None:
    copy = RememberedCopy("flow", "us-east.orders", "id", "other", 3, translated=True)
    there = replace(cluster(WEST), state_policies={OWNED: "delete"}, remembered=(copy,))
    assert ObservedCluster.from_json(there.to_json()) == there
