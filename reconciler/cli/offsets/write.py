"""`anabranch offsets write` and `import`: move groups, or the positions of flows that do not run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import Files, ask, check_can_ask, load_topology, stderr_console, stdout_console
from reconciler.cli.formats import TextOrData, print_json
from reconciler.cli.offsets.options import (
    Clamp,
    ClusterAlias,
    Create,
    DryRun,
    FlowName,
    OnlyForward,
    Output,
    Yes,
    declared_cluster,
)
from reconciler.cli.shared_options import declared_flow
from reconciler.model.base.errors import AnabranchError, DeclaredInputError, EnvironmentFault, Problem, Refused
from reconciler.model.declared.topology import Topology

if TYPE_CHECKING:
    from reconciler.checkpoints.groups.files import OffsetFile
    from reconciler.checkpoints.groups.groups import Groups
    from reconciler.checkpoints.groups.moves import MoveTerms, PlannedMoves
    from reconciler.checkpoints.groups.positions import Positions
    from reconciler.model.offsets.committed import Asked, Kind, Log, Move, MovedOffset

    Write = Callable[[Sequence[Move]], MovedOffset]

_LARGEST = 2**63 - 1
_GUARDS = frozenset({"AB626", "AB627", "AB628"})
_TO = "OFFSET|earliest|latest|timestamp:ISO"


@dataclass(frozen=True)
class _Manner:
    """How a command writes.

    Attributes:
        dry_run: whether it only shows what it would write.
        yes: whether it goes on without asking.
        output: how it prints that.
        only_forward: whether what stands further already stays where it is.
    """

    dry_run: bool
    yes: bool
    output: TextOrData
    only_forward: bool

    def takes(self, move: Move) -> bool:
        """Return whether a move is to be made."""
        return not self.only_forward or move.before is None or move.before <= move.after

    def check(self) -> None:
        """Check that there is a terminal to read the answer from, where one is needed.

        Raises:
            NoTerminal: AB144, there is none.
        """
        check_can_ask(self.dry_run or self.yes, has_preview=True)


def write(
    files: Files,
    *,
    topic: Annotated[str, typer.Option("--topic", metavar="NAME", help="The topic; of a flow the original.")],
    to: Annotated[str, typer.Option("--to", metavar=_TO, help="Where to stand; a time without zone is UTC.")],
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, help="Only this partition; repeatable. Otherwise all.")
    ] = None,
    cluster: ClusterAlias = None,
    group: Annotated[str | None, typer.Option("--group", metavar="NAME", help="The group.")] = None,
    flow: FlowName = None,
    clamp: Clamp = False,
    create: Create = False,
    only_forward: OnlyForward = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "text",
) -> None:
    """Move a group that has no members, or the position of a flow that does not run, in some partitions of a topic."""
    from reconciler.checkpoints.groups.moves import MoveTerms

    manner = _Manner(dry_run, yes, output, only_forward)
    manner.check()
    topology, place, terms = load_topology(files), _place(to), MoveTerms(clamp, create)
    numbers = list(dict.fromkeys(partition or ()))
    if flow is not None:
        if cluster is not None or group is not None or create:
            message = "--flow goes without --cluster, --group and --create"
            raise typer.BadParameter(message, param_hint="--flow")
        work: _Work = _OfFlow(topology, flow, terms)
    elif cluster is None or group is None:
        message = "name a group (--cluster ALIAS --group NAME), or a flow (--flow NAME)"
        raise typer.BadParameter(message)
    else:
        work = _OfGroups(topology, cluster, terms)
    with stderr_console().status("looking at the clusters"):
        asked = work.asked(flow or group or "", topic, numbers, place)
        planned = work.plan(asked)
    _carry_out(topology, work.kind, [(planned, work.write)], (), manner)


def import_(
    files: Files,
    *,
    path: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="CSV or JSON (name ends with .json), as export writes it.")
    ],
    cluster: ClusterAlias = None,
    of_mirus: Annotated[bool, typer.Option("--mirus", help="FILE is what Mirus' offset tool prints.")] = False,
    clamp: Clamp = False,
    create: Create = False,
    only_forward: OnlyForward = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "text",
) -> None:
    """Write the offsets that a file names. Everything is checked first; where anything is wrong nothing is written."""
    from reconciler.checkpoints.groups.files import read_file
    from reconciler.checkpoints.groups.moves import MoveTerms

    manner = _Manner(dry_run, yes, output, only_forward)
    manner.check()
    topology, terms = load_topology(files), MoveTerms(clamp, create)
    found = read_file(path, of_mirus=of_mirus)
    if found.kind == "flow" and (cluster is not None or create):
        message = f"{path} holds positions of flows: they are at the flows' targets, and no group is made for them"
        raise typer.BadParameter(message, param_hint="--create" if create else "--cluster")
    if found.kind == "group" and cluster is None:
        message = f"{path} holds offsets of groups: name their cluster"
        raise typer.BadParameter(message, param_hint="--cluster")
    with stderr_console().status("looking at the clusters"):
        works, problems = _works(topology, cluster, found, terms)
    _carry_out(topology, found.kind, works, (*found.problems, *problems), manner)


def _works(
    topology: Topology, cluster: str | None, found: OffsetFile, terms: MoveTerms
) -> tuple[list[tuple[PlannedMoves, Write]], list[Problem]]:
    """Return the work of a file, by group's cluster or by flow, and a problem for each flow that is not declared."""
    if cluster is not None:
        groups = _OfGroups(topology, cluster, terms)
        return [(groups.plan(found.asked), groups.write)], []
    works: list[tuple[PlannedMoves, Write]] = []
    problems: list[Problem] = []
    names = [flow.name for flow in topology.flows]
    for name in dict.fromkeys(one.owner for one in found.asked):
        asked = [one for one in found.asked if one.owner == name]
        if name not in names:
            message = f"no flow {name} is declared; there are {', '.join(names) or 'none'}"
            problems.append(Problem("AB623", asked[0].where, message, "correct it, or leave it out"))
            continue
        flow = _OfFlow(topology, name, terms)
        works.append((flow.plan(asked), flow.write))
    return works, problems


