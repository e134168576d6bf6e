"""Values for printers, in which all that others may choose is one name."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import Acl, ResourcePattern
from reconciler.model.base.errors import Problem
from reconciler.model.declared.fields import Field
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import GroupRules, LastLook, SyncedGroup
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Committed, LogBounds, Move, Position
from reconciler.model.offsets.translation import Question, Translated
from reconciler.model.offsets.verification import Compared, Counts, Difference, Findings, Verification
from reconciler.model.planning.changes import Change, FieldChange, StoppedTopic
from reconciler.model.planning.deployments import (
    DeployedProcess,
    DeploymentPlan,
    DeployProcess,
    FactChange,
    Process,
    StopProcess,
    UpdateProcess,
)
from reconciler.model.planning.desired import DesiredTopic, TopicSetting
from reconciler.model.planning.drift import Drift, Drifted, DriftedProcess
from reconciler.model.planning.health import Check
from reconciler.model.planning.outcome import Failure, Outcome, Skipped
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    ClusterPlan,
    ConfigChange,
    CreateInternalTopic,
    CreateTopic,
    GrantAcl,
    Notice,
    NotStarted,
    Plan,
    PlannedFlow,
    RecordOwnership,
    RevokeAcl,
)
from reconciler.model.recorded.declaration import Declared, InForce
from reconciler.model.recorded.event import RecordedEvent
from reconciler.model.recorded.failover import (
    Carried,
    Crossing,
    Cut,
    FailbackPlan,
    FailedOver,
    FailoverPlan,
    Returning,
    WithoutPlace,
)
from reconciler.model.recorded.pauses import Pauses, PauseScope
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.report import (
    acls,
    clients,
    describe,
    explain,
    translation,
)
from reconciler.report.status import lag, log, topics
from reconciler.report.status import summary as status
from tests.unit.plan.facts import topology

NOW = 1_000.0


def declared(name: str) -> Topology:
    """Return two clusters and a flow, as no file could name them, but as a printer may get them."""
    return topology(Flow(name, f"1 {name}", f"2 {name}", Selection((name,), (name,))), name=name)


def problem(name: str) -> Problem:
    return Problem("AB304", f"cluster {name} ({name})", name, name)


def wanted(name: str, remote: str) -> DesiredTopic:
    settings = (TopicSetting(name, name, "source"), TopicSetting("retention.ms", "1", "declared"))
    return DesiredTopic("west", remote, name, name, name, name, 6, 3, "identical", settings)


def plan(name: str) -> Plan:
    binding = Binding("topic", ResourcePattern(name), name, "READ", "DENY", name)
    topic = wanted(name, name)
    steps = (
        CreateInternalTopic("west", name),
        CreateTopic(topic),
        CreateTopic(wanted(name, f"{name} too")),
        AddPartitions(topic, name, 3),
        AlterConfig(topic, name, (ConfigChange(name, name, name, "source-change"),)),
        RecordOwnership(topic, name, "grown"),
        GrantAcl("west", binding, name),
        RevokeAcl("west", binding, name, is_kept=True),
        DeleteTopic("west", name, name, name, name, name, "renamed"),
        ForgetTopic("west", name, name, name, name),
    )
    flow = PlannedFlow(name, f"1 {name}", f"2 {name}", 1, 2, "identical", name, "markers", name)
    cluster = ClusterPlan(
        f"2 {name}",
        name,
        steps,
        (flow,),
        (NotStarted(name, name, name, name, name),),
        (Notice(name, name),),
        (Notice(name, name),),
        Declared("digest", InForce("another", 1_800_000_000.0, name)),
        changes=(
            Change("cluster", name, "changes", (FieldChange(name, name, name), FieldChange(name, None, name))),
            Change("flow", name, "ends", (), (StoppedTopic(name, name, 7),), name),
        ),
    )
    return Plan(name, "digest", (cluster,), deployments=(deployment(name),))


def process(name: str) -> Process:
    return Process(name, name, name, "local", name, name, name, (name,), (name,), ((name, name),), ((name, name),))


def deployment(name: str) -> DeploymentPlan:
    one = process(name)
    changes = (FactChange(name, name, name),)
    steps = (DeployProcess(one, name), UpdateProcess(one, changes), StopProcess(one, name))
    return DeploymentPlan(name, "local", 1, steps, (name,), (name,))


def deployed(name: str) -> list[DeployedProcess]:
    return [DeployedProcess(process(name), running, 7, 1, name) for running in (True, False)]


def outcome(name: str) -> Outcome:
    done, *others = plan(name).steps
    failed = [Failure(others[0], problem(name))]
    skipped = [*others[1:], *deployment(name).steps]
    return Outcome([done], failed, [Skipped(step, name) for step in skipped], [name], [problem(name)])


def drifted(name: str) -> Drift:
    kinds: tuple[Literal["missing", "changed", "unmanaged"], ...] = ("missing", "changed", "unmanaged")
    found = tuple(Drifted(name, kind, name, name, name, None, name) for kind in kinds)
    return Drift(name, (name,), found, (problem(name),), (DriftedProcess(name, name, name, name, name),))


def over(name: str) -> FailedOver:
    return FailedOver(name, "over", 1.0, name)


def statuses(name: str) -> list[TaskStatus]:
    partitions = tuple(
        PartitionStatus(name, number, name, state, 1, 3, Reason("AB220", name))
        for number, state in enumerate((PartitionState.PARKED, PartitionState.RUNNING))
    )
    ends = (f"1 {name}", f"2 {name}")
    task = TaskStatus(name, *ends, "run", 0, 1, NOW - 0.5, False, None, 1, 1, 1.0, 1.0, partitions, digest="other")
    process = TaskStatus(name, *ends, "run 2", -1, 0, NOW - 0.5, False, name, 0, 0, 0.0, 0.0, (), failing=name)
    return [task, process]


def summaries(name: str, *told: TaskStatus) -> list[status.FlowSummary]:
    flows = declared(name).flows
    force = {f"2 {name}": InForce("digest", 1.0, name)}
    return status.summarise(flows, told, NOW, force, None, {f"2 {name}": {name: over(name)}})


def paused(name: str) -> list[status.FlowSummary]:
    told = Pauses({PauseScope(name, name, 1): True}, {PauseScope(name, name, 1): name})
    made = summaries(name)
    return status.with_pauses(made, {one.target: told for one in made})


def held_back(name: str) -> list[status.FlowSummary]:
    return [replace(one, quota=10, bytes_per_second=10.0, lag=5) for one in summaries(name)]


def places(name: str) -> dict[str, tuple[Field, ...]]:
    return {one.name: (Field("quota", "10B/s", f"{name}.yaml:3:5 (flows[0].quota)"),) for one in summaries(name)}


def events(name: str) -> list[log.Event]:
    flows = summaries(name, *statuses(name))
    troubled = [log.of_partition(flow.name, one) for flow in flows for one in flow.troubled]
    return [*map(log.of_flow, flows), *troubled, log.of_problem(problem(name), "ERROR"), log.Event(name, flow=name)]


def rows(name: str) -> list[lag.LagRow]:
    return lag.lag_rows(declared(name).flows, statuses(name), NOW)


def crossing(name: str) -> FailoverPlan:
    # One position goes on, and one goes back.
    carried = tuple(Carried(name, name, 0, 3, 1, name, 3, before, name, name) for before in (2, 9))
    crossings = (Crossing(name, name, 0, "identical", 1, 1, 2, 1, 1, name),)
    return FailoverPlan(name, name, name, over(name), False, crossings, carried, (name,), (WithoutPlace(name, name),))


def returning(name: str) -> FailbackPlan:
    shapes = ((True, False, False), (True, True, False), (True, True, True), (False, False, False))
    topics = tuple(Returning(name, name, "identical", 1, 2, 3, *shape, 4) for shape in shapes)
    carried = (Carried(name, name, 0, 3, 1, name, 3, 2, name, name),)
    cuts, without = {name: Cut(name, name, "identical", ())}, (WithoutPlace(name, name),)
    return FailbackPlan(name, name, name, over(name), topics, carried, (name,), cuts, without)


def compared(name: str) -> Verification:
    findings = Findings(Counts(3, 2, 1))
    findings.add(Difference("changed", 1, 1, name, 2))
    one = Compared(
        name, name, name, name, name, 0, "identical", (0, 3), (0, 3), findings, problem(name), (problem(name),)
    )
    return Verification(name, (one,), (problem(name),), (problem(name),))


def committed(name: str) -> list[Committed]:
    return [Committed(name, name, 0, 3, name, 7, LogBounds(0, 5, 5)), Committed("", "orders", 1, 2)]


def positions(name: str) -> list[Position]:
    return [
        Position(name, name, 0, 3, name, name, "translated", LogBounds(0, 5, 5)),
        Position("", "x", 1, 1, "", "", ""),
    ]


def moves(name: str) -> list[Move]:
    return [Move(name, name, 0, 1, 2, 3, name)]


def answers(name: str) -> list[translation.Answer]:
    return [
        (Question(name, 0, 3), Translated(3, "record", name)),
        (Question("orders", 0, 3), Translated(None, "unknown")),
    ]


def granted(name: str) -> list[acls.Granted]:
    told = (
        Acl(name, "apply", "topic", ResourcePattern(name), "READ", True, name, (name,)),
        Acl(name, "verify", "group", ResourcePattern(name), "READ", False, name, (name,)),
    )
    return [acls.Granted(name, (name,), name, told, (name,))]


def fates(name: str) -> list[explain.ExplainedFlow]:
    topics: list[explain.Fate] = [
        {"topic": name, "remote": name, "why": name, "hops": [name]},
        {"topic": name, "remote": None, "why": name, "hops": []},
    ]
    flow: explain.ExplainedFlow = {
        "name": name,
        "source": name,
        "target": name,
        "enabled": False,
        "failed_over": True,
        "policy": name,
        "place": name,
        "topics": topics,
        "fields": [],
    }
    fields: list[explain.ToldField] = [
        {"field": name, "value": name, "place": name},
        {"field": "topics.include", "value": [name], "place": ""},
    ]
    return [flow, {**flow, "topics": [], "fields": fields}]


def settings(name: str) -> list[clients.ToldClients]:
    return [{"cluster": name, "role": name, "settings": [{"key": "client.id", "value": name, "place": name}]}]


def checks(name: str) -> list[Check]:
    return [Check(name, "ok", name), Check(name, "failure", name, name)]


def recalled(name: str) -> list[RecordedEvent]:
    return [RecordedEvent(NOW, name, "changed", name, name)]


def synced(name: str) -> dict[str, LastLook | None]:
    return {name: LastLook(NOW, 2, (SyncedGroup(name, NOW), SyncedGroup(name, 0.0, "AB621")))}


def taking(name: str) -> list[Flow]:
    (one,) = declared(name).flows
    return [replace(one, groups=GroupRules((name,))), replace(one, name=f"{name} too", groups=GroupRules((name,)))]


def of_topics(name: str) -> list[topics.TopicRow]:
    return topics.topic_rows(summaries(name, *statuses(name)))


def described(name: str) -> describe.DescribedFlow:
    (summary,) = summaries(name, *statuses(name))
    return describe.DescribedFlow(taking(name)[0], fates(name)[1], summary, synced(name), recalled(name), NOW, name)


def in_flows(name: str) -> list[describe.DescribedTopic]:
    return [describe.DescribedTopic(name, (name, name), fate, rows(name)) for fate in fates(name)[0]["topics"]]
