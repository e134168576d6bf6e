"""Twelve sessions on terminals of 80 and of 140 columns: no word is broken, nothing is cut, and NO_COLOR is obeyed.

What does not fit into a line is broken by a terminal wherever that happens to be, so no line may be wider than it.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from rich.cells import cell_len

from reconciler.embedded import EmbeddedCluster
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.report.text.line import NARROW
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.status import StatusWriter
from tests.support.clusters.kafka import create, declared
from tests.support.commands import one_flow
from tests.support.commands.pictures import PICTURES, drawn_by, picture
from tests.support.replicator.alive import alive

# A colour, and whatever a terminal takes for an order.
COLOUR = re.compile(r"\x1b\[(?:[\d;]*;)?[349][0-7]m")
ORDER = re.compile(r"\x1b(?:\[[?\d;]*[A-Za-z]|\][^\x07]*\x07)")
SESSIONS = (
    ["--help"],
    ["apply", "--help"],
    ["validate", "broken.yaml"],
    ["flows"],
    ["graph"],
    ["explain"],
    ["explain", "--acls"],
    ["plan"],
    ["status", "--partitions"],
    ["describe", "flow", "FLOW"],
    ["describe", "topic", "TOPIC"],
    ["lag"],
)
# An aside that only wide terminals show.
ASIDES = {"plan"}


@pytest.fixture
def folder(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    ends = (source_cluster, target_cluster)
    name = one_flow.name_of(topic_name)
    one_flow.write(tmp_path / "anabranch.yaml", name, ends, topic_name)
    create(source_cluster, topic_name, 2)
    written = (tmp_path / "anabranch.yaml").read_text()
    (tmp_path / "broken.yaml").write_text(written.replace("flows:", "flow:").replace("bootstrap", "bootstraps"))
    return tmp_path


def reported(topic: str) -> TaskStatus:
    """Return what a task reports of a partition that is parked, and of one that runs."""
    message = "the batch at offset 88,412 has 3,104,077 bytes: raise max.message.bytes of the copy, or declare a dlq"
    parked = PartitionStatus(topic, 0, f"east.{topic}", PartitionState.PARKED, 1, 9, Reason("AB212", message))
    running = PartitionStatus(topic, 1, f"east.{topic}", PartitionState.RUNNING, 7, 9, None, Metrics(lag_seconds=0.5))
    return TaskStatus(
        *(one_flow.FLOW, "east", "west", "run", 0, 1, time.time(), False, None, 9, 900, 1.0, 100.0),
        (parked, running),
    )


@pytest.mark.parametrize("session", SESSIONS, ids=" ".join)
def test_no_word_is_broken_and_nothing_is_cut(
    session: list[str], folder: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    west, name = declared("west", target_cluster), one_flow.name_of(topic_name)
    Journal(west, own(name).status).ensure()
    arguments = [{"FLOW": one_flow.FLOW, "TOPIC": topic_name}.get(word, word) for word in session]
    with alive(StatusWriter(west, name), reported(topic_name)):
        plain = words(drawn_by(folder, arguments, 10_000))
        for columns in (80, 140):
            drawn = drawn_by(folder, arguments, columns)
            assert [line for line in final(drawn).split("\n") if cell_len(line) > columns] == []
            if session[0] not in ASIDES or columns >= NARROW:
                assert words(drawn) == plain
            if PICTURES:
                name = "-".join(word.strip("-").lower() for word in session)
                title = " ".join(["anabranch", *session])
                (Path(PICTURES) / f"{name}-{columns}.svg").write_text(picture(drawn, title, columns))
            colourless = drawn_by(folder, arguments, columns, NO_COLOR="1")
            assert not COLOUR.search(colourless)


def final(drawn: str) -> str:
    """Return what is left on the screen: a spinner, whose first letter is one of Braille, is erased in its line."""
    lines = []
    for line in ORDER.sub("", drawn).split("\n"):
        parts = [part for part in line.split("\r") if part and not "\u2800" <= part[0] <= "\u28ff"]
        lines.append(parts[-1] if parts else "")
    return "\n".join(lines)


def words(drawn: str) -> list[str]:
    # Of the moment are figures alone.
    return re.sub(r"\d[\d.,]*", "N", final(drawn)).split()
