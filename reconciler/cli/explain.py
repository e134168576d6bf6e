"""`anabranch explain`: what becomes of topics, which line of the files declares it, and what a code means."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import default_files, load_with_fields, stdout_console
from reconciler.cli.completing import error_codes
from reconciler.cli.environments import in_environment
from reconciler.cli.formats import FORMAT, CommandsFormat, as_written, print_json
from reconciler.cli.shared_options import OneFlow, check_flow
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology

_Output = Annotated[
    CommandsFormat,
    typer.Option(
        *FORMAT, callback=as_written, help="How the result is written; commands, of kafka-acls.sh, with --acls."
    ),
]


_FilesOrCodes = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE|CODE",
        autocompletion=error_codes,
        help="Topology files; several are one topology. - reads standard input. Or error codes, such as AB407.",
    ),
]


def explain(
    files: _FilesOrCodes = None,
    *,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="What becomes of the topic of this name; may be repeated."),
    ] = None,
    flow: OneFlow = None,
    acls: Annotated[
        bool, typer.Option("--acls", help="Which ACLs the flows need on each cluster, to replicate, apply and verify.")
    ] = False,
    clients: Annotated[
        bool, typer.Option("--clients", help="Which settings clients have at each cluster, and which line declares it.")
    ] = False,
    codes: Annotated[bool, typer.Option("--codes", help="Every error code, one line each.")] = False,
    output: _Output = "text",
) -> None:
    """Show how flows name copies, what becomes of topics, which ACLs and client settings count, or what a code means.

    Without any of these options: every field of each flow as it counts, and the line that declares it. Connects to
    nothing: the topics need not exist.
    """
    from reconciler.report.explain import explained, explained_text

    wanted = _codes(files or [], codes)
    if wanted is not None:
        if topics or flow is not None or acls or clients or output == "commands":
            message = "codes go with --format text or json alone"
            raise typer.BadParameter(message, param_hint="CODE")
        _print_codes(wanted, output)
        return
    topology, fields = load_with_fields(in_environment(files or default_files()))
    check_flow(topology, flow)
    if output == "commands" and not acls:
        message = "commands are there for --acls alone"
        raise typer.BadParameter(message, param_hint="--format")
    if acls and clients:
        message = "either --acls or --clients"
        raise typer.BadParameter(message, param_hint="--clients")
    if topics and (acls or clients):
        message = "topics go without --acls and --clients, which are about flows"
        raise typer.BadParameter(message, param_hint="--topic")
    chosen = [one for one in topology.flows if flow in (None, one.name)]
    running = [one for one in chosen if one.enabled or flow is not None]
    if acls:
        _print_acls(topology, running, output)
    elif clients:
        _print_clients(topology, running, output)
    else:
        told = explained(topology, chosen, topics or [], fields)
        print_json(told) if output == "json" else stdout_console().print(explained_text(told))


def _print_clients(topology: Topology, flows: Sequence[Flow], output: CommandsFormat) -> None:
    from reconciler.report.clients import clients_text, clients_told

    told = clients_told(topology, flows)
    if output == "json":
        print_json(told)
    else:
        stdout_console().print(clients_text(told))


def _print_acls(topology: Topology, flows: Sequence[Flow], output: CommandsFormat) -> None:
    from reconciler.plan.acls.requirements import needed_acls, principal, remarks
    from reconciler.report.acls import acls_commands, acls_json, acls_text, granted

    principals = {alias: principal(cluster) for alias, cluster in topology.clusters.items()}
    told = granted(topology, needed_acls(topology, flows), principals, remarks(topology, flows))
    if output == "json":
        print_json(acls_json(told))
    elif output == "commands":
        sys.stdout.write(acls_commands(told))
    else:
        stdout_console().print(acls_text(told))


def _codes(named: Sequence[Path], all_codes: bool) -> list[str] | None:
    """Return the codes that are asked for: none where all are, None where files are.

    Raises:
        typer.BadParameter: neither codes nor files are named, or both.
    """
    from reconciler.report.error_codes import is_like_a_code

    codes = [str(one).upper() for one in named if is_like_a_code(str(one)) and not one.exists()]
    if (all_codes and named) or (codes and len(codes) < len(named)):
        message = "either files, or codes, or --codes"
        raise typer.BadParameter(message, param_hint="FILE|CODE")
    return codes if codes or all_codes else None


def _print_codes(wanted: Sequence[str], output: CommandsFormat) -> None:
    """Print the reference's entries of some codes, or a line of each.

    Raises:
        typer.BadParameter: there is no such code.
    """
    from reconciler.declare.documents.resources import errors_text
    from reconciler.report.error_codes import codes_text, entries, entry_text

    known = entries(errors_text())
    for code in wanted:
        if code not in known:
            message = f"there is no code {code}; `anabranch explain --codes` lists all"
            raise typer.BadParameter(message, param_hint="CODE")
    chosen = [known[code] for code in wanted or known]
    console = stdout_console()
    if output == "json":
        print_json([entry.told() for entry in chosen])
    elif wanted:
        console.print(*(entry_text(entry, console.width) for entry in chosen), sep="\n\n")
    else:
        console.print(codes_text(chosen))
