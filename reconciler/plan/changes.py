"""What changes against the declaration that is in force at a target: flow by flow, field by field.

Pure. Both declarations are compared in the form that their digest is made of, so nothing that another digest rests on
is missing here. Fields are called and written as in topology files; one that only another release has is shown too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.patterns import BadPattern, NotLinear
from reconciler.model.names.selection import Selection
from reconciler.model.planning.changes import OUT_OF_REACH, Change, FieldChange, StoppedTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import Notice
from reconciler.model.recorded.declaration import Declaration, Declared, Json
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.copies.offsets import Observed

Leaves = Mapping[str, "str | tuple[str, ...]"]
"""The fields of a flow by their paths, each as text; of lists the items."""

_CALLED = {
    "source": "from",
    "target": "to",
    "policy.kind": "policy.type",
    "policy.entry-point": "policy.class",
    "start.at": "start",
}
_ABSENT = "none"
_AS_SOURCE = "as at the source"
_NOTHING = {"partitions": _AS_SOURCE, "replication-factor": _AS_SOURCE, "policy.class": _ABSENT}
# Values that are not shown, as another field has their meaning.
_SILENT = {"start.timestamp": "1970-01-01T00:00:00Z"}


def changes(
    declared: Declared | None, topology: Topology, target: ObservedCluster, wanted: Collection[str]
) -> Iterator[Change]:
    """Yield what changes at a target when a declaration comes into force, by what it is about and its name.

    Nothing where no other one is in force, or where that is not recorded.

    Args:
        declared: what the plan declares there.
        topology: what is declared.
        target: the cluster.
        wanted: remote topics that flows declare there.
    """
    if declared is None or declared.in_force is None or declared.declaration is None or declared.is_in_force:
        return
    former, now = declared.former, declared.declaration
    told = tuple(_of_all(declared))
    if told and declared.in_force.is_declared:
        yield Change("topology", topology.name, "changes", told)
    if former is None:
        return
    before_by, after_by = _sections(former), _sections(now)
    # A source that comes or goes is reported with its flows.
    for alias in sorted(before_by.keys() & after_by.keys()):
        if told := tuple(_fields(before_by[alias], after_by[alias])):
            yield Change("cluster", alias, "changes", told)
    for name in sorted(former.flows.keys() | now.flows.keys()):
        before, after = former.flows.get(name), now.flows.get(name)
        if before is None:
            yield Change("flow", name, "begins")
            continue
        stops = tuple(_stops(name, before, topology, target, wanted))
        if after is None:
            yield Change("flow", name, "ends", (), stops, _why_ended(topology, name, target.alias))
        elif told := field_changes(before, after):
            yield Change("flow", name, "changes", told, stops)


def field_changes(before: Json, after: Json) -> tuple[FieldChange, ...]:
    """Return the fields in which a flow of one declaration differs from that of another."""
    return tuple(_fields(_flow_leaves(before), _flow_leaves(after)))


def _of_all(declared: Declared) -> Iterator[FieldChange]:
    """Yield what changes of the topology as a whole."""
    before = declared.in_force.owner if declared.in_force else None
    if before != declared.owner:
        yield FieldChange("owner", before or _ABSENT, declared.owner or _ABSENT)
    if declared.former is not None and declared.declaration is not None:
        yield from _items("clusters", declared.former.aliases, declared.declaration.aliases)


def out_of_reach(topology: Topology, observed: Observed) -> Iterator[Notice]:
    """Yield the clusters that are on record as targets of the topology, and that its files declare no more.

    What is in force there cannot be ended, as it is not declared how the cluster is reached.
    """
    known = {alias for one in observed.values() if one.in_force for alias in one.in_force.targets}
    for alias in sorted(known - topology.clusters.keys()):
        why = (
            f"flows of {topology.name} lead into it, and no file declares it any more: it cannot be reached, so they "
            "go on where they run. Declare it with `enabled: false` for these flows and apply, then take it out; or "
            f"end what runs [{OUT_OF_REACH}]"
        )
        yield Notice(f"cluster {alias}", why)


def _why_ended(topology: Topology, name: str, alias: str) -> str:
    flow = next((one for one in topology.flows if one.name == name), None)
    if flow is None:
        return "no file declares it any more"
    if flow.target != alias:
        return f"it leads into {flow.target} now"
    return "enabled: false"


def _stops(
    name: str, before: Json, topology: Topology, target: ObservedCluster, wanted: Collection[str]
) -> Iterator[StoppedTopic]:
    """Yield the copies of a flow that it filled by its former declaration, and fills no longer by this one."""
    flow = next((one for one in topology.flows_into((target.alias,)) if one.name == name), None)
    for remote, record in sorted(target.owned.items()):
        copy = target.topics.get(remote)
        if copy is None or remote in wanted or (record.topology, record.flow) != (topology.name, name):
            continue
        # Without its original, a copy is not left behind by a declaration.
        if _took(before, record.source_topic) and not (flow and _still_takes(flow, record, topology)):
            yield StoppedTopic(record.source_topic, remote, copy.held)


def _took(before: Json, topic: str) -> bool:
    """Return whether a flow took a topic by its former declaration, as far as that can be read."""
    told = before.get("topics", {})
    try:
        return Selection(tuple(told.get("include", ())), tuple(told.get("exclude", ()))).matches(topic)
    except (BadPattern, NotLinear, TypeError, AttributeError):
        # Former releases took expressions that this one refuses.
        return False


def _still_takes(flow: Flow, record: OwnedTopic, topology: Topology) -> bool:
    topic = record.source_topic
    return flow.takes(topic, topology.aliases) and flow.remote_topic(topic) == record.name


def _sections(declaration: Declaration) -> Mapping[str, Leaves]:
    """Return the sections of a declaration for each cluster: its addresses, and its clients' settings."""
    found: dict[str, dict[str, str | tuple[str, ...]]] = {}
    for alias, addresses in declaration.clusters.items():
        found.setdefault(alias, {})["bootstrap"] = tuple(addresses)
    for who, told in declaration.clients.items():
        role, _, alias = who.partition(" of ")
        for key, value in told.items():
            found.setdefault(alias, {})[f"clients.{role}.{key.replace('_', '.')}"] = _text(value)
    return found


