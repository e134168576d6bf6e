"""Flows that end where no flow leads any more: in the file, at clusters that answer, and at those that do not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.recorded.declaration import DESTROYED, DeclarationHistory, InForce, declaration_into
from reconciler.observe import elsewhere
from reconciler.observe.elsewhere import _lasts as lasts
from reconciler.plan.build import build_plan
from reconciler.report.plan.to_json import plan_json
from reconciler.report.plan.to_markdown import plan_markdown
from tests.support.commands.reports import check
from tests.unit.plan.facts import EAST, WEST, cluster, flow, plan_of, topology
from tests.unit.plan.inforce import SOURCE, applied, history, in_force, text


def test_the_last_flow_into_a_target_is_shown_to_end_there() -> None:
    was = topology(flow(), flow(target="north"))
    north = in_force(was, cluster("north"))
    for flows in ((was.flows[0],), (was.flows[0], replace(was.flows[1], enabled=False))):
        now = replace(was, flows=flows)
        planned = build_plan(
            now, {EAST: SOURCE, WEST: in_force(was, applied(topology())), "north": north}, [WEST, "north"]
        )
        ending = planned.clusters[1]
        assert (ending.alias, ending.flows, ending.steps) == ("north", (), ())
        assert [(one.name, one.fate) for one in ending.changes] == [("us-east-north", "ends")]
        assert planned.to_put_in_force[-1][0] == "north"
        assert planned.to_end == 1


def test_nothing_is_put_in_force_where_all_was_destroyed() -> None:
    was = topology(flow(), flow(target="north"))
    gone = replace(cluster("north"), in_force=InForce(DESTROYED, 1.0, "ops"))
    planned = build_plan(
        replace(was, flows=was.flows[:1]), {EAST: SOURCE, WEST: cluster(WEST), "north": gone}, ["north"]
    )
    assert planned.clusters[0].declared is None
    assert planned.changes_nothing


def test_a_target_that_was_taken_out_of_the_file_is_named_while_it_is_on_record() -> None:
    was = topology(flow(), flow(target="north"))
    now = topology(flow())
    target = applied(now)
    assert target.in_force is not None
    recorded = replace(target, in_force=replace(target.in_force, targets=(WEST, "north")))
    (notice,) = plan_of(now, SOURCE, recorded).notices
    assert notice.subject == "cluster north"
    assert "no file declares it any more: it cannot be reached" in notice.message
    assert "[AB446]" in notice.message
    planned = plan_of(now, SOURCE, recorded)
    assert any("cluster north" in line for line in text(planned))
    assert "`cluster north`: flows of payments lead into it" in plan_markdown(planned)
    report = json.loads(json.dumps(plan_json(planned)))
    check("plan", report)
    assert [one["subject"] for one in report["notices"]] == ["cluster north"]
    assert plan_of(was, SOURCE, recorded, cluster("north")).notices == ()


def test_what_a_digest_alone_tells_of_a_target_without_flows() -> None:
    now = topology(flow())
    empty, other = (InForce(digest, 1.0, "ops") for digest in (declaration_into(now, EAST).digest, "0123456789abcdef"))
    found = [
        DeclarationHistory(),
        DeclarationHistory((empty,)),
        DeclarationHistory((other,)),
        DeclarationHistory((replace(other, digest=DESTROYED),)),
        DeclarationHistory((empty,), declaration_into(now, EAST)),
        history(now),
    ]
    assert [lasts(now, EAST, one) for one in found] == [False, False, True, False, False, True]


def test_a_cluster_that_cannot_be_asked_is_told_where_flows_may_have_led_into_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = Unreachable(Problem("AB310", "cluster x", "does not answer", ""))
    monkeypatch.setattr(elsewhere, "_look", lambda topology, alias: away)
    now = topology(flow(), flow(target="north", enabled=False))
    idle = replace(now, clusters={**now.clusters, "idle": replace(now.clusters[EAST], alias="idle")})
    found = elsewhere.in_force_elsewhere(idle, (WEST,))
    assert found.targets == ()
    # Of the source whoever looks at its flows tells.
    assert [notice.subject for notice in found.notices] == ["cluster north", "cluster idle"]
    assert "is not known, as does not answer [AB310]" in found.notices[0].message
