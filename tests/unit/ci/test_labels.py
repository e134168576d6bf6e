"""GitHub drops labels without a word for tokens that may not set them; without one no issue is found again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ci.forge_github import GitHubDouble
from tests.support.ci.forges import Store
from tests.support.ci.gitops import Job
from tests.unit.ci.test_drift import CHANGED, LABEL, drift, told

pytestmark = pytest.mark.slow


@pytest.fixture
def github(store: Store) -> Iterator[GitHubDouble]:
    with GitHubDouble(store) as running:
        yield running


def test_a_label_that_was_dropped_is_set(github: GitHubDouble, tmp_path: Path) -> None:
    github.tokens["no-labels"] = "at first"
    job = Job(tmp_path, github.variables())
    job.pretend("drift", 3, told(CHANGED))
    assert drift(job).code == 0
    assert [(one.labels, one.is_open) for one in github.issues] == [([LABEL], True)]
    assert "says so already" in drift(job).stderr


def test_where_there_can_be_no_label_no_issue_stays_open(github: GitHubDouble, tmp_path: Path) -> None:
    github.tokens["no-labels"] = "for ever"
    job = Job(tmp_path, github.variables())
    job.pretend("drift", 3, told(CHANGED))
    ended = drift(job)
    assert ended.code == 1
    assert "cannot have the label" in ended.stderr
    assert [one.is_open for one in github.issues] == [False]


def test_a_token_of_a_person_writes_under_that_name(github: GitHubDouble, tmp_path: Path) -> None:
    github.tokens = {github.token: "alice"}
    theirs = github.new_issue(github.bot, "by the workflow", "<!-- anabranch drift payments -->\n", [LABEL])
    job = Job(tmp_path, github.variables())
    job.pretend("drift", 3, told(CHANGED))
    assert drift(job).code == 0
    assert [one.author for one in github.issues] == [github.bot, "alice"]
    assert theirs.body == "<!-- anabranch drift payments -->\n"
