"""Options that commands of `anabranch offsets` share, and how they are checked against the declaration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from reconciler.cli.common import print_problems, stderr_console
from reconciler.cli.completing import flow_names
from reconciler.cli.formats import FORMAT, TableFormat, TextOrData, as_written
from reconciler.model.base.errors import Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.failover import FailedOver

ClusterAlias = Annotated[
    str | None, typer.Option("--cluster", metavar="ALIAS", help="Whose groups; goes with groups, not with --flow.")
]
FlowName = Annotated[
    str | None,
    typer.Option(
        "--flow",
        "-f",
        metavar="NAME",
        autocompletion=flow_names,
        help="The positions of this flow instead of groups' offsets.",
    ),
]
GroupNames = Annotated[
    list[str] | None,
    typer.Option(
        "--group", metavar="NAME", help="Groups by name or regular expression (full match), or all; repeatable."
    ),
]
TopicNames = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", help="Only topics by name or regular expression (full match); repeatable."),
]
Clamp = Annotated[
    bool, typer.Option("--clamp", help="Write the nearest offset in the log instead of refusing one outside of it.")
]
OnlyForward = Annotated[
    bool, typer.Option("--only-forward", help="Take nothing back: what stands further already stays where it is.")
]
Create = Annotated[bool, typer.Option("--create", help="Make groups that are not there.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Output = Annotated[TextOrData, typer.Option(*FORMAT, callback=as_written, help="How plan and outcome are written.")]
TableOutput = Annotated[
    TableFormat,
    typer.Option(*FORMAT, callback=as_written, help="How the result is written."),
]

SourceLost = Annotated[
    bool,
    typer.Option(
        "--source-lost",
        help="Do not read the source: it is gone. What only its log shows is unknown then: where it begins and ends, "
        "and where records stand of which the target has no trace.",
    ),
]


def tell_cut(flow: str, state: FailedOver | None) -> None:
    """Report on stderr that a flow is failed over, where its copies are cut."""
    from reconciler.model.recorded.failed_flows import since

    if state is not None:
        said = (
            f"flow {flow} is failed over {since(state)}: what stands behind the cuts of its copies is not of the source"
        )
        stderr_console().print(said, style="yellow")


def is_named(topic: str, named: Sequence[str] | None) -> bool:
    """Return whether names and regular expressions choose a topic; none choose all."""
    from reconciler.model.names.selection import any_matches

    return not named or "all" in named or any_matches(tuple(named), topic)


def warn_of_idle(named: Sequence[str] | None, there: Iterable[str], where: str) -> None:
    """Warn of names and regular expressions of --topic that match none of the topics that there are.

    Args:
        named: what was given.
        there: names of topics.
        where: whose topics they are, for the message.
    """
    from reconciler.model.base.suggestions import did_you_mean
    from reconciler.model.names.selection import names

    known = list(there)
    message = "--topic matches no topic"
    print_problems(
        [
            Problem("AB138", f"{where}, topic {item}", f"{message}{did_you_mean(item, known)}", "correct the name")
            for item in names(tuple(item for item in named or () if item != "all")).idle(known)
        ],
        severity="warning",
    )


def check_patterns(named: Sequence[str] | None, option: str, any_text: bool = False) -> None:
    """Make sure that all are names or regular expressions.

    Args:
        named: what was given.
        option: for which option.
        any_text: whether it is for names that may be any text, as those of consumer groups.

    Raises:
        typer.BadParameter: one is neither.
    """
    import re

    from reconciler.model.names.patterns import BadPattern, NotLinear, check
    from reconciler.model.names.selection import is_literal

    for item in named or ():
        instead = f"; a group of just this name is written {re.escape(item)}" if any_text else ""
        try:
            if not is_literal(item):
                check(item, any_text)
        except BadPattern as error:
            message = f"expected a name, or a regular expression of Python's re; found {item}: {error}{instead}"
            raise typer.BadParameter(message, param_hint=option) from None
        except NotLinear as error:
            message = (
                f"expected an expression that is matched in linear time; found {item}: {error}; {error.remedy}{instead}"
            )
            raise typer.BadParameter(message, param_hint=option) from None


def declared_cluster(topology: Topology, alias: str) -> Cluster:
    """Return a cluster by its alias.

    Raises:
        typer.BadParameter: there is none.
    """
    if alias not in topology.clusters:
        message = f"no cluster {alias} is declared; there are {', '.join(topology.aliases)}"
        raise typer.BadParameter(message, param_hint="--cluster")
    return topology.clusters[alias]
