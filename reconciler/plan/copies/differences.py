"""Desired settings against settings found: what differs, and what that means.

Pure. `deepdiff` finds the differences, for all topics of a cluster in one pass; here it is decided what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deepdiff import DeepDiff

from reconciler.model.planning.desired import DesiredTopic, canonical
from reconciler.model.planning.observed import ObservedTopic
from reconciler.model.planning.steps import ChangeReason, ConfigChange
from reconciler.model.recorded.ownership import OwnedTopic

Configs = dict[str, str]


def config_changes(
    desired: Iterable[DesiredTopic], found: Mapping[str, ObservedTopic], owned: Mapping[str, OwnedTopic]
) -> dict[str, tuple[ConfigChange, ...]]:
    """Return the changes that existing topics need, by topic name; topics that need none are left out.

    Only declared keys are compared. A key that we applied once, that the source no longer has, and that still stands at
    the target as we left it, is returned to the brokers' default; what others have set there is theirs.

    Args:
        desired: topics, each of which is in `found` and in `owned`.
        found: the topics as they are.
        owned: what was last applied to them.
    """
    before: dict[str, Configs] = {}
    after: dict[str, Configs] = {}
    for topic in desired:
        is_now = found[topic.name].configs
        accepted = {s.key for s in topic.settings if s.accepts(is_now.get(s.key))}
        wanted = {key: is_now[key] if key in accepted else value for key, value in topic.configs.items()}
        obsolete = obsolete_keys(topic, found[topic.name], owned[topic.name])
        stands = {key: is_now[key] for key in wanted.keys() | obsolete if key in is_now}
        if stands != wanted:
            before[topic.name], after[topic.name] = stands, wanted
    changes: dict[str, list[ConfigChange]] = {}
    for name, key in _differing(before, after):
        old, new = before[name].get(key), after[name].get(key)
        reason = _reason(old, new, owned[name].configs.get(key))
        changes.setdefault(name, []).append(ConfigChange(key, old, new, reason))
    return {name: tuple(sorted(found, key=lambda change: change.key)) for name, found in changes.items()}


def obsolete_keys(topic: DesiredTopic, found: ObservedTopic, record: OwnedTopic) -> frozenset[str]:
    """Return the settings that stand as we left them and that nothing declares any longer."""
    last, now = record.configs, found.configs
    unasked = (key for key in last if key not in topic.configs and key in now)
    return frozenset(key for key in unasked if canonical(now[key]) == canonical(last[key]))


def _differing(before: Mapping[str, Configs], after: Mapping[str, Configs]) -> list[tuple[str, str]]:
    """Return the paths (topic, key) at which two mappings of the same topics differ."""
    # The threshold would report a topic with many differences as one change.
    tree = DeepDiff(before, after, view="tree", threshold_to_diff_deeper=0)
    return [tuple(level.path(output_format="list")) for kind in tree.values() for level in kind]


def _reason(old: str | None, new: str | None, last: str | None) -> ChangeReason:
    if new is None:
        return "obsolete"
    if last == new:
        return "target-change"
    return "source-change" if last is not None else "missing"
