"""Settings of clients: what is declared for all clusters and for one, what of it wins, and what does not go together.

The loader calls it. The keys and their limits are in the schema alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple, cast

from reconciler.declare.documents import codes, words
from reconciler.declare.documents.located import Located, SourcePlace, Value
from reconciler.declare.documents.merge import Source
from reconciler.declare.documents.quantities import byte_count
from reconciler.declare.documents.resources import schema_text
from reconciler.declare.documents.settings import DeclaredSetting, Settings
from reconciler.declare.documents.violations import Finding
from reconciler.model.declared.clients import ROLES, Clients


class _Order(NamedTuple):
    """Two keys of which the first must be so much less than the second, and what would be otherwise."""

    less: str
    more: str
    apart: int
    otherwise: str


_ORDERS = (
    _Order("fetch.max.wait.ms", "request.timeout.ms", 1000, "answers would come too late"),
    _Order("request.timeout.ms", "connections.max.idle.ms", 1, "connections would be closed while they wait"),
    _Order("reconnect.backoff.ms", "reconnect.backoff.max.ms", 0, "it would never be waited for so long"),
    _Order("max.partition.fetch.bytes", "fetch.max.bytes", 0, "no fetch request is that large"),
)


def written_at(place: SourcePlace) -> Settings:
    """Return what `clients` at a place write, by role and key (`consumer.fetch.max.bytes`), without unknown ones."""
    tables = cast("dict[str, dict[str, Value]]", place.value or {})
    known = _known()
    return {
        name: DeclaredSetting(value, place / role / key)
        for role in ROLES
        for key, value in tables.get(role, {}).items()
        if (name := f"{role}.{key}") in known
    }


def effective(general: SourcePlace | None, own: SourcePlace) -> Settings:
    """Return what is declared for one cluster; its own wins over what is declared for all, key by key."""
    return {**(written_at(general) if general else {}), **written_at(own)}


def build(settings: Settings) -> Clients:
    """Return the settings that are effective for one cluster; they have passed the schema."""
    values = {key: _value(key, setting.value) for key, setting in settings.items()}
    return Clients.declared(values, {key: setting.place.where for key, setting in settings.items() if setting.place})


def check(source: Source) -> list[Finding]:
    """Return the sizes of one document that are beyond their limits; the schema checks numbers alone."""
    declared = source.document.value.get("clusters")
    aliases = declared if isinstance(declared, dict) else {}
    places = [source.document.at("defaults"), *(source.document.at("clusters", alias) for alias in aliases)]
    written = [written_at(place / "clients") for place in places if source.usable(place / "clients")]
    return [found for settings in written for name, one in settings.items() for found in _beyond(name, one)]


def _beyond(name: str, setting: DeclaredSetting) -> Iterator[Finding]:
    limits, (value, place) = _known()[name], setting
    if isinstance(value, str) and "minimum" in limits and place is not None:
        least, most = limits["minimum"], limits["maximum"]
        if not least <= byte_count(value) <= most:
            message = f"expected a size from {least} to {most} bytes; found {words.found(value)}"
            remedy = f"for example: {words.example(place.path, limits['examples'][0])}"
            yield Finding(place.problem(codes.WRONG_VALUE, message, remedy), place.path)


def conflicts(clusters: Mapping[str, Settings]) -> Iterator[Located]:
    """Yield what cannot be together in one cluster, at each place once.

    Args:
        clusters: what is effective for each, by alias.
    """
    told: set[SourcePlace] = set()
    for alias, settings in clusters.items():
        found = {f"{one.role}.{one.key}": one.value for one in build(settings).effective()}
        for role, order in product(ROLES, _ORDERS):
            less, more = f"{role}.{order.less}", f"{role}.{order.more}"
            one, other = found.get(less), found.get(more)
            if not isinstance(one, int) or not isinstance(other, int) or one + order.apart <= other:
                continue
            places = [settings[key].place for key in (less, more) if key in settings]
            # What a cluster declares for itself is the exception, and more often wrong than what holds for all.
            place = min(filter(None, places), key=lambda place: place.path[0] == "defaults")
            if place not in told:
                told.add(place)
                message = f"{less} of cluster {alias} is {one}, and {order.more} {other}: {order.otherwise}"
                yield place.problem(codes.WRONG_VALUE, message, f"let {order.more} be at least {one + order.apart}")


def _value(name: str, value: Value) -> str | int:
    """Return a value as the model has it: a name, or a number of bytes or milliseconds."""
    if isinstance(value, str) and "minimum" not in _known()[name]:
        return value
    return byte_count(cast("str | int", value))


@cache
def _known() -> dict[str, dict[str, Any]]:
    """Return the schema of each key of each role, by role and key."""
    definitions = json.loads(schema_text())["definitions"]
    return {
        f"{role}.{key}": definitions[found["$ref"].rpartition("/")[2]] if "$ref" in found else found
        for role in ROLES
        for key, found in definitions[role]["properties"].items()
    }