def _fields(before: Leaves, after: Leaves) -> Iterator[FieldChange]:
    for path in dict.fromkeys((*before, *after)):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if isinstance(old, tuple) or isinstance(new, tuple):
            yield from _items(path, _listed(old), _listed(new))
        else:
            yield FieldChange(path, old or _ABSENT, new or _ABSENT)


def _listed(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _items(path: str, old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[FieldChange]:
    """Yield the items of a list that go and come; where it is in another order alone, both orders."""
    there, here = set(old), set(new)
    yield from (FieldChange(path, one, None) for one in dict.fromkeys(old) if one not in here)
    yield from (FieldChange(path, None, one) for one in dict.fromkeys(new) if one not in there)
    if there == here and old != new:
        yield FieldChange(path, ", ".join(old), ", ".join(new))


# --- flows, in the words of topology files ----------------------------------------------------------------------------


def _flow_leaves(told: Json) -> dict[str, str | tuple[str, ...]]:
    """Return all fields of a flow, those that were left out with their defaults."""
    whole = _merged(_plain(Flow("", "", "", Selection(()))), told)
    del whole["name"], whole["origin"]
    found: dict[str, str | tuple[str, ...]] = {}
    for path, value in _flattened("", whole):
        if (text := _written(path, value)) != _SILENT.get(path):
            found[path] = text
    return found


def _plain(value: Any) -> Any:
    """Return a value as JSON types, with the fields that have their defaults."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if not is_dataclass(value):
        return value
    return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}


def _merged(default: Any, told: Any) -> Any:
    if not (isinstance(default, dict) and isinstance(told, Mapping)):
        return told
    return {key: _merged(default.get(key), told[key]) if key in told else default[key] for key in {**default, **told}}


def _flattened(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            inner = f"{path}.{key}" if path else key
            called = inner.replace("_", "-")
            yield from _flattened(_CALLED.get(called, called), one)
    elif isinstance(value, list) and value and all(_is_pair(one) for one in value):
        # Keys are no names of ours.
        yield from ((f"{path}.{key}", one) for key, one in value)
    elif not (value == [] and path in ("start.offsets", "configs.set", "policy.options")):
        yield path, value


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == len(("key", "value")) and isinstance(value[0], str)


def _written(path: str, value: Any) -> str | tuple[str, ...]:
    """Return a value as topology files write it; the items of a list one by one."""
    if isinstance(value, list) and not path.startswith("start."):
        return tuple(_text(one) for one in value)
    if path in _NOTHING and value in (None, ""):
        return _NOTHING[path]
    if path in _UNITS and isinstance(value, int | float) and not isinstance(value, bool):
        return _UNITS[path](value)
    return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return _ABSENT
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and {"pattern", "replacement"} <= value.keys():
        return f"{value['pattern']} → {value['replacement']}"
    return json.dumps(value, ensure_ascii=False)


def _sized(number: float) -> str:
    """Return a size in the largest unit that it is a whole number of."""
    units = {"GiB": 2**30, "GB": 10**9, "MiB": 2**20, "MB": 10**6, "KiB": 2**10, "KB": 10**3}
    for name, unit in units.items():
        if number and number % unit == 0:
            return f"{int(number // unit)}{name}"
    return f"{int(number)}B"


def _short(seconds: float) -> str:
    return f"{seconds * 1000:g}ms"


def _long(seconds: float) -> str:
    return f"{seconds:g}s"


def _rate(number: float) -> str:
    return f"{_sized(number)}/s"


def _moment(milliseconds: float) -> str:
    seconds, rest = divmod(int(milliseconds), 1000)
    try:
        said = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds:g}ms"
    return f"{said}.{rest:03}Z" if rest else f"{said}Z"


_UNITS: Mapping[str, Callable[[float], str]] = {
    "quota": _rate,
    "batch-size": _sized,
    "largest-batch": _sized,
    "linger": _short,
    "commit-interval": _short,
    "refresh-interval": _long,
    "groups.interval": _long,
    "heartbeats": lambda said: _long(said) if said else "none",
    "start.timestamp": _moment,
}
