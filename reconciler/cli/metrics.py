"""`anabranch metrics`: the metrics of running flows for Prometheus, from the status topics alone."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import Files, load_topology, print_problems, say
from reconciler.cli.log import LogFormat, opened
from reconciler.cli.shared_options import Clusters
from reconciler.model.base.errors import AnabranchError, together

if TYPE_CHECKING:
    from reconciler.metrics.exporter import Exporter
    from reconciler.metrics.otlp import OtlpPusher
    from reconciler.metrics.server import ListenAddress

DEFAULT_LISTEN = "127.0.0.1:9404"
_LARGEST_PORT = 65_535


def metrics(
    files: Files,
    *,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where scrapes are answered; port 0 takes a free one.")
    ] = DEFAULT_LISTEN,
    once: Annotated[bool, typer.Option("--once", help="Print the metrics once, and end.")] = False,
    clusters: Clusters = None,
    names: Annotated[
        str,
        typer.Option(
            "--mirror-maker-names",
            metavar="FORMATS",
            help="Which of MirrorMaker 2's names are given as well: legacy, new (KIP-1280), legacy,new or none.",
        ),
    ] = "legacy,new",
    drift_every: Annotated[
        str | None,
        typer.Option("--drift-every", metavar="DURATION", help="Also look for drift, as often as that (10min)."),
    ] = None,
    otlp: Annotated[
        str | None,
        typer.Option("--otlp", metavar="URL", help="Also push them to an OpenTelemetry collector (OTLP over HTTP)."),
    ] = None,
    otlp_every: Annotated[
        str, typer.Option("--otlp-every", metavar="DURATION", help="How often they are pushed.")
    ] = "30s",
    log_format: LogFormat = None,
) -> None:
    """Serve the metrics of all flows for Prometheus, or print them once. Reads the status topics alone."""
    from reconciler.cli.patience import seconds_of
    from reconciler.metrics.exporter import Exporter

    address = address_of(listen, DEFAULT_LISTEN)
    every = None if drift_every is None else seconds_of(drift_every, "--drift-every")
    formats = formats_of(names)
    if once and otlp is not None:
        message = "--once prints the metrics, and pushes none"
        raise typer.BadParameter(message, param_hint="--otlp")
    make_pusher = None if otlp is None else _pushing(otlp, seconds_of(otlp_every, "--otlp-every"))
    if not once:
        opened(log_format)
    topology = load_topology(files)
    exporter = Exporter(topology, clusters or (), formats, every, warn=_warn)
    try:
        if once:
            _print_once(exporter)
        else:
            _serve(exporter, address, None if make_pusher is None else make_pusher(exporter))
    finally:
        exporter.close()


def _print_once(exporter: Exporter) -> None:
    """Print what one reading gives.

    Raises:
        Unreachable: some targets could not be read; what is printed is incomplete.
    """
    view = exporter.look()
    exporter.look_for_drift()
    for piece in exporter.text(is_openmetrics=True):
        sys.stdout.write(piece.decode())
    sys.stdout.flush()
    if view.failures:
        raise typer.Exit(together(list(view.failures.values())).exit_code)


def _warn(error: AnabranchError) -> None:
    print_problems(error.problems)


def _pushing(url: str, every: float) -> Callable[[Exporter], OtlpPusher]:
    """Return what makes the pusher of an exporter.

    Raises:
        ModuleNotFoundError: the extra `otlp` is not installed.
        DeclaredInputError: AB139, the URL or a variable is wrong.
    """
    from reconciler.metrics.otlp import Collector, OtlpPusher

    collector = Collector.of(url, os.environ)
    return lambda exporter: OtlpPusher(exporter, collector, every, _warn)


def _serve(exporter: Exporter, address: ListenAddress, pusher: OtlpPusher | None) -> None:
    """Answer scrapes, and push, until SIGINT or SIGTERM.

    Raises:
        AnabranchError: a target refuses what no waiting mends, as a wrong password; one that is away is waited for.
    """
    from reconciler.metrics.server import MetricsServer

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    try:
        server = MetricsServer(exporter, address)
    except OSError as error:
        raise not_listened_at(error) from None
    with server:
        say(f"metrics at {server.url}")
        exporter.look_first()
        pushing = None if pusher is None else threading.Thread(target=pusher.run, args=(stopping,), name="otlp")
        if pushing is not None:
            pushing.start()
        try:
            exporter.run(stopping)
        finally:
            stopping.set()
            if pushing is not None:
                pushing.join()


def formats_of(names: str) -> list[str]:
    """Return the formats that `--mirror-maker-names` names.

    Raises:
        typer.BadParameter: one is not known.
    """
    from reconciler.metrics.mirrormaker import FORMATS

    found = [one.strip() for one in names.split(",")]
    if found == ["none"]:
        return []
    if unknown := [one for one in found if one not in FORMATS]:
        message = f"expected {', '.join(FORMATS)} or none; found {', '.join(unknown) or 'nothing'}"
        raise typer.BadParameter(message, param_hint="--mirror-maker-names")
    return list(dict.fromkeys(found))


def not_listened_at(error: OSError) -> typer.BadParameter:
    """Return the error that `--listen` names an address that cannot be had."""
    message = f"cannot be listened at: {error.strerror or error}; choose another address or port"
    return typer.BadParameter(message, param_hint="--listen")


def address_of(listen: str, example: str) -> ListenAddress:
    """Return the address that `--listen` names.

    Args:
        listen: its value.
        example: one that is right, for the error.

    Raises:
        typer.BadParameter: it is no `HOST:PORT`.
    """
    from reconciler.metrics.server import ListenAddress

    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) <= _LARGEST_PORT):
        message = f"expected HOST:PORT, as {example} or [::1]:9404; found {listen}"
        raise typer.BadParameter(message, param_hint="--listen")
    return ListenAddress(host, int(port))
