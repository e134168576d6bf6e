"""What the wheel needs at run time, as the metadata of what is installed here says: the lock is held against that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import metadata

from packaging.requirements import Requirement

from release.lock import normalised

Environment = Mapping[str, str]
"""Values of environment markers (PEP 508) that are others than those of this interpreter."""


def closure(declared: Iterable[str], environment: Environment | None = None) -> dict[str, frozenset[str]]:
    """Return every distribution that requirements lead to, and what each needs itself; names are normalised.

    Args:
        declared: requirements (PEP 508).
        environment: for which interpreter; by default this one.

    Raises:
        importlib.metadata.PackageNotFoundError: one of them is not installed here.
    """
    asked: dict[str, set[str]] = {}
    needs: dict[str, set[str]] = {}
    waiting = [Requirement(one) for one in declared]
    while waiting:
        requirement = waiting.pop()
        name, extras = normalised(requirement.name), set(requirement.extras)
        if name in asked and extras <= asked[name]:
            continue
        known = asked.setdefault(name, set())
        known |= extras
        needed = [one for one in _requirements(name) if _is_meant(one, known, environment)]
        needs[name] = {normalised(one.name) for one in needed}
        waiting += needed
    return {name: frozenset(needed) for name, needed in sorted(needs.items())}


def _requirements(name: str) -> list[Requirement]:
    return [Requirement(one) for one in metadata.distribution(name).requires or ()]


def _is_meant(requirement: Requirement, extras: Iterable[str], environment: Environment | None) -> bool:
    if requirement.marker is None:
        return True
    return any(requirement.marker.evaluate({**(environment or {}), "extra": extra}) for extra in ("", *extras))
