"""A record that says of somebody else's topic that it is ours, on a real broker: nothing happens to it unasked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from confluent_kafka import Producer

from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from tests.support.clusters.kafka import create, declared, names, topic_configs, topic_id
from tests.support.commands.payments import DECLARATION, name_of
from tests.support.commands.payments import write as declare


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Run a command; return its exit code, and all that it says in one line."""
    capsys.readouterr()
    code = main(list(map(str, arguments)))
    said = capsys.readouterr()
    return code, " ".join((said.out + said.err).split())


def records(broker: EmbeddedCluster, topic: str) -> dict[str, OwnedTopic]:
    return Ownership(declared("eu-west", broker), name_of(topic)).read()


@pytest.fixture
def applied(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    capsys: pytest.CaptureFixture[str],
) -> Path:
    """A topology file that was applied: one copy of ours, and beside it a topic of somebody else with a record."""
    create(source_cluster, topic_name)
    file = declare(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)
    assert run(capsys, "apply", file, "--yes")[0] == 0
    create(target_cluster, f"{topic_name}-theirs", 2, {"retention.ms": "123456"})
    forge(target_cluster, topic_name, f"{topic_name}-theirs")
    return file


def forge(broker: EmbeddedCluster, topic: str, theirs: str) -> None:
    """Write what a program would that may write to the journal and knows how ours look like."""
    ours = records(broker, topic)[f"us-east.{topic}"]
    forged = {**asdict(ours), "name": theirs, "topic_id": topic_id(broker, theirs)}
    Journal(declared("eu-west", broker), own(name_of(topic)).owned).write(
        f"topic/{theirs}", {"kind": "topic", **forged}
    )


def test_it_is_destroyed_only_by_its_name(
    applied: Path, target_cluster: EmbeddedCluster, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs, ours = f"{topic_name}-theirs", f"us-east.{topic_name}"
    code, said = run(capsys, "apply", applied, "--yes")
    assert (code, topic_configs(target_cluster, theirs)) == (0, {"retention.ms": "123456"}), said
    code, said = run(capsys, "destroy", applied, "--yes", "--allow-delete", "topic=99")
    assert (code, "[AB445]" in said, f"topic {theirs}: on record as ours" in said) == (4, True, True), said
    assert said.index(ours) < said.index("on record as ours, but this declaration would not have made them")
    assert {theirs, ours} <= names(target_cluster)
    # Named together with others it still is by its name.
    code, said = run(capsys, "destroy", applied, "--yes", "--target", ours, "--allow-delete", "topic=99")
    assert (code, {theirs, ours} & names(target_cluster)) == (0, {theirs}), said
    code, said = run(capsys, "destroy", applied, "--yes", "--target", theirs)
    assert (code, "[AB420]" in said, theirs in names(target_cluster)) == (4, True, True), said
    code, said = run(capsys, "destroy", applied, "--yes", "--target", theirs, "--allow-delete", "topic=1")
    assert (code, theirs in names(target_cluster)) == (0, False), said
    assert not {theirs, ours} & records(target_cluster, topic_name).keys()
    assert run(capsys, "destroy", applied, "--yes", "--allow-delete", "topic=1")[0] == 0


def test_it_is_pruned_only_by_its_name(
    applied: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    theirs, ours = f"{topic_name}-theirs", f"us-east.{topic_name}"
    create(source_cluster, f"{topic_name}-kept")
    text = DECLARATION.format(
        name=topic_name[-40:].strip("-"),
        source=source_cluster.bootstrap,
        target=target_cluster.bootstrap,
        topic=f"{topic_name}-kept",
    )
    applied.write_text(text)
    code, said = run(capsys, "plan", applied)
    assert (code, f"only `--target {theirs}` and --allow-delete together delete it" in said) == (0, True), said
    code, said = run(capsys, "apply", applied, "--yes", "--allow-delete", "topic=99")
    assert (code, "[AB445]" in said, {theirs, ours} <= names(target_cluster)) == (4, True, True), said
    code, said = run(capsys, "apply", applied, "--yes", "--target", theirs, "--allow-delete", "topic=1")
    assert (code, {theirs, ours} & names(target_cluster)) == (0, {ours}), said
    # What it has made goes on as ever.
    code, said = run(capsys, "apply", applied, "--yes", "--allow-delete", "topic=1")
    assert (code, {theirs, ours} & names(target_cluster)) == (0, set()), said


def test_a_wrong_record_is_taken_away_by_a_tombstone(
    applied: Path, target_cluster: EmbeddedCluster, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = f"{topic_name}-theirs"
    producer = Producer(target_cluster.client_config())
    producer.produce(own(name_of(topic_name)).owned.name, key=f"topic/{theirs}".encode(), value=None)
    assert producer.flush(30) == 0
    code, said = run(capsys, "destroy", applied, "--yes", "--allow-delete", "topic=1")
    assert (code, theirs in names(target_cluster), f"us-east.{topic_name}" in names(target_cluster)) == (
        0,
        True,
        False,
    ), said
