"""`adopt` on real clusters: topics that stand where copies would become ours, as far as that loses nothing."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from reconciler.declare import load
from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.model.tasks.spec import FlowSpec
from reconciler.state.ownership import Ownership
from tests.support.clusters.kafka import (
    admin,
    create,
    declared,
    delete,
    partitions,
    set_config,
    topic_configs,
    topic_id,
)
from tests.support.commands.command import anabranch
from tests.support.commands.payments import write
from tests.support.replicator.copying import copy, fill
from tests.support.replicator.translated import committed, contents

USAGE, REFUSED = 2, 4


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


def starting(file: Path, topic: str, *offsets: int) -> None:
    """Declare where the copy of a topic begins."""
    start = f"start: {{offsets: {{{topic}: [{', '.join(map(str, offsets))}]}}}}"
    text = file.read_text()
    assert "tasks: 2}" in text
    file.write_text(text.replace("tasks: 2}", f"tasks: 2, {start}}}"))


def owned(target: EmbeddedCluster, file: Path) -> dict[str, OwnedTopic]:
    return Ownership(declared("eu-west", target), load((file,)).name).read()


def test_empty_topics_are_adopted_made_fit_and_get_identical_offsets(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b, c = (f"us-east.{topic_name}-{end}" for end in "abc")
    for end in "abc":
        create(source_cluster, f"{topic_name}-{end}", 3, {"retention.ms": "86400000"})
    create(target_cluster, a, 2, {"message.timestamp.type": "LogAppendTime", "flush.ms": "1000"})
    create(target_cluster, b, 3)
    refused = anabranch("apply", file, "--yes")
    assert (refused.code, f"`anabranch adopt --target {a}` takes it over" in refused.stderr) == (REFUSED, True)

    assert anabranch("adopt", file).code == USAGE
    assert anabranch("adopt", file, "--target", f"{a}x", "--yes").code == USAGE
    declined = anabranch("adopt", file, answer="n\n")
    assert (declined.code, "Nothing was changed." in declined.stderr) == (1, True)
    assert not {a, b} & owned(target_cluster, file).keys()

    ended = anabranch("adopt", file, "--target", a, "--yes", "--format", "json")
    value = json.loads(ended.stdout)
    done = [(step["action"], step["topic"]) for step in value["outcome"]["done"]]
    assert (ended.code, ended.stderr) == (0, "")
    assert [one for one in done if one[1] == a] == [
        ("add-partitions", a),
        ("alter-config", a),
        ("record-ownership", a),
    ]
    assert not {b, c} & owned(target_cluster, file).keys()
    record = owned(target_cluster, file)[a]
    assert (record.topic_id, record.offsets, record.partitions) == (topic_id(target_cluster, a), "identical", 3)
    assert (record.source, record.source_topic, record.flow) == ("us-east", f"{topic_name}-a", "us-east-eu-west")
    configs = topic_configs(target_cluster, a)
    assert (configs["message.timestamp.type"], configs["retention.ms"]) == ("CreateTime", "86400000")
    # What somebody else has set, and no copy needs, stays.
    assert configs["flush.ms"] == "1000"
    assert partitions(target_cluster, a) == 3

    whole = anabranch("adopt", file, answer="y\n")
    assert (whole.code, f"record that {b} is ours" in whole.stdout, a in whole.stdout) == (0, True, False)
    assert anabranch("plan", file, "--target", a, "--target", b, "--detailed-exitcode").code == 0
    applied = anabranch("apply", file, "--yes")
    assert (applied.code, f"make {c}" in applied.stdout) == (0, True)
    assert anabranch("plan", file, "--detailed-exitcode").code == 0
    value = json.loads(anabranch("drift", file, "--format", "json").stdout)
    assert [(one["topic"], one["field"]) for one in value["drift"]] == [(a, "flush.ms")]
    again = anabranch("adopt", file, "--yes")
    assert (again.code, "Nothing to do" in again.stdout) == (0, True)


def test_what_cannot_be_adopted_is_refused_and_nothing_is_changed(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    wide, held, theirs = (f"us-east.{topic_name}-{end}" for end in ("wide", "held", "theirs"))
    whole = file.read_text()
    for end in ("wide", "held", "theirs"):
        create(source_cluster, f"{topic_name}-{end}", 2)
    create(target_cluster, wide, 3)
    create(target_cluster, held, 2)
    fill(target_cluster, held, 5)
    other = file.with_name("theirs.yaml")
    other.write_text(whole.replace("name: ", "name: x").replace(f"{topic_name}.*", f"{topic_name}-theirs"))
    assert anabranch("apply", other, "--yes").code == 0

    ended = anabranch("adopt", file, "--yes")
    assert (ended.code, ended.stdout, ended.stderr.count("[AB425]")) == (REFUSED, "", 3)
    assert f"the topology x{load((file,)).name} owns it" in ended.stderr
    assert "has 3 partitions, and its original 2" in ended.stderr
    assert "holds 5 offsets that others have written" in ended.stderr
    assert f"start: {{offsets: {{{topic_name}-held: [OFFSET, …]}}}}" in ended.stderr
    for name in (wide, held, theirs):
        assert anabranch("adopt", file, "--target", name, "--yes").code == REFUSED
    file.write_text(whole.replace("tasks: 2}", "tasks: 2, offsets: identical}"))
    ended = anabranch("adopt", file, "--target", held, "--yes")
    assert (ended.code, "demands identical offsets, which only an empty topic" in ended.stderr) == (REFUSED, True)
    assert not {wide, held} & owned(target_cluster, file).keys()
    assert owned(target_cluster, other)[theirs].topology == f"x{load((file,)).name}"

    # Somebody makes it anew while the plan is read.
    file.write_text(whole)
    starting(file, f"{topic_name}-held", 0, 0)

    def meanwhile() -> str:
        delete(target_cluster, held)
        create(target_cluster, held, 2)
        return "y\n"

    ended = anabranch("adopt", file, "--target", held, answer=meanwhile)
    assert (ended.code, "[AB407]" in ended.stderr, held in owned(target_cluster, file)) == (REFUSED, True, False)


@pytest.mark.spark
def test_copies_go_on_where_another_copier_ended_and_begin_anew_after_a_destroy(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    source, target = declared("us-east", source_cluster), declared("eu-west", target_cluster)
    plain, moved = f"{topic_name}-plain", f"{topic_name}-moved"
    for topic in (plain, moved):
        create(source_cluster, topic, 1)
        fill(source_cluster, topic, 100)
    # As MirrorMaker 2 would have left it: all but the last twenty records, and marks of its own before them.
    copy = f"us-east.{moved}"
    create(target_cluster, copy, 1)
    fill(target_cluster, copy, 7)
    starting(file, moved, 80)

    assert anabranch("adopt", file, "--target", copy, "--yes").code == 0
    assert owned(target_cluster, file)[copy].offsets == "translated"
    assert anabranch("plan", file, "--target", copy, "--detailed-exitcode").code == 0
    assert anabranch("apply", file, "--yes").code == 0
    assert anabranch("replicate", file, "--until-caught-up").code == 0
    found, originals = contents(target, copy), contents(source, moved)
    assert found[7:] == originals[80:]
    assert compare(source, plain, target, f"us-east.{plain}").is_identical

    destroyed = anabranch("destroy", file, "--allow-delete", "topic=2", "--yes")
    assert destroyed.code == 0, destroyed
    assert not {copy, f"us-east.{plain}"} & set(admin(target_cluster).list_topics(timeout=30).topics)
    fill(source_cluster, plain, 10)
    assert anabranch("apply", file, "--yes").code == 0
    assert anabranch("replicate", file, "--until-caught-up").code == 0
    # Nothing is remembered of copies that were deleted.
    again = compare(source, plain, target, f"us-east.{plain}")
    assert (again.is_identical, again.records) == (True, 110)
    assert contents(target, copy) == originals[80:]


def copied(file: Path) -> None:
    """Copy what the file declares, as `replicate` does, without Spark."""
    topology = load((file,))
    (flow,) = topology.flows
    copy(FlowSpec.compile(topology, flow, uuid.uuid4().hex))


def test_a_lost_record_of_ownership_is_written_anew_of_what_the_records_of_copies_prove(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b, foreign = (f"us-east.{topic_name}-{end}" for end in "abc")
    for end in "abc":
        create(source_cluster, f"{topic_name}-{end}", 2, {"retention.ms": "86400000"})
        fill(source_cluster, f"{topic_name}-{end}", 20, 2)
    assert anabranch("apply", file, "--yes").code == 0
    copied(file)
    before = owned(target_cluster, file)
    state = f"anabranch.{load((file,)).name}.owned.internal"

    # A clean-up that deletes from it is noticed before anything is gone.
    set_config(target_cluster, state, "cleanup.policy", "delete")
    assert f"{state} has cleanup.policy=delete, and records" in " ".join(anabranch("plan", file).stdout.split())
    drifted = anabranch("drift", file, "--format", "json", "--detailed-exitcode")
    (found,) = json.loads(drifted.stdout)["drift"]
    assert (drifted.code, found["topic"], found["field"], found["found"]) == (3, state, "cleanup.policy", "delete")

    kept = committed(declared("eu-west", target_cluster), state)
    delete(target_cluster, state)
    delete(target_cluster, foreign)
    create(target_cluster, foreign, 2)
    fill(target_cluster, foreign, 5)
    planned = anabranch("plan", file)
    assert (planned.code, planned.stderr.count("[AB416]"), planned.stderr.count("[AB401]")) == (REFUSED, 2, 1)
    assert f"`anabranch adopt --rebuild --target {a}` writes it anew" in planned.stderr
    assert anabranch("adopt", file, "--no-verify", "--yes").code == USAGE

    ended = anabranch("adopt", file, "--rebuild", "--no-verify", "--yes", "--format", "json")
    value = json.loads(ended.stdout)
    done = [step["topic"] for step in value["outcome"]["done"] if step["action"] == "record-ownership"]
    assert (ended.code, done, ended.stdout.count('"rebuilt"')) == (0, [a, b], 2)
    assert owned(target_cluster, file) == {name: before[name] for name in (a, b)}
    delete(target_cluster, foreign)
    applied = anabranch("apply", file, "--yes")
    assert applied.code == 0, applied
    assert topic_configs(target_cluster, state)["cleanup.policy"] == "compact"
    copied(file)
    # A backup brings back what was on record then.
    now = owned(target_cluster, file)
    delete(target_cluster, state)
    create(target_cluster, state, 1, {"cleanup.policy": "compact"})
    restored = Producer(target_cluster.client_config())
    for one in kept:
        restored.produce(state, one.value(), one.key(), 0, headers=one.headers() or [])
    assert restored.flush(30) == 0
    assert owned(target_cluster, file) == before
    assert {name: record.topic_id for name, record in now.items() if name != foreign} == {
        name: before[name].topic_id for name in (a, b)
    }
    for end in "abc":
        found = compare(
            declared("us-east", source_cluster),
            f"{topic_name}-{end}",
            declared("eu-west", target_cluster),
            f"us-east.{topic_name}-{end}",
        )
        assert (found.is_identical, found.records) == (True, 20)


@pytest.mark.spark
@pytest.mark.long
def test_what_differs_from_its_original_is_not_recorded_anew(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    for end in "ab":
        create(source_cluster, f"{topic_name}-{end}", 1)
        fill(source_cluster, f"{topic_name}-{end}", 20)
    assert anabranch("apply", file, "--yes").code == 0
    copied(file)
    a, b = (f"us-east.{topic_name}-{end}" for end in "ab")
    delete(target_cluster, f"anabranch.{load((file,)).name}.owned.internal")
    fill(target_cluster, b, 3)
    refused = anabranch("adopt", file, "--rebuild", "--yes")
    assert (refused.code, refused.stderr.count("[AB417]"), f"topic {b}: its records" in refused.stderr) == (
        REFUSED,
        1,
        True,
    )
    whole = anabranch("adopt", file, "--rebuild", "--target", a, "--yes")
    assert (whole.code, set(owned(target_cluster, file))) == (0, {a}), whole
