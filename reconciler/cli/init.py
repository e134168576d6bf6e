"""`anabranch init`: write a first topology file, from flags or by asking."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from reconciler.cli.common import DEFAULT_FILE, ask, stderr_console
from reconciler.model.declared.first import MEANING, SHAPES, InitAnswers, Shape

_FEWEST = 2
_PORT = 9092
_YES = ("y", "yes")


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Where it is written.")] = DEFAULT_FILE,
    name: Annotated[str | None, typer.Option("--name", help="The topology's name; by default the folder's.")] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster", metavar="ALIAS=HOST:PORT,...", help="A cluster and its brokers; two or more are needed."
        ),
    ] = None,
    shape: Annotated[
        Shape | None,
        typer.Option(
            "--shape", help="What they form; the first is the source, of an aggregation the target. Default: flow."
        ),
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topics", metavar="REGEX", help="Topics to copy; may be repeated. Default: all."),
    ] = None,
    secured: Annotated[
        bool, typer.Option("--secured", help="Clients log in with SCRAM over TLS; the file names variables for it.")
    ] = False,
) -> None:
    """Write a first topology file; what no option sets is read from the terminal. No cluster is connected to."""
    from reconciler.declare.first import check_absent, write_first

    if str(file) == "-":
        # To every other command it is standard input.
        message = "expected a file; found -, and nothing is written to standard output"
        raise typer.BadParameter(message, param_hint="FILE")
    asks = sys.stdin.isatty()
    # Before anything is asked: all answers would be for nothing.
    check_absent(file)
    asks = asks and not cluster
    told = _ask_clusters() if asks else _told(cluster or ())
    if len(told) < _FEWEST:
        message = f"two or more clusters are needed, {len(told)} given"
        raise typer.BadParameter(message, param_hint="--cluster")
    chosen = shape or (_ask_shape(len(told)) if asks else "flow")
    if chosen == "flow" and len(told) > _FEWEST:
        message = f"a flow has two ends, {len(told)} clusters are given: choose fan-out, aggregation or active-active"
        raise typer.BadParameter(message, param_hint="--shape")
    items = tuple(topics or (_ask_topics() if asks else (".*",)))
    is_secured = secured or (asks and _asked("Do clients log in with a password over TLS [y/N]?").lower() in _YES)
    answers = InitAnswers(name or _name_of(Path.cwd().name), told, chosen, items, is_secured)
    topology = write_first(file, answers)
    flows = "1 flow" if len(topology.flows) == 1 else f"{len(topology.flows)} flows"
    named = "" if file == DEFAULT_FILE else f" {file}"
    stderr_console().print(f"wrote {file}: {len(told)} clusters, {flows}; next: anabranch plan{named}")


def _told(clusters: Sequence[str]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for alias, addresses in map(_parsed, clusters):
        if alias in found:
            message = f"{alias} is given twice"
            raise typer.BadParameter(message, param_hint="--cluster")
        found[alias] = addresses
    return found


def _parsed(text: str) -> tuple[str, Sequence[str]]:
    alias, equals, addresses = text.partition("=")
    found = [_with_port(one.strip()) for one in addresses.split(",") if one.strip()]
    if not (equals and alias.strip() and found):
        message = f"expected ALIAS=HOST:PORT,...; found {text!r}"
        raise typer.BadParameter(message, param_hint="--cluster")
    return alias.strip(), found


def _with_port(address: str) -> str:
    """Return an address with Kafka's own default port where it has none."""
    host, colon, _ = address.rpartition(":")
    is_bare = address.endswith("]") if address.startswith("[") else not colon
    return f"{address}:{_PORT}" if is_bare and not host.startswith(("env", "file")) else address


def _complaint(**said: Any) -> str | None:
    """Return what is wrong with one answer beside others that are right; None where nothing is."""
    from reconciler.declare.first import wrong_in

    right: dict[str, Any] = {
        "name": "first",
        "clusters": {"a": ["a:1"], "b": ["b:1"]},
        "shape": "flow",
        "topics": [".*"],
    }
    problems = wrong_in(InitAnswers(**{**right, **said}))
    return f"{problems[0].message}: {problems[0].remedy}" if problems else None


def _asked(question: str) -> str:
    """Ask, and return the answer.

    Raises:
        typer.Exit: 1, stdin has ended.
    """
    said = ask(question)
    if said is None:
        raise typer.Exit(1)
    return said


def _ask_clusters() -> dict[str, Sequence[str]]:
    """Ask until there are enough and an empty line ends it."""
    found: dict[str, Sequence[str]] = {}
    while True:
        more = "" if len(found) < _FEWEST else " (empty: no more)"
        said = _asked(f"Cluster {len(found) + 1}, as ALIAS=HOST:PORT, port {_PORT} where none is given{more}:")
        if said:
            try:
                alias, addresses = _parsed(said)
            except typer.BadParameter as error:
                stderr_console().print(error.message)
                continue
            other = {"other" if alias != "other" else "another": ["other:1"]}
            complaint = (
                f"{alias} is given already" if alias in found else _complaint(clusters={alias: addresses, **other})
            )
            if complaint:
                stderr_console().print(complaint)
                continue
            found[alias] = addresses
        elif len(found) >= _FEWEST:
            return found


def _ask_shape(count: int) -> Shape:
    shapes = [one for one in SHAPES if one != "flow" or count == _FEWEST]
    while True:
        offered = ", ".join(f"{one} ({MEANING[one]})" for one in shapes)
        said = _asked(f"What do they form: {offered}? (empty: {shapes[0]}):") or shapes[0]
        for one in shapes:
            if one == said:
                return one
        stderr_console().print(f"expected {', '.join(shapes)}; found {said}")


def _ask_topics() -> Sequence[str]:
    """Ask until all are names or regular expressions."""
    while True:
        said = _asked("Which topics, as names or regular expressions with commas between them (empty: all):")
        items = [one.strip() for one in said.split(",") if one.strip()] or [".*"]
        if (complaint := _complaint(topics=items)) is None:
            return items
        stderr_console().print(complaint)


def _name_of(folder: str) -> str:
    """Return a topology's name from a folder's."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in folder.lower()).strip("-")
    return plain[:63] or "topology"
