"""`anabranch serve`: status, metrics, pause and resume over HTTP, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, load_topology, print_problems, say
from reconciler.cli.log import LogFormat, opened, set_levels
from reconciler.cli.shared_options import AuditLogFile, Clusters, Overrides, TlsCertificate, TlsKey
from reconciler.operate.targets import InvalidArgument

if TYPE_CHECKING:
    from reconciler.metrics.server import ListenAddress
    from reconciler.model.base.errors import AnabranchError
    from reconciler.service.access import Tokens
    from reconciler.service.context import ServiceContext
    from reconciler.service.server import TlsFiles

DEFAULT_LISTEN = "127.0.0.1:8083"


def serve(
    files: Files,
    *,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where it listens; port 0 takes a free one.")
    ] = DEFAULT_LISTEN,
    operate: Annotated[
        bool, typer.Option("--operate", help="Without --token: all callers on this machine may pause and resume.")
    ] = False,
    token: Annotated[
        list[str] | None,
        typer.Option(
            "--token",
            metavar="ROLE[:NAME]=REFERENCE",
            help="A bearer token, as env:NAME or file:/path, and whether it may read or operate; may be repeated.",
        ),
    ] = None,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    audit_log: AuditLogFile = None,
    clusters: Clusters = None,
    names: Annotated[
        str,
        typer.Option("--mirror-maker-names", metavar="FORMATS", help="As of metrics: legacy, new, legacy,new or none."),
    ] = "legacy,new",
    drift_every: Annotated[
        str,
        typer.Option("--drift-every", metavar="DURATION", help="How often targets are compared with the last apply."),
    ] = "10min",
    overrides: Overrides = True,
    log_format: LogFormat = None,
) -> None:
    """Serve status, metrics and a page over HTTP. Its state is what the clusters hold: end it at any moment."""
    from reconciler.cli.metrics import address_of, formats_of
    from reconciler.cli.patience import seconds_of
    from reconciler.metrics.exporter import Exporter
    from reconciler.operate.flows.overrides import Overriding
    from reconciler.service.audit import AuditLog
    from reconciler.service.context import ServiceContext
    from reconciler.service.history import History
    from reconciler.service.server import check_exposure

    address = address_of(listen, DEFAULT_LISTEN)
    tls = tls_of(tls_certificate, tls_key)
    every, formats = seconds_of(drift_every, "--drift-every"), formats_of(names)
    opened(log_format)
    tokens = _tokens(token, operate)
    check_exposure(address, tls, tokens.are_needed)
    topology, history, audit = load_topology(files), History(), AuditLog(audit_log)
    exporter = Exporter(topology, clusters or (), formats, every, _warn, history.take)
    changes = Overriding(topology, TERMINAL) if overrides else None
    try:
        _serve(ServiceContext(topology, exporter, tokens, audit, _set_log_levels, history, changes), address, tls)
    finally:
        exporter.close()
        audit.close()


def _serve(context: ServiceContext, address: ListenAddress, tls: TlsFiles | None) -> None:
    from reconciler.cli.metrics import not_listened_at
    from reconciler.service.server import serve as serve_http

    try:
        serve_http(context, address, tls, lambda url: say(f"serving at {url}"))
    except OSError as error:
        raise not_listened_at(error) from None
    finally:
        if context.overriding is not None:
            context.overriding.close()


def _warn(error: AnabranchError) -> None:
    print_problems(error.problems)


def tls_of(certificate: Path | None, key: Path | None) -> TlsFiles | None:
    """Return the files that two options name.

    Raises:
        BadParameter: one of them is missing.
    """
    from reconciler.service.server import TlsFiles

    if (certificate is None) != (key is None):
        message = "--tls-certificate and --tls-key belong together"
        raise typer.BadParameter(message, param_hint="--tls-certificate")
    return TlsFiles(certificate, key) if certificate and key else None


def _tokens(options: list[str] | None, operate: bool) -> Tokens:
    from reconciler.service.access import Caller, tokens_of

    tokens = tokens_of(options or (), Caller("local", "operate" if operate else "read"))
    if operate and tokens.are_needed:
        message = "it is for services without tokens; give a token the role operate"
        raise typer.BadParameter(message, param_hint="--operate")
    return tokens


def _set_log_levels(rooms: str) -> None:
    """Set levels while it runs.

    Raises:
        InvalidArgument: a room does not exist.
    """
    try:
        set_levels(rooms)
    except typer.BadParameter as error:
        raise InvalidArgument(error.message, "rooms") from None
