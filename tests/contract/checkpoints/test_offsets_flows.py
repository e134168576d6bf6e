"""`offsets --flow` on real brokers: where copies go on, and moving that while nothing runs; no Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reconciler.checkpoints.groups import positions as checkpoints_positions
from reconciler.checkpoints.translation.translate import Translator
from reconciler.cli.main import main
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.names.own_names import lease_group
from reconciler.model.offsets.translation import Translated
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.shares import Place
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from tests.contract.replicator.commit.test_translated import make
from tests.support.clusters.consumers import Said, offsets_of, places_of, rows, table
from tests.support.clusters.kafka import create, delete, delete_records, topic_id
from tests.support.replicator.copying import Running, fill, log_end
from tests.support.replicator.translated import contents

ERROR, REFUSED = 1, 4
DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{source}"]}}
  west: {{bootstrap: ["{target}"]}}
flows:
  - {{from: east, to: west, name: moved, topics: {{include: ["{topic}.*"]}}}}
"""


@dataclass
class Scene:
    """A flow with a copy of each mode, and what may be done with it."""

    file: Path
    spec: FlowSpec
    same: str
    other: str
    run: Callable[..., Said]

    @property
    def places(self) -> list[Place]:
        copies = ((self.same, "identical"), (self.other, "translated"))
        return [Place(topic, 0, f"east.{topic}", mode) for topic, mode in copies]

    @property
    def group(self) -> str:
        return lease_group(self.spec.topology, "moved")

    def copy(self) -> None:
        """Copy all that there is, in a run of its own."""
        with Running(replace(self.spec, run=uuid.uuid4().hex), self.places) as running:
            running.wait()


