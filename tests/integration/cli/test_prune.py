"""`apply --allow-delete` and `--target` on real clusters: what is deleted, what never is, and what is only a part."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.state.declarations import Declarations
from reconciler.state.status import StatusWriter
from tests.support.clusters.kafka import admin, create, declared, delete, names
from tests.support.commands.command import Ended, anabranch
from tests.support.commands.payments import made, write
from tests.support.replicator.alive import alive

CHANGES, USAGE, REFUSED = 3, 2, 4
NOTHING = "Nothing to do: 0 to add, 0 to change, 0 to delete.\n"


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) >= 1
    file.write_text(text.replace(old, new))


def exclude(file: Path, *topics: str) -> None:
    changed(file, '.*"]}', f'.*"], exclude: [{", ".join(topics)}]}}')


def in_force(target: EmbeddedCluster, file: Path) -> str | None:
    declarations = Declarations(declared("eu-west", target), load((file,)).name)
    entry = declarations.current().in_force
    declarations.close()
    return entry.digest if entry else None


def test_what_the_declaration_takes_no_longer_is_deleted_where_that_is_allowed(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b, c = made(file, source_cluster, *(f"{topic_name}-{end}" for end in "abc"))
    exclude(file, f"{topic_name}-a")
    delete(source_cluster, f"{topic_name}-b")

    # Nobody spoke of deleting: all stays as it was, also through an apply.
    assert f"{a}   flow us-east-eu-west no longer takes" in anabranch("plan", file).stdout
    assert anabranch("apply", file, "--yes").code == 0
    assert {a, b, c} <= names(target_cluster)

    planned = anabranch("plan", file, "--allow-delete", "topic=1", "--detailed-exitcode")
    assert planned.code == CHANGES
    assert f"- topic  {a}   deleted with all records" in planned.stdout
    assert f"{b}   us-east's {topic_name}-b is gone" in planned.stdout
    assert "\n0 to add, 0 to change, 1 to delete.\n" in planned.stdout
    assert planned.stdout.endswith(f"\nnext: anabranch apply {file} --allow-delete topic=1\n")
    markdown = anabranch("plan", file, "--allow-delete", "topic=1", "--format", "markdown").stdout
    assert f"- `-` eu-west: `{a}` **deleted, with all records**; " in markdown

    for command, options in (("plan", ()), ("apply", ("--yes",))):
        refused = anabranch(command, file, "--allow-delete", "topic=0", *options)
        assert (refused.code, "[AB420]" in refused.stderr) == (REFUSED, True)
        assert "1 of the 3 that are ours at eu-west (more than 10 %" in refused.stderr
    refused = anabranch("apply", file, "--allow-delete", "topic=1", answer="y\n")
    assert (refused.code, "Nothing was changed." in refused.stderr) == (1, True)
    assert {a, b, c} <= names(target_cluster)

    applied = anabranch("apply", file, "--allow-delete", "topic=1", "--yes")
    assert (applied.code, f"done      eu-west  delete {a}" in applied.stdout) == (0, True)
    assert {a, b, c} & names(target_cluster) == {b, c}
    assert anabranch("plan", file, "--allow-delete", "topic=9").stdout.endswith(NOTHING)


def test_no_trick_with_the_declaration_deletes_everything(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b = made(file, source_cluster, f"{topic_name}-a", f"{topic_name}-b")
    whole = file.read_text()

    def pruned(*options: str) -> Ended:
        ended = anabranch("apply", file, "--allow-delete", "topic=99", "--yes", *options)
        assert {a, b} <= names(target_cluster), ended
        return ended

    no_flows = whole[: whole.index("flows:")]
    for text in (no_flows, whole.replace("tasks: 2", "enabled: false")):
        file.write_text(text)
        for options in ((), ("--clusters", "eu-west")):
            ended = pruned(*options)
            assert (ended.code, "[AB422]" in ended.stderr, "anabranch destroy" in ended.stderr) == (REFUSED, True, True)
    # A flow whose topics are not there now: an emptied source must not empty its target.
    file.write_text(whole.replace(f'"{topic_name}.*"', f'"{topic_name}x.*"'))
    ended = pruned()
    assert (ended.code, "[AB422]" in ended.stderr, "--clusters eu-west" in ended.stderr) == (REFUSED, True, True)
    # Another alias, of the source or of the target; another name.
    before = names(target_cluster)
    for old, new, code in (
        ("us-east", "us-two", "AB432"),
        ("eu-west", "eu-two", "AB432"),
        # Copies under another topology's name are not its own to touch, nor to copy into.
        ("name: ", "name: x", "AB401"),
    ):
        file.write_text(whole.replace(old, new))
        ended = pruned()
        assert (ended.code, f"[{code}]" in ended.stderr, names(target_cluster) == before) == (REFUSED, True, True), (
            ended
        )


def test_a_reviewed_plan_deletes_nothing_that_is_not_allowed_anew(
    file: Path, tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b = made(file, source_cluster, f"{topic_name}-a", f"{topic_name}-b")
    exclude(file, f"{topic_name}-a")
    plan = tmp_path / "plan.json"
    assert anabranch("plan", file, "--allow-delete", "topic=1", "--out", plan).code == 0
    refused = anabranch("apply", file, "--plan", plan)
    assert (refused.code, "[AB420]" in refused.stderr, a in names(target_cluster)) == (REFUSED, True, True)
    exclude_nothing = plan.read_text().replace('"delete": 1', '"delete": 0')
    (tmp_path / "forged.json").write_text(exclude_nothing)
    forged = anabranch("apply", file, "--plan", tmp_path / "forged.json", "--allow-delete", "topic=0")
    assert (forged.code, a in names(target_cluster)) == (REFUSED, True)
    assert anabranch("apply", file, "--plan", plan, "--allow-delete", "topic=1").code == 0
    assert {a, b} & names(target_cluster) == {b}


def test_runs_of_the_old_declaration_stand_in_the_way(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b = made(file, source_cluster, f"{topic_name}-a", f"{topic_name}-b")
    old = digest_into(load((file,)), "eu-west")
    exclude(file, f"{topic_name}-a")
    new = digest_into(load((file,)), "eu-west")
    writer = StatusWriter(declared("eu-west", target_cluster), load((file,)).name)

    def prune_while(digest: str, remote: str) -> Ended:
        row = PartitionStatus(remote.removeprefix("us-east."), 0, remote, PartitionState.RUNNING, 0, 0)
        facts = ("us-east-eu-west", "us-east", "eu-west", f"run-{topic_name}", 0, 1)
        word = TaskStatus(*facts, time.time(), False, None, 0, 0, 0.0, 0.0, (row,), digest=digest)
        # Its clock is an hour ahead.
        with alive(writer, word, ahead=3600):
            return anabranch("apply", file, "--allow-delete", "topic=1", "--yes")

    for digest, remote in ((old, b), (new, a), ("", b)):
        ended = prune_while(digest, remote)
        assert (ended.code, "[AB421]" in ended.stderr, a in names(target_cluster)) == (REFUSED, True, True)
    # Runs that have the new declaration do not take it: they go on.
    ended = prune_while(new, b)
    assert (ended.code, a in names(target_cluster)) == (0, False)

    # A run of another topology whose flow has the same name is in nobody's way, as long as it copies elsewhere.
    exclude_b = file.read_text().replace(f"exclude: [{topic_name}-a]", f"exclude: [{topic_name}-b]")
    file.write_text(exclude_b)
    assert anabranch("apply", file, "--yes").code == 0
    ended = prune_while("feedfeedfeedfeed", b)
    assert (ended.code, b in names(target_cluster)) == (REFUSED, True)
    ended = prune_while("feedfeedfeedfeed", "us-east.elsewhere")
    assert (ended.code, b in names(target_cluster), a in names(target_cluster)) == (0, False, True)


def test_a_part_is_applied_whatever_stands_against_the_rest(
    file: Path, tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    a, b, c = (f"us-east.{topic_name}-{end}" for end in "abc")
    for end in "abc":
        create(source_cluster, f"{topic_name}-{end}")
    create(target_cluster, c)
    assert anabranch("apply", file, "--yes").code == REFUSED
    unknown = anabranch("plan", file, "--target", f"us-east.{topic_name}-aa")
    assert (unknown.code, "did you mean" in unknown.stderr, unknown.stdout) == (USAGE, True, "")
    assert anabranch("apply", file, "--target", c, "--yes").code == REFUSED

    value = json.loads(anabranch("plan", file, "--target", a, "--format", "json").stdout)
    steps = [step["topic"] for step in value["clusters"][0]["steps"] if step["action"] == "create-topic"]
    assert (steps, value["clusters"][0]["declared"]) == ([a], None)
    assert value["digest"] == load((file,)).digest
    applied = anabranch("apply", file, "--target", a, "--yes")
    assert applied.code == 0
    assert "What was in force stays in force: only a part was done." in applied.stdout
    assert {a, b, c} & names(target_cluster) == {a, c}
    assert in_force(target_cluster, file) is None
    assert anabranch("plan", file, "--target", a, "--detailed-exitcode").code == 0

    # A plan file of a part stays one.
    plan = tmp_path / "plan.json"
    assert anabranch("plan", file, "--target", b, "--out", plan).code == 0
    assert anabranch("apply", file, "--plan", plan, "--target", b).code == USAGE
    assert anabranch("apply", file, "--plan", plan).code == 0
    assert (b in names(target_cluster), in_force(target_cluster, file)) == (True, None)

    delete(target_cluster, c)
    assert anabranch("apply", file, "--yes").code == 0
    delete(target_cluster, a, b)
    value = json.loads(anabranch("drift", file, "--target", b, "--format", "json").stdout)
    assert [one["topic"] for one in value["drift"]] == [b]
    assert anabranch("drift", file, "--target", f"{b}x").code == USAGE
    exclude(file, f"{topic_name}-b", f"{topic_name}-c")
    create(source_cluster, f"{topic_name}-d")
    pruned = anabranch("apply", file, "--target", c, "--allow-delete", "topic=1", "--yes")
    assert (pruned.code, c in names(target_cluster)) == (0, False)
    assert not {a, f"us-east.{topic_name}-d"} & names(target_cluster)


def test_another_cluster_at_the_same_address_is_refused(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    (copy,) = made(file, source_cluster, topic_name)
    right = admin(target_cluster).list_topics(timeout=30).cluster_id
    whole = file.read_text()
    for alias, datacenter in (("eu-west", "dc2"), ("us-east", "dc1")):
        wrong = whole.replace(f"datacenter: {datacenter}", f"datacenter: {datacenter}, cluster-id: AnotherCluster")
        file.write_text(wrong)
        commands = [("plan",), ("apply", "--yes"), ("replicate", "--until-caught-up")]
        if alias == "eu-west":
            commands += [("drift",), ("destroy", "--allow-delete", "topic=9", "--yes")]
        for command, *options in commands:
            ended = anabranch(command, file, *options)
            assert (ended.code, "[AB423]" in ended.stderr) == (REFUSED, True), (command, ended)
            assert "cluster-id is AnotherCluster" in ended.stderr
    assert copy in names(target_cluster)
    digest = in_force(target_cluster, file)
    file.write_text(whole.replace("datacenter: dc2", f"datacenter: dc2, cluster-id: {right}"))
    # It says which cluster is meant, and nothing of what is declared there.
    assert anabranch("plan", file, "--detailed-exitcode").code == 0
    assert digest == digest_into(load((file,)), "eu-west")
