"""A plan as text: what is alike is told once, lines fit the terminal, and signs mean one thing."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from rich.console import Console

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.planning.changes import Change, FieldChange
from reconciler.model.planning.steps import CreateTopic, GrantAcl, Notice, Plan
from reconciler.report.plan.to_text import plan_text
from tests.unit.plan.facts import WEST, cluster, plan_of, topology
from tests.unit.report.test_plan import ACLS, EAST_NOW, as_text, nothing


def on_a_terminal(plan: Plan, width: int) -> list[str]:
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        soft_wrap=True,
        highlight=False,
        force_terminal=True,
        color_system=None,
        legacy_windows=False,
    )
    console.print(plan_text(plan))
    return file.getvalue().splitlines()


def with_acls() -> Plan:
    (part,) = plan_of(topology(), EAST_NOW, cluster(WEST)).clusters
    return Plan("payments", "digest", (replace(part, steps=(*part.steps, *ACLS)),))


def test_a_narrow_terminal_shows_no_reasons_and_breaks_between_words() -> None:
    wide, narrow = on_a_terminal(with_acls(), 300), on_a_terminal(with_acls(), 60)
    assert (
        "  + acl    User:alice       READ on topic us-east.pay* (prefixed)   as the originals of flow us-east-eu-west"
        in wide
    )
    assert max(map(len, narrow)) <= 60
    at = narrow.index("  - acl    DENY User:bo|b")
    assert narrow[at + 1] == "           DESCRIBE on topic us-east.orders, from 10.0.0.1"
    assert not [line for line in narrow if "as the originals" in line or "for identical offsets" in line]
    # Nothing but reasons is left out.
    words = set(" ".join(narrow).split())
    assert {step.name.split()[-1] for step in with_acls().steps} <= words | {"(prefixed)"}
    # One line of a pipe is one line of the plan, whatever its terminal's width would be.
    assert all(line.startswith("  - acl") for line in as_text(with_acls()).splitlines() if "no longer have it" in line)


def test_a_word_that_is_longer_than_the_terminal_is_broken() -> None:
    plan = replace(nothing(), topology="x" * 130)
    told = on_a_terminal(replace(plan, clusters=()), 50)
    assert "".join(told).replace(" ", "").startswith("x" * 130)


def test_flows_that_neither_start_nor_change_have_another_sign() -> None:
    text = as_text(nothing())
    assert "▶" not in text
    assert "  = flow   us-east → eu-west   2 tasks, 3 topics\n" in text
    part = nothing().clusters[1]
    changes = (Change("flow", "us-east-eu-west", "changes", (FieldChange("tasks", "1", "2"),)),)
    assert "  ▶ flow   us-east → eu-west" in as_text(replace(nothing(), clusters=(replace(part, changes=changes),)))


def test_what_is_alike_is_told_once() -> None:
    (part,) = plan_of(topology(), EAST_NOW, cluster(WEST)).clusters
    granted = [
        GrantAcl(WEST, Binding("topic", ResourcePattern(f"us-east.old-{n}"), who, operation), "us-east-eu-west")
        for n in range(30)
        for who in ("User:alice", "User:bob")
        for operation in ("READ", "DESCRIBE")
    ]
    fields = (FieldChange("quota", "none", "1MB/s"),)
    changes = tuple(Change("flow", f"flow-{n}", "changes", fields) for n in range(30))
    left = tuple(
        Notice.about(f"copy-{n}", "flow f no longer takes {}; --allow-delete deletes it", f"o-{n}") for n in "abc"
    )
    steps = (*part.steps, *granted)
    text = as_text(Plan("payments", "d", (replace(part, steps=steps, changes=changes, left_alone=left),)))
    said = "  + acl    User:alice, User:bob   READ, DESCRIBE on 30 topics   as the originals of flow us-east-eu-west\n"
    assert said in text
    assert text.count("1MB/s") == 1
    assert "  ~ flow   30 flows\n             flow-0, flow-1, " in text
    assert "  · left   3 alike   flow f no longer takes …; --allow-delete deletes it\n" in text
    assert "             copy-a (o-a), copy-b (o-b), copy-c (o-c)\n" in text
    for n in range(30):
        assert re.search(rf"\bus-east\.old-{n}\b", text)
        assert re.search(rf"\bflow-{n}\b", text)
    assert max(len(line) for line in text.splitlines() if "us-east.old-" in line) < 130


def test_who_reads_all_that_is_new_is_told_without_its_names() -> None:
    (part,) = plan_of(topology(), EAST_NOW, cluster(WEST)).clusters
    new = [step.name for step in part.steps if isinstance(step, CreateTopic)]
    granted = [GrantAcl(WEST, Binding("topic", ResourcePattern(name), "User:alice", "READ"), "f") for name in new]
    text = as_text(Plan("payments", "d", (replace(part, steps=(*part.steps, *granted)),)))
    assert (
        f"User:alice   READ on each of the {len(new)} topics that are new here   as the originals of flow f\n" in text
    )
