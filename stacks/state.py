"""What a stack believes, brought in line with what the clusters have, before Pulumi goes by it. Pure.

Pulumi compares what a program declares with the state of the stack, not with the clusters. The two part ways: topics
were made by an `up` that was killed, by the provisioner `direct`, or by `replicate`; somebody deleted one, or added
partitions. Refreshing is no cure: it knows no topic that the stack does not have, and asks with the credentials that
the state holds. But the plan rests on what was observed, so the state can be told:

- a topic or ACL that is not there, or is not declared any more, or that the clusters have with other partitions or
  settings than the stack believes, is taken out of the state; nothing at the clusters is touched by that;
- so is one whose last change was made and could not be seen in time: Pulumi keeps its old inputs and `initErrors`, and
  would change it with every update to come;
- a topic that stands, and that the stack does not have now, is imported as it stands, and changed after;
- an ACL that stands is declared as if it were new, because making it again changes nothing;
- what was under way when an `up` was killed is forgotten: what came of it was observed.

So Pulumi deletes nothing but what the plan revokes, and never says that a topic exists already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.acls.binding import Binding
from reconciler.model.planning.desired import WholeAcl, WholeTopic
from reconciler.plan.copies.offsets import Observed
from reconciler.plan.whole import as_it_stands
from stacks.names import ACL_TYPE, PROCESS_TYPE, TOPIC_TYPE, acl_name, name_in, name_of, topic_name
from stacks.processes import ProcessInputs

STACK_TYPE = "pulumi:pulumi:Stack"
TOPOLOGY_OUTPUT = "topology"
"""The stack's output that names its topology; stacks of earlier releases have none."""

Deployment = Mapping[str, Any]
"""What `pulumi stack export` gives under `deployment`."""


@dataclass(frozen=True)
class Settled:
    """A state that agrees with what was observed.

    Attributes:
        deployment: the state.
        known: names of the topics, ACLs and processes that it holds.
        imported: names of topics that are to be imported.
        changing: those of them that are to be changed once they are.
        forgotten: how many resources it no longer has.
        corrected: how many processes it has with what runs instead of what was.
        missing: names of the topics and ACLs that stand, and of the declared processes, that it does not have.
        is_finished: whether operations that a killed `up` left pending were taken out.
    """

    deployment: Deployment
    known: frozenset[str]
    imported: frozenset[str]
    changing: frozenset[str]
    forgotten: int
    corrected: int
    missing: frozenset[str]
    is_finished: bool

    @property
    def is_changed(self) -> bool:
        """Whether it is another state than before."""
        return bool(self.forgotten or self.corrected or self.is_finished)


@dataclass(frozen=True)
class Wanted:
    """What a stack is to hold.

    Attributes:
        topics: that the program declares.
        acls: that it declares.
        revoked: ACLs that are to be deleted by Pulumi where the stack has them, by alias.
        observed: the clusters.
        processes: that the program declares, by name.
        running: processes that run; None where another machine deploys them.
    """

    topics: Collection[WholeTopic]
    acls: Collection[WholeAcl]
    revoked: Collection[tuple[str, Binding]]
    observed: Observed
    processes: Mapping[str, ProcessInputs] = field(default_factory=dict)
    running: Mapping[str, ProcessInputs] | None = None

    def standing(self) -> dict[str, WholeTopic]:
        """Return the declared topics that are there, as they stand, by name of their resource."""
        found = {name_of(topic): as_it_stands(topic, self.observed[topic.cluster]) for topic in self.topics}
        return {name: topic for name, topic in found.items() if topic is not None}

    def standing_acls(self) -> frozenset[str]:
        """Return the names of the ACLs that are there, of those declared and those to be revoked.

        Where a cluster does not show its ACLs, what is declared is taken for what stands.
        """
        those = [*((acl.cluster, acl.binding) for acl in self.acls), *self.revoked]
        return frozenset(acl_name(alias, one) for alias, one in those if self._stands(alias, one))

    def _stands(self, alias: str, one: Binding) -> bool:
        acls = self.observed[alias].acls
        return one in acls.bindings if acls.sight in ("seen", "unsure", "off") else True


