"""Drift has one open issue: opened, kept, closed when there is none, and never touched by half an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.ci.forges import Fault, ForgeDouble
from tests.support.ci.gitops import Ended, Job

pytestmark = pytest.mark.slow

LABEL = "anabranch-drift"
MARK = "<!-- anabranch drift payments -->"
CHANGED = {
    "cluster": "eu-west",
    "kind": "changed",
    "topic": "us-east.orders",
    "field": "retention.ms",
    "desired": "604800000",
    "found": "86400000",
    "remedy": "`anabranch apply` sets it back",
}
MISSING = CHANGED | {"kind": "missing", "topic": "us-east.audit", "field": "topic", "found": None}


def told(*drift: dict[str, Any], clean: bool | None = None, unseen: bool = False, name: str = "payments") -> str:
    problem = {"code": "AB310", "where": "us-east", "message": "does not answer", "remedy": ""}
    found = {
        "format": 1,
        "topology": name,
        "clean": not drift if clean is None and not unseen else clean,
        "clusters": ["eu-west"],
        "drift": drift,
        "unreachable": [problem] if unseen else [],
    }
    return json.dumps(found)


def drift(job: Job, *options: str) -> Ended:
    return job.run("drift", "--name", "payments", *options, "payments.yaml")


@pytest.fixture
def drifted(forge: ForgeDouble, job: Job) -> Job:
    """Drift was found, and has its issue."""
    job.pretend("drift", 3, told(CHANGED))
    ended = drift(job)
    assert (ended.code, len(forge.issues)) == (0, 1)
    return job


def test_drift_opens_an_issue_that_says_all_of_it(forge: ForgeDouble, drifted: Job) -> None:
    (issue,) = forge.issues
    assert (issue.author, issue.labels, issue.is_open) == (forge.bot, [LABEL], True)
    assert issue.title == "Drift of payments: 1 changed"
    assert issue.body.startswith(f"{MARK}\n")
    row = "| eu-west | changed | `us-east.orders` | `retention.ms` | `604800000` | `86400000` | \\`anabranch apply\\`"
    assert row in issue.body
    assert drifted.pretended_lines() == ["drift payments.yaml --format json --detailed-exitcode"]


def test_the_same_drift_changes_nothing_and_other_drift_updates_the_issue(forge: ForgeDouble, drifted: Job) -> None:
    before = len(forge.written())
    assert "says so already" in drift(drifted).stderr
    assert len(forge.written()) == before
    drifted.pretend("drift", 3, told(CHANGED, MISSING))
    assert "was updated" in drift(drifted).stderr
    (issue,) = forge.issues
    assert issue.title == "Drift of payments: 1 missing, 1 changed"
    assert "us-east.audit" in issue.body
    assert issue.notes == []


def test_an_issue_is_closed_with_a_word_when_there_is_no_drift_and_a_new_one_opened_later(
    forge: ForgeDouble, drifted: Job
) -> None:
    drifted.pretend("drift", 0, told())
    assert drift(drifted).code == 0
    (issue,) = forge.issues
    assert not issue.is_open
    assert [(one.author, one.body) for one in issue.notes] == [
        (forge.bot, "There is no drift any more: the clusters are as the last apply left them.")
    ]
    assert "no issue is open" in drift(drifted).stderr
    assert len(issue.notes) == 1
    drifted.pretend("drift", 3, told(MISSING))
    assert drift(drifted).code == 0
    assert [one.is_open for one in forge.issues] == [False, True]


@pytest.mark.parametrize(
    ("code", "stdout", "ends_with"),
    [
        (6, told(CHANGED, clean=False, unseen=True), 6),
        (6, told(unseen=True), 6),
        (1, "", 1),
        (2, "", 2),
        (137, told(), 137),
        (0, told(unseen=True), 1),
        (0, told(CHANGED), 1),
        (0, told(CHANGED, clean=True), 1),
        (3, told(clean=False), 1),
        (3, told(), 1),
        (3, told(unseen=True), 1),
        (3, told(CHANGED, clean=False, unseen=True), 1),
        (0, "", 1),
        (3, "Traceback", 1),
        (0, "[]", 1),
        (0, told(name="orders"), 1),
    ],
)
def test_half_an_answer_fails_and_touches_no_issue(
    forge: ForgeDouble, job: Job, code: int, stdout: str, ends_with: int
) -> None:
    issue = forge.new_issue(forge.bot, "Drift of payments: 1 changed", f"{MARK}\nas it was", [LABEL])
    job.pretend("drift", code, stdout, "us-east: does not answer [AB310]\n")
    ended = drift(job)
    assert ended.code == ends_with
    assert "no issue was touched" in ended.stderr
    assert "AB310" in ended.stderr
    assert forge.asked == []
    assert (issue.is_open, issue.body) == (True, f"{MARK}\nas it was")


def test_issues_of_others_are_left_alone(forge: ForgeDouble, job: Job) -> None:
    others = [
        forge.new_issue("alice", "mine", f"{MARK}\ncopied", [LABEL]),
        forge.new_issue(forge.bot, "unlabelled", f"{MARK}\n", []),
        forge.new_issue(forge.bot, "orders", MARK.replace("payments", "orders"), [LABEL]),
        forge.new_issue(forge.bot, "quoted", f"> {MARK}", [LABEL]),
    ]
    if "GITHUB_ACTIONS" in forge.variables():
        others.append(forge.new_issue(forge.bot, "a pull request", f"{MARK}\n", [LABEL]))
        others[-1].is_pull = True
    job.pretend("drift", 0, told())
    assert "no issue is open" in drift(job).stderr
    assert all(one.is_open and not one.notes for one in others)
    job.pretend("drift", 3, told(CHANGED))
    assert "an issue was opened" in drift(job).stderr
    assert "says so already" in drift(job).stderr
    assert len(forge.issues) == len(others) + 1


def test_the_issue_is_found_on_a_later_page(forge: ForgeDouble, drifted: Job) -> None:
    ours = forge.issues.pop()
    for number in range(7):
        forge.new_issue("alice", f"{number}", "", [LABEL])
    forge.issues.append(ours)
    drifted.pretend("drift", 0, told())
    assert "was closed" in drift(drifted).stderr
    assert [one for one in forge.issues if not one.is_open] == [ours]


def test_an_issue_that_was_opened_though_the_answer_failed_is_not_opened_twice(forge: ForgeDouble, job: Job) -> None:
    forge.faults.append(Fault("POST", "/issues", 502, is_carried_out=True))
    job.pretend("drift", 3, told(CHANGED))
    assert drift(job).code == 0
    assert len(forge.issues) == 1


def test_who_may_not_write_issues_hears_of_drift_by_a_failed_job(forge: ForgeDouble, job: Job) -> None:
    forge.readers.add(forge.token)
    job.pretend("drift", 3, told(CHANGED))
    ended = drift(job)
    assert ended.code == 1
    assert "could not be kept" in ended.stderr
    assert "us-east.orders" in job.fallback(ended)


def test_fields_are_ignored_and_labels_chosen(forge: ForgeDouble, job: Job) -> None:
    job.pretend("drift", 3, told(CHANGED))
    assert drift(job, "--ignore", "flush.ms", "--ignore", "partitions", "--label", "kafka").code == 0
    options = "--format json --detailed-exitcode --ignore flush.ms --ignore partitions"
    assert job.pretended_lines() == [f"drift payments.yaml {options}"]
    assert forge.issues[0].labels == ["kafka"]


def test_secrets_stay_out_of_issues_and_do_not_tear_the_answer_apart(forge: ForgeDouble, job: Job) -> None:
    job.variables |= {"EAST_PW": "payments", "WEST_PW": "hunter2"}
    (job.folder / "payments.yaml").write_text("{password: env:EAST_PW}\n{password: env:WEST_PW}\n")
    job.pretend("drift", 3, told(CHANGED | {"found": "hunter2 of payments"}))
    ended = drift(job)
    assert ended.code == 0
    (issue,) = forge.issues
    assert "`*** of ***`" in issue.body
    assert [text for text in (issue.title, issue.body, job.fallback(ended), ended.stderr) if "hunter2" in text] == []
    assert "says so already" in drift(job).stderr


def test_long_drift_is_cut(forge: ForgeDouble, job: Job) -> None:
    job.pretend("drift", 3, told(*(CHANGED | {"topic": f"us-east.topic-{number}"} for number in range(2_000))))
    assert drift(job).code == 0
    (issue,) = forge.issues
    assert issue.title == "Drift of payments: 2000 changed"
    assert 64_000 < len(issue.body) < 65_000
    rows = issue.body.count("\n| eu-west")
    assert f"{2_000 - rows} lines are left out here" in issue.body
