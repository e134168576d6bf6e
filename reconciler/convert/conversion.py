"""Converts files of MirrorMaker 1 and 2, Connect, Strimzi and Mirus into a topology file, and names what is lost."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.convert import connect, mirror_maker1, mirror_maker2, mirus
from reconciler.convert.connect import Connector
from reconciler.convert.mirror_maker1 import MirrorMaker1
from reconciler.convert.parts import TopologyParts
from reconciler.convert.plugins import MIRUS, SOURCE
from reconciler.convert.settings import IN_CLEAR, UNREADABLE, Loss, Setting, Settings
from reconciler.convert.strimzi import KIND, StrimziResource
from reconciler.convert.tree import Tree, TreePath
from reconciler.convert.values import holds_secret
from reconciler.declare import load
from reconciler.declare.documents import mirrormaker
from reconciler.declare.documents.located import render
from reconciler.model.base import properties
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.base.files import UnreadableFile, read_text
from reconciler.model.base.text import shown
from reconciler.model.declared.cluster import Cluster

_MOST_FILES_BYTES = 8 * 2**20
_OTHER = re.compile(r"[^a-z0-9]+")
_REMEDY = "give mm2.properties, configurations of connectors in JSON or properties, or a KafkaMirrorMaker2"
_YAML = (".yaml", ".yml")
_LONGEST_NAME = 63
_WORKER = "the worker's file"
_KEPT_AT = "workers"
_REST = "`serve` listens where its options name an address"
# What workers of Connect and of Mirus have, and what is to be known of it; also as the beginning of further words.
_KNOWN = {
    **dict.fromkeys(("exactly.once.source.support", "exactly.once.support"), "flows deliver exactly once without it"),
    "config.providers": "references need no such declaration",
    "errors.tolerance": "what a target refuses parks its partition, or goes to the topic of `dlq`",
    **dict.fromkeys(("listeners", "rest", "admin.listeners"), _REST),
}
_STRIMZI = re.compile(rf"^kind:\s*{KIND}\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Converted:
    """What came of a conversion.

    Attributes:
        name: of the topology.
        text: its file.
        losses: settings that it does not have.
        todo: what is to be done before it can be used, a line each.
        warnings: what is accepted and yet probably a mistake.
    """

    name: str
    text: str
    losses: Sequence[Loss]
    todo: Sequence[str]
    warnings: Sequence[Problem]


def convert(paths: Sequence[Path], name: str | None = None) -> Converted:
    """Convert files that belong together: one `mm2.properties`, or configurations of connectors.

    Args:
        paths: the files.
        name: of the topology; by default that of the first file.

    Raises:
        DeclaredInputError: AB140, a file cannot be read or is of another kind; AB141, settings contradict; AB142, one
            has no equal without which other records would be copied; or what `load` raises of what came of it.
    """
    return _converted(_parts(paths), _titles(paths), name)


def convert_standalone(worker: Path, paths: Sequence[Path], name: str | None = None) -> Converted:
    """Convert what a single worker of Kafka Connect is started with; errors are those of `convert`.

    Args:
        worker: its own file; what it has for its clients counts where connectors have nothing.
        paths: files of its connectors.
        name: of the topology, by default that of the first connector's file.
    """
    clients = properties_of(worker)
    parts = _parts(paths, clients)
    parts.left.append(clients)
    return _converted(parts, _titles([*paths, worker]), name)


def convert_worker(connectors: Sequence[Connector], worker: Settings, name: str) -> Converted:
    """Convert the connectors of workers of Kafka Connect that share them: a flow for each that copies, called as it is.

    Args:
        connectors: MirrorMaker 2's and Mirus' own, each with a name of its own; one of them at least copies.
        worker: settings of the worker; what it has for its clients counts where connectors have nothing.
        name: of the topology.

    Raises:
        DeclaredInputError: AB143, a secret stands in clear text; or as of `convert`.
    """
    if found := [setting for one in connectors for setting in one.settings if holds_secret(setting)]:
        message = "a secret stands in clear text, and configurations of connectors are kept in a topic"
        remedy = "keep it in a file or a variable, and give ${file:/path:key} or ${env:NAME} for it"
        raise DeclaredInputError([setting.problem(IN_CLEAR, message, remedy) for setting in found])
    of_mirus = [one for one in connectors if one.kind == MIRUS]
    parts = connect.convert([one for one in connectors if one.kind != MIRUS], worker, are_named=True)
    parts.add(mirus.convert(of_mirus, (worker, _WORKER), are_named=True))
    return _converted(parts, [f"connector {one.name}" for one in connectors], name)


def cluster_of_worker(worker: Settings) -> Cluster:
    """Return the cluster in which workers keep their connectors: that of their `bootstrap.servers`.

    Raises:
        DeclaredInputError: AB140, the worker names none; or as of `convert`.
    """
    if (servers := worker.first("bootstrap.servers")) is None:
        message = "expected bootstrap.servers, which name the cluster that connectors are kept in; found none"
        raise DeclaredInputError(Problem(UNREADABLE, _WORKER, message, "add bootstrap.servers = HOST:9092"))
    # As the target of a flow: that is what a worker's own settings stand for.
    ends = {"source.cluster.alias": "none", "target.cluster.alias": _KEPT_AT}
    brokers = {"source.cluster.bootstrap.servers": "none.invalid:9092", connect.CLASS: SOURCE}
    settings = Settings(Setting(key, value, servers.where) for key, value in (ends | brokers).items())
    made = _converted(connect.convert([Connector("", settings, servers.where)], Settings(worker)), [], "worker")
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        path = Path(folder) / "topology.yaml"
        path.write_text(made.text, encoding="utf-8")
        return load([path]).clusters[_KEPT_AT]


def convert_mirror_maker1(
    consumers: Sequence[Path],
    producer: Path,
    *,
    include: str | None = None,
    exclude: str | None = None,
    streams: int | None = None,
    name: str | None = None,
) -> Converted:
    """Convert what a process of MirrorMaker 1 is started with; errors are those of `convert`.

    Args:
        consumers: files of its consumers, one for each source.
        producer: file of its producer.
        include: topics that it takes, as its command has them.
        exclude: topics that it leaves out, instead.
        streams: how many consumers it has.
        name: of the topology.
    """
    read = [(properties_of(path), str(path)) for path in (*consumers, producer)]
    parts = mirror_maker1.convert(MirrorMaker1(read[:-1], read[-1], include, exclude, streams))
    return _converted(parts, _titles([*consumers, producer]), name)


def name_of(text: str) -> str:
    """Return a name that a topology may have, made of what something else is called."""
    return _OTHER.sub("-", text.lower()).strip("-")[:_LONGEST_NAME].rstrip("-") or "mirror"


def properties_of(path: Path) -> Settings:
    """Return the settings of a file as Java reads it.

    Raises:
        DeclaredInputError: AB140, it cannot be read.
    """
    return _properties(path, _text(path))


def _titles(paths: Sequence[Path]) -> list[str]:
    return [path.name for path in paths]


def _converted(parts: TopologyParts, titles: Sequence[str], name: str | None) -> Converted:
    parts.losses = list(dict.fromkeys([*parts.losses, *_left(parts)]))
    chosen = name or name_of(Path(titles[0]).stem)
    tree = parts.tree
    tree.values = {"version": 1, "name": chosen, **tree.values}
    parts.put_flows()
    warnings = _validated(tree, parts.losses)
    return Converted(chosen, _head(titles, parts) + tree.text(), parts.losses, parts.todo, warnings)


# --- reading ---------------------------------------------------------------------------------------------------------


def _parts(paths: Sequence[Path], worker: Settings | None = None) -> TopologyParts:
    connectors: list[Connector] = []
    resources: list[StrimziResource] = []
    dedicated: list[tuple[Settings, str]] = []
    for path in paths:
        text = _text(path)
        if text.lstrip()[:1] in ("{", "["):
            connectors += _of_json(path, text)
            continue
        if path.suffix in _YAML or _STRIMZI.search(text):
            resources.append(StrimziResource(str(path), text))
            continue
        settings = _properties(path, text)
        if settings.first(connect.CLASS) is not None:
            named = settings.first("name")
            connectors.append(Connector(named.value if named is not None else "", settings, str(path)))
        else:
            dedicated.append((settings, str(path)))
    sources = [one for one in connectors if one.kind == MIRUS]
    if sources and len(sources) == len(connectors) and not resources and len(dedicated) <= 1:
        return mirus.convert(sources, dedicated[0] if dedicated else None)
    if len(dedicated) > 1 or (dedicated and (connectors or resources)):
        message = f"is a file of its own: it does not belong to {paths[0] if len(paths) > 1 else 'others'}"
        raise DeclaredInputError(Problem(UNREADABLE, dedicated[-1][1], message, "convert it alone"))
    if dedicated:
        return mirror_maker2.convert(*dedicated[0])
    for resource in resources:
        connectors += resource.connectors()
    parts = connect.convert(connectors, worker)
    for resource in resources:
        parts.losses += resource.losses
        parts.todo += resource.todo
    return parts


def _properties(path: Path, text: str) -> Settings:
    return Settings(
        Setting(entry.key, entry.value.strip(), f"{path}:{entry.line}") for entry in properties.entries(text)
    )


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_FILES_BYTES:
            message = f"has more than {_MOST_FILES_BYTES} bytes"
            raise DeclaredInputError(Problem(UNREADABLE, str(path), message, _REMEDY))
        return read_text(path)
    except (OSError, UnreadableFile) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise DeclaredInputError(Problem(UNREADABLE, str(path), f"cannot be read: {why}", "correct the path")) from None


def _of_json(path: Path, text: str) -> Iterator[Connector]:
    """Yield the connectors of a file: one, or a list; with `config` around the settings, or the settings alone."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        why = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply"
        problem = Problem(UNREADABLE, f"{path}{line}", f"is no JSON: {why}", "correct it")
        raise DeclaredInputError(problem) from None
    for number, one in enumerate(value if isinstance(value, list) else [value]):
        where = f"{path}[{number}]" if isinstance(value, list) else str(path)
        config = one.get("config", one) if isinstance(one, dict) else None
        if not isinstance(config, dict) or not all(_is_plain(inner) for inner in config.values()):
            message = "expected the configuration of a connector, with texts, numbers or truth values in it"
            raise DeclaredInputError(Problem(UNREADABLE, where, message, "correct it"))
        settings = Settings(Setting(key, _word(inner), where) for key, inner in config.items() if inner is not None)
        named = one.get("name", config.get("name", ""))
        yield Connector(str(named), settings, where)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _word(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value).strip()


