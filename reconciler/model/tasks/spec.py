"""A flow specification: all that the replicator needs of one flow, as JSON, secrets as references.

`cli` compiles it from the topology, Spark carries it to wherever the tasks run.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from reconciler.model.connection.references import read
from reconciler.model.connection.security import Security
from reconciler.model.declared.clients import Clients
from reconciler.model.declared.cluster import Cluster, Replicator
from reconciler.model.declared.config_rules import ConfigRules
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules
from reconciler.model.declared.limits import Limits
from reconciler.model.declared.start import Start
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.tasks.seal import Seal, new_key

DEFAULT_ROUND = 300.0


@dataclass(frozen=True)
class FlowSpec:
    """One flow in one run.

    Attributes:
        topology: name of the topology.
        run: which start of `replicate` this is; commands are addressed to it.
        flow: the flow.
        source: its source cluster.
        target: its target cluster.
        aliases: all clusters of the topology, to recognise where remote topics came from.
        round_seconds: how long one round lasts.
        digest: of the declaration for this target.
        key: what the run's messages to its tasks are sealed with. It is no part of the JSON: what shows or logs that
            must not hold it.
        home: where the topology's journals are at the target, `own` or `shared`, as the driver has decided; empty where
            each process finds it itself.
    """

    topology: str
    run: str
    flow: Flow
    source: Cluster
    target: Cluster
    aliases: tuple[str, ...]
    round_seconds: float = DEFAULT_ROUND
    digest: str = ""
    home: str = ""
    key: str = field(default_factory=new_key, repr=False, compare=False)

    @property
    def seal(self) -> Seal:
        """The seal on messages to this flow's tasks in this run."""
        return Seal(self.topology, self.run, self.flow.name, self.key)

    @classmethod
    def compile(
        cls, topology: Topology, flow: Flow, run: str, round_seconds: float = DEFAULT_ROUND, home: str = ""
    ) -> FlowSpec:
        """Return the specification of `flow` in `topology`."""
        source, target = topology.clusters[flow.source], topology.clusters[flow.target]
        digest = digest_into(topology, flow.target)
        return cls(topology.name, run, flow, source, target, topology.aliases, round_seconds, digest, home)

    def to_json(self) -> str:
        """Return the specification as JSON text, without its key; `from_json` is its inverse."""
        value = asdict(self)
        del value["key"]
        return json.dumps(value)

    @classmethod
    def from_json(cls, text: str, key: str = "") -> FlowSpec:
        """Read what `to_json` returned.

        Args:
            text: JSON.
            key: of the run; without one its messages are not believed.

        Raises:
            KeyError, TypeError, ValueError: the text is of another shape.
        """
        value = json.loads(text)
        flow = value["flow"]
        value["flow"] = Flow(
            **{
                **flow,
                "topics": Selection(**{**flow["topics"], **_tuples(flow["topics"], "include", "exclude")}),
                "policy": ReplicationPolicy.from_json(flow["policy"]),
                "start": Start.from_json(flow["start"]),
                "limits": Limits(**flow["limits"]),
                "configs": ConfigRules.from_json(flow["configs"]),
                "groups": GroupRules.from_json(flow["groups"]),
            }
        )
        value["source"], value["target"] = _cluster(value["source"]), _cluster(value["target"])
        value["aliases"] = tuple(value["aliases"])
        return cls(**value, key=key)


def _tuples(value: dict[str, Any], *names: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(value[name]) for name in names}


def _cluster(value: dict[str, Any]) -> Cluster:
    security, clients = Security.from_json(value["security"]), Clients.from_json(value["clients"])
    made: dict[str, Any] = {name: read(one) for name, one in value.items()}
    made |= {"bootstrap": tuple(map(read, value["bootstrap"])), "security": security, "clients": clients}
    if value["replicator"] is not None:
        made["replicator"] = Replicator(**value["replicator"])
    return Cluster(**made)
