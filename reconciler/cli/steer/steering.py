"""What `pause`, `resume` and `restart` share: the options, and printing what became of each flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from reconciler.cli.common import stdout_console
from reconciler.cli.completing import flow_names
from reconciler.model.declared.topology import Topology
from reconciler.operate.flows.steering import SteeringWords, Tell, line, steered

FlowName = Annotated[
    str | None,
    typer.Option(
        "--flow",
        "-f",
        metavar="NAME",
        autocompletion=flow_names,
        help="Only this flow; otherwise all that take what is named.",
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="TOPIC[/PARTITION]", help="Only this topic or partition; repeatable. Otherwise whole flows."
    ),
]


def steer(topology: Topology, flow: str | None, topics: Sequence[str] | None, tell: Tell, words: SteeringWords) -> None:
    """Steer the tasks of the chosen flows, and print for each flow what became of it.

    Raises:
        typer.Exit: 1, some running tasks did not confirm it in time.
        InvalidArgument: `flow` or `topic`, no such flow, topic or partition.
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: AB311, a cluster refuses.
    """
    became = steered(topology, flow, topics or (), tell)
    for one in became:
        stdout_console().print(f"{one.flow.source} → {one.flow.target}   {line(one, words)}")
    if any(one.unconfirmed for one in became):
        raise typer.Exit(1)
