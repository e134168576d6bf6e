"""What a conversion puts together: clusters in a tree, flows by their ends, what is lost and what is to be done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.convert.clusters import ClusterConversion, ClusterKeys
from reconciler.convert.flows import FlowConversion, FlowFields, FlowKeys, Keys
from reconciler.convert.settings import Loss, Settings
from reconciler.convert.tree import Tree
from reconciler.convert.values import contradicting


class FlowEnds(NamedTuple):
    """Which flow it is.

    Attributes:
        source: alias.
        target: alias.
        name: its name; empty for that which its ends give it.
    """

    source: str
    target: str
    name: str = ""


@dataclass
class TopologyParts:
    """The parts of a topology.

    Attributes:
        tree: with the clusters.
        flows: fields of each flow.
        losses: settings that it does not have.
        todo: what is to be done before it can be used, a line each.
        left: settings of which some may not have been asked for.
    """

    tree: Tree = field(default_factory=Tree)
    flows: dict[FlowEnds, FlowFields] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)
    left: list[Settings] = field(default_factory=list)

    def put_cluster(
        self, alias: str, settings: Settings, keys: ClusterKeys, where: str, factor: Keys | None = None
    ) -> None:
        """Put a cluster into the tree; of one that is there already the settings are taken for asked for.

        Args:
            alias: of the cluster.
            settings: where from.
            keys: where its settings stand.
            where: file, or file and connector.
            factor: where the replicas of MirrorMaker 2's own topics stand, of a cluster that has these.

        Raises:
            DeclaredInputError: AB141, it has other brokers elsewhere; or as of `ClusterConversion.run`.
        """
        is_there = alias in self.tree.values.get("clusters", {})
        tree = Tree() if is_there else self.tree
        cluster = ClusterConversion(tree, alias, settings, keys, where)
        cluster.run()
        if is_there:
            path = ("clusters", alias, "bootstrap")
            if tree.values["clusters"][alias]["bootstrap"] != self.tree.values["clusters"][alias]["bootstrap"]:
                remedy = f"give all that names {alias} the same brokers, or another alias"
                raise contradicting(tree.origins[path], self.tree.origins[path], remedy)
            return
        if factor is not None:
            cluster.state_factor(factor)
        self.losses += cluster.losses
        self.todo += cluster.todo

    def add(self, other: TopologyParts) -> None:
        """Take in what was converted apart from this.

        Raises:
            DeclaredInputError: AB141, both have a cluster of one name.
        """
        clusters = self.tree.values.setdefault("clusters", {})
        for alias, cluster in other.tree.values.get("clusters", {}).items():
            if alias in clusters:
                path = ("clusters", alias, "bootstrap")
                remedy = "give one of the two another alias"
                raise contradicting(other.tree.origins[path], self.tree.origins[path], remedy)
            clusters[alias] = cluster
        self.tree.origins |= other.tree.origins
        self.tree.remarks |= other.tree.remarks
        self.flows |= other.flows
        self.losses += other.losses
        self.todo += other.todo
        self.left += other.left

    def fields_of(self, settings: Settings, keys: FlowKeys) -> FlowFields:
        """Return the fields of a flow that settings stand for; what it does not have is added to what is lost.

        Raises:
            DeclaredInputError: as of `FlowConversion.run`.
        """
        flow = FlowConversion(settings, keys)
        flow.run()
        self.losses += flow.losses
        return flow.fields

    def put_flows(self) -> None:
        """Put the flows into the tree: what all of them have alike becomes a default."""
        fields = list(self.flows.values())
        alike = {
            path: value
            for path, value in (fields[0].items() if len(fields) > 1 else ())
            if all(path in one and one[path][0] == value[0] for one in fields)
        }
        for path, (value, origin, remark) in alike.items():
            self.tree.put(("defaults", *path), value, origin, remark)
        self.tree.values["flows"] = []
        for number, ((source, target, name), own) in enumerate(self.flows.items()):
            self.tree.values["flows"].append(({"name": name} if name else {}) | {"from": source, "to": target})
            for path, (value, origin, remark) in own.items():
                if path not in alike:
                    self.tree.put(("flows", number, *path), value, origin, remark)
