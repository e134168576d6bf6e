"""Every printer of `reconciler.report`, each with values in which all that others may choose is one name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from reconciler.model.offsets.committed import MovedOffset
from reconciler.model.planning.outcome import Outcome
from reconciler.model.recorded.declaration import InForce
from reconciler.report import (
    acls,
    clients,
    deployments,
    describe,
    explain,
    failover,
    flows,
    health,
    offsets,
    translation,
    verify,
)
from reconciler.report.pictures import graph
from reconciler.report.plan import drift
from reconciler.report.plan import outcome as outcome_text
from reconciler.report.plan import to_json as plan_json
from reconciler.report.plan import to_markdown as plan_markdown
from reconciler.report.plan import to_picture as plan_picture
from reconciler.report.plan import to_text as plan_text
from reconciler.report.status import events as on_record
from reconciler.report.status import groups, lag, live, log, quotas, topics, unapplied, unread
from reconciler.report.status import summary as status
from reconciler.report.status import to_json as status_json
from tests.support.hostile import values as of

Shape = Literal["text", "markdown", "json", "csv", "svg", "mermaid", "shell"]


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


def _all(*found: Iterable[Any]) -> list[Any]:
    return [one for some in found for one in some]


PRINTERS = (
    Printer(acls.acls_text, "text", lambda n: acls.acls_text(of.granted(n))),
    Printer(acls.acls_json, "json", lambda n: acls.acls_json(of.granted(n))),
    Printer(acls.acls_commands, "shell", lambda n: acls.acls_commands(of.granted(n))),
    Printer(clients.clients_text, "text", lambda n: clients.clients_text(of.settings(n))),
    Printer(deployments.processes_text, "text", lambda n: deployments.processes_text(n, of.deployed(n)).renderables),
    Printer(deployments.processes_json, "json", lambda n: deployments.processes_json(n, of.deployed(n))),
    Printer(describe.flow_lines, "text", lambda n: describe.flow_lines(of.described(n))),
    Printer(describe.flow_lines, "text", lambda n: describe.flow_lines(replace(of.described(n), summary=None))),
    Printer(describe.flow_json, "json", lambda n: describe.flow_json(of.described(n), [n])),
    Printer(describe.topic_lines, "text", lambda n: describe.topic_lines(n, of.in_flows(n))),
    Printer(describe.topic_json, "json", lambda n: describe.topic_json(n, of.in_flows(n), of.NOW, [n])),
    Printer(drift.drift_text, "text", lambda n: drift.drift_text(of.drifted(n))),
    Printer(drift.drift_markdown, "markdown", lambda n: drift.drift_markdown(of.drifted(n))),
    Printer(drift.drift_json, "json", lambda n: drift.drift_json(of.drifted(n))),
    Printer(on_record.event_lines, "text", lambda n: on_record.event_lines(of.recalled(n))),
    Printer(on_record.events_json, "json", lambda n: on_record.events_json(of.recalled(n), [of.problem(n)])),
    Printer(explain.explained_text, "text", lambda n: explain.explained_text(of.fates(n))),
    Printer(failover.failover_lines, "text", lambda n: failover.failover_lines(of.crossing(n))),
    Printer(failover.failback_lines, "text", lambda n: failover.failback_lines(of.returning(n))),
    Printer(failover.groups_lines, "text", lambda n: failover.groups_lines(of.crossing(n).groups, n, n)),
    Printer(failover.further_lines, "text", lambda n: failover.further_lines(of.crossing(n).groups, n)),
    Printer(failover.acls_lines, "text", lambda n: failover.acls_lines(of.plan(n))),
    Printer(failover.failover_json, "json", lambda n: failover.failover_json(of.crossing(n))),
    Printer(failover.failback_json, "json", lambda n: failover.failback_json(of.returning(n))),
    Printer(failover.further_json, "json", lambda n: failover.further_json(of.crossing(n).groups)),
    Printer(failover.outcome_json, "json", lambda n: failover.outcome_json({}, of.plan(n), 1, [of.problem(n)])),
    Printer(flows.flow_lines, "text", lambda n: flows.flow_lines(of.declared(n).flows)),
    Printer(flows.flows_json, "json", lambda n: flows.flows_json(of.declared(n).flows)),
    Printer(graph.graph_text, "text", lambda n: graph.graph_text(of.declared(n))),
    Printer(graph.graph_mermaid, "mermaid", lambda n: graph.graph_mermaid(of.declared(n))),
    Printer(graph.graph_svg, "svg", lambda n: graph.graph_svg(of.declared(n))),
    Printer(groups.group_lines, "text", lambda n: groups.group_lines(of.taking(n), of.synced(n), of.NOW)),
    Printer(groups.groups_json, "json", lambda n: groups.groups_json(of.taking(n)[0], of.synced(n), of.NOW)),
    Printer(
        groups.all_groups_json,
        "json",
        lambda n: groups.all_groups_json(of.taking(n), of.synced(n), of.NOW, [n]),
    ),
    Printer(health.checks_text, "text", lambda n: health.checks_text(of.checks(n))),
    Printer(health.checks_json, "json", lambda n: health.checks_json(of.checks(n))),
    Printer(lag.lag_lines, "text", lambda n: lag.lag_lines(of.rows(n))),
    Printer(live.flows_table, "text", lambda n: [live.flows_table(of.summaries(n, *of.statuses(n)))]),
    Printer(log.text_line, "text", lambda n: [log.text_line(one, of.NOW) for one in of.events(n)]),
    Printer(log.json_line, "json", lambda n: [json.loads(log.json_line(one, of.NOW)) for one in of.events(n)]),
    Printer(offsets.offsets_lines, "text", lambda n: _all(offsets.offsets_lines("group", of.committed(n)))),
    Printer(offsets.offsets_lines, "text", lambda n: offsets.offsets_lines("flow", of.positions(n))),
    Printer(offsets.offsets_csv, "csv", lambda n: offsets.offsets_csv("group", of.committed(n))),
    Printer(offsets.offsets_csv, "csv", lambda n: offsets.offsets_csv("flow", of.positions(n))),
    Printer(offsets.offsets_json, "json", lambda n: offsets.offsets_json(of.committed(n))),
    Printer(offsets.moves_lines, "text", lambda n: offsets.moves_lines("group", of.moves(n))),
    Printer(offsets.kept_lines, "text", lambda n: offsets.kept_lines("group", of.moves(n))),
    Printer(
        offsets.moves_json,
        "json",
        lambda n: offsets.moves_json("group", of.moves(n), MovedOffset((), (of.problem(n),))),
    ),
    Printer(outcome_text.outcome_lines, "text", lambda n: outcome_text.outcome_lines(of.outcome(n))),
    Printer(outcome_text.outcome_lines, "text", lambda n: outcome_text.outcome_lines(Outcome(closed=[n]))),
    Printer(plan_json.plan_json, "json", lambda n: plan_json.plan_json(of.plan(n))),
    Printer(plan_json.outcome_json, "json", lambda n: plan_json.outcome_json(of.outcome(n))),
    Printer(plan_markdown.plan_markdown, "markdown", lambda n: plan_markdown.plan_markdown(of.plan(n))),
    Printer(plan_picture.plan_mermaid, "mermaid", lambda n: plan_picture.plan_mermaid(of.declared(n), of.plan(n))),
    Printer(plan_picture.plan_svg, "svg", lambda n: plan_picture.plan_svg(of.declared(n), of.plan(n))),
    Printer(plan_text.plan_text, "text", lambda n: plan_text.plan_text(of.plan(n)).renderables),
    Printer(status.status_lines, "text", lambda n: status.status_lines(of.summaries(n, *of.statuses(n)))),
    Printer(status.status_lines, "text", lambda n: status.status_lines(of.summaries(n, *of.statuses(n)), whole=True)),
    Printer(status.status_lines, "text", lambda n: status.status_lines(of.summaries(n))),
    Printer(status.status_lines, "text", lambda n: status.status_lines(of.paused(n))),
    Printer(unread.unread_lines, "text", lambda n: unread.unread_lines(of.declared(n).flows, {f"2 {n}"})),
    Printer(quotas.quota_lines, "text", lambda n: quotas.quota_lines(of.held_back(n), of.places(n))),
    Printer(
        unapplied.unapplied_lines,
        "text",
        lambda n: unapplied.unapplied_lines(of.declared(n), {f"2 {n}": InForce("0" * 16, of.NOW, n)}),
    ),
    Printer(
        status_json.status_json,
        "json",
        lambda n: status_json.status_json(of.summaries(n, *of.statuses(n)), of.NOW, [n]),
    ),
    Printer(status_json.lag_json, "json", lambda n: status_json.lag_json(of.rows(n), of.NOW, [n])),
    Printer(topics.topic_lines, "text", lambda n: topics.topic_lines(of.of_topics(n))),
    Printer(topics.topics_json, "json", lambda n: topics.topics_json(of.of_topics(n), of.NOW, [n])),
    Printer(translation.translation_lines, "text", lambda n: translation.translation_lines(of.answers(n))),
    Printer(translation.translation_csv, "csv", lambda n: translation.translation_csv(of.answers(n))),
    Printer(translation.translation_json, "json", lambda n: translation.translation_json(n, of.answers(n))),
    Printer(verify.verification_text, "text", lambda n: verify.verification_text(of.compared(n)).renderables),
    Printer(verify.verification_markdown, "markdown", lambda n: verify.verification_markdown(of.compared(n))),
    Printer(verify.verification_json, "json", lambda n: verify.verification_json(of.compared(n))),
)
