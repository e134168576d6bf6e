"""What is left where Pulumi is killed, stopped, kept out, or does not see what it has done, with the stand-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import AnabranchError, Locked, Problem
from reconciler.model.planning.steps import CreateInternalTopic, Step
from tests.support.clusters.kafka import create, grow, names, partitions, topic_id
from tests.support.provision import fake_pulumi
from tests.support.provision.provisioning import STACK, Way, entries, held, plan_of

NOT_KNOWN = "it was begun, and may be done: apply again, which finds what is there"


@pytest.mark.long
def test_a_killed_up_is_finished_by_the_next_apply(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("a", "b", "c"):
        create(source_cluster, f"{topic_name}-{end}")
    monkeypatch.setenv("FAKE_PULUMI_DIE", f"south/north.{topic_name}-b")
    outcome = way.apply(file)
    assert [step.name for step in outcome.done if step.name.startswith("north.")] == [f"north.{topic_name}-a"]
    assert [one.step.name for one in outcome.skipped] == [f"north.{topic_name}-{end}" for end in ("b", "c")]
    assert ([problem.code for problem in outcome.not_in_force], outcome.in_force) == (["AB371"], [])
    # It was made, and the stack does not know it.
    assert f"north.{topic_name}-b" in names(source_cluster)
    assert held(way) == [f"south/north.{topic_name}-a"]
    made = topic_id(source_cluster, f"north.{topic_name}-b")

    monkeypatch.delenv("FAKE_PULUMI_DIE")
    assert way.apply(file).is_complete
    assert held(way) == [f"south/north.{topic_name}-{end}" for end in ("a", "b", "c")]
    assert fake_pulumi.saved(way.home, STACK)["deployment"]["pending_operations"] == []
    assert topic_id(source_cluster, f"north.{topic_name}-b") == made
    assert plan_of(load((file,))).changes_nothing


@pytest.mark.long
def test_a_pulumi_that_is_killed_before_anything_is_done_hides_nothing(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("a", "b"):
        create(source_cluster, f"{topic_name}-{end}")
    monkeypatch.setenv("FAKE_PULUMI_DIE", f"south/north.{topic_name}-a")
    outcome = way.apply(file)
    assert {one.why for one in outcome.skipped if one.step.name.startswith("north.")} == {
        f"pulumi was killed (SIGKILL); {NOT_KNOWN}"
    }
    assert [problem.message for problem in outcome.not_in_force] == ["pulumi was killed (SIGKILL)"]
    assert f"north.{topic_name}-a" in names(source_cluster)
    assert fake_pulumi.lock_in(way.home, STACK).exists()

    monkeypatch.delenv("FAKE_PULUMI_DIE")
    assert way.apply(file).is_complete
    assert held(way) == [f"south/north.{topic_name}-{end}" for end in ("a", "b")]
    assert fake_pulumi.commands(way.home, "cancel") == [["cancel", "--yes", "--stack", STACK]]


@pytest.mark.long
def test_a_change_that_was_made_and_could_not_be_seen_is_no_dead_end(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name, 1)
    assert way.apply(file).is_complete
    grow(source_cluster, topic_name, 3)
    monkeypatch.setenv("FAKE_PULUMI_UNREADY", json.dumps({topic_name: "couldn't find resource (21 retries)"}))
    outcome = way.apply(file)
    assert [one.problem.message for one in outcome.failed] == ["couldn't find resource (21 retries)"]
    (entry,) = entries(way)
    assert (entry["inputs"]["partitions"], entry["outputs"]["partitions"], "initErrors" in entry) == (1, 3, True)

    monkeypatch.delenv("FAKE_PULUMI_UNREADY")
    assert way.apply(file).is_complete
    assert (partitions(source_cluster, f"north.{topic_name}"), held(way)) == (3, [f"south/north.{topic_name}"])
    create(source_cluster, f"{topic_name}-more")
    assert way.apply(file).is_complete
    assert plan_of(load((file,))).changes_nothing


def test_pulumi_is_stopped_when_the_lock_is_lost(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("a", "b"):
        create(source_cluster, f"{topic_name}-{end}")
    monkeypatch.setenv("FAKE_PULUMI_WAIT", f"south/north.{topic_name}-a")
    lost = Locked(Problem("AB502", "south", "somebody else may have taken the lock", ""))
    told: list[str] = []

    def may_change(alias: str) -> None:
        if told:
            raise lost

    def progress(step: Step) -> None:
        if not isinstance(step, CreateInternalTopic):
            told.append(step.name)

    outcome = way.apply(file, progress=progress, may_change=may_change)
    assert [(one.step.name, one.why) for one in outcome.skipped] == [
        (f"north.{topic_name}-b", f"somebody else may have taken the lock; {NOT_KNOWN}")
    ]
    assert f"north.{topic_name}-b" not in names(source_cluster)
    assert outcome.in_force == []


def test_pulumi_is_stopped_between_two_events(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("a", "b"):
        create(source_cluster, f"{topic_name}-{end}")
    monkeypatch.setenv("FAKE_PULUMI_WAIT", f"south/north.{topic_name}-a")
    asked = AnabranchError(Problem("AB504", "", "was interrupted (SIGTERM)", ""))

    def may_change(alias: str) -> None:
        # Nothing happens after the first topic: nobody but us can end the waiting.
        if f"north.{topic_name}-a" in names(source_cluster):
            raise asked

    outcome = way.apply(file, may_change=may_change)
    assert f"north.{topic_name}-b" in {one.step.name for one in outcome.skipped}
    assert f"north.{topic_name}-b" not in names(source_cluster)
    assert (outcome.not_in_force, outcome.in_force) == ([asked.problems[0]], [])


def test_a_stack_that_somebody_else_updates(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name)
    monkeypatch.setenv("FAKE_PULUMI_LOCKED", "root@elsewhere (pid 7)")
    with pytest.raises(Locked, match="another update of it is under way") as raised:
        way.apply(file)
    assert (raised.value.problems[0].code, raised.value.exit_code) == ("AB503", 5)
    assert f"north.{topic_name}" not in names(source_cluster)