# --- groups and flows ------------------------------------------------------------------------------------------------


class _OfGroups:
    """Writes for groups of a cluster."""

    kind: Kind = "group"

    def __init__(self, topology: Topology, cluster: str, terms: MoveTerms) -> None:
        from reconciler.checkpoints.groups.groups import Groups

        self._groups = Groups(declared_cluster(topology, cluster))
        self._terms = terms

    def asked(self, group: str, topic: str, numbers: Sequence[int], place: _Place) -> list[Asked]:
        """Return the offsets that `write` is to commit."""
        logs = _logs(self._groups.partitions.get(topic, 0), topic, numbers)
        return place.asked(self._groups, group, logs, f"{self._groups.cluster.where}, group {group}")

    def plan(self, asked: Sequence[Asked]) -> PlannedMoves:
        """Return what would be written."""
        from reconciler.checkpoints.groups.moves import plan_for_groups

        return plan_for_groups(self._groups, asked, self._terms)

    def write(self, moves: Sequence[Move]) -> MovedOffset:
        """Write it."""
        from reconciler.checkpoints.groups.moves import write_for_groups

        return write_for_groups(self._groups, moves)


class _OfFlow:
    """Writes positions of a flow."""

    kind: Kind = "flow"

    def __init__(self, topology: Topology, flow: str, terms: MoveTerms) -> None:
        from reconciler.checkpoints.groups.positions import Positions

        self._positions: Positions = Positions(topology, declared_flow(topology, flow))
        self._terms = terms

    def asked(self, flow: str, topic: str, numbers: Sequence[int], place: _Place) -> list[Asked]:
        """Return the offsets that `write` is to commit."""
        logs = _logs(self._positions.partitions(topic), topic, numbers)
        return place.asked(self._positions.source, flow, logs, f"flow {flow}")

    def plan(self, asked: Sequence[Asked]) -> PlannedMoves:
        """Return what would be written."""
        from reconciler.checkpoints.groups.moves import plan_for_flow

        return plan_for_flow(self._positions, asked, self._terms)

    def write(self, moves: Sequence[Move]) -> MovedOffset:
        """Write it."""
        from reconciler.checkpoints.groups.moves import write_for_flow

        return write_for_flow(self._positions, moves)


_Work = _OfGroups | _OfFlow


def _logs(partitions: int, topic: str, numbers: Sequence[int]) -> list[Log]:
    """Return the named partitions; without a name all, and one of a topic that does not exist, for the error."""
    return [(topic, number) for number in numbers or range(max(1, partitions))]


