"""Which partitions users have paused: rules by scope, of which the narrowest counts.

The commands make the rules, `state` keeps them, tasks obey them. A rule lasts until another one takes its place,
however many runs come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.base.text import utc


@dataclass(frozen=True)
class PauseScope:
    """What a command is about: a flow, one of its topics, or one partition.

    Attributes:
        flow: name of the flow.
        topic: the original topic; None means all.
        partition: its number; None means all.
    """

    flow: str
    topic: str | None = None
    partition: int | None = None

    @property
    def around(self) -> tuple[PauseScope, ...]:
        """The wider scopes, the narrowest first."""
        if self.topic is None:
            return ()
        flow = PauseScope(self.flow)
        return (flow,) if self.partition is None else (PauseScope(self.flow, self.topic), flow)

    def covers(self, topic: str, partition: int) -> bool:
        """Return whether a partition of the flow is in this scope."""
        return self.topic in (None, topic) and self.partition in (None, partition)

    def __str__(self) -> str:
        if self.topic is None:
            return f"flow {self.flow}"
        return self.topic if self.partition is None else f"{self.topic}/{self.partition}"


@dataclass(frozen=True)
class Written:
    """The user that wrote a rule, and when, in seconds since 1970."""

    by: str
    since: float

    def __str__(self) -> str:
        return f"by {self.by} since {utc(self.since)}"


@dataclass(frozen=True)
class Pauses:
    """The rules in force.

    Attributes:
        rules: True where a scope is paused; False where it is not although a wider one is.
        said: user and time of a rule, in words, by its scope; nothing for rules of older releases.
    """

    rules: Mapping[PauseScope, bool] = field(default_factory=dict)
    said: Mapping[PauseScope, str] = field(default_factory=dict, compare=False)

    def of(self, flow: str) -> tuple[tuple[PauseScope, str], ...]:
        """Return what is paused of a flow, the widest first, with the user and the time."""
        paused = [scope for scope, is_paused in self.rules.items() if is_paused and scope.flow == flow]
        ordered = sorted(paused, key=lambda one: (one.topic or "", -1 if one.partition is None else one.partition))
        return tuple((scope, self.said.get(scope, "")) for scope in ordered)

    def hold(self, flow: str, topic: str, partition: int) -> bool:
        """Return whether a partition is paused."""
        rule = self._rule(PauseScope(flow, topic, partition))
        return rule is not None and self.rules[rule]

    def why(self, flow: str, topic: str, partition: int) -> str:
        """Return the user that has paused a partition and the time, in words; empty where that is not known."""
        rule = self._rule(PauseScope(flow, topic, partition))
        return "" if rule is None else self.said.get(rule, "")

    def changes(self, scope: PauseScope, paused: bool) -> dict[PauseScope, bool | None]:
        """Return the rules that pause or resume all of `scope`; None where a rule must go."""
        changes: dict[PauseScope, bool | None] = {rule: None for rule in self.rules if scope in rule.around}
        wider = next((self.rules[rule] for rule in scope.around if rule in self.rules), False)
        if wider is not paused:
            changes[scope] = paused
        elif scope in self.rules:
            changes[scope] = None
        return changes

    def changed(
        self, changes: Mapping[PauseScope, bool | None], said: Mapping[PauseScope, str] | None = None
    ) -> Pauses:
        """Return the rules after `changes`; `said` names their user and time."""
        rules = {scope: paused for scope, paused in {**self.rules, **changes}.items() if paused is not None}
        words = {**self.said, **(said or {})}
        return Pauses(rules, {scope: words[scope] for scope in rules if words.get(scope)})

    def _rule(self, scope: PauseScope) -> PauseScope | None:
        """Return the narrowest scope around one that has a rule."""
        return next((rule for rule in (scope, *scope.around) if rule in self.rules), None)
