"""What a change of the connectors of one flow changes of the flow, as fields of its entry in a topology file.

What is the same before and after is not converted: a flow may be declared in ways that connectors have no words for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from reconciler.convert.connect import PASSED_OVER, Connector, flow_keys
from reconciler.convert.flows import FlowConversion, FlowFields
from reconciler.convert.plugins import COPYING
from reconciler.convert.settings import WITHOUT_EQUAL, Setting, Settings
from reconciler.convert.tree import Tree
from reconciler.declare.documents import mirrormaker
from reconciler.declare.documents.settings import BUILT_IN
from reconciler.model.base.errors import DeclaredInputError, Problem

# Settings of which one means something else beside another value of the others.
_FAMILIES = (
    frozenset(("topics", "topics.whitelist", "topics.exclude", "topics.blacklist", "heartbeats.replication.enabled")),
    frozenset(
        (
            *("groups", "groups.whitelist", "groups.exclude", "groups.blacklist", "emit.checkpoints.enabled"),
            *("emit.checkpoints.interval.seconds", "sync.group.offsets.enabled"),
        )
    ),
    frozenset(("emit.heartbeats.enabled", "emit.heartbeats", "emit.heartbeats.interval.seconds")),
    frozenset(("replication.policy.class", "replication.policy.separator")),
)


def changed_entry(before: Sequence[Connector], after: Sequence[Connector]) -> dict[str, Any]:
    """Return the fields of a flow that change, each with its new value.

    Args:
        before: its connectors: the one that copies, and those that go with it.
        after: likewise.

    Raises:
        DeclaredInputError: AB141 or AB142, a setting cannot be converted, or is none of a flow's.
    """
    old, new = _by_key(before), _by_key(after)
    changed = {key for key in old.keys() | new.keys() if _value(old.get(key)) != _value(new.get(key))}
    is_other_set = _kinds(before) != _kinds(after)
    for family in _FAMILIES:
        if changed & family or is_other_set:
            changed |= family & (old.keys() | new.keys())
    # In order: what is wrong with several settings is named in it.
    given = Settings(new[key] for key in sorted(changed & new.keys()))
    now = _fields(given, _kinds(after))
    _check_left(given)
    then = _fields(Settings(one for key, one in old.items() if key in changed), _kinds(before))
    entry = Tree()
    for path in dict.fromkeys((*then, *now)):
        if path not in now:
            entry.put(path, _built_in(path, then[path][1]))
        elif path not in then or then[path][0] != now[path][0]:
            entry.put(path, now[path][0])
    return entry.values


def _by_key(connectors: Sequence[Connector]) -> dict[str, Setting]:
    """Return the settings of all; of one that several have, that of what copies counts."""
    ordered = sorted(connectors, key=lambda one: one.kind in COPYING)
    return {setting.key: setting for one in ordered for setting in one.settings if setting.key not in PASSED_OVER}


def _value(setting: Setting | None) -> str | None:
    return None if setting is None else setting.value


def _kinds(connectors: Sequence[Connector]) -> frozenset[str]:
    return frozenset(one.kind for one in connectors if one.kind not in COPYING)


def _fields(settings: Settings, kinds: Collection[str]) -> FlowFields:
    conversion = FlowConversion(settings, flow_keys(kinds, carries_heartbeats=False))
    conversion.run()
    return conversion.fields


def _check_left(given: Settings) -> None:
    """Check that nothing is lost of settings that come or change, and were converted.

    Raises:
        DeclaredInputError: AB142, one is no setting of a flow; all of them are named.
    """
    problems = []
    # Beside others, some mean nothing: groups without checkpoints.
    known = frozenset[str]().union(*_FAMILIES)
    for one in (one for one in given.left() if one.key not in known):
        found = mirrormaker.answer(one.key, behind_alias=False)
        if found is None:
            problems.append(one.problem(WITHOUT_EQUAL, mirrormaker.UNKNOWN, "leave it out, or correct it"))
        elif found.fields:
            message = f"it is not changed here: nearest is {mirrormaker.said(found.fields)}, in the topology files"
            problems.append(one.problem(WITHOUT_EQUAL, message, "leave it out, and change the file"))
    if problems:
        raise DeclaredInputError(problems)


def _built_in(path: tuple[str, ...], origin: Setting | None) -> Any:
    value = BUILT_IN[".".join(path)].value
    if value is None:
        where = "the flow" if origin is None else f"{origin.where} ({origin.title})"
        message = f"expected a value: without one the flow has what its file declares for {'.'.join(path)}"
        raise DeclaredInputError(Problem(WITHOUT_EQUAL, where, message, "give a value, or change the file"))
    return value