# --- where to ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Where to stand: at an offset, at an end of the log, or at a time in milliseconds since 1970."""

    offset: int | None = None
    end: str = ""
    time: int = 0

    def asked(self, groups: Groups, owner: str, logs: Sequence[Log], where: str) -> list[Asked]:
        """Return the offsets for some logs; a log that does not exist has 0, for the error.

        Raises:
            EnvironmentFault: AB630, a partition has no leader that could answer.
            AnabranchError: as `Groups.bounds` raises it.
        """
        from reconciler.model.offsets.committed import Asked

        places = dict.fromkeys(logs, self.offset) if self.offset is not None else self._looked_up(groups, logs)
        return [
            Asked(owner, *log, places.get(log, 0), "", f"{where}, topic {log[0]}, partition {log[1]}") for log in logs
        ]

    def _looked_up(self, groups: Groups, logs: Sequence[Log]) -> dict[Log, int]:
        """Return the places of those logs that are there."""
        bounds = groups.bounds(logs)
        places = {log: one.start if self.end == "earliest" else one.stable for log, one in bounds.items()}
        told = set(bounds)
        if not self.end:
            found = groups.at_time(bounds, self.time)
            told &= found.keys()
            # Where all records are older, the next one that comes is the first.
            places |= {log: offset for log, offset in found.items() if offset is not None}
        if untold := [log for log in logs if log not in told and log[1] < groups.partitions.get(log[0], 0)]:
            # Later it may have one, and hold 0.
            raise EnvironmentFault([groups.without_leader(log) for log in untold])
        return places


def _place(to: str) -> _Place:
    """Return the place that `--to` names.

    Raises:
        typer.BadParameter: nothing that is understood.
    """
    if to in ("earliest", "latest"):
        return _Place(end=to)
    if to.isascii() and to.isdecimal() and len(to) <= len(str(_LARGEST)) and int(to) <= _LARGEST:
        return _Place(int(to))
    if to.startswith("timestamp:"):
        try:
            moment = datetime.fromisoformat(to.removeprefix("timestamp:"))
        except ValueError:
            pass
        else:
            # A time that names no zone is one of UTC.
            told = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            if (time := int(told.timestamp() * 1000)) < 0:
                # Kafka takes -1 for the latest offset, and others near it for the like.
                message = f"expected a time since 1970; found {to}"
                raise typer.BadParameter(message, param_hint="--to")
            return _Place(time=time)
    message = f"expected {_TO}, such as 41093 or timestamp:2026-11-01T00:00:00Z; found {to}"
    raise typer.BadParameter(message, param_hint="--to")


# --- carrying it out -------------------------------------------------------------------------------------------------


def _carry_out(
    topology: Topology,
    kind: Kind,
    works: Sequence[tuple[PlannedMoves, Write]],
    found: Sequence[Problem],
    manner: _Manner,
) -> None:
    """Show what would be written, ask, write it, and print what became of it.

    Raises:
        AnabranchError: with all that is wrong; nothing was written.
        typer.Exit: 1, the operator declined.
    """
    from reconciler.model.offsets.committed import MovedOffset
    from reconciler.report.offsets import kept_lines, moved_line, moves_json, moves_lines

    problems = [*found, *(problem for planned, _ in works for problem in planned.problems)]
    if problems:
        raise _error(sorted(problems, key=_line))
    planned_moves = [move for planned, _ in works for move in planned.moves]
    moves = [move for move in planned_moves if manner.takes(move)]
    if manner.output == "text":
        for line in moves_lines(kind, moves):
            stdout_console().print(line)
    for line in kept_lines(kind, [move for move in planned_moves if not manner.takes(move)]):
        stderr_console().print(line)
    if manner.dry_run or not moves:
        if manner.output == "json":
            print_json(moves_json(kind, moves, None))
        stderr_console().print("dry run: nothing was written" if moves else "nothing to write", style="dim")
        return
    if not manner.yes:
        _confirm(topology, kind, moves)
    became = [write([move for move in planned.moves if manner.takes(move)]) for planned, write in works]
    moved = MovedOffset(
        tuple(move for one in became for move in one.done), tuple(problem for one in became for problem in one.problems)
    )
    if manner.output == "json":
        print_json(moves_json(kind, moves, moved))
    stderr_console().print(moved_line(kind, moves, moved))
    if moved.problems:
        raise _error(moved.problems, EnvironmentFault)


def _confirm(topology: Topology, kind: Kind, moves: Sequence[Move]) -> None:
    """Have the operator type the owner of these offsets, or the topology's name where there are several.

    Raises:
        typer.Exit: something else was typed.
    """
    from reconciler.model.offsets.committed import owners

    whose = owners(moves)
    what, name = (f"the {kind}'s name", whose[0]) if len(whose) == 1 else ("the topology's name", topology.name)
    if ask(f"Type {what} ({name}) to go on:") != name:
        stderr_console().print("Nothing was written.")
        raise typer.Exit(1)


def _error(problems: Sequence[Problem], otherwise: type[AnabranchError] = DeclaredInputError) -> AnabranchError:
    """Return one error: a refusal where nothing but guardrails stands in the way."""
    kind = Refused if all(problem.code in _GUARDS for problem in problems) else otherwise
    return kind(problems)


def _line(problem: Problem) -> int:
    """Return at which line of a file a problem is; problems of no file come first."""
    found = re.search(r":(\d+)$", problem.where)
    return int(found[1]) if found else 0
