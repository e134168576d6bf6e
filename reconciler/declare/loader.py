"""From files to a topology: the one way in.

    read → shape, lookalikes → selections, renames → merge → expand → policies → crossings → model

Every step adds to one list of problems and goes on with what is still sure, so that one run reports everything.
Commands call `load`; no other room handles YAML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reconciler.declare.checks import (
    clients,
    clusters,
    crossings,
    datacenters,
    deployments,
    lookalikes,
    policies,
    renames,
    security,
    selections,
)
from reconciler.declare.checks.expand import Draft, expand, mentions
from reconciler.declare.documents import codes, shape, words
from reconciler.declare.documents.located import Document, Located, Mark, SourcePlace, TextPosition
from reconciler.declare.documents.merge import MergedDocuments, Source, merge
from reconciler.declare.documents.reader import STDIN, ReadFiles, display_name, parse, read
from reconciler.declare.documents.settings import Settings
from reconciler.declare.documents.violations import Finding
from reconciler.declare.rewrite import yaml_text
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.declared.cluster import DEFAULT_DATACENTER
from reconciler.model.declared.fields import Field
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology, TopologyFile


def _ignore(_warning: Problem) -> None:
    """Do nothing: for callers without a reader for warnings."""


def load(paths: Sequence[Path], warn: Callable[[Problem], None] = _ignore) -> Topology:
    """Return the one topology that the files declare together.

    Args:
        paths: topology files; `-` is standard input.
        warn: called with what is accepted and yet probably a mistake.

    Raises:
        DeclaredInputError: AB1xx, with every problem of every file, in the order of the files and lines.
    """
    return _loaded(_read(paths), _named_twice(paths), warn)[0]


def lay_over(declared: Topology, overrides: Sequence[FlowOverride]) -> Topology:
    """Return what files declare with overrides laid over it.

    Args:
        declared: what `load` returned; its files are not read again.
        overrides: of flows that it has, or that are new.

    Raises:
        DeclaredInputError: AB1xx, a flow cannot be declared so; the place is `override of flow NAME:LINE:COLUMN`.
    """
    flows = {(flow.name, flow.source, flow.target) for flow in declared.flows}
    laid_over = [one for one in overrides if one.is_new or (one.flow, one.source, one.target) in flows]
    readings = {file.name: parse(file.name, file.text) for file in declared.files}
    return _loaded(readings, (), _ignore, laid_over)[0]


def load_with_fields(
    paths: Sequence[Path], warn: Callable[[Problem], None] = _ignore
) -> tuple[Topology, dict[str, tuple[Field, ...]]]:
    """Return the topology, and by flow every field as it counts; arguments and errors are those of `load`."""
    topology, drafts = _loaded(_read(paths), _named_twice(paths), warn)
    return topology, {draft.flow.name: tuple(_fields(draft)) for draft in drafts}


def _fields(draft: Draft) -> Iterator[Field]:
    for key, (value, place) in draft.settings.items():
        yield Field(key, value, place.where if place else "")


def _read(paths: Sequence[Path]) -> dict[str, ReadFiles]:
    return {display_name(path): read(path) for path in dict.fromkeys(paths)}


def _loaded(
    readings: Mapping[str, ReadFiles],
    problems_before: Iterable[Located],
    warn: Callable[[Problem], None],
    overrides: Sequence[FlowOverride] = (),
) -> tuple[Topology, Sequence[Draft]]:
    problems = list(problems_before)
    files = [source for reading in readings.values() if (source := _source(reading, problems))]
    laid_over = [replace(one, is_override=True) for each in overrides if (one := _source(_written(each), problems))]
    sources = [*files, *laid_over]
    declaration, contradictions = merge(sources)
    problems += contradictions
    all_read = len(sources) == len(readings) + len(overrides)
    order = [*readings, *map(str, overrides)]
    if all_read:
        problems += _missing(sources)
        problems += _unknown_clusters(declaration, sources)
        problems += security.two_principals(declaration.clusters)
        problems += clients.conflicts(_clients(declaration, sources))
    drafts, unexpanded = expand(declaration)
    problems += unexpanded
    if all_read and declaration.all_flows and not any(source.is_shared_doubtful for source in sources):
        certain = [draft for draft in drafts if _is_certain(draft, sources)]
        known = [draft for draft in certain if {draft.flow.source, draft.flow.target} <= declaration.clusters.keys()]
        # Without names flows cannot be compared with each other.
        problems += policies.check(known) or crossings.check(
            known, tuple(declaration.clusters), are_all=len(certain) == len(drafts)
        )
    if all_read and not problems:
        problems += deployments.crossings(declaration.datacenters, _led_into(declaration, drafts))
    if problems:
        raise DeclaredInputError(_in_order(problems, order))
    used = {alias for draft in drafts for alias in (draft.flow.source, draft.flow.target)}
    topology = Topology(
        name=declaration.name,
        clusters={
            alias: clusters.build(alias, place, declaration.clients) for alias, place in declaration.clusters.items()
        },
        flows=tuple(draft.flow for draft in drafts),
        datacenters={name: datacenters.build(name, place) for name, place in declaration.datacenters.items()},
        owner=declaration.owner,
        files=tuple(_files(files)),
        overrides=tuple(overrides),
    )
    stands = {cluster.datacenter for cluster in topology.clusters.values()}
    suspect = [*clusters.warnings(declaration.clusters, used), *datacenters.warnings(declaration.datacenters, stands)]
    suspect += [found for source in sources for look in (selections, renames) for found in look.suspect(source)]
    for warning in _in_order(suspect, order):
        warn(warning)
    return topology, drafts


def _led_into(declaration: MergedDocuments, drafts: Sequence[Draft]) -> Counter[str]:
    """Return by data centre how many of its clusters flows lead into."""
    targets = {draft.flow.target for draft in drafts if draft.flow.enabled}
    places = (declaration.clusters[alias] / "datacenter" for alias in targets)
    return Counter(str(place.value or DEFAULT_DATACENTER) for place in places)


def _files(sources: Sequence[Source]) -> Iterator[TopologyFile]:
    """Yield the files, each under a name of its own: two folders may each have one of the same name."""
    names: set[str] = set()
    for number, source in enumerate(sources, 1):
        name = "topology.yaml" if source.document.name == display_name(STDIN) else Path(source.document.name).name
        name = f"{number}-{name}" if name in names else name
        names.add(name)
        yield TopologyFile(name, source.document.content)


def _is_certain(draft: Draft, sources: Sequence[Source]) -> bool:
    """Return whether every field of a flow is known."""
    own = next(source for source in sources if source.document is draft.place.document)
    # An entry that changes the flow of a pattern leaves what the pattern declares.
    is_entry_of_pattern = draft.place.path[:1] == ("flows",) and draft.flow.origin.startswith("replication")
    patterns = [(source, place) for source in sources for place in source.items("replication")]
    return own.certain(draft.place) and not (
        is_entry_of_pattern and any(not source.certain(place) for source, place in patterns)
    )


def _named_twice(paths: Sequence[Path]) -> Iterable[Located]:
    for index, path in enumerate(paths):
        if path in paths[:index]:
            position = TextPosition(display_name(path), Mark(1, 1))
            yield position.problem(codes.DUPLICATE, "expected each file once; found this one twice", "name it once")


def _written(override: FlowOverride) -> ReadFiles:
    """Return an override as a file that declares one flow: all that is checked of files is checked of it."""
    return parse(str(override), yaml_text({"version": 1, **override.document()}))


def _source(reading: ReadFiles, problems: list[Located]) -> Source | None:
    """Hold one file against the schema; None where it cannot be understood at all."""
    problems += reading.problems
    if reading.document is None:
        return None
    findings = lookalikes.check(reading.document, shape.check(reading.document))
    # Two passes: items of lists are only checked where the schema found nothing wrong.
    findings += [
        found for look in (selections, renames, clients) for found in look.check(_without(reading.document, findings))
    ]
    problems += [finding.located for finding in findings]
    source = _without(reading.document, findings)
    problems += _bad_clusters(source)
    problems += _bad_datacenters(source)
    return source


def _without(document: Document, findings: Iterable[Finding]) -> Source:
    return Source(
        document,
        [finding.broken for finding in findings if finding.broken is not None],
        [finding.doubtful for finding in findings if finding.doubtful is not None],
    )


def _bad_clusters(source: Source) -> Iterable[Located]:
    for place in _declared(source, "clusters"):
        if source.usable(place):
            yield from clusters.check(place)
        yield from security.check(place / "security", source.usable)


def _bad_datacenters(source: Source) -> Iterable[Located]:
    for place in _declared(source, "datacenters"):
        if source.usable(place):
            yield from datacenters.check(place)


def _declared(source: Source, key: str) -> Iterable[SourcePlace]:
    """Yield the place of everything that is declared by name under a key."""
    declared = source.document.value.get(key)
    for name in declared if isinstance(declared, dict) else ():
        yield source.document.at(key, name)


def _missing(sources: Sequence[Source]) -> Iterable[Located]:
    """Yield what one of the files must have, and none has."""
    for key in ("name", "clusters"):
        if not any(key in source.document.value or (key,) in source.broken for source in sources):
            yield sources[0].document.at().problem(codes.MISSING, f"{key} is missing", f"add {key}")


def _clients(declaration: MergedDocuments, sources: Sequence[Source]) -> dict[str, Settings]:
    """Return the settings of clients that are effective for each cluster whose own can be used."""
    known = {source.document.name: source for source in sources}
    return {
        alias: clients.effective(declaration.clients, place / "clients")
        for alias, place in declaration.clusters.items()
        if known[place.document.name].usable(place / "clients")
    }


def _unknown_clusters(declaration: MergedDocuments, sources: Sequence[Source]) -> Iterable[Located]:
    if not declaration.clusters or any(("clusters",) in source.broken for source in sources):
        # The clusters themselves are the problem, and reported as such.
        return
    for mention in mentions(declaration):
        if mention.alias not in declaration.clusters:
            known = words.either(list(declaration.clusters), "and")
            message = f"expected a declared cluster; found '{mention.alias}', declared are {known}"
            meant = words.closest(mention.alias, declaration.clusters)
            remedy = f"did you mean {meant}?" if meant else f"declare {mention.alias} under clusters, or correct it"
            yield mention.place.problem(codes.UNKNOWN_CLUSTER, message, remedy)


def _in_order(located: Iterable[Located], files: Sequence[str]) -> list[Problem]:
    """Return problems in the order of files, by their names, lines and columns, each once."""
    ordered = sorted(located, key=lambda item: (files.index(item.position.file), item.position.mark))
    return list(dict.fromkeys(item.problem for item in ordered))
