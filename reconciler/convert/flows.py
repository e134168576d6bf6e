"""The fields of a flow, from the settings that MirrorMaker 2's connectors have for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.convert.settings import WITHOUT_EQUAL, Loss, Setting, Settings
from reconciler.convert.values import contradicting, expressions, is_on, truth, whole
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.names.selection import Selection
from reconciler.model.names.topic_names import HEARTBEATS

Keys = Callable[[str], tuple[str, ...]]
"""Returns the keys that a setting may have, by its name, the most specific first."""
FlowFields = dict[tuple[str, ...], tuple[Any, Setting | None, str]]
"""By path below the flow: its value, the setting that it comes from, and a remark."""

_DEFAULT = "the default of MirrorMaker 2"
_POLICIES = {"DefaultReplicationPolicy": "default", "IdentityReplicationPolicy": "identity"}


@dataclass(frozen=True)
class FlowKeys:
    """Where the settings of a flow stand.

    Attributes:
        own: returns the keys of a connector's setting, the most specific first.
        consumer: likewise of the client that reads at the source.
        producer: likewise of the client that writes at the target.
        has_checkpoints: whether something emits checkpoints for it.
        has_heartbeats: whether something emits heartbeats for it.
        carries_heartbeats: whether it copies heartbeats whatever topics it has: one flow from a cluster to another.
    """

    own: Keys
    consumer: Keys
    producer: Keys
    has_checkpoints: bool = True
    has_heartbeats: bool = True
    carries_heartbeats: bool = True


@dataclass
class FlowConversion:
    """Collects the fields of one flow.

    Attributes:
        settings: where from.
        keys: where they stand.
        fields: what was collected.
        losses: what the flow does not have.
    """

    settings: Settings
    keys: FlowKeys
    fields: FlowFields = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)

    def run(self) -> None:
        """Collect them.

        Raises:
            DeclaredInputError: AB141 or AB142, a setting cannot be converted.
        """
        self._topics()
        self._groups()
        self._policy()
        if not self._is("emit.heartbeats.enabled", "emit.heartbeats", default=self.keys.has_heartbeats):
            pass
        elif (every := self._first("emit.heartbeats.interval.seconds")) is None:
            self._put("heartbeats", "1s", None, _DEFAULT)
        elif whole(every) > 0:
            self._put("heartbeats", f"{every.value}s", every)
        self._seconds("refresh.topics.interval.seconds", "refresh-interval")
        for name, path in (("sync.topic.configs.enabled", "configs/sync"), ("sync.topic.acls.enabled", "acls")):
            if (found := self._first(name)) is not None:
                self._put(path, truth(found), found)
        if (found := self._first("config.properties.exclude", "config.properties.blacklist")) is not None:
            self._put("configs/exclude", expressions(found), found)
        for name, path in (("tasks.max", "tasks"), ("replication.factor", "replication-factor")):
            if (found := self._first(name)) is not None:
                self._put(path, whole(found), found)
        self._clients()

    def _put(self, path: str, value: Any, origin: Setting | None, remark: str = "") -> None:
        self.fields[tuple(path.split("/"))] = (value, origin, remark)

    def _first(self, *names: str) -> Setting | None:
        return self.settings.first(*(key for name in names for key in self.keys.own(name)))

    def _is(self, *names: str, default: bool) -> bool:
        return is_on(self._first(*names), default)

    def _one_of(self, *names: str) -> Setting | None:
        """Return a setting that has had several names; two names with different values contradict."""
        found = [one for name in names if (one := self._first(name)) is not None]
        if len({one.value for one in found}) > 1:
            raise contradicting(found[1], found[0], "leave one of the two names out")
        return found[0] if found else None

    def _topics(self) -> None:
        takes_heartbeats = self._is("heartbeats.replication.enabled", default=True) and self.keys.carries_heartbeats
        if (found := self._one_of("topics", "topics.whitelist")) is not None:
            taken = expressions(found)
            self._put("topics/include", [*taken, *(self._heartbeats(taken) if takes_heartbeats else ())], found)
        if (found := self._one_of("topics.exclude", "topics.blacklist")) is not None:
            self._put("topics/exclude", expressions(found), found)

    def _heartbeats(self, taken: Sequence[str]) -> list[str]:
        """Return the expression of heartbeats, which MirrorMaker 2 takes along whatever `topics` has."""
        if Selection(tuple(taken)).matches(HEARTBEATS):
            return []
        separator = self._first("replication.policy.separator")
        return [f"(.*{re.escape(separator.value if separator is not None else '.')})?{HEARTBEATS}"]

    def _groups(self) -> None:
        names = ("groups", "groups.whitelist"), ("groups.exclude", "groups.blacklist")
        include, exclude = self._one_of(*names[0]), self._one_of(*names[1])
        if not self._is("emit.checkpoints.enabled", default=self.keys.has_checkpoints):
            return
        taken = expressions(include, of_groups=True) if include is not None else [".*"]
        if not taken:
            return
        self._put("groups/include", taken, include, "" if include is not None else _DEFAULT)
        if exclude is not None:
            self._put("groups/exclude", expressions(exclude, of_groups=True), exclude)
        if (found := self._first("sync.group.offsets.enabled")) is not None:
            self._put("groups/sync-offsets", truth(found), found)
        self._seconds("emit.checkpoints.interval.seconds", "groups/interval")

    def _policy(self) -> None:
        named = self._first("replication.policy.class")
        kind = "default"
        if named is not None:
            found = _POLICIES.get(named.value.rpartition(".")[2])
            if found is None:
                message = f"topics are named by the class {named.value}, which has no equal"
                remedy = "declare `policy` by hand: rules (rename), or a class of Python's; then leave this out"
                raise DeclaredInputError(named.problem(WITHOUT_EQUAL, message, remedy))
            kind = found
            if kind != "default":
                self._put("policy/type", kind, named)
        separator = self._first("replication.policy.separator")
        if separator is not None and kind == "identity":
            self.losses.append(Loss(separator, "names of copies have no separator"))
        elif separator is not None:
            self._put("policy/separator", separator.value, separator)

    def _seconds(self, name: str, path: str) -> None:
        if (found := self._first(name)) is not None:
            if whole(found) > 0:
                self._put(path, f"{whole(found)}s", found)
            else:
                self.losses.append(Loss(found, "it is never switched off; the default holds"))

    def _clients(self) -> None:
        for keys, name, path in (
            (self.keys.consumer, "isolation.level", "isolation-level"),
            (self.keys.consumer, "auto.offset.reset", "start"),
            (self.keys.producer, "compression.type", "compression"),
        ):
            if (found := self.settings.first(*keys(name))) is not None:
                self._put(path, found.value, found)
        if (found := self.settings.first(*self.keys.producer("batch.size"))) is not None:
            self._put("batch-size", f"{whole(found)}B", found)
        if (found := self.settings.first(*self.keys.producer("linger.ms"))) is not None:
            self._put("linger", f"{whole(found)}ms", found)


def keys_of_clients(consumer: Keys, producer: Keys) -> FlowKeys:
    """Return where the settings of a flow stand that has those of its clients alone: no connectors, no groups."""
    return FlowKeys(lambda _: (), consumer, producer, has_checkpoints=False, has_heartbeats=False)


def as_it_is(name: str) -> tuple[str, ...]:
    """Return the key of a setting that has no prefix."""
    return (name,)


def no_keys(_: str) -> tuple[str, ...]:
    """Return the keys of a client that is configured elsewhere."""
    return ()
