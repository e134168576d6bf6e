"""The declaration that tests of `plan`, `apply` and `drift` share: one flow, of the topics that a test has made."""

from __future__ import annotations

from pathlib import Path

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create
from tests.support.commands.command import anabranch

DECLARATION = """\
version: 1
name: {name}
clusters:
  us-east: {{bootstrap: ["{source}"], datacenter: dc1}}
  eu-west: {{bootstrap: ["{target}"], datacenter: dc2}}
defaults:
  topics: {{include: ["{topic}.*"]}}
flows:
  - {{from: us-east, to: eu-west, tasks: 2}}
"""


def name_of(topic: str) -> str:
    """Return the name of the topology that `write` declares."""
    return topic[-40:].strip("-")


def write(folder: Path, source: str, target: str, topic: str) -> Path:
    path = folder / "payments.yaml"
    path.write_text(DECLARATION.format(name=name_of(topic), source=source, target=target, topic=topic))
    return path


def made(file: Path, source: EmbeddedCluster, *topics: str) -> list[str]:
    """Make originals and apply; return their copies."""
    for topic in topics:
        create(source, topic)
    assert anabranch("apply", file, "--yes").code == 0
    return [f"us-east.{topic}" for topic in topics]
