"""The file of a topology with one flow, from `east` to `west`, for tests of commands that take it as it is."""

from __future__ import annotations

from pathlib import Path

from reconciler.embedded import EmbeddedCluster

FLOW = "east-west"
FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, topics: {{include: [{topic}]}}, tasks: {tasks}}}
"""


def name_of(topic: str) -> str:
    """Return the name of the topology that a test with this topic declares."""
    return topic.lower().replace("_", "-")[-40:].strip("-")


def write(path: Path, name: str, ends: tuple[EmbeddedCluster, EmbeddedCluster], topic: str, tasks: int = 1) -> Path:
    """Write the file.

    Args:
        path: where.
        name: of the topology.
        ends: source and target.
        topic: what the flow takes.
        tasks: of the flow.
    """
    east, west = (one.bootstrap for one in ends)
    path.write_text(FILE.format(name=name, east=east, west=west, topic=topic, tasks=tasks), encoding="utf-8")
    return path
