"""Waves of a rollout: which clusters come first, and what must be well before the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.datacenter import DataCenter
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules, LastLook
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.steps import ClusterPlan, CreateInternalTopic, Plan
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.operate.rollout import WaveGate, in_waves
from reconciler.operate.watching import Lookout, StatusView
from reconciler.plan.guardrails.waves import about_groups, objections, parked, waves

HUB, OSLO, PARIS, ROME = "hub", "oslo", "paris", "rome"
FLOWS = tuple(Flow(f"hub-{alias}", HUB, alias, Selection((".*",))) for alias in (OSLO, PARIS, ROME))
TOPOLOGY = Topology(
    "shop",
    {alias: Cluster(alias, (f"{alias}:9092",), alias) for alias in (HUB, OSLO, PARIS, ROME)},
    FLOWS,
    {PARIS: DataCenter(PARIS, wave=1), OSLO: DataCenter(OSLO, wave=5), HUB: DataCenter(HUB)},
)
NOW = 1_800_000_000.0
RUNNING = PartitionStatus("orders", 0, "hub.orders", PartitionState.RUNNING, 10, 10, metrics=Metrics(lag_seconds=0))


HIDDEN = Problem("AB313", "cluster paris", "no READ on topic heartbeats", "grant it")


def plan_for(*aliases: str) -> Plan:
    return Plan(
        "shop",
        "digest",
        tuple(ClusterPlan(a, a, (CreateInternalTopic(a, "t"),), wave=TOPOLOGY.wave(a)) for a in aliases),
    )


def task(partition: PartitionStatus = RUNNING, alias: str = PARIS, **changes: object) -> TaskStatus:
    said = TaskStatus(
        flow=f"hub-{alias}",
        source=HUB,
        target=alias,
        run="run",
        task=0,
        tasks=1,
        time=NOW,
        stopped=False,
        waiting=None,
        records=0,
        bytes=0,
        records_per_second=0.0,
        bytes_per_second=0.0,
        partitions=(partition,),
        digest=digest_into(TOPOLOGY, alias),
    )
    return replace(said, **changes)  # type: ignore[arg-type]


def against(*statuses: TaskStatus, before: frozenset[tuple[str, str, int]] = frozenset()) -> list[str]:
    return list(objections(TOPOLOGY, FLOWS[1], statuses, before, 30, NOW))


def test_clusters_come_in_the_waves_of_their_data_centres_and_the_others_last() -> None:
    parts = waves(plan_for(OSLO, PARIS, ROME, HUB))
    assert [[cluster.alias for cluster in part.clusters] for part in parts] == [[PARIS], [OSLO], [ROME, HUB]]
    assert {(part.topology, part.digest) for part in parts} == {("shop", "digest")}
    alone = replace(TOPOLOGY, datacenters={})
    assert {alone.wave(alias) for alias in alone.aliases} == {1}
    assert plan_for(OSLO, PARIS).waves == (1, 5)


def test_who_runs_nothing_is_well_and_who_catches_up_too() -> None:
    assert against() == []
    assert against(task(time=NOW - 60)) == [], "it said its last word long ago"
    assert against(task()) == []
    assert against(task(replace(RUNNING, state=PartitionState.PAUSED))) == []


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (replace(RUNNING, state=PartitionState.PARKED, reason=Reason("AB212", "too large")), "orders/0 is parked: too"),
        (replace(RUNNING, metrics=Metrics(lag_seconds=31)), "orders/0 is 31 s behind, 30 s are allowed"),
        (replace(RUNNING, end=-1), "orders/0: how far it is behind is not known yet"),
        (replace(RUNNING, state=PartitionState.OPENING), "orders/0 is opening"),
        (replace(RUNNING, state=PartitionState.WAITING), "orders/0 is waiting"),
    ],
)
def test_what_is_not_well_is_said(partition: PartitionStatus, said: str) -> None:
    (objection,) = against(task(partition))
    assert objection.startswith(said)


def test_what_was_parked_before_is_no_objection() -> None:
    stuck = task(replace(RUNNING, state=PartitionState.PARKED, reason=Reason("AB212", "too large")))
    before = parked(FLOWS, [stuck], NOW)
    assert before == {("hub-paris", "orders", 0)}
    assert against(stuck, before=before) == []


def test_tasks_with_what_was_there_before_do_not_count() -> None:
    assert against(task(digest="older")) == ["no task runs with what was applied yet"]
    assert against(task(tasks=0)) == ["no task runs with what was applied yet"]
    assert against(task(digest="older"), task(run="new")) == []
    assert against(task(failing="no executor")) == ["no executor"]


def late(interval: float, ago: float | None, *statuses: TaskStatus) -> list[str]:
    """What is said of a flow that takes groups along, which were looked at some seconds ago."""
    flow = replace(FLOWS[1], groups=GroupRules(("readers",), interval=interval))
    last = None if ago is None else LastLook(NOW - ago, 3)
    return list(about_groups(flow, statuses, last, NOW))


def test_groups_of_a_running_flow_were_looked_at_lately() -> None:
    assert late(60, 179, task()) == []
    assert late(60, 181, task()) == ["its consumer groups were last checked 181 s ago, 180 s are allowed"]
    # A quick flow may miss more than three looks.
    assert late(1, 29, task()) == []
    assert late(1, 31, task()) == ["its consumer groups were last checked 31 s ago, 30 s are allowed"]
    assert late(60, None, task()) == ["its consumer groups were not checked yet"]
    # Nobody runs it, or it is another one that runs.
    assert late(60, None) == []
    assert late(60, None, task(time=NOW - 60)) == []
    assert late(60, None, task(tasks=0)) == []
    assert late(60, None, task(alias=ROME)) == []
    assert list(about_groups(FLOWS[1], [task()], None, NOW)) == [], "it takes none along"


class Scene:
    """A rollout without clusters: what is applied, and what is said of flows meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *statuses: TaskStatus) -> None:
        self.applied: list[list[str]] = []
        self.outcomes: dict[str, Outcome] = {}
        monkeypatch.setattr(Lookout, "look", lambda _: StatusView(NOW, FLOWS, statuses, {}))

    def apply(self, plan: Plan) -> Outcome:
        aliases = [cluster.alias for cluster in plan.clusters]
        self.applied.append(aliases)
        return self.outcomes.get(aliases[0], Outcome(done=list(plan.steps), in_force=aliases))


