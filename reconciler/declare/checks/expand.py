"""Patterns become flows, and entries under `flows` overlay them.

The loader calls `expand` with a merged declaration. What a pattern makes is MirrorMaker 2's own meaning of the words
(the README of its `connect/mirror`); checks of the flows among each other are in `crossings`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, permutations
from typing import NamedTuple, cast

from reconciler.declare.documents import codes
from reconciler.declare.documents.located import Located, SourcePlace, Value
from reconciler.declare.documents.merge import MergedDocuments
from reconciler.declare.documents.settings import PATTERN_KINDS, Settings, flow_of, written_at
from reconciler.model.declared.flow import Flow


class ClusterPair(NamedTuple):
    """One source and one target, each by alias."""

    source: str
    target: str


@dataclass(frozen=True)
class Draft:
    """A flow with the places that it comes from.

    Attributes:
        flow: the flow.
        place: the most specific one: its entry, or else its pattern.
        settings: its effective fields.
    """

    flow: Flow
    place: SourcePlace
    settings: Settings


@dataclass(frozen=True)
class Mention:
    """An alias that is named somewhere."""

    alias: str
    place: SourcePlace


def mentions(declaration: MergedDocuments) -> Iterator[Mention]:
    """Yield every alias that a pattern or an entry names."""
    for place in (*declaration.patterns, *declaration.entries, *declaration.overrides):
        item = cast("dict[str, Value]", place.value)
        kind = _kind(item)
        if kind is None:
            yield from _aliases_at(place / "from")
            yield from _aliases_at(place / "to")
        else:
            yield from _aliases_at(place / kind)


def expand(declaration: MergedDocuments) -> tuple[list[Draft], list[Located]]:
    """Return the flows in the order of declaration, and what cannot be expanded."""
    drafts: dict[str, Draft] = {}
    problems: list[Located] = []
    for place in declaration.patterns:
        problems += _repeated_in(place)
        for draft in _of_pattern(place, declaration.base):
            first = drafts.setdefault(draft.flow.name, draft)
            if first is not draft:
                problems.append(_taken(draft, first))
    entries: dict[str, Draft] = {}
    for place in declaration.entries:
        draft = _of_entry(place, drafts, declaration.base)
        name = draft.flow.name
        other = entries.get(name)
        made = drafts.get(name)
        if other is not None:
            problems.append(_taken(draft, other))
        elif made is not None and (made.flow.source, made.flow.target) != (draft.flow.source, draft.flow.target):
            problems.append(_taken(draft, made))
        else:
            entries[name] = draft
    declared = {**drafts, **entries}
    overridden = [_of_entry(place, declared, declaration.base) for place in declaration.overrides]
    return list({**declared, **{draft.flow.name: draft for draft in overridden}}.values()), problems


def _of_pattern(place: SourcePlace, base: Settings) -> Iterator[Draft]:
    item = cast("dict[str, Value]", place.value)
    kind = _kind(item)
    settings = {**base, **written_at(place)}
    origin = f"replication[{place.path[-1]}]" + (f" ({kind})" if kind else "")
    for pair in dict.fromkeys(_pairs(kind, item)):
        name = str(item.get("name") or f"{pair.source}-{pair.target}")
        yield Draft(flow_of(settings, name, pair, origin), place, settings)


def _of_entry(place: SourcePlace, drafts: dict[str, Draft], base: Settings) -> Draft:
    item = cast("dict[str, Value]", place.value)
    pair = ClusterPair(str(item["from"]), str(item["to"]))
    name = str(item.get("name") or f"{pair.source}-{pair.target}")
    made = drafts.get(name)
    settings = {**(made.settings if made else base), **written_at(place)}
    origin = made.flow.origin if made else f"flows[{place.path[-1]}]"
    return Draft(flow_of(settings, name, pair, origin), place, settings)


def _kind(pattern: dict[str, Value]) -> str | None:
    return next((kind for kind in PATTERN_KINDS if kind in pattern), None)


def _pairs(kind: str | None, pattern: dict[str, Value]) -> Iterator[ClusterPair]:
    """Yield what a pattern joins; a cluster that it names twice is joined with itself by none but from and to."""
    body = pattern.get(kind) if kind else None
    match kind, body:
        case "fan-out", {"from": str(source), "to": list(targets)}:
            yield from (ClusterPair(source, str(target)) for target in targets if target != source)
        case "aggregation", {"from": list(sources), "to": str(target)}:
            yield from (ClusterPair(str(source), target) for source in sources if source != target)
        case "active-active", list(clusters):
            yield from _mesh(clusters)
        case "xdcr", dict(groups):
            lists = [group for group in groups.values() if isinstance(group, list)]
            yield from chain.from_iterable(_mesh(group) for group in lists)
            yield from _mesh([group[0] for group in lists])
        case _:
            yield ClusterPair(str(pattern["from"]), str(pattern["to"]))


def _mesh(clusters: list[Value]) -> Iterator[ClusterPair]:
    return (ClusterPair(str(source), str(target)) for source, target in permutations(clusters, 2) if source != target)


def _repeated_in(place: SourcePlace) -> Iterator[Located]:
    """Yield each second mention of a cluster within one pattern; the schema has checked single lists only."""
    kind = _kind(cast("dict[str, Value]", place.value))
    first: dict[str, SourcePlace] = {}
    for mention in _aliases_at(place / kind) if kind else ():
        if first.setdefault(mention.alias, mention.place) is not mention.place:
            message = f"expected each cluster once in a pattern; found {mention.alias} again"
            yield mention.place.problem(codes.DUPLICATE, message, "remove it, or write a further pattern")


def _aliases_at(place: SourcePlace) -> Iterator[Mention]:
    value = place.value
    if isinstance(value, str):
        yield Mention(value, place)
    elif isinstance(value, list | dict):
        for step in value if isinstance(value, dict) else range(len(value)):
            yield from _aliases_at(place / step)


def _taken(draft: Draft, first: Draft) -> Located:
    """Return the problem of a flow's name that is taken already; plain flows are distinguished by `name`."""
    named = draft.place / "name" if "name" in cast("dict[str, Value]", draft.place.value) else draft.place
    message = f"flow {draft.flow.name} is declared twice, first in {first.place.line}"
    remedy = "keep one of the two, or give one a name of its own: a pattern cannot, from and to can"
    return named.problem(codes.DUPLICATE, message, remedy)
