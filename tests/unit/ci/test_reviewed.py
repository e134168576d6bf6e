"""Only the plan is applied that the merged pull request showed last, for its newest commit."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.support.ci.forge_gitlab import GitLabDouble
from tests.support.ci.forges import Fault, ForgeDouble, Pull, Run, Store
from tests.support.ci.gitops import Ended, Job

pytestmark = pytest.mark.slow

HEAD, OLDER, MADE = "aaaa1111", "aaaa0000", "cccc3333"


def saved(note: str = "", name: str = "payments") -> bytes:
    return json.dumps({"kind": "anabranch-plan", "plan": {"topology": name}, "note": note}).encode()


def kept(plan: bytes | None, name: str = "payments") -> Mapping[str, Mapping[str, bytes]]:
    files = {"outcome.json": b"{}", "plan.md": b"### a plan"}
    return {name: files | ({"plan.json": plan} if plan is not None else {})}


def run(identity: int, plan: bytes | None, head: str = HEAD, pull: int = 7, event: str = "pull_request") -> Run:
    return Run(identity, pull, head, event, kept(plan))


def reviewed(job: Job, name: str = "payments", commit: str = MADE) -> Ended:
    return job.run("reviewed", "--name", name, "--commit", commit, "--branch", "main", "--out", "plan.json")


def written(job: Job) -> bytes | None:
    path = job.folder / "plan.json"
    return path.read_bytes() if path.exists() else None


@pytest.fixture
def merged(forge: ForgeDouble, job: Job) -> Job:
    """A merged pull request among others that contain its commit, with runs of two of its commits and of others."""
    forge.pulls += [Pull(5, "bbbb2222", "dddd4444"), Pull(6, HEAD, None), Pull(8, HEAD, MADE, branch="release")]
    forge.pulls += [Pull(9, "eeee5555", None), Pull(7, HEAD, MADE)]
    forge.runs += [
        run(11, saved("of an older commit"), head=OLDER),
        run(12, saved("first"), event="pull_request"),
        run(13, saved("right")),
        run(14, saved("on a push"), event="push"),
        run(15, saved("of an older commit, made again"), head=OLDER),
        run(16, saved("of another pull request"), pull=6),
        Run(17, 7, HEAD, "pull_request", kept(saved(name="orders"), "orders")),
    ]
    return job


def test_the_newest_plan_of_the_merged_commit_is_fetched(store: Store, merged: Job) -> None:
    ended = reviewed(merged)
    assert (ended.code, written(merged)) == (0, saved("right"))
    assert f"the plan of pull request 7 for its commit {HEAD}, made by run 13" in ended.stderr
    # The store was asked, and would have refused a request with a token.
    assert store.asked


def test_each_topology_gets_its_own_plan(merged: Job) -> None:
    assert reviewed(merged, "orders").code == 0
    assert written(merged) == saved(name="orders")


@pytest.mark.parametrize("commit", ["dddd4445", "dddd4444"])
def test_a_commit_that_no_pull_request_made_or_whose_plan_is_not_there_gets_none(merged: Job, commit: str) -> None:
    (merged.folder / "plan.json").write_text("left over")
    ended = reviewed(merged, commit=commit)
    assert (ended.code, written(merged)) == (1, None)
    assert "nothing may be applied" in ended.stderr
    assert ("nobody has reviewed" if commit == "dddd4445" else "nothing was planned") in ended.stderr


def test_plans_of_other_commits_do_not_count(forge: ForgeDouble, merged: Job) -> None:
    forge.runs[:] = [one for one in forge.runs if one.head != HEAD]
    assert (reviewed(merged).code, written(merged)) == (1, None)


def test_a_plan_that_was_refused_at_last_is_not_replaced_by_an_earlier_one(forge: ForgeDouble, merged: Job) -> None:
    forge.runs.append(run(20, None))
    ended = reviewed(merged)
    assert (ended.code, written(merged)) == (1, None)
    assert "was refused or had failed" in ended.stderr


def test_what_has_expired_is_not_replaced_by_an_earlier_one(forge: ForgeDouble, merged: Job) -> None:
    for one in forge.runs:
        one.is_expired = True
    ended = reviewed(merged)
    assert (ended.code, written(merged)) == (1, None)
    assert "expired" in ended.stderr


@pytest.mark.parametrize("content", [b"not JSON", b"[]", b"{}", saved(name="orders")])
def test_what_is_no_plan_of_this_topology_is_refused(forge: ForgeDouble, merged: Job, content: bytes) -> None:
    forge.runs.append(run(21, content))
    assert (reviewed(merged).code, written(merged)) == (1, None)


def test_without_a_good_token_nothing_is_applied(forge: ForgeDouble, merged: Job) -> None:
    merged.variables |= {"GITHUB_TOKEN": "stolen", "ANABRANCH_CI_TOKEN": "stolen"}
    ended = reviewed(merged)
    assert (ended.code, written(merged)) == (1, None)
    assert "401 Bad credentials" in ended.stderr
    merged.variables |= {"GITHUB_TOKEN": "", "ANABRANCH_CI_TOKEN": " "}
    assert "_TOKEN is not set" in reviewed(merged).stderr


def test_a_moment_of_trouble_is_no_refusal(forge: ForgeDouble, merged: Job) -> None:
    end = "/pulls" if "GITHUB_ACTIONS" in forge.variables() else "/merge_requests"
    forge.faults.append(Fault("GET", end, 502))
    assert (reviewed(merged).code, written(merged)) == (0, saved("right"))


class TestGitLab:
    """What GitLab alone has: pipelines for merged results, and pipelines of forks."""

    @pytest.fixture(params=[GitLabDouble], ids=["gitlab"])
    def forge(self, request: pytest.FixtureRequest, store: Store) -> object:
        with request.param(store) as running:
            yield running

    def test_a_pipeline_for_merged_results_is_one_of_the_commit(self, forge: GitLabDouble, merged: Job) -> None:
        forge.runs.append(run(30, saved("merged results"), head="ffff6666"))
        forge.runs.append(run(31, saved("merged results of an older commit"), head="ffff7777"))
        forge.parents = {"ffff6666": ["9999", HEAD], "ffff7777": ["9999", OLDER]}
        assert (reviewed(merged).code, written(merged)) == (0, saved("merged results"))

    def test_a_pipeline_of_a_fork_is_not_ours(self, forge: GitLabDouble, merged: Job) -> None:
        forge.runs.append(run(30, saved("from a fork")))
        forge.runs[-1].project = 43
        assert (reviewed(merged).code, written(merged)) == (0, saved("right"))

    def test_a_fast_forward_is_a_merge_too(self, forge: GitLabDouble, merged: Job) -> None:
        assert (reviewed(merged, commit=HEAD).code, written(merged)) == (0, saved("right"))