def test_waves_are_carried_out_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, task())
    outcome = in_waves(TOPOLOGY, plan_for(OSLO, PARIS, ROME), WaveGate(30, 0), scene.apply)
    assert scene.applied == [[PARIS], [OSLO], [ROME]]
    assert (len(outcome.done), outcome.in_force, outcome.is_complete) == (3, [PARIS, OSLO, ROME], True)


def test_later_waves_wait_for_what_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, task(replace(RUNNING, metrics=Metrics(lag_seconds=99)), alias=OSLO))
    plan = plan_for(OSLO, PARIS, ROME)
    outcome = in_waves(TOPOLOGY, plan, WaveGate(30, 0.1), scene.apply)
    assert scene.applied == [[PARIS], [OSLO]]
    assert outcome.stopped is not None
    assert outcome.stopped.code == "AB431"
    assert "flow hub-oslo: orders/0 is 99 s behind, 30 s are allowed" in outcome.stopped.message
    assert outcome.skipped == [Skipped(plan.clusters[2].steps[0], "the wave before is not well")]
    assert not outcome.is_complete


def test_a_wave_that_was_not_completed_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    plan = plan_for(OSLO, PARIS)
    scene.outcomes[PARIS] = Outcome(skipped=[Skipped(plan.clusters[1].steps[0], "it broke")])
    outcome = in_waves(TOPOLOGY, plan, WaveGate(30, 0.1), scene.apply)
    assert (scene.applied, outcome.stopped) == ([[PARIS]], None)
    assert [one.why for one in outcome.skipped] == ["it broke", "wave 1 was not completed"]


def test_an_error_in_a_later_wave_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EnvironmentFault([Problem("AB371", "dc", "no", ""), Problem("AB371", "dc", "not at all", "")])

    class Failing(Scene):
        def apply(self, plan: Plan) -> Outcome:
            if plan.clusters[0].alias == OSLO:
                raise broken
            return super().apply(plan)

    scene = Failing(monkeypatch, task())
    plan = plan_for(OSLO, PARIS, ROME)
    outcome = in_waves(TOPOLOGY, plan, WaveGate(30, 0), scene.apply)
    steps = {one.alias: one.steps for one in plan.clusters}
    assert (outcome.done, outcome.in_force) == ([*steps[PARIS]], [PARIS])
    assert outcome.failed == [Failure(step, broken.problems[0]) for step in steps[OSLO]]
    assert outcome.not_in_force == [broken.problems[1]]
    assert outcome.skipped == [Skipped(step, "wave 2 was not completed") for step in steps[ROME]]
    # Where nothing was done before, an error says so best.
    monkeypatch.setattr(Scene, "apply", lambda self, part: Outcome())
    with pytest.raises(EnvironmentFault):
        in_waves(TOPOLOGY, plan, None, scene.apply)


def test_who_cannot_look_begins_no_later_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, task())
    looks = iter([StatusView(NOW, FLOWS, (task(),), {})])

    def look(_: Lookout) -> StatusView:
        for one in looks:
            return one
        raise EnvironmentFault(HIDDEN)

    monkeypatch.setattr(Lookout, "look", look)
    outcome = in_waves(TOPOLOGY, plan_for(OSLO, PARIS), WaveGate(30, 0), scene.apply)
    assert (scene.applied, outcome.in_force) == ([[PARIS]], [PARIS])
    assert outcome.stopped is not None
    assert outcome.stopped.code == HIDDEN.code


def test_later_waves_wait_for_groups_that_nobody_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = tuple(replace(flow, groups=GroupRules(("readers",), interval=10)) for flow in FLOWS)
    topology = replace(TOPOLOGY, flows=flows)
    running = task(digest=digest_into(topology, PARIS))
    seen: dict[str, StatusView] = {
        "late": StatusView(NOW, flows, (running,), {}, {}, {}, {"hub-paris": LastLook(NOW - 40)}),
        "well": StatusView(
            NOW, flows, (running,), {}, {}, {}, {"hub-paris": LastLook(NOW - 20), "hub-oslo": LastLook(0)}
        ),
        "hidden": StatusView(NOW, flows, (running,), {}, unheard={PARIS: EnvironmentFault(HIDDEN)}),
    }

    def stopped(look: str) -> str:
        scene = Scene(monkeypatch)
        monkeypatch.setattr(Lookout, "look", lambda _: seen[look])
        outcome = in_waves(topology, plan_for(PARIS, OSLO), WaveGate(30, 0), scene.apply)
        assert scene.applied == ([[PARIS]] if outcome.stopped else [[PARIS], [OSLO]])
        return f"{outcome.stopped.code} {outcome.stopped.message}" if outcome.stopped else ""

    assert stopped("well") == ""
    said = stopped("late")
    assert said.startswith("AB431 ")
    assert "flow hub-paris: its consumer groups were last checked 40 s ago, 30 s are allowed" in said
    assert "flow hub-paris: when its consumer groups were last looked at cannot be read: " in stopped("hidden")
    assert "no READ" in stopped("hidden")