# --- what is lost ----------------------------------------------------------------------------------------------------


def _left(parts: TopologyParts) -> list[Loss]:
    """Return the settings that nothing asked for, each with what is known of it."""
    known = {id(loss.setting) for loss in parts.losses}
    aliases = parts.tree.values.get("clusters", {})
    return [
        Loss(one, _why(one.key, aliases)) for settings in parts.left for one in settings.left() if id(one) not in known
    ]


def _why(key: str, aliases: Collection[str]) -> str:
    plain = key.removeprefix("connector.").removeprefix("cluster.")
    alias, _, rest = plain.partition(".")
    if alias in aliases:
        plain = rest
    known = next((why for name, why in _KNOWN.items() if plain == name or plain.startswith(f"{name}.")), None)
    if known is not None:
        return known
    found = mirrormaker.answer(plain, behind_alias=False)
    if found is None:
        return mirrormaker.UNKNOWN
    if found.fields:
        nearest = f"it is not carried over; nearest is {mirrormaker.said(found.fields)}"
        return f"{nearest}: {found.why}" if found.why else nearest
    return found.why


def _validated(tree: Tree, losses: list[Loss]) -> list[Problem]:
    """Make sure that what came of it is a topology; what no field takes is lost, where copies do not depend on it.

    Returns:
        Warnings about it.

    Raises:
        DeclaredInputError: it is none; problems are at the settings that they come from.
    """
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        path = Path(folder) / "topology.yaml"
        while True:
            path.write_text(tree.text(), encoding="utf-8")
            warnings: list[Problem] = []
            try:
                load([path], warn=warnings.append)
            except DeclaredInputError as error:
                if not _dropped(tree, error.problems, losses):
                    raise DeclaredInputError([_placed(tree, one) for one in error.problems]) from None
            else:
                return [_placed(tree, one) for one in warnings]


