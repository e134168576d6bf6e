"""Settings as they were read from files: where each stands, and which of them were asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from reconciler.model.base.errors import Problem

UNREADABLE, CONTRADICTS, WITHOUT_EQUAL, IN_CLEAR = "AB140", "AB141", "AB142", "AB143"
"""Codes: of a file that is none that can be converted, of settings that contradict, of those that have no equal, and of
secrets in clear text where they would be kept."""


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        key: as it is written.
        value: without blanks around it.
        where: file and line, or file and connector.
        written: what stands in the file, where that is another word for the key.
    """

    key: str
    # It may be a secret.
    value: str = field(repr=False)
    where: str
    written: str = ""

    @property
    def title(self) -> str:
        """What the user calls it."""
        return self.written or self.key

    def problem(self, code: str, message: str, remedy: str) -> Problem:
        """Return a problem with it."""
        return Problem(code, f"{self.where} ({self.title})", message, remedy)


@dataclass(frozen=True)
class Loss:
    """A setting that the topology does not have.

    Attributes:
        setting: which.
        why: what stands in its place, or what is lost.
    """

    setting: Setting
    why: str


class Settings:
    """The settings of one file, or of one connector.

    Args:
        settings: in the order of the file; of a key that stands twice the last one counts.
    """

    def __init__(self, settings: Iterable[Setting]) -> None:
        self._by_key = {setting.key: setting for setting in settings}
        self._asked: set[str] = set()

    def first(self, *keys: str) -> Setting | None:
        """Return the first that there is of some keys, given from the most specific on; all of them are asked for."""
        found = [self._by_key[key] for key in keys if key in self._by_key]
        self._asked.update(setting.key for setting in found)
        return found[0] if found else None

    def pass_over(self, key: str) -> None:
        """Take a setting for asked for."""
        self._asked.add(key)

    def left(self) -> Iterator[Setting]:
        """Yield those that were not asked for, in their order."""
        yield from (setting for key, setting in self._by_key.items() if key not in self._asked)

    def without(self, keys: Collection[str]) -> Settings:
        """Return the others than those of some keys."""
        return Settings(setting for key, setting in self._by_key.items() if key not in keys)

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._by_key.values())
