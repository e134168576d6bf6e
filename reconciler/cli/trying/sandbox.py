"""`anabranch sandbox`: clusters with orders coming in that stay, to try everything on; and taking them down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import stdout_console
from reconciler.cli.helping import group
from reconciler.cli.trying.demo import PATTERNS_SAID, fetch
from reconciler.model.base.installed import need

if TYPE_CHECKING:
    from reconciler.demo.sandbox import Sandbox

sandbox = group("Keep clusters with orders coming in on this machine, to try everything on.")


@sandbox.command()
def up(
    pattern: Annotated[str, typer.Argument(help=f"Which example its clusters are of: {PATTERNS_SAID}.")] = "fan-out",
    file: Annotated[Path, typer.Option("--file", metavar="FILE", help="Where its topology file is written.")] = Path(
        "anabranch.yaml"
    ),
    mm2: Annotated[
        bool, typer.Option("--mm2", help="A MirrorMaker 2 copies between the clusters, to be taken over.")
    ] = False,
) -> None:
    """Start clusters that stay until `down`, with orders coming in and an application that reads them."""
    from reconciler.demo import sandbox as sandboxes
    from reconciler.demo.story import PATTERNS

    need("replicate")
    if pattern not in PATTERNS:
        message = f"no example {pattern}: expected {PATTERNS_SAID}"
        raise typer.BadParameter(message, param_hint="PATTERN")
    console = stdout_console()
    found = sandboxes.current()
    if found is None:
        if file.exists():
            message = f"{file} exists already: remove it, or choose another name"
            raise typer.BadParameter(message, param_hint="--file")
        for what in ("kafka", "connect-mirror") if mm2 else ("kafka",):
            fetch(console, what)
        with console.status("starting brokers"):
            found = sandboxes.up(pattern, file, with_mirror_maker=mm2)
    else:
        console.print("a sandbox is up already")
    _tell(found)


@sandbox.command()
def down() -> None:
    """Take the clusters down, with all that they hold; the topology file stays."""
    from reconciler.demo import sandbox as sandboxes

    with stdout_console().status("stopping brokers"):
        found = sandboxes.down()
    stdout_console().print("no sandbox is up" if found is None else f"the sandbox is down; {found.file} stays")


def _tell(found: Sandbox) -> None:
    from reconciler import declare
    from reconciler.demo.sandbox import GROUP

    console = stdout_console()
    topology = declare.load((found.file,))
    for one in topology.clusters.values():
        console.print(f"  {one.alias:<10} {','.join(map(str, one.addresses))}", soft_wrap=True)
    source = topology.flows[0].source
    console.print(f"orders come in on {source}, and the group {GROUP} reads them there; edit {found.file} as you like")
    named = "" if found.file == Path("anabranch.yaml").resolve() else f" {found.file}"
    steps = [
        (f"anabranch replicate{named}", "copies, until Ctrl-C"),
        (f"anabranch status{named} --watch", "in another terminal"),
    ]
    if found.mirror_maker is not None:
        console.print(f"MirrorMaker 2 copies with {found.mirror_maker}", soft_wrap=True)
        ending = f"kill {found.mirror_maker_pid} && sleep 10", "ends MirrorMaker 2, which notes how far it has come"
        steps = [ending, (f"anabranch adopt{named} --from mm2 --yes", "takes its copies over"), *steps]
    console.print("next:")
    for command, what in [*steps, ("anabranch sandbox down", "when you are done")]:
        console.print(f"  {command}   {what}", soft_wrap=True)
