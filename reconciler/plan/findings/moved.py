"""What moved between the making of a plan and now: two plans of one declaration, compared field by field.

Pure. Plans are compared in their JSON form, as one of them comes from a file. What a plan only reports does not count:
how much would be padded, warnings, and what is left alone; logs grow and are trimmed all the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deepdiff import DeepDiff

Json = Mapping[str, Any]

_OF_FLOWS = ("source", "target", "tasks", "offsets", "fill")


def moved(made: Json, now: Json) -> tuple[str, ...]:
    """Return what is different now, in words, by cluster; empty where both plans do the same.

    Args:
        made: a plan as JSON, as it was written down.
        now: the plan as it is made now.
    """
    return tuple(_differences(_deeds(made), _deeds(now)))


def _deeds(plan: Json) -> dict[str, Any]:
    """Return what a plan does, each deed under a name of its subject."""
    deeds: dict[str, Any] = {}
    for cluster in plan["clusters"]:
        alias = cluster["alias"]
        # Which clusters come first, and are checked before the others follow, was reviewed, too.
        deeds[f"{alias}: order"] = {"wave": cluster.get("wave")}
        for step in cluster["steps"]:
            deeds[f"{alias}: {step['action']} {step.get('topic') or step['acl']}"] = _by_key(step)
        for flow in cluster["flows"]:
            deeds[f"{alias}: flow {flow['name']}"] = {key: flow[key] for key in _OF_FLOWS}
        told = (cluster["declared"] or {}).get("in_force") or {}
        deeds[f"{alias}: declaration in force"] = {"digest": told.get("digest"), "owner": told.get("owner")}
    for deployment in plan.get("deployments", ()):
        for step in deployment["steps"]:
            # What runs where is compared as it is to be; why it does not run may read differently each time.
            deed = {"wave": deployment["wave"], "kind": deployment["kind"], "facts": step["facts"]}
            deeds[f"{deployment['datacenter']}: {step['action']} {step['process']}"] = deed
    return deeds


def _by_key(step: Json) -> Json:
    """Return a step with its lists of settings as mappings, so that each is compared with itself."""
    settings = {one["key"]: one["value"] for one in step.get("settings", ())}
    changes = {one["key"]: {"old": one["old"], "new": one["new"]} for one in step.get("changes", ())}
    return {**step, "settings": settings, "changes": changes}


def _differences(made: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(made.keys() | now.keys()):
        if name not in now:
            yield f"{name}: was planned, and there is no need any more"
        elif name not in made:
            yield f"{name}: was not planned"
        else:
            yield from (f"{name}: {said}" for said in _fields(made[name], now[name]))


def _fields(made: Any, now: Any) -> Iterator[str]:
    tree = DeepDiff(made, now, view="tree", threshold_to_diff_deeper=0)
    for kind in tree.values():
        for level in kind:
            path = ".".join(map(str, level.path(output_format="list")))
            yield f"{path} was {_said(level.t1)}, is {_said(level.t2)}"


def _said(value: Any) -> str:
    return "not there" if value is None or repr(value) == "not present" else str(value)
