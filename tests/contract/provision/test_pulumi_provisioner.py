"""What is Pulumi's own about carrying plans out, with the stand-in: states, kills, locks, exit codes, secrets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Refused
from reconciler.model.planning.removals import DeleteTopic
from reconciler.provision.direct import DirectProvisioner
from stacks.automation import PulumiProvisioner
from stacks.names import TOPIC_TYPE, name_in
from stacks.state import STACK_TYPE
from tests.support.clusters.kafka import (
    admin,
    create,
    grow,
    names,
    partitions,
    set_config,
    topic_configs,
    topic_id,
)
from tests.support.provision import fake_pulumi
from tests.support.provision.provisioning import STACK, Way, entries, held, plan_of, write


def test_each_topic_is_a_protected_resource_below_its_flow(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    assert way.apply(file).is_complete
    (entry,) = entries(way)
    assert (name_in(entry["urn"]), entry["protect"]) == (f"south/north.{topic_name}", True)
    assert name_in(entry["parent"]) == "north-south"
    (up,) = fake_pulumi.commands(way.home, "up")
    assert up[up.index("--parallel") + 1] == "16"


def test_what_direct_made_is_imported_and_then_changed(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-a", 1, {"retention.ms": "1000000"})
    create(source_cluster, f"{topic_name}-b", 2)
    topology = load((file,))
    assert DirectProvisioner(topology).apply(plan_of(topology)).is_complete
    before = {end: topic_id(source_cluster, f"north.{topic_name}-{end}") for end in ("a", "b")}
    grow(source_cluster, f"{topic_name}-a", 3)

    assert way.apply(file).is_complete
    # Once to import both as they stand, once to let one of them grow.
    assert len(fake_pulumi.commands(way.home, "up")) == 2
    assert held(way) == [f"south/north.{topic_name}-a", f"south/north.{topic_name}-b"]
    assert partitions(source_cluster, f"north.{topic_name}-a") == 3
    assert {end: topic_id(source_cluster, f"north.{topic_name}-{end}") for end in ("a", "b")} == before
    assert plan_of(topology).changes_nothing


@pytest.mark.long
def test_what_direct_let_grow_since_is_no_trouble(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 1)
    topology = load((file,))
    assert way.apply(file).is_complete
    grow(source_cluster, topic_name, 2)
    assert DirectProvisioner(topology).apply(plan_of(topology)).is_complete
    grow(source_cluster, topic_name, 4)
    assert way.apply(file).is_complete
    assert partitions(source_cluster, f"north.{topic_name}") == 4
    assert plan_of(topology).changes_nothing


@pytest.mark.long
def test_a_topic_that_pulumi_cannot_make_stops_no_other(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("a", "b"):
        create(source_cluster, f"{topic_name}-{end}")
    monkeypatch.setenv("FAKE_PULUMI_REFUSE", json.dumps({"-a": "the broker says no"}))
    outcome = way.apply(file)
    (failure,) = outcome.failed
    assert (failure.step.name, failure.problem.code) == (f"north.{topic_name}-a", "AB314")
    assert failure.problem.message == "the broker says no"
    assert f"north.{topic_name}-b" in {step.name for step in outcome.done}
    assert outcome.in_force == ["south"]
    assert [step.name for step in outcome.lacking] == [f"north.{topic_name}-a"]

    monkeypatch.delenv("FAKE_PULUMI_REFUSE")
    assert [step.name for step in way.apply(file).done] == [f"north.{topic_name}-a"]
    assert plan_of(load((file,))).changes_nothing


def test_a_topic_that_somebody_made_since_the_plan_is_not_taken_over(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    plan = plan_of(load((file,)))
    create(source_cluster, f"north.{topic_name}", configs={"retention.ms": "77"})
    with pytest.raises(Refused, match="AB401"):
        way.apply(file, plan)
    assert topic_configs(source_cluster, f"north.{topic_name}") == {"retention.ms": "77"}
    assert fake_pulumi.calls(way.home)[1:] == []


def test_a_plan_that_no_longer_holds_is_not_carried_out(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    plan = plan_of(load((file,)))
    grow(source_cluster, topic_name, 2)
    with pytest.raises(Refused, match="AB407"):
        way.apply(file, plan)
    assert f"north.{topic_name}" not in names(source_cluster)


@pytest.mark.parametrize("command", ["stack select", "up"])
def test_what_pulumi_itself_says_is_told(
    way: Way,
    file: Path,
    source_cluster: EmbeddedCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    create(source_cluster, topic_name)
    monkeypatch.setenv("FAKE_PULUMI_FAIL", json.dumps({command: [3, "it said so"]}))
    with pytest.raises(EnvironmentFault) as raised:
        way.apply(file)
    (problem,) = raised.value.problems
    expected = "pulumi is not logged in, or not allowed (exit code 3): it said so"
    assert (problem.code, problem.message) == ("AB371", expected)
    assert f"north.{topic_name}" not in names(source_cluster)


def test_what_the_program_complains_of_is_told(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name)
    plan = plan_of(load((file,)))
    topology = load((file,))
    file.write_text(file.read_text().replace("datacenter: dc2", "datacenter: dc3"))
    with pytest.raises(AnabranchError, match=r"no cluster of .* stands in data centre dc2"):
        PulumiProvisioner(topology, (file,), way.project).apply(plan)


@pytest.mark.long
def test_what_no_step_says_is_refused(way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str) -> None:
    create(source_cluster, topic_name)
    way.apply(file)
    path = way.home / f"{STACK}.json"
    state = json.loads(path.read_text())
    (entry,) = [one for one in state["deployment"]["resources"] if one["type"] == TOPIC_TYPE]
    # The state says one thing of what was declared, and another of what came of it.
    create(source_cluster, f"{topic_name}-more")
    entry["inputs"]["config"]["retention.ms"] = "1"
    path.write_text(json.dumps(state))
    with pytest.raises(Refused, match=r"Pulumi would update it \(config\), and no step of the plan says so"):
        way.apply(file)
    entry["inputs"]["partitions"] = 9
    path.write_text(json.dumps(state))
    with pytest.raises(
        Refused, match=r"Pulumi would replace it \(config, partitions\), and no step of the plan says so"
    ) as raised:
        way.apply(file)
    assert [(p.code, p.where) for p in raised.value.problems] == [
        ("AB441", f"Pulumi stack dc2, south/north.{topic_name}")
    ]
    assert f"north.{topic_name}-more" not in names(source_cluster)


def test_a_broker_with_settings_of_its_own_is_refused_before_anything_is_done(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    node = next(iter(admin(source_cluster).list_topics(timeout=60).brokers))
    set_config(source_cluster, str(node), "log.segment.bytes", "100000000", "broker")
    try:
        with pytest.raises(Refused, match=rf"log.segment.bytes at broker {node} — .*--provisioner direct \[AB448\]"):
            way.apply(file)
    finally:
        set_config(source_cluster, str(node), "log.segment.bytes", None, "broker")
    assert f"north.{topic_name}" not in names(source_cluster)
    assert way.apply(file).is_complete


TWO_TARGETS = """\
version: 1
name: {name}
clusters:
  north: {{bootstrap: ["{source}"], datacenter: dc1}}
  south: {{bootstrap: ["{target}"], datacenter: dc2}}
  west: {{bootstrap: ["{source}"], datacenter: %s}}