def _dropped(tree: Tree, problems: Sequence[Problem], losses: list[Loss]) -> bool:
    """Take out what may be lost of what is wrong; return whether anything was."""
    is_any = False
    for problem in problems:
        place = _place(tree, problem)
        origin = tree.origins.get(place)
        if origin is not None and _may_be_lost(place):
            tree.drop(place)
            losses.append(Loss(origin, f"{problem.message} [{problem.code}]"))
            is_any = True
    return is_any


def _may_be_lost(place: TreePath) -> bool:
    """Return whether a field only tunes: the same records are copied to the same topics without it."""
    tuned = ("clients", "compression", "linger", "batch-size", "refresh-interval", "heartbeats", "tasks", "rack")
    return any(step in tuned for step in place) or place[-2:] in (("groups", "interval"), ("security", "ciphers"))


def _place(tree: Tree, problem: Problem) -> TreePath:
    """Return the path of the value that a problem is about: the longest that has an origin."""
    told = _path(problem)
    for known in sorted(tree.origins, key=len, reverse=True):
        written = render(known)
        if told == written or told.startswith((f"{written}.", f"{written}[")):
            return known
    return ()


def _path(problem: Problem) -> str:
    """Return the path in the file that a problem names."""
    return problem.where.partition("(")[2].removesuffix(")")


def _placed(tree: Tree, problem: Problem) -> Problem:
    """Return a problem with the place of the setting that it comes from."""
    origin = tree.origins.get(_place(tree, problem))
    where = f"{origin.where} ({origin.title})" if origin is not None else f"what came of it ({_path(problem)})"
    return Problem(problem.code, where, problem.message, problem.remedy)


def _head(titles: Sequence[str], parts: TopologyParts) -> str:
    """Return the comments above the topology."""
    lines = [f"Converted from {', '.join(titles)}. Behind each value stands where it comes from."]
    if parts.todo:
        lines += ["", "To do before it can be used:", *(f"  {line}" for line in dict.fromkeys(parts.todo))]
    if parts.losses:
        lines += ["", "Without an equal here:", *(f"  {loss.setting.title}: {loss.why}" for loss in parts.losses)]
    return "".join(f"# {shown(line)}".rstrip() + "\n" for line in lines) + "\n"