def stranger(deployment: Deployment, topology: str, observed: Observed) -> str | None:
    """Return the other topology that a stack belongs to; None where it is this one's, or nobody's yet.

    A stack that does not say it belongs to whoever has its topics and ACLs on record, as an `up` does not say it before
    its end.
    """
    resources = deployment.get("resources") or []
    for one in resources:
        if one["type"] == STACK_TYPE and (said := (one.get("outputs") or {}).get(TOPOLOGY_OUTPUT)):
            return None if said == topology else str(said)
    owners = _owners(observed)
    found = {owner for one in resources if _is_of_ours(one) for owner in owners.get(name_in(one["urn"]), ())}
    return min(found) if found and topology not in found else None


def _owners(observed: Observed) -> dict[str, set[str]]:
    """Return the topologies that have a topic or an ACL on record, by the name of its resource."""
    found: dict[str, set[str]] = {}
    for alias, cluster in observed.items():
        for name, record in cluster.owned.items():
            found.setdefault(topic_name(alias, name), set()).add(record.topology)
        for acl in cluster.acls.owned:
            found.setdefault(acl_name(alias, acl.binding), set()).add(acl.topology)
    return found


def settle(deployment: Deployment, wanted: Wanted) -> Settled:
    """Bring a stack's state in line with what was observed."""
    standing, acls = wanted.standing(), wanted.standing_acls()
    resources = deployment.get("resources") or []
    found = [(one, _as_found(one, standing, acls, wanted.running)) for one in resources]
    kept = [after for _, after in found if after is not None]
    pending = deployment.get("pending_operations") or []
    unfinished = [one for one in pending if not _is_of_ours(one["resource"])]
    known = frozenset(name_in(one["urn"]) for one in kept if _is_of_ours(one))
    imported = standing.keys() - known
    declared = {name_of(topic): topic for topic in wanted.topics}
    permitted = {name_of(acl) for acl in wanted.acls} & acls
    settled = {**deployment, "resources": kept, "pending_operations": unfinished}
    return Settled(
        deployment=settled,
        known=known,
        imported=frozenset(imported),
        changing=frozenset(name for name in imported if declared[name] != standing[name]),
        forgotten=len(resources) - len(kept),
        corrected=sum(after is not None and after != before for before, after in found),
        missing=frozenset((standing.keys() | permitted | wanted.processes.keys()) - known),
        is_finished=len(unfinished) != len(pending),
    )


def _is_of_ours(resource: Mapping[str, Any]) -> bool:
    return resource["type"] in (TOPIC_TYPE, ACL_TYPE, PROCESS_TYPE)


def _as_found(
    resource: Mapping[str, Any],
    standing: Mapping[str, WholeTopic],
    acls: Collection[str],
    running: Mapping[str, ProcessInputs] | None,
) -> Mapping[str, Any] | None:
    """Return what a state is to have of a resource: a process as it runs; None of what is not there, or otherwise.

    Other resources are none of our business, and neither are processes that another machine deploys.
    """
    kind = resource["type"]
    if not _is_of_ours(resource) or (kind == PROCESS_TYPE and running is None):
        return resource
    name = name_in(resource["urn"])
    if kind == PROCESS_TYPE:
        assert running is not None
        return {**resource, "inputs": dict(running[name])} if name in running else None
    if resource.get("delete") or resource.get("initErrors"):
        return None
    if kind == ACL_TYPE:
        return resource if name in acls else None
    topic = standing.get(name)
    return resource if topic is not None and _says(resource.get("outputs") or {}, topic) else None


def _says(outputs: Mapping[str, Any], topic: WholeTopic) -> bool:
    return (
        outputs.get("partitions") == topic.partitions
        and outputs.get("replicationFactor") == topic.replication_factor
        and dict(outputs.get("config") or {}) == dict(topic.configs)
    )
