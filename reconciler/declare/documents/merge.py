"""Several documents become one declaration.

The loader calls `merge` after every document has been checked by the schema. Clusters, patterns and entries are
concatenated in the order of the files; what there is one of, such as the name, may be in any file and must agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from reconciler.declare.documents import codes, words
from reconciler.declare.documents.located import Document, JsonPath, Located, SourcePlace
from reconciler.declare.documents.settings import BUILT_IN, Settings, policy_at, written_at


@dataclass(frozen=True)
class Source:
    """One document.

    Attributes:
        document: its content.
        broken: the paths in it that nothing can rest on.
        doubtful: the paths of values that are not known, beside what can be used.
        is_override: whether its flows are laid over those of the others.
    """

    document: Document
    broken: Collection[JsonPath]
    doubtful: Collection[JsonPath] = ()
    is_override: bool = False

    def usable(self, place: SourcePlace) -> bool:
        """Return whether neither the value at `place`, nor what is in it or around it, is broken."""
        path = place.path
        return not any(path[: len(bad)] == bad or bad[: len(path)] == path for bad in self.broken)

    @property
    def is_shared_doubtful(self) -> bool:
        """Whether something is not known that holds for all flows."""
        return any(path[:1] in (("policy",), ("defaults",)) for path in self.doubtful)

    def certain(self, place: SourcePlace) -> bool:
        """Return whether everything in the value at `place` is known."""
        return not any(path[: len(place.path)] == place.path for path in self.doubtful)

    def items(self, key: str) -> list[SourcePlace]:
        """Return the places of the items of a list at the top."""
        items = self.document.value.get(key)
        return [self.document.at(key, index) for index in range(len(items))] if isinstance(items, list) else []


@dataclass(frozen=True)
class MergedDocuments:
    """Everything declared, as far as it can be used.

    Attributes:
        name: the topology's name; empty where it is missing.
        owner: of these files; None where none is declared.
        clusters: the place of each cluster by alias, usable or not.
        datacenters: likewise, by name.
        base: what holds for every flow: built-in, `policy`, `defaults`.
        clients: the place of the settings of clients that hold for every cluster, if there are any.
        patterns: usable items of `replication`.
        entries: usable items of `flows`.
        overrides: likewise, of overrides.
        all_flows: whether every pattern, entry and default is usable.
    """

    name: str = ""
    owner: str | None = None
    clusters: dict[str, SourcePlace] = field(default_factory=dict)
    datacenters: dict[str, SourcePlace] = field(default_factory=dict)
    base: Settings = field(default_factory=lambda: BUILT_IN)
    clients: SourcePlace | None = None
    patterns: list[SourcePlace] = field(default_factory=list)
    entries: list[SourcePlace] = field(default_factory=list)
    overrides: list[SourcePlace] = field(default_factory=list)
    all_flows: bool = True


def merge(sources: Sequence[Source]) -> tuple[MergedDocuments, list[Located]]:
    """Merge the documents; return the declaration and what contradicts."""
    problems: list[Located] = []
    name = _only_one("name", sources, problems)
    owner = _only_one("owner", sources, problems)
    policy = _only_one("policy", sources, problems)
    defaults = _only_one("defaults", sources, problems)
    inner = defaults / "policy" if defaults else None
    if policy and inner and inner.value is not None:
        message = f"expected policy once; found it here and in {policy.line}"
        problems.append(inner.problem(codes.DUPLICATE, message, "keep one of the two", at_key=True))
    usable = {source.document.name: source for source in sources}
    base: Settings = BUILT_IN
    for layer in (policy, defaults):
        if layer and usable[layer.document.name].usable(layer):
            base = {**base, **(policy_at(layer) if layer is policy else written_at(layer))}
    clients = defaults / "clients" if defaults else None
    shared = ("policy", "defaults", "replication", "flows")
    declaration = MergedDocuments(
        name=str(name.value) if name else "",
        owner=str(owner.value) if owner else None,
        clusters=_by_name("clusters", "cluster", sources, problems),
        datacenters=_by_name("datacenters", "data centre", sources, problems),
        base=base,
        clients=clients if clients and usable[clients.document.name].usable(clients) else None,
        patterns=[place for source in sources for place in source.items("replication") if source.usable(place)],
        entries=_flows(source for source in sources if not source.is_override),
        overrides=_flows(source for source in sources if source.is_override),
        all_flows=not any(path[:1] == (key,) for source in sources for path in source.broken for key in shared),
    )
    return declaration, problems


def _flows(sources: Iterable[Source]) -> list[SourcePlace]:
    return [place for source in sources for place in source.items("flows") if source.usable(place)]


def _only_one(key: str, sources: Sequence[Source], problems: list[Located]) -> SourcePlace | None:
    """Return where `key` is written; more than once it must have the same value."""
    places = [source.document.at(key) for source in sources if key in source.document.value]
    for place in places[1:]:
        if place.value != places[0].value:
            said = words.found(place.value)
            message = f"expected {key} as in {places[0].line}, {words.found(places[0].value)}; found {said}"
            remedy = f"files given together are one topology: write {key} once, or the same in all"
            problems.append(place.problem(codes.DUPLICATE, message, remedy, at_key=True))
    return places[0] if places else None


def _by_name(key: str, noun: str, sources: Sequence[Source], problems: list[Located]) -> dict[str, SourcePlace]:
    """Return the places of the values of a mapping at the top, each of which is declared once."""
    places: dict[str, SourcePlace] = {}
    for source in sources:
        declared = source.document.value.get(key)
        for name in declared if isinstance(declared, dict) else ():
            place = source.document.at(key, name)
            first = places.setdefault(name, place)
            if first is not place:
                message = f"{noun} {name} is declared twice, first in {first.line}"
                problems.append(place.problem(codes.DUPLICATE, message, "keep one of the two", at_key=True))
    return places
