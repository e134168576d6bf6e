"""`anabranch connect-distributed`: a worker of Kafka Connect, one of any number that share their connectors."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import TERMINAL, say
from reconciler.cli.log import LogFormat, opened
from reconciler.cli.migrate.running import kept_at
from reconciler.cli.patience import FOR_EVER
from reconciler.cli.replicate import replicate
from reconciler.cli.shared_options import AuditLogFile, TlsCertificate, TlsKey
from reconciler.model.base.installed import need

if TYPE_CHECKING:
    from reconciler.convert.settings import Settings

_LISTEN = "127.0.0.1:8083"
_GROUP = "connect-cluster"
_EVERYWHERE = "0.0.0.0"
_TICK = 0.2


def connect_distributed(
    worker: Annotated[Path, typer.Argument(metavar="WORKER", help="worker.properties: brokers, group.id, listeners.")],
    *,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="KEY=VALUE", help="In place of a setting of its file; may be repeated."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help=f"Where it listens; by default as its file, or {_LISTEN}."),
    ] = None,
    token: Annotated[
        list[str] | None,
        typer.Option("--token", metavar="ROLE[:NAME]=REFERENCE", help="A bearer token, as of serve; may be repeated."),
    ] = None,
    without_tokens: Annotated[
        bool, typer.Option("--without-tokens", help="Other machines need neither token nor TLS, as with Kafka Connect.")
    ] = False,
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    audit_log: AuditLogFile = None,
    log_format: LogFormat = None,
) -> None:
    """Run connectors of MirrorMaker 2 and Mirus that are made through Kafka Connect's REST interface."""
    from reconciler.cli.metrics import address_of, not_listened_at
    from reconciler.cli.serve import tls_of
    from reconciler.convert.conversion import cluster_of_worker, name_of, properties_of
    from reconciler.replicator.driver.signals import StoppedEarly, StopSignals
    from reconciler.service.access import Caller, tokens_of
    from reconciler.service.audit import AuditLog
    from reconciler.service.connect.app import answering
    from reconciler.service.connect.worker import WorkerHost
    from reconciler.service.server import check_exposure

    need("replicate")
    settings = overridden(properties_of(worker), override or ())
    address = address_of(listen or _listener(settings), _LISTEN)
    tls = tls_of(tls_certificate, tls_key)
    opened(log_format)
    tokens = tokens_of(token or (), Caller("local", "operate"))
    if not without_tokens:
        check_exposure(address, tls, tokens.are_needed)
    name = name_of(group.value if (group := settings.first("group.id")) is not None else _GROUP)
    file, audit = kept_at(name), AuditLog(audit_log)
    host = WorkerHost(cluster_of_worker(settings), settings, name, file, audit, TERMINAL)
    # Signals have a handler all the time, also between the wait and the run: else one would end the process there at
    # once, and a fault of the worker, which comes as a signal, would be lost.
    with ExitStack() as stack, StopSignals() as signals:
        signals.may_raise = False
        stack.callback(audit.close)
        stack.callback(host.begin())
        try:
            url = stack.enter_context(answering(host, tokens, audit, address, tls))
        except OSError as error:
            raise not_listened_at(error) from None
        say(f"connectors at {url}; their topology is {name}, as {file} for other commands")
        with suppress(StoppedEarly):
            signals.raise_from_now_on()
            _wait_for(host.is_ready)
            replicate([file], wait=FOR_EVER, log_format=log_format)


def overridden(settings: Settings, given: Sequence[str]) -> Settings:
    """Return settings of a file with those of `--override` in their place.

    Raises:
        typer.BadParameter: one is no `KEY=VALUE`.
    """
    from reconciler.convert.settings import Setting, Settings

    more = []
    for one in given:
        key, is_there, value = one.partition("=")
        if not is_there or not key.strip():
            # The value may be a secret.
            message = "expected KEY=VALUE, such as group.id=mirus"
            raise typer.BadParameter(message, param_hint="--override")
        more.append(Setting(key.strip(), value.strip(), "--override"))
    return Settings([*settings, *more])


def _wait_for(ready: threading.Event) -> None:
    """Wait until there is something to copy."""
    # An event alone would not let signals through while nothing is to be copied.
    while not ready.wait(_TICK):
        pass


def _listener(settings: Settings) -> str:
    """Return the address that a worker's file names for its REST interface."""
    if (named := settings.first("listeners")) is not None and named.value:
        host, _, port = named.value.split(",")[0].strip().rpartition("//")[2].rpartition(":")
        return f"{host or _EVERYWHERE}:{port}"
    named_host, named_port = settings.first("rest.host.name"), settings.first("rest.port")
    host, _, port = _LISTEN.rpartition(":")
    return f"{named_host.value if named_host else host}:{named_port.value if named_port else port}"