defaults:
  topics: {{include: ["{topic}.*"]}}
flows:
  - {{from: north, to: south}}
  - {{from: north, to: west, policy: {{type: default, separator: "-to-west-"}}}}
"""


@pytest.mark.long
def test_a_part_of_a_data_centre_is_refused(
    way: Way, tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    file = write(tmp_path, source_cluster, target_cluster, topic_name, TWO_TARGETS % "dc2")
    plan = plan_of(load((file,)), "south")
    with pytest.raises(Refused, match=r"west would be left out.*--clusters south,west") as raised:
        way.apply(file, plan)
    assert raised.value.problems[0].code == "AB440"
    assert way.apply(file).is_complete
    assert held(way) == [f"south/north.{topic_name}", f"west/north-to-west-{topic_name}"]


@pytest.mark.long
def test_each_data_centre_has_a_stack_of_its_own(
    way: Way, tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    file = write(tmp_path, source_cluster, target_cluster, topic_name, TWO_TARGETS % "dc3")
    first = plan_of(load((file,)), "south")
    assert way.apply(file, first).is_complete
    assert held(way) == [f"south/north.{topic_name}"]
    assert not (way.home / "dc3.json").exists()
    assert f"north-to-west-{topic_name}" not in names(source_cluster)
    assert way.apply(file).is_complete
    assert held(way, stack="dc3") == [f"west/north-to-west-{topic_name}"]
    assert held(way) == [f"south/north.{topic_name}"]


def test_what_may_be_deleted_is_deleted_and_forgotten(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("a", "b"):
        create(source_cluster, f"{topic_name}-{end}")
    assert way.apply(file).is_complete
    create(source_cluster, f"{topic_name}-c")
    plan, gone = plan_of(load((file,))), f"north.{topic_name}-b"
    doomed = DeleteTopic(
        "south", gone, topic_id(source_cluster, gone), "north-south", "north", f"{topic_name}-b", "not-taken"
    )
    (one,) = plan.clusters
    plan = replace(plan, clusters=(replace(one, steps=(*one.steps, doomed)),))
    # It is declared no more, or the next plan would make it anew.
    file.write_text(file.read_text().replace('.*"]', f'.*"], exclude: ["{topic_name}-b"]'))

    monkeypatch.setenv("FAKE_PULUMI_REFUSE", json.dumps({"-c": "the broker says no"}))
    outcome = way.apply(file, plan)
    assert [(one.step, one.why) for one in outcome.skipped] == [
        (doomed, "something else was not done, and nothing is deleted before")
    ]
    assert gone in names(source_cluster)
    monkeypatch.delenv("FAKE_PULUMI_REFUSE")
    outcome = way.apply(file, plan)
    assert (outcome.is_complete, doomed in outcome.done) == (True, True)
    assert gone not in names(source_cluster)
    assert held(way) == [f"south/north.{topic_name}-a", f"south/north.{topic_name}-c"]


TWO_HOPS = """\
version: 1
name: {name}
clusters:
  west: {{bootstrap: ["{source}"], datacenter: %s}}
  north: {{bootstrap: ["{source}"], datacenter: dc1}}
  south: {{bootstrap: ["{target}"], datacenter: dc2}}
