"""Every printer of `reconciler.report`, each with values in which all that others may choose is one name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import Acl, ResourcePattern
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.committed import Committed, LogBounds, Move, MovedOffset, Position
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
from reconciler.report import acls, clients, deployments, explain, failover, health, offsets, translation, verify
from reconciler.report.pictures import graph
from reconciler.report.plan import drift
from reconciler.report.plan import outcome as outcome_text
from reconciler.report.plan import to_json as plan_json
from reconciler.report.plan import to_markdown as plan_markdown
from reconciler.report.plan import to_picture as plan_picture
from reconciler.report.plan import to_text as plan_text
from reconciler.report.status import events as on_record
from reconciler.report.status import lag, live, log
from reconciler.report.status import summary as status
from reconciler.report.status import to_json as status_json
from tests.unit.plan.facts import topology

Shape = Literal["text", "markdown", "json", "csv", "svg", "mermaid", "shell"]
NOW = 1_000.0


@dataclass(frozen=True)
class Printer:
    """A printer.

    Attributes:
        function: of which function it is.
        shape: what it gives: `text` is for a terminal.
        call: gives what it makes of values with a name in them.
    """

    function: Callable[..., Any]
    shape: Shape
    call: Callable[[str], Any]

    def __str__(self) -> str:
        return f"{self.function.__module__.removeprefix('reconciler.report.')}.{self.function.__name__}"


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


def _all(*found: Iterable[Any]) -> list[Any]:
    return [one for some in found for one in some]


PRINTERS = (
    Printer(acls.acls_text, "text", lambda n: acls.acls_text(granted(n))),
    Printer(acls.acls_json, "json", lambda n: acls.acls_json(granted(n))),
    Printer(acls.acls_commands, "shell", lambda n: acls.acls_commands(granted(n))),
    Printer(clients.clients_text, "text", lambda n: clients.clients_text(settings(n))),
    Printer(deployments.processes_text, "text", lambda n: deployments.processes_text(n, deployed(n)).renderables),
    Printer(deployments.processes_json, "json", lambda n: deployments.processes_json(n, deployed(n))),
    Printer(drift.drift_text, "text", lambda n: drift.drift_text(drifted(n))),
    Printer(drift.drift_markdown, "markdown", lambda n: drift.drift_markdown(drifted(n))),
    Printer(drift.drift_json, "json", lambda n: drift.drift_json(drifted(n))),
    Printer(on_record.event_lines, "text", lambda n: on_record.event_lines(recalled(n))),
    Printer(on_record.events_json, "json", lambda n: on_record.events_json(recalled(n), [problem(n)])),
    Printer(explain.explained_text, "text", lambda n: explain.explained_text(fates(n))),
    Printer(failover.failover_lines, "text", lambda n: failover.failover_lines(crossing(n))),
    Printer(failover.failback_lines, "text", lambda n: failover.failback_lines(returning(n))),
    Printer(failover.groups_lines, "text", lambda n: failover.groups_lines(crossing(n).groups, n, n)),
    Printer(failover.further_lines, "text", lambda n: failover.further_lines(crossing(n).groups, n)),
    Printer(failover.acls_lines, "text", lambda n: failover.acls_lines(plan(n))),
    Printer(failover.failover_json, "json", lambda n: failover.failover_json(crossing(n))),
    Printer(failover.failback_json, "json", lambda n: failover.failback_json(returning(n))),
    Printer(failover.further_json, "json", lambda n: failover.further_json(crossing(n).groups)),
    Printer(failover.outcome_json, "json", lambda n: failover.outcome_json({}, plan(n), 1, [problem(n)])),
    Printer(graph.graph_text, "text", lambda n: graph.graph_text(declared(n))),
    Printer(graph.graph_mermaid, "mermaid", lambda n: graph.graph_mermaid(declared(n))),
    Printer(graph.graph_svg, "svg", lambda n: graph.graph_svg(declared(n))),
    Printer(health.checks_text, "text", lambda n: health.checks_text(checks(n))),
    Printer(health.checks_json, "json", lambda n: health.checks_json(checks(n))),
    Printer(lag.lag_lines, "text", lambda n: lag.lag_lines(rows(n))),
    Printer(live.flows_table, "text", lambda n: [live.flows_table(summaries(n, *statuses(n)))]),
    Printer(log.text_line, "text", lambda n: [log.text_line(one, NOW) for one in events(n)]),
    Printer(log.json_line, "json", lambda n: [json.loads(log.json_line(one, NOW)) for one in events(n)]),
    Printer(offsets.offsets_lines, "text", lambda n: _all(offsets.offsets_lines("group", committed(n)))),
    Printer(offsets.offsets_lines, "text", lambda n: offsets.offsets_lines("flow", positions(n))),
    Printer(offsets.offsets_csv, "csv", lambda n: offsets.offsets_csv("group", committed(n))),
    Printer(offsets.offsets_csv, "csv", lambda n: offsets.offsets_csv("flow", positions(n))),
    Printer(offsets.offsets_json, "json", lambda n: offsets.offsets_json(committed(n))),
    Printer(offsets.moves_lines, "text", lambda n: offsets.moves_lines("group", moves(n))),
    Printer(offsets.kept_lines, "text", lambda n: offsets.kept_lines("group", moves(n))),
    Printer(
        offsets.moves_json, "json", lambda n: offsets.moves_json("group", moves(n), MovedOffset((), (problem(n),)))
    ),
    Printer(outcome_text.outcome_lines, "text", lambda n: outcome_text.outcome_lines(outcome(n))),
    Printer(outcome_text.outcome_lines, "text", lambda n: outcome_text.outcome_lines(Outcome(closed=[n]))),
    Printer(plan_json.plan_json, "json", lambda n: plan_json.plan_json(plan(n))),
    Printer(plan_json.outcome_json, "json", lambda n: plan_json.outcome_json(outcome(n))),
    Printer(plan_markdown.plan_markdown, "markdown", lambda n: plan_markdown.plan_markdown(plan(n))),
    Printer(plan_picture.plan_mermaid, "mermaid", lambda n: plan_picture.plan_mermaid(declared(n), plan(n))),
    Printer(plan_picture.plan_svg, "svg", lambda n: plan_picture.plan_svg(declared(n), plan(n))),
    Printer(plan_text.plan_text, "text", lambda n: plan_text.plan_text(plan(n)).renderables),
    Printer(status.status_lines, "text", lambda n: status.status_lines(summaries(n, *statuses(n)))),
    Printer(status.status_lines, "text", lambda n: status.status_lines(summaries(n, *statuses(n)), whole=True)),
    Printer(status.status_lines, "text", lambda n: status.status_lines(summaries(n))),
    Printer(status.status_lines, "text", lambda n: status.status_lines(paused(n))),
    Printer(status_json.status_json, "json", lambda n: status_json.status_json(summaries(n, *statuses(n)), NOW, [n])),
    Printer(status_json.lag_json, "json", lambda n: status_json.lag_json(rows(n), NOW, [n])),
    Printer(translation.translation_lines, "text", lambda n: translation.translation_lines(answers(n))),
    Printer(translation.translation_csv, "csv", lambda n: translation.translation_csv(answers(n))),
    Printer(translation.translation_json, "json", lambda n: translation.translation_json(n, answers(n))),
    Printer(verify.verification_text, "text", lambda n: verify.verification_text(compared(n)).renderables),
    Printer(verify.verification_markdown, "markdown", lambda n: verify.verification_markdown(compared(n))),
    Printer(verify.verification_json, "json", lambda n: verify.verification_json(compared(n))),
)
