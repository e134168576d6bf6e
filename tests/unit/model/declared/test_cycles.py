"""Topics that would travel for ever, followed by their names along the flows."""

from __future__ import annotations

import pytest

from reconciler.model.declared.cycles import endless_way, way_said
from reconciler.model.declared.flow import Flow
from reconciler.model.names.renames import RenameRule
from reconciler.model.policies.policy import ReplicationPolicy
from tests.unit.plan.facts import flow

ALIASES = ("a", "b", "c")


def renaming(pattern: str, to: str, otherwise: str = "identity") -> ReplicationPolicy:
    return ReplicationPolicy("rename", rules=(RenameRule(pattern, to),), otherwise=otherwise)  # type: ignore[arg-type]


def way(flows: list[Flow], topic: str) -> str | None:
    ring = endless_way(flows, ALIASES, flows[0], topic)
    return None if ring is None else way_said(ring)


@pytest.mark.parametrize(
    ("policies", "topic", "ring"),
    [
        ((renaming("x", "y"), renaming("y", "x")), "x", "a → b → a"),
        ((renaming("x", "y"), renaming("y", "x")), "z", "a → b → a"),
        ((renaming("x", "y", "default"), renaming("y", "z", "default")), "x", None),
        ((renaming("(.*)", r"\1-"), renaming("(.*)", r"\1")), "x", "a → b → a"),
        ((renaming("x", "y"), ReplicationPolicy()), "x", "a → b → a"),  # b.y is kept, and grows
        ((ReplicationPolicy(), ReplicationPolicy()), "x", None),
        ((ReplicationPolicy("identity"), ReplicationPolicy("identity")), "x", "a → b → a"),
    ],
)
def test_two_directions(policies: tuple[ReplicationPolicy, ReplicationPolicy], topic: str, ring: str | None) -> None:
    assert way([flow("a", "b", policy=policies[0]), flow("b", "a", policy=policies[1])], topic) == ring


def test_a_ring_that_only_the_copy_gets_into_is_the_answer() -> None:
    flows = [flow("a", "b", policy=renaming("x", "y")), flow("b", "c", policy=renaming("y", "z"))]
    assert way(flows, "x") is None
    assert way([*flows, flow("c", "b", policy=renaming("z", "y"))], "x") == "b → c → b"


def test_what_two_ways_lead_to_is_no_ring() -> None:
    keep = ReplicationPolicy("identity")
    flows = [flow("a", "b", policy=keep), flow("b", "c", policy=keep), flow("b", "c", policy=keep, name="again")]
    assert way(flows, "x") is None


def test_a_name_that_kafka_does_not_take_goes_nowhere() -> None:
    flows = [flow("a", "b", policy=renaming("x", "y:z")), flow("b", "a", policy=ReplicationPolicy("identity"))]
    assert endless_way(flows, ALIASES, flows[1], "x") is None


def test_a_large_mesh_of_prefixes_is_not_followed_to_its_end() -> None:
    aliases = tuple("abcdefghijkl")
    flows = [flow(one, other) for one in aliases for other in aliases if one != other]
    assert endless_way(flows, aliases, flows[0], "orders") is None