flows:
  - {{from: north, to: south, topics: {{include: ["{topic}.*"]}}}}
  - {{from: south, to: west, topics: {{include: ["north.{topic}.*"]}}}}
"""


@pytest.mark.parametrize("place", ["dc2", pytest.param("dc3", marks=pytest.mark.long)])
def test_a_topic_crosses_two_hops_in_one_apply(
    way: Way,
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    place: str,
) -> None:
    create(source_cluster, topic_name, 3, {"retention.ms": "77000"})
    file = write(tmp_path, source_cluster, target_cluster, topic_name, TWO_HOPS % place)
    outcome = way.apply(file)
    assert outcome.is_complete
    assert sorted(outcome.in_force) == ["south", "west"]
    far = f"south.north.{topic_name}"
    assert partitions(source_cluster, far) == 3
    assert topic_configs(source_cluster, far)["retention.ms"] == "77000"
    assert f"west/{far}" in held(way, stack=place)
    assert f"south/north.{topic_name}" in held(way)
    assert plan_of(load((file,))).changes_nothing


@pytest.mark.long
def test_the_stack_of_another_topology_is_left_alone(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    assert way.apply(file).is_complete
    other = file.with_name("other.yaml")
    other.write_text(
        file.read_text()
        .replace("name: ", "name: other-", 1)
        .replace("to: south}", 'to: south, policy: {type: default, separator: "-other-"}}')
    )
    before = fake_pulumi.saved(way.home, STACK)
    with pytest.raises(Refused, match="AB442") as raised:
        way.apply(other)
    assert load((file,)).name in raised.value.problems[0].message
    assert f"north-other-{topic_name}" not in names(source_cluster)
    # An earlier release did not write down whose it is, and an up that was killed did not come to it.
    state = fake_pulumi.saved(way.home, STACK)
    for one in state["deployment"]["resources"]:
        if one["type"] == STACK_TYPE:
            del one["outputs"]["topology"]
    (way.home / f"{STACK}.json").write_text(json.dumps(state))
    with pytest.raises(Refused, match="AB442"):
        way.apply(other)
    settings = (way.project / "stacks" / f"Pulumi.{STACK}.yaml").read_text()
    assert "other.yaml" not in settings
    create(source_cluster, f"{topic_name}-more")
    assert way.apply(file).is_complete
    after = fake_pulumi.saved(way.home, STACK)["deployment"]["resources"]
    assert [one for one in before["deployment"]["resources"] if one not in after] == [
        one for one in before["deployment"]["resources"] if one["type"] == STACK_TYPE
    ]


@pytest.mark.long
def test_an_older_pulumi_writes_its_events_to_a_file(
    way: Way, file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name)
    monkeypatch.setenv("FAKE_PULUMI_VERSION", "v3.200.0")
    assert way.apply(file).is_complete
    (up,) = fake_pulumi.commands(way.home, "up")
    assert not up[up.index("--event-log") + 1].startswith("tcp://")


def test_a_pulumi_that_is_missing_or_of_another_age(way: Way, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PULUMI_VERSION", "v4.0.0")
    with pytest.raises(EnvironmentFault, match="AB370"):
        way.apply(file)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentFault, match=r"there is no command `pulumi` on PATH.*--provisioner direct"):
        way.apply(file)
