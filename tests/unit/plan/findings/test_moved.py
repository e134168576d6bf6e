"""What moved between two plans, and plans in files: nothing that a plan does changes unseen, what it only tells may."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main
from reconciler.model.base.errors import DeclaredInputError, Refused
from reconciler.model.planning.steps import CreateTopic, Notice, Plan, RecordOwnership
from reconciler.operate.carrying import refuse_when_moved_on
from reconciler.plan.findings.moved import moved
from reconciler.report.plan.file import read_plan, write_plan
from reconciler.report.plan.to_json import plan_json
from tests.unit.declare.declaring import HEAD, load
from tests.unit.plan.facts import EAST, WEST, cluster, flow, plan_of, topic, topology


def plan(partitions: int = 3, *more: str, retention: str = "1000", tasks: int = 1) -> Plan:
    topics = [topic("orders", partitions, configs={"retention.ms": retention}), *(topic(name) for name in more)]
    return plan_of(topology(flow(tasks=tasks)), cluster(EAST, *topics), cluster(WEST))


def differences(made: Plan, now: Plan) -> tuple[str, ...]:
    return moved(plan_json(made), plan_json(now))


def test_the_same_facts_are_the_same_plan() -> None:
    assert differences(plan(), plan()) == ()


def test_each_difference_is_told_with_its_field() -> None:
    found = differences(plan(), plan(4, "users", retention="2000", tasks=2))
    assert found == (
        "eu-west: create-topic us-east.orders: partitions was 3, is 4",
        "eu-west: create-topic us-east.orders: settings.retention.ms was 1000, is 2000",
        "eu-west: create-topic us-east.users: was not planned",
        "eu-west: flow us-east-eu-west: tasks was 1, is 2",
    )


def test_another_order_of_clusters_is_told() -> None:
    made = plan()
    (part,) = made.clusters
    later = replace(made, clusters=(replace(part, wave=part.wave + 1),))
    assert differences(made, later) == (f"eu-west: order: wave was {part.wave}, is {part.wave + 1}",)


def test_what_was_done_meanwhile_is_told() -> None:
    assert differences(plan(3, "users"), plan()) == (
        "eu-west: create-topic us-east.users: was planned, and there is no need any more",
    )


def test_what_a_plan_only_tells_does_not_count() -> None:
    made = plan()
    (part,) = made.clusters
    flows = tuple(replace(one, offsets_reason="another", topics=9) for one in part.flows)
    assert differences(made, replace(made, clusters=(replace(part, warnings=(), flows=flows),))) == ()


def test_a_topic_made_anew_meanwhile_is_another_one_whoever_reviewed_the_plan() -> None:
    def adopted(topic_id: str) -> Plan:
        made = plan()
        (part,) = made.clusters
        created = next(step for step in part.steps if isinstance(step, CreateTopic))
        return replace(made, clusters=(replace(part, steps=(RecordOwnership(created.topic, topic_id, "adopted"),)),))

    said = "eu-west: record-ownership us-east.orders: topic_id was A, is B"
    assert differences(adopted("A"), adopted("B")) == (said,)
    with pytest.raises(Refused, match=f"changed while the plan was read: {said}"):
        refuse_when_moved_on(adopted("A"), adopted("B"))
    refuse_when_moved_on(adopted("A"), adopted("A"))


def test_while_somebody_reads_a_plan_what_it_only_tells_may_change_and_nothing_else() -> None:
    made = plan()
    (part,) = made.clusters
    told = replace(part, warnings=(Notice("orders", "is slow"),), left_alone=(Notice("users", "is ours"),))
    refuse_when_moved_on(made, replace(made, clusters=(told,), notices=(Notice("us-east", "is away"),)))
    flows = tuple(replace(one, offsets_reason="another") for one in part.flows)
    with pytest.raises(Refused, match="the clusters changed while the plan was read — run it again"):
        refuse_when_moved_on(made, replace(made, clusters=(replace(part, flows=flows),)))


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, plan(), [WEST])
    saved = read_plan(path)
    assert (saved.targets, saved.topology, saved.digest) == ((WEST,), plan().topology, plan().digest)
    assert moved(saved.plan, plan_json(plan())) == ()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is not JSON: Expecting value"),
        ('{"kind": "anabranch-plan", "format": 1e999}', "has a number that is too large"),
        (json.dumps({"kind": "anabranch-plan", "format": ["x" * 50]}), "has format ['xxxxxxxxxxxxxxxxxx, expected 1"),
        ("{}", "is no plan file"),
        ("[]", "is no plan file"),
        (json.dumps({"kind": "anabranch-plan", "format": 1}), "is no plan file"),
        (json.dumps({"kind": "anabranch-plan", "format": 1, "clusters": [], "plan": []}), "is no plan file"),
        (json.dumps({"kind": "anabranch-plan", "format": 99}), "has format 99, expected 1"),
        (None, "cannot be read: No such file"),
    ],
)
def test_no_plan_file_is_told(tmp_path: Path, content: str | None, why: str) -> None:
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DeclaredInputError) as told:
        read_plan(path)
    (problem,) = told.value.problems
    assert (problem.code, problem.where.removesuffix(":1")) == ("AB183", str(path))
    assert problem.message.startswith(why)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["plan", "clusters", 0, "flows"], [{}]),
        (["plan", "clusters", 0, "flows"], None),
        (["plan", "clusters", 0, "declared"], "b"),
        (["plan", "clusters", 0, "steps"], [{"action": "create-topic"}]),
        (["plan", "clusters", 0, "steps"], [{"action": "create-topic", "topic": "x", "settings": 5}]),
        (["clusters"], ["nowhere"]),
    ],
)
def test_a_file_that_was_changed_by_hand_is_refused_before_anything_is_asked(
    tmp_path: Path, where: list[str | int], value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HEAD + "flows: [{from: a, to: b, topics: {include: [orders]}}]\n"
    declared = load(tmp_path, text)
    clusters: list[Any] = [{"alias": "b", "steps": [], "flows": [], "declared": None}]
    written = {"format": 1, "topology": declared.name, "digest": declared.digest, "clusters": clusters}
    file: dict[str, Any] = {"kind": "anabranch-plan", "format": 1, "clusters": ["b"], "topics": [], "plan": written}
    *way, last = where
    place: Any = file
    for step in way:
        place = place[step]
    place[last] = value
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(file))
    assert main(["apply", str(tmp_path / "0.yaml"), "--plan", str(path)]) == 1
    said = capsys.readouterr()
    assert (said.out, "is no plan as it was written [AB183]" in said.err) == ("", True), said.err


def test_a_file_that_cannot_be_read_to_its_depth_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("[" * 100_000)
    with pytest.raises(DeclaredInputError, match="is nested too deeply"):
        read_plan(path)


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(DeclaredInputError) as told:
        write_plan(tmp_path / "missing" / "plan.json", plan(), [WEST])
    assert [problem.code for problem in told.value.problems] == ["AB180"]