@pytest.fixture
def scene(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Scene:
    file = tmp_path / "moved.yaml"
    name = topic_name[-40:].strip("-")
    addresses = {"source": source_cluster.bootstrap, "target": target_cluster.bootstrap}
    file.write_text(DECLARATION.format(name=name, topic=topic_name, **addresses))
    topology = load((file,))
    flow, target = topology.flows[0], topology.clusters["west"]
    same, other = f"{topic_name}-same", f"{topic_name}-other"
    make(source_cluster, target_cluster, [same, other])
    for journal in own(topology.name).all:
        Journal(target, journal).ensure()
    modes = {same: "identical", other: "translated"}
    Ownership(target, topology.name).write(
        OwnedTopic(
            f"east.{topic}",
            topic_id(target_cluster, f"east.{topic}"),
            name,
            "",
            "moved",
            "east",
            topic,
            "",
            1,
            mode,
            {},
        )
        for topic, mode in modes.items()
    )

    def run(command: str, *arguments: object) -> Said:
        code = main(["offsets", command, str(file), *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, " ".join(said.err.split())

    return Scene(file, FlowSpec.compile(topology, flow, "none"), same, other, run)


def test_positions_are_read_where_they_stand(
    scene: Scene, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    code, out, _ = scene.run("read", "--flow", "moved", "--format", "csv")
    assert (code, [(row["topic"], row["offset"]) for row in rows(out)]) == (0, [(scene.other, ""), (scene.same, "0")])
    for topic in (scene.same, scene.other):
        fill(source_cluster, topic, 100)
    scene.copy()
    for topic in (scene.same, scene.other):
        fill(source_cluster, topic, 7)
        delete_records(source_cluster, topic, 10)
    code, out, err = scene.run("read", "--flow", "moved", "--format", "json")
    first, second = json.loads(out)["offsets"]
    assert (code, err) == (0, "")
    note = first.pop("metadata")
    assert OffsetMetadata.parse(note).transactional_id.startswith(f"anabranch.{scene.spec.topology}.moved.")
    common = {"flow": "moved", "partition": 0, "log_start": 10, "log_stable": 107, "log_end": 107}
    assert first == common | {
        **{"topic": scene.other, "remote": f"east.{scene.other}", "offsets": "translated", "offset": 100, "lag": 7}
    }
    assert second == common | {
        **{"topic": scene.same, "remote": f"east.{scene.same}", "offsets": "identical", "offset": 100, "lag": 7},
        "metadata": "",
    }
    code, out, _ = scene.run("read", "--flow", "moved", "--topic", scene.same)
    assert table(out)[1:] == [
        ["moved", scene.same, "0", "100", f"east.{scene.same}", "identical", "10", "107", "107", "7"]
    ]
    # What the flow holds there is no consumer's.
    code, out, _ = scene.run("read", "--cluster", "west", "--group", "all", "--format", "csv")
    assert not [row for row in rows(out) if row["group"] == scene.group]
    assert offsets_of(target_cluster, scene.group) == {(f"east.{scene.other}", 0): 100}


def test_a_position_is_moved_and_copying_goes_on_there(
    scene: Scene, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    fill(source_cluster, scene.other, 100)
    # Also before anything was ever copied.
    code, out, err = scene.run("write", "--flow", "moved", "--topic", scene.other, "--to", 20, "--yes")
    assert (code, err) == (0, "wrote 1 offset of 1 flow")
    assert table(out)[1] == ["moved", scene.other, "0", "none", "20"]
    scene.copy()
    originals = contents(scene.spec.source, scene.other)
    assert contents(scene.spec.target, f"east.{scene.other}") == originals[20:]

    log = (f"east.{scene.other}", 0)
    before = OffsetMetadata.parse(places_of(target_cluster, scene.group)[log].metadata)
    assert before.epoch is not None
    code, out, _ = scene.run("write", "--flow", "moved", "--topic", scene.other, "--to", 60, "--yes")
    assert (code, "40 offsets copied again" in out) == (0, True)
    # Nobody knows the leader epoch of what stands before another offset.
    place = places_of(target_cluster, scene.group)[log]
    assert (place.offset, OffsetMetadata.parse(place.metadata)) == (60, before._replace(epoch=None))
    assert place.leader_epoch == -1
    scene.copy()
    assert contents(scene.spec.target, log[0]) == originals[20:] + originals[60:]

    fill(source_cluster, scene.other, 30)
    code, out, err = scene.run("write", "--flow", "moved", "--topic", scene.other, "--to", 125, "--yes")
    assert (code, "25 offsets never copied" in out) == (0, True), err
    scene.copy()
    originals = contents(scene.spec.source, scene.other)
    assert contents(scene.spec.target, log[0]) == originals[20:100] + originals[60:100] + originals[125:]


def test_where_the_original_was_made_anew_a_written_position_is_one_of_the_new_log(
    scene: Scene,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is a way out for who is parked, as what came behind the old records is lost."""

    def planned() -> str:
        assert main(["plan", str(scene.file)]) == 0
        return " ".join(capsys.readouterr().out.split())

    ownership = Ownership(scene.spec.target, scene.spec.topology)
    record = ownership.read()[f"east.{scene.other}"]
    ownership.write([replace(record, source_topic_id=topic_id(source_cluster, scene.other))])
    fill(source_cluster, scene.other, 50)
    scene.copy()
    before = contents(scene.spec.target, f"east.{scene.other}")
    delete(source_cluster, scene.other)
    create(source_cluster, scene.other)
    fill(source_cluster, scene.other, 70)
    scene.copy()
    assert contents(scene.spec.target, f"east.{scene.other}") == before
    assert "its copy stays as it is" in planned()
    code, _, err = scene.run("write", "--flow", "moved", "--topic", scene.other, "--to", 60, "--yes")
    assert code == 0, err
    # No run leaves the topic out any more.
    assert "made anew" not in planned()
    scene.copy()
    originals = contents(scene.spec.source, scene.other)
    assert len(originals) == 70
    assert contents(scene.spec.target, f"east.{scene.other}") == before + originals[60:]
    # What is told of the copy is of the new log, too.
    with Translator(scene.spec.source, scene.spec.target, scene.spec.flow, scene.spec.topology) as translator:
        ends = log_end(scene.spec.target, f"east.{scene.other}")
        assert translator.downstream(scene.other, 0, 70) == Translated(ends, "end")
        assert translator.downstream(scene.other, 0, 65).offset in range(ends - 10, ends)


def test_the_end_of_a_log_is_not_moved(scene: Scene, source_cluster: EmbeddedCluster, tmp_path: Path) -> None:
    fill(source_cluster, scene.same, 10)
    fill(source_cluster, scene.other, 10)
    scene.copy()
    code, out, err = scene.run("write", "--flow", "moved", "--topic", scene.same, "--to", "earliest", "--yes")
    assert (code, out) == (REFUSED, "")
    assert "has identical offsets: its position is the end of its log at west" in err
    assert "[AB627]" in err
    path = tmp_path / "positions.csv"
    assert scene.run("export", "--flow", "moved", "--out", path)[0] == 0
    code, _, err = scene.run("import", "--from", path, "--yes")
    assert (code, f"{path}:3: copy east.{scene.same} has identical offsets" in err) == (REFUSED, True)


def test_positions_are_exported_and_imported(
    scene: Scene, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    path = tmp_path / "positions.json"
    fill(source_cluster, scene.other, 10)
    assert scene.run("export", "--flow", "moved", "--topic", scene.other, "--out", path)[0] == 0
    # There is no position yet.
    assert json.loads(path.read_text()) == {"version": 1, "offsets": []}
    scene.copy()
    assert scene.run("export", "--flow", "moved", "--topic", scene.other, "--out", path)[0] == 0
    log = (f"east.{scene.other}", 0)
    before = places_of(target_cluster, scene.group)[log]
    assert scene.run("write", "--flow", "moved", "--topic", scene.other, "--to", 3, "--yes")[0] == 0
    assert offsets_of(target_cluster, scene.group) == {log: 3}
    code, _, err = scene.run("import", "--from", path, "--yes")
    assert (code, err) == (0, "wrote 1 offset of 1 flow")
    after = places_of(target_cluster, scene.group)[log]
    assert after.offset == before.offset == 10
    # The note of a file is of another time: what is there now counts.
    assert OffsetMetadata.parse(after.metadata) == OffsetMetadata.parse(before.metadata)._replace(epoch=None)

    path = tmp_path / "wrong.csv"
    lines = [f"moved,{scene.other},1,0", f"moved,{scene.other}x,0,0", "elsewhere,a,0,0", f"moved,{scene.other},0,11"]
    path.write_text("\n".join(["flow,topic,partition,offset", *lines]))
    code, out, err = scene.run("import", "--from", path, "--yes")
    assert (code, out) == (ERROR, "")
    assert f"{path}:2: flow moved has a copy of topic {scene.other} with partitions 0 to 0, not 1 [AB623]" in err
    assert f"{path}:3: flow moved has no copy of topic {scene.other}x [AB623]" in err
    assert f"{path}:4: no flow elsewhere is declared; there are moved [AB623]" in err
    assert f"{path}:5: offset 11 of topic {scene.other}, partition 0 is behind the log's end" in err
    assert offsets_of(target_cluster, scene.group) == {log: 10}


def test_nothing_is_moved_while_the_flow_runs(
    scene: Scene, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(source_cluster, scene.other, 10)
    command = ("write", "--flow", "moved", "--topic", scene.other, "--to", 3, "--yes")
    with Running(scene.spec, scene.places) as running:
        running.wait()
        code, out, err = scene.run(*command)
        assert (code, out, f"run {scene.spec.run} copies it" in err, "[AB628]" in err) == (REFUSED, "", True, True)
        with monkeypatch.context() as patched:
            # As between two words of a task: then its membership tells.
            patched.setattr(checkpoints_positions, "copying", lambda *_: [])
            code, _, err = scene.run(*command)
        assert (code, f"group {scene.group} has members" in err, "[AB628]" in err) == (REFUSED, True, True)
    assert offsets_of(target_cluster, scene.group) == {(f"east.{scene.other}", 0): 10}
    assert scene.run(*command)[0] == 0
    assert offsets_of(target_cluster, scene.group) == {(f"east.{scene.other}", 0): 3}
