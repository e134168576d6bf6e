"""Settings that flows declare for copies and that a target does not take: each reported once, where it is declared.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.base.errors import Problem
from reconciler.model.base.setting_values import meant
from reconciler.model.base.suggestions import near
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster, RefusedValue
from reconciler.plan.copies.offsets import Observed

_UNKNOWN = "it has no setting of this name"
_UNKNOWN_SAID = "Unknown topic config name: "


def refused_settings(topology: Topology, observed: Observed, targets: Collection[str]) -> Iterator[Problem]:
    """Yield each declared value that some target does not take, with the target's error, or as it has no such key."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    known: dict[str, frozenset[str]] = {}
    for flow in topology.flows_into(targets):
        target = observed[flow.target]
        for key, value in flow.configs.set:
            if (why := _why_not(target, key, value)) is None:
                continue
            where = flow.configs.place_of(key) or f"flow {flow.name}, configs.set.{key}"
            into = found.setdefault((where, key, value, why), [])
            if flow.target not in into:
                into.append(flow.target)
            # A cluster without topics does not list its keys.
            known[where] = target.topic_keys or observed[flow.source].topic_keys
    for (where, key, value, why), into in found.items():
        yield Problem("AB453", where, _said(key, value, why, into), _remedy(key, value, why, known[where]))


def _why_not(target: ObservedCluster, key: str, value: str) -> str | None:
    if not target.knows_key(key):
        return _UNKNOWN
    told = next((one for one in target.refused_values if (one.key, one.value) == (key, value)), None)
    return None if told is None else _spoken(told)


def _spoken(told: RefusedValue) -> str:
    return _UNKNOWN if told.reason.startswith(_UNKNOWN_SAID) else told.reason


def _said(key: str, value: str, why: str, into: Collection[str]) -> str:
    clusters, is_one = " and ".join(into), len(into) == 1
    if why == _UNKNOWN:
        return f"{clusters} {'has' if is_one else 'have'} no setting {key} of topics"
    return f"expected a value of {key} that {clusters} {'takes' if is_one else 'take'}; found {value}: {why}"


def _remedy(key: str, value: str, why: str, known: Collection[str]) -> str:
    if why == _UNKNOWN:
        meant_key = near(key, sorted(known))
        return f"did you mean {meant_key}?" if meant_key else "correct its name, or leave it out"
    written = meant(key, value)
    return f"write {key}: {written}" if written else f"write a value of {key} that the cluster takes"
