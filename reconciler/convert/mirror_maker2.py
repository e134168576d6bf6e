"""`mm2.properties` of a dedicated MirrorMaker 2, as clusters and flows.

Which key counts for what: https://kafka.apache.org/documentation/#georeplication-mirrormaker, KIP-382 for older names.
"""

from __future__ import annotations

import re
from itertools import permutations

from reconciler.convert.clusters import ClusterKeys
from reconciler.convert.flows import FlowKeys
from reconciler.convert.parts import FlowEnds, TopologyParts
from reconciler.convert.settings import UNREADABLE, WITHOUT_EQUAL, Loss, Setting, Settings
from reconciler.convert.values import is_on, listed
from reconciler.model.base.errors import DeclaredInputError, Problem

CLUSTERS = "clusters"
_OF_FLOW = re.compile(r"(?:connector\.)?(?P<source>[^.>]+)->(?P<target>[^.>]+)\.(?P<name>.+)")
_OLD = ("cluster.", "connector.")


def convert(settings: Settings, where: str) -> TopologyParts:
    """Return what a file declares.

    Raises:
        DeclaredInputError: AB140, it names no clusters or flows; AB141 or AB142, a setting cannot be converted.
    """
    parts = TopologyParts(left=[settings])
    named = settings.first(CLUSTERS)
    aliases = listed(named) if named is not None else []
    if named is None or not aliases:
        message = "expected `clusters`, with the aliases of two or more; found none"
        raise DeclaredInputError(Problem(UNREADABLE, where, message, "add clusters = A, B"))
    pairs = _pairs(settings, named, aliases)
    for alias in aliases:
        keys = _cluster_keys(alias)
        is_target = alias in {target for _, target in pairs}
        parts.put_cluster(alias, settings, keys, where, keys.shared if is_target else None)
    for source, target in pairs:
        parts.flows[FlowEnds(source, target)] = parts.fields_of(settings, _flow_keys(source, target))
        parts.losses += _of_this_flow_alone(settings, source, target)
    return parts


def _pairs(settings: Settings, named: Setting, aliases: list[str]) -> list[tuple[str, str]]:
    """Return the source and target of each flow that is enabled.

    Raises:
        DeclaredInputError: AB140, none is; AB142, one is of a cluster that is not named.
    """
    problems = []
    mentioned: dict[tuple[str, str], bool] = {}
    for setting in settings:
        found = _OF_FLOW.fullmatch(setting.key)
        if found is None:
            continue
        pair = found["source"], found["target"]
        if unknown := [alias for alias in pair if alias not in aliases]:
            message = f"{unknown[0]} is none of the clusters: {', '.join(aliases)}"
            problems.append(setting.problem(WITHOUT_EQUAL, message, f"correct it, or add it to {named.key}"))
        mentioned[pair] = mentioned.get(pair, False) or setting.key.startswith(_OLD)
    if problems:
        raise DeclaredInputError(problems)
    pairs = []
    for source, target in permutations(aliases, 2):
        keys = tuple(f"{prefix}{source}->{target}.enabled" for prefix in ("", "connector."))
        # Names of KIP-382's first draft: there a flow is mentioned to be configured, and not to be switched on.
        if is_on(settings.first(*keys, "enabled"), mentioned.get((source, target), False)):
            pairs.append((source, target))
    if not pairs:
        message = "no flow is enabled, so nothing is copied"
        raise DeclaredInputError(named.problem(UNREADABLE, message, f"add {'->'.join(aliases[:2])}.enabled = true"))
    return pairs


def _cluster_keys(alias: str) -> ClusterKeys:
    own = (f"{alias}.", f"cluster.{alias}.")
    return ClusterKeys(
        own=lambda name: tuple(f"{prefix}{name}" for prefix in own),
        shared=lambda name: (*(f"{prefix}{name}" for prefix in own), name),
        of_client=lambda role, name: (
            *(f"{prefix}{role}.{name}" for prefix in own),
            *(f"{prefix}{name}" for prefix in own),
            f"{role}.{name}",
        ),
    )


def _flow_keys(source: str, target: str) -> FlowKeys:
    flow = f"{source}->{target}."
    return FlowKeys(
        own=lambda name: (f"{flow}{name}", f"connector.{flow}{name}", name),
        consumer=lambda name: (
            *(f"{flow}{prefix}{name}" for prefix in ("source.consumer.", "consumer.")),
            *(f"{source}.consumer.{name}", f"consumer.{name}"),
        ),
        producer=lambda name: (
            *(f"{flow}{prefix}{name}" for prefix in ("target.producer.", "producer.", "producer.override.")),
            *(f"{target}.producer.{name}", f"producer.{name}"),
        ),
    )


def _of_this_flow_alone(settings: Settings, source: str, target: str) -> list[Loss]:
    """Return settings of clients that a flow has for itself: here they are the cluster's."""
    begins = f"{source}->{target}."
    return [
        Loss(setting, f"settings of clients are those of the cluster: clusters.{alias}.clients")
        for setting in settings.left()
        for prefix, alias in (("consumer.", source), ("source.consumer.", source), ("producer.", target))
        if setting.key.startswith(begins + prefix)
    ]
