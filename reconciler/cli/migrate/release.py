"""`anabranch release`: hand a flow back to MirrorMaker 2, which goes on at exactly the next record."""

from __future__ import annotations

from typing import Annotated

import typer

from reconciler.cli.common import Files, check_can_ask, go_on, load_topology, say
from reconciler.cli.completing import flow_names
from reconciler.operate.handing_back import Heir, hand_back
from reconciler.operate.targets import InvalidArgument


def release(
    files: Files,
    *,
    flow: Annotated[
        str, typer.Option("--flow", "-f", metavar="NAME", autocompletion=flow_names, help="The flow that ends here.")
    ],
    heir: Annotated[Heir, typer.Option("--to", help="What goes on: MirrorMaker 2 (mm2).")],
    offsets_topic: Annotated[
        str | None,
        typer.Option(
            "--offsets-topic",
            metavar="TOPIC",
            help="Of Kafka Connect at the target; default: a dedicated MirrorMaker 2's.",
        ),
    ] = None,
    connector: Annotated[
        str | None,
        typer.Option("--connector", metavar="NAME", help="The connector's name; default: a dedicated one's."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Hand a flow back: it is paused for good, and MirrorMaker 2 finds its positions. Nothing is copied again."""
    topology = load_topology(files)
    chosen = next((one for one in topology.flows if one.name == flow), None)
    if chosen is None:
        message = f"no flow {flow}: there are {', '.join(one.name for one in topology.flows)}"
        raise InvalidArgument(message, "flow")
    check_can_ask(yes)
    if not yes:
        say(f"{flow} is paused, and {heir} goes on with its copies at {chosen.target}.")
        go_on()
    positions = hand_back(topology, chosen, offsets_topic, connector)
    for one in positions:
        at = f"goes on at offset {one.offset}" if one.offset else "begins at the start"
        say(f"{one.log[0]}/{one.log[1]} {at} in {one.remote}", None)
    say(f"Declare {flow} with enabled: false, so that nothing resumes it, and start MirrorMaker 2 with the alias")
    say(f"{chosen.source} for its source.")
