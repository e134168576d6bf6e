"""Policy classes for the tests, good and bad, and a fixture's worth of faked entry points for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, EntryPoints
from itertools import count

import pytest

from reconciler.model.policies import custom


class Regional:
    """What docs/reference/policies.md shows."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.region = options["region"]

    def remote_topic(self, source: str, topic: str) -> str:
        return f"{self.region}.{source}.{topic}"

    def upstream(self, remote: str) -> tuple[str, str] | None:
        region, _, rest = remote.partition(".")
        source, _, topic = rest.partition(".")
        return (source, topic) if region == self.region and topic else None


class Silent:
    """Its names say nothing of where they come from; what it answers is in its options, `*` for all others."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.names = options

    def remote_topic(self, source: str, topic: str) -> str:
        return self.names.get(topic) or self.names.get("*") or topic


class Choosy(Silent):
    def remote_topic(self, source: str, topic: str) -> str:
        if topic.startswith("bad"):
            message = f"no rule for {topic}"
            raise LookupError(message)
        return f"copy-of-{topic}"


class Textless(Silent):
    def remote_topic(self, source: str, topic: str) -> str:
        return None  # type: ignore[return-value]


class Fickle(Silent):
    _numbers = count()

    def remote_topic(self, source: str, topic: str) -> str:
        return f"{topic}-{next(self._numbers)}"


class Contradicting(Silent):
    def upstream(self, remote: str) -> tuple[str, str] | None:
        return "elsewhere", remote


class Vague(Silent):
    def upstream(self, remote: str) -> str:
        return remote


class Failing(Silent):
    def upstream(self, remote: str) -> tuple[str, str] | None:
        raise ZeroDivisionError


class Nameless:
    def __init__(self, options: Mapping[str, str]) -> None:
        pass


A_TEXT = "not a class"


def offer(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Have entry points: by name, `module:Class`, or only a class of this module; several with `|` between them."""
    points = [
        EntryPoint(name.replace("_", "-"), one if ":" in one else f"{__name__}:{one}", custom.GROUP)
        for name, value in values.items()
        for one in value.split("|")
    ]

    def entry_points(group: str, name: str | None = None) -> EntryPoints:
        return EntryPoints(point for point in points if point.group == group and name in (None, point.name))

    caches: tuple[Callable[[], None], ...] = (
        custom.policy_of.cache_clear,
        custom.remote_topic.cache_clear,
        custom.upstream.cache_clear,
    )
    for forget in caches:
        forget()
    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
