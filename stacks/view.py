"""What the clusters of a data centre are to have, seen as a plan sees it that makes several hops at once. Pure.

Called before Pulumi runs, and by the program that Pulumi runs: both must see the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import WholeAcl, WholeTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import Plan
from reconciler.plan.ahead import rests_on
from reconciler.plan.copies.offsets import Observed
from reconciler.plan.whole import whole_acls, whole_topics
from stacks.names import name_of


@dataclass(frozen=True)
class View:
    """What is to be on the clusters of a data centre.

    Attributes:
        topics: remote topics, complete to the last setting.
        acls: that are ours, or will be.
    """

    topics: tuple[WholeTopic, ...]
    acls: tuple[WholeAcl, ...]


def upstream(topology: Topology, targets: Collection[str], planned: Collection[str]) -> tuple[str, ...]:
    """Return on which targets of a plan its part for `targets` rests: on these, and on all before them, hop by hop.

    Args:
        topology: what is declared.
        targets: aliases, of those in `planned`.
        planned: aliases that the plan is for.
    """
    found = set(targets)
    while more := {flow.source for flow in topology.flows_into(found)} & (set(planned) - found):
        found |= more
    return tuple(alias for alias in topology.aliases if alias in found)


def view_of(
    topology: Topology, observed: Observed, targets: Collection[str], plan: Plan, deleted: Collection[str] = ()
) -> View:
    """Return what the clusters `targets` are to have when a plan is carried out.

    Args:
        topology: what is declared.
        observed: `targets` and all that the plan rests on.
        targets: aliases of a whole data centre; a cluster that the plan is not for keeps what it has.
        plan: for them, and for all before them.
        deleted: names of resources of topics of ours that are about to be deleted.
    """
    planned = {cluster.alias for cluster in plan.clusters}
    topics: list[WholeTopic] = []
    acls: list[WholeAcl] = []
    for alias in targets:
        seen = rests_on(observed, plan, alias) if alias in planned else observed
        topics += whole_topics(topology, seen, (alias,))
        acls += whole_acls(topology, seen, (alias,)) if alias in planned else _as_they_stand(topology, observed[alias])
    topics = [topic for topic in topics if name_of(topic) not in deleted]
    return View(tuple(sorted(topics, key=lambda topic: (topic.cluster, topic.name))), tuple(sorted(acls)))


def _as_they_stand(topology: Topology, cluster: ObservedCluster) -> Iterator[WholeAcl]:
    """Yield the ACLs of a cluster that are ours; where it shows none, what is on record is taken for what stands.

    One cluster may be declared twice; then what follows into the other one is not this one's.
    """
    elsewhere = {flow.name for flow in topology.flows if flow.target != cluster.alias}
    is_hidden = cluster.acls.sight in ("unasked", "hidden")
    for one in cluster.acls.owned_by(topology.name):
        is_here = one.role == "own" or one.flow not in elsewhere
        if is_here and (is_hidden or one.binding in cluster.acls.bindings):
            yield WholeAcl(cluster.alias, one.binding, one.flow)
