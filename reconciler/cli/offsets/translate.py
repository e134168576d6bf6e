"""`anabranch offsets translate`: where readers of one side of a flow go on at the other, exactly."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import Files, load_topology, stdout_console
from reconciler.cli.completing import flow_names
from reconciler.cli.formats import print_json
from reconciler.cli.offsets.options import SourceLost, TableOutput, tell_cut
from reconciler.cli.shared_options import declared_flow
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.base.text import from_cell
from reconciler.model.offsets.translation import Question, Way

_PLACE = re.compile(r"(?P<topic>[^/]+)/(?P<partition>\d{1,10}):(?P<offset>\d{1,19})")
_NEEDED = ("topic", "partition", "offset")
_REMEDY = "write partition and offset as whole numbers from 0 on"


def translate(
    files: Files,
    *,
    flow: Annotated[
        str, typer.Option("--flow", "-f", metavar="NAME", autocompletion=flow_names, help="Between which clusters.")
    ],
    offset: Annotated[
        list[str] | None,
        typer.Option("--offset", metavar="TOPIC/PARTITION:OFFSET", help="An offset to translate; repeatable."),
    ] = None,
    csv_file: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Offsets in a CSV file with columns topic, partition and offset."),
    ] = None,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="From the target back to the source; topics by their originals' names.")
    ] = False,
    source_lost: SourceLost = False,
    output: TableOutput = "text",
) -> None:
    """Translate offsets from a flow's source to its target, or back (--upstream); nothing is changed."""
    from reconciler.checkpoints.translation.answers import answers
    from reconciler.report.translation import translation_csv, translation_json, translation_lines

    topology = load_topology(files)
    chosen = declared_flow(topology, flow)
    if not offset and csv_file is None:
        message = "name offsets (--offset TOPIC/PARTITION:OFFSET), or a file that has them (--csv FILE)"
        raise typer.BadParameter(message)
    way: Way = "upstream" if upstream else "downstream"
    questions = [*_named(offset or (), way), *(_in_file(csv_file, way) if csv_file is not None else ())]
    told = answers(topology, chosen, questions, source_lost=source_lost)
    tell_cut(flow, told.cut)
    rows = list(zip(questions, told.offsets, strict=True))
    if output == "json":
        print_json(translation_json(flow, rows))
    elif output == "csv":
        sys.stdout.write(translation_csv(rows))
    else:
        console = stdout_console()
        for line in translation_lines(rows):
            console.print(line)


def _named(places: Sequence[str], way: Way) -> list[Question]:
    """Return what was named in the command.

    Raises:
        typer.BadParameter: one is not laid out so.
    """
    found = []
    for place in places:
        match = _PLACE.fullmatch(place)
        if match is None:
            message = f"{place} is not TOPIC/PARTITION:OFFSET, as in orders/3:1500"
            raise typer.BadParameter(message, param_hint="--offset")
        found.append(Question(match["topic"], int(match["partition"]), int(match["offset"]), way))
    return found


def _in_file(path: Path, way: Way) -> list[Question]:
    """Return what a CSV file names.

    Raises:
        DeclaredInputError: AB650, it cannot be read, or rows of it are no offsets.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = Problem("AB650", str(path), f"cannot be read: {error}", "name a file of UTF-8 text that is there")
        raise DeclaredInputError(problem) from None
    try:
        return _asked(path, csv.DictReader(text.splitlines()), way)
    except csv.Error as error:
        problem = Problem("AB650", str(path), f"is not CSV: {error}", _REMEDY)
        raise DeclaredInputError(problem) from None


def _asked(path: Path, reader: csv.DictReader[str], way: Way) -> list[Question]:
    """Return what the rows of a file name; errors are those of `_in_file`, or csv's."""
    lacking = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
    if lacking:
        message = f"there is no column {', '.join(lacking)}"
        raise DeclaredInputError(Problem("AB650", f"{path}:1", message, "begin with a line: topic,partition,offset"))
    found: list[Question] = []
    problems: list[Problem] = []
    for line, row in _rows(reader):
        topic = from_cell(row["topic"] or "")
        if topic and _is_number(row["partition"]) and _is_number(row["offset"]):
            found.append(Question(topic, int(row["partition"]), int(row["offset"]), way))
            continue
        message = f"topic {topic!r}, partition {row['partition']!r}, offset {row['offset']!r} is no offset"
        problems.append(Problem("AB650", f"{path}:{line}", message, _REMEDY))
    if problems:
        raise DeclaredInputError(problems)
    return found


def _rows(reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, str]]]:
    for row in reader:
        yield reader.line_num, row


def _is_number(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII) is not None
