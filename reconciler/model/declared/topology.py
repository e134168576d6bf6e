"""The whole declared topology: what `declare` hands to all other rooms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from reconciler.model.connection.references import portable
from reconciler.model.declared.clients import Clients
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.datacenter import DataCenter, Spark
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.limits import Limits
from reconciler.model.declared.override import FlowOverride


@dataclass(frozen=True)
class TopologyFile:
    """One of the files that a topology was read from; it holds references, and no secrets.

    Attributes:
        name: without folders; of one topology each is another.
        text: its content.
    """

    name: str
    text: str


@dataclass(frozen=True)
class Topology:
    """A validated topology with its patterns expanded.

    Attributes:
        name: the topology's name.
        clusters: by alias, in the order of declaration.
        flows: in the order of expansion; names are unique.
        datacenters: those with a declaration, by name.
        owner: of these files; None where none is declared.
        files: it was read from, no part of what it is; empty of one that was made otherwise.
        overrides: that are laid over what the files declare; the flows are as they are with them.
    """

    name: str
    clusters: Mapping[str, Cluster]
    flows: tuple[Flow, ...]
    datacenters: Mapping[str, DataCenter] = field(default_factory=dict)
    owner: str | None = None
    files: tuple[TopologyFile, ...] = field(default=(), compare=False, repr=False)
    overrides: tuple[FlowOverride, ...] = field(default=(), compare=False, repr=False)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The clusters' aliases."""
        return tuple(self.clusters)

    @property
    def targets(self) -> tuple[str, ...]:
        """The aliases of the clusters that enabled flows lead into, in the order of declaration."""
        found = {flow.target for flow in self.flows if flow.enabled}
        return tuple(alias for alias in self.aliases if alias in found)

    def flows_into(self, aliases: Collection[str]) -> tuple[Flow, ...]:
        """Return the enabled flows whose target is one of `aliases`."""
        return tuple(flow for flow in self.flows if flow.enabled and flow.target in aliases)

    def spark(self, alias: str) -> Spark:
        """Return where the flows into a cluster run."""
        declared = self.datacenters.get(self.clusters[alias].datacenter)
        return declared.spark if declared else Spark()

    def wave(self, alias: str) -> int:
        """Return in which wave of a rollout a cluster is changed, from 1; a cluster without one is in the last."""
        known = {name: one.wave for name, one in self.datacenters.items() if one.wave is not None}
        return known.get(self.clusters[alias].datacenter, max(known.values(), default=0) + 1)

    # A hundred flows are asked for it once a minute each, and it takes as long as there are flows.
    @cached_property
    def digest(self) -> str:
        """A short digest of everything declared: of references as they are, wherever they lead."""
        declared: dict[str, Any] = {
            "name": self.name,
            "clusters": {alias: _told(cluster) for alias, cluster in self.clusters.items()},
            # Where a flow was declared does not change what it is.
            "flows": [_said(flow) for flow in self.flows],
        }
        if self.owner is not None:
            declared["owner"] = self.owner
        deployed = {name: one.deployment for name, one in self.datacenters.items() if one.deployment.kind != "none"}
        if deployed:
            # As for a release that knew none, where there are none.
            declared["deploy"] = {name: asdict(replace(one, place="")) for name, one in deployed.items()}
        return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()[:16]


def _told(cluster: Cluster) -> dict[str, Any]:
    """Return the cluster without what changes no plan: its rack for reads, its id, places in files."""
    clients = replace(cluster.clients, places=())
    plain = asdict(replace(cluster, rack=None, clients=clients)) | {"security": cluster.security.for_digest()}
    told: dict[str, Any] = portable(plain)
    del told["cluster_id"], told["place"]
    if cluster.state_replication_factor is None:
        del told["state_replication_factor"]
    if cluster.replicator is None:
        del told["replicator"]
    if clients == Clients():
        # A plan of a release that knew none of them is still the same plan.
        del told["clients"]
    return told


def _said(flow: Flow) -> dict[str, Any]:
    said = asdict(_nowhere(flow))
    del said["configs"]["places"]
    if flow.create:
        del said["create"]
    if flow.limits == Limits():
        # As for a release that knew none.
        del said["limits"]
    return said


def _nowhere(flow: Flow) -> Flow:
    """Return the flow without the places that it was declared at."""
    rules = tuple(replace(rule, place="") for rule in flow.policy.rules)
    policy, configs = replace(flow.policy, rules=rules, place=""), replace(flow.configs, places=())
    return replace(flow, origin="", policy=policy, configs=configs)
