"""A look at a data centre before Pulumi runs: what is still as planned, and what is to be declared then."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from reconciler.model.acls.binding import ObservedBindings
from reconciler.model.base.errors import Refused
from reconciler.model.declared.cluster import Replicator
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import GrantAcl, Plan
from reconciler.operate.targets import changed_clusters
from reconciler.plan.ahead import build_plan_ahead
from reconciler.plan.guardrails.waves import waves
from reconciler.provision.work import Work
from stacks import preparing
from stacks.names import name_of
from stacks.preparing import Preparation, Setting
from stacks.state import Wanted
from stacks.view import upstream
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, topic, topology

A, B, C = "us-east", "eu-west", "ap-south"
CHAIN = topology(flow(A, B), flow(B, C))
FOUND = (cluster(A, topic("orders")), cluster(B), cluster(C))
FAR = f"{C}/eu-west.us-east.orders"


def in_places(declared: Topology, **places: str) -> Topology:
    """A topology with other data centres, its clusters declared in that order."""
    found = {alias.replace("_", "-"): place for alias, place in places.items()}
    return replace(declared, clusters={a: replace(declared.clusters[a], datacenter=p) for a, p in found.items()})


def planned(declared: Topology, clusters: Sequence[ObservedCluster], named: Sequence[str] | None = None) -> Plan:
    targets = changed_clusters(declared, named)
    return build_plan_ahead(declared, {one.alias: one for one in clusters}, targets)


class _Stub(Work):
    """The steps of a cluster, which are not carried out."""

    def __init__(self, steps: Sequence[Any]) -> None:
        self._steps = tuple(steps)


def look(
    monkeypatch: pytest.MonkeyPatch,
    declared: Topology,
    plan: Plan,
    place: str,
    clusters: Sequence[ObservedCluster],
    part: Plan | None = None,
) -> Wanted:
    """Look at a data centre again, while the clusters are as given."""
    there = {one.alias: one for one in clusters}

    def observe(topology: Topology, targets: Collection[str], **_: bool) -> Mapping[str, ObservedCluster]:
        needed = {*targets, *(one.source for one in topology.flows_into(targets))}
        return {alias: there[alias] for alias in needed}

    monkeypatch.setattr(preparing, "observe", observe)
    part = part or plan
    setting = Setting(
        declared, part, [one.alias for one in plan.clusters], [], Path(), cast(Any, None), lambda alias: None
    )
    works = [_Stub(one.steps) for one in part.clusters if one.datacenter == place]
    return Preparation(setting, place, works).look_again()


def names(wanted: Wanted) -> list[str]:
    return [name_of(one) for one in wanted.topics]


PLACES = [
    {"us_east": "default", "eu_west": "default", "ap_south": "default"},
    {"us_east": "dc1", "eu_west": "dc2", "ap_south": "dc2"},
    {"us_east": "dc1", "eu_west": "dc2", "ap_south": "dc3"},
    {"ap_south": "dc3", "eu_west": "dc2", "us_east": "dc1"},
]


@pytest.mark.parametrize("places", PLACES, ids=lambda places: " ".join(places.values()))
def test_a_plan_of_several_hops_is_carried_out_in_one_go(
    monkeypatch: pytest.MonkeyPatch, places: dict[str, str]
) -> None:
    declared = in_places(CHAIN, **places)
    plan, clusters = planned(declared, FOUND), [*FOUND]
    declaring: list[str] = []
    for place in dict.fromkeys(one.datacenter for one in plan.clusters if one.steps):
        wanted = look(monkeypatch, declared, plan, place, clusters)
        declaring += names(wanted)
        # The next data centre sees what is made here.
        here = [one.alias for one in plan.clusters if one.datacenter == place]
        clusters = [carried_out(plan, one) if one.alias in here else one for one in clusters]
    assert sorted(declaring) == [FAR, f"{B}/us-east.orders"]


def test_a_wave_sees_what_another_wave_will_make(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = in_places(CHAIN, us_east="dc1", eu_west="dc2", ap_south="dc3")
    plan = planned(declared, FOUND)
    clusters = tuple(replace(one, wave=1 if one.alias == C else 2) for one in plan.clusters)
    first, _ = waves(plan := replace(plan, clusters=clusters))
    assert names(look(monkeypatch, declared, plan, "dc3", FOUND, first)) == [FAR]


def test_what_has_changed_before_a_hop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = in_places(CHAIN, us_east="dc1", eu_west="dc2", ap_south="dc3")
    plan = planned(declared, FOUND)
    more = [topic(f"further-{number}") for number in range(6)]
    for changed, named in (
        (cluster(A, topic("orders", 9)), f"made: {FAR} "),
        (cluster(A, topic("orders"), topic("users")), f"made: {C}/eu-west.us-east.users "),
        (cluster(A, topic("orders"), *more), "further-4 and 1 more "),
    ):
        with pytest.raises(Refused, match=f"{named}.*AB407"):
            look(monkeypatch, declared, plan, "dc3", (changed, *FOUND[1:]))


def test_what_does_not_lie_before_a_data_centre_is_not_asked() -> None:
    declared = topology(flow(A, B), flow(B, C), flow("d", A))
    assert upstream(declared, [B], [B, C]) == (B,)
    assert upstream(declared, [C], [B, C]) == (B, C)
    assert upstream(declared, [C], [C]) == (C,)
    assert set(upstream(declared, [C], [A, B, C])) == {A, B, C}


SEEN = ObservedBindings("seen")
SOURCE = replace(cluster(EAST, topic("orders")), acls=SEEN)
TARGET = replace(cluster(WEST), acls=SEEN)
ONE_PLACE = in_places(topology(), us_east="dc", eu_west="dc")
WITH_REPLICATOR = replace(
    ONE_PLACE, clusters={**ONE_PLACE.clusters, EAST: replace(ONE_PLACE.clusters[EAST], replicator=Replicator("User:m"))}
)


def test_a_source_that_the_plan_leaves_out_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(WITH_REPLICATOR, (SOURCE, TARGET), [WEST])
    wanted = look(monkeypatch, WITH_REPLICATOR, plan, "dc", (SOURCE, TARGET))
    assert (names(wanted), wanted.acls) == ([f"{WEST}/us-east.orders"], ())


def test_acls_of_a_replicator_that_is_not_declared_any_more_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    first = planned(WITH_REPLICATOR, (SOURCE, TARGET))
    granted = {step.binding for step in first.steps if isinstance(step, GrantAcl) and step.cluster == EAST}
    assert granted
    source = carried_out(first, SOURCE)
    plan = planned(ONE_PLACE, (source, TARGET))
    assert {step.cluster for step in plan.steps} == {WEST}
    wanted = look(monkeypatch, ONE_PLACE, plan, "dc", (source, TARGET))
    assert {acl.binding for acl in wanted.acls if acl.cluster == EAST} == granted
    # What somebody has revoked meanwhile is not granted again.
    bare = replace(source, acls=replace(source.acls, bindings=frozenset()))
    wanted = look(monkeypatch, ONE_PLACE, planned(ONE_PLACE, (bare, TARGET)), "dc", (bare, TARGET))
    assert [acl for acl in wanted.acls if acl.cluster == EAST] == []
