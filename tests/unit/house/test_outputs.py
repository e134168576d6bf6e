"""Outputs that pages show beside the tutorial's are what the printers make of such values, to the letter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from reconciler import declare
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.verification import Compared, Counts, Difference, Findings, Verification
from reconciler.model.planning.drift import Drift, Drifted
from reconciler.model.planning.health import Check
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.latency import Histogram, bucket_of
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.operate.flows.steering import Steered, SteeringWords
from reconciler.operate.flows.steering import line as line_of
from reconciler.report.explain import explained, explained_text
from reconciler.report.health import checks_text
from reconciler.report.plan.drift import drift_text
from reconciler.report.status.summary import status_lines, summarise
from reconciler.report.verify import verification_text

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
NOW = 1_000.0
SHOWN = re.compile(r"^```(?:text)?\n\$ (anabranch .*)\n((?:.*\n)*?)```$", re.MULTILINE)


def outputs(page: str) -> dict[str, list[str]]:
    """Return the outputs that a page shows, by the command's name."""
    found = SHOWN.findall((DOCS / page).read_text(encoding="utf-8"))
    return {line.split()[1]: printed.rstrip("\n").split("\n") for line, printed in found}


def printed(*renderables: object) -> list[str]:
    console = Console(width=10_000, no_color=True, highlight=False, markup=False)
    with console.capture() as capture:
        for one in renderables:
            console.print(one)
    return [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]


def test_each_page_with_outputs_is_looked_at() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if SHOWN.search(path.read_text())}
    assert pages == {"running.md", *(f"reference/{name}.md" for name in ("doctor", "drift", "policies", "verify"))}


def test_drift() -> None:
    found = (
        Drifted(
            *("eu-west", "missing", "us-east.audit", "topic", "6 partitions", None),
            "`anabranch apply` makes it again, while us-east still has audit",
        ),
        Drifted(
            *("eu-west", "changed", "us-east.orders", "retention.ms", "604800000", "86400000"),
            "`anabranch apply` sets it back",
        ),
        Drifted(
            *("eu-west", "unmanaged", "us-east.orders", "flush.ms", None, "1000"),
            "it is not declared, and it is left alone: remove it there, or set it on the original",
        ),
    )
    shown = outputs("reference/drift.md")["drift"]
    assert printed(drift_text(Drift("payments", ("us-east", "eu-west"), found))) == shown


def test_doctor() -> None:
    shown = outputs("reference/doctor.md")["doctor"]
    checks: list[Check] = []
    for line in shown:
        if line.lstrip().startswith("→"):
            checks[-1] = replace(checks[-1], remedy=line.lstrip()[2:])
        else:
            level, what, found = re.split(r" {2,}", line, maxsplit=2)
            assert level in ("ok", "warning", "failure")
            checks.append(Check(what, level, found))  # type: ignore[arg-type]
    assert checks_text(checks).plain.split("\n") == shown


def test_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "reference" / "policies.md").read_text(encoding="utf-8")
    ((line, shown),) = SHOWN.findall(page)
    monkeypatch.chdir(tmp_path)
    # The places are those of a file that begins so.
    Path("payments.yaml").write_text(
        "version: 1\nname: payments\nclusters:\n"
        '  us-east: {bootstrap: ["a:1"]}\n  eu-west: {bootstrap: ["b:1"]}\n'
        "flows:\n  - from: us-east\n    to: eu-west\n    policy:\n      type: rename\n      rules:\n"
        "        - {from: users, to: dc1-users}\n        - {from: '^orders\\.(.*)$', to: 'dc1-\\1'}\n"
        "      otherwise: identity\n"
    )
    topology, fields = declare.load_with_fields([Path("payments.yaml")])
    topics = re.findall(r"--topic (\S+)", line)
    assert printed(explained_text(explained(topology, topology.flows, topics, fields))) == shown.rstrip().split("\n")


def test_verify() -> None:
    def compared(topic: str, ends: tuple[str, str], partition: int, findings: Findings, *lacks: Problem) -> Compared:
        source, target = ends
        flow, copy = f"{source}-{target}", f"{source}.{topic}"
        return Compared(
            flow, source, topic, target, copy, partition, "identical", (0, 9), (0, 9), findings, None, lacks
        )

    def same(records: int, behind: int = 0, as_bytes: int | None = None) -> Findings:
        return Findings(Counts(records, records if as_bytes is None else as_bytes, behind=behind))

    there, back = ("us-east", "eu-west"), ("eu-west", "us-east")
    changed = same(2_412_330, as_bytes=2_300_000)
    changed.add(Difference("changed", 41_207, 41_207, "value differs at byte 17 of 240"))
    message = "312 offsets of orders/2 are not copied: parked AB217"
    behind = Problem("AB651", "flow eu-west-us-east, topic orders, partition 2", message, "")
    found = Verification(
        "payments",
        (
            compared("orders", there, 0, same(3_000_000)),
            compared("orders", there, 1, changed),
            compared("orders", there, 2, same(3_000_000)),
            *(compared("users", there, number, same(400_000)) for number in range(3)),
            compared("orders", back, 0, same(3_000_000)),
            compared("orders", back, 1, same(3_000_000)),
            compared("orders", back, 2, same(2_001_112, behind=312), behind),
        ),
    )
    assert printed(verification_text(found)) == outputs("reference/verify.md")["verify"]


def test_running() -> None:
    shown = outputs("running.md")
    assert shown.keys() == {"pause", "status"}
    flow = Flow("us-east-eu-west", "us-east", "eu-west", Selection((".*",)))
    words = SteeringWords("paused", "")
    paused = line_of(Steered(flow, (PauseScope(flow.name, "orders", 3),), 2, 0), words)
    assert [f"us-east → eu-west   {paused}"] == shown["pause"]
    message = "the batch at offset 88,412 has 3,104,077 bytes: raise max.message.bytes"
    behind = PartitionStatus(
        *("orders", 0, "us-east.orders", PartitionState.RUNNING, 1, 311, None), Metrics(lag_seconds=0.1)
    )
    parked = PartitionStatus("audit", 3, "us-east.audit", PartitionState.PARKED, 9, 9, Reason("AB212", message))
    said = TaskStatus(
        *("us-east-eu-west", "us-east", "eu-west", "run", 0, 1, NOW - 0.5, False, None, 1, 1, 42_180.0, 10.5e6),
        (behind, parked),
        latency=Histogram.of({bucket_of(45): 1}, 45, 45, 45),
    )
    assert [line.plain for line in status_lines(summarise([flow], [said], NOW))] == shown["status"]
