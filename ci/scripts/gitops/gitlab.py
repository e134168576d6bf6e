"""GitLab: notes and issues of one project, and the plans that jobs of its pipelines keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from gitops.api import Api, NotPermitted
from gitops.forge import Comment, Issue, NotReviewed, Reviewed

JOB = "anabranch-plan"
_FOLDER = "anabranch-plan"


class GitLab:
    """A project on GitLab.

    Args:
        api: with the token.
        project: its number.
    """

    def __init__(self, api: Api, project: str) -> None:
        self._api = api
        self._id = project
        self._project = f"/projects/{quote(project, safe='')}"

    @property
    def sleep(self) -> Callable[[float], None]:
        """How seconds are waited."""
        return self._api.sleep

    def me(self) -> str:
        """Return the user name under which we write."""
        return str(self._api.call("GET", "/user")["username"])

    def comments(self, pull: int) -> Iterator[Comment]:
        """Yield all notes of a merge request, the oldest first; those of GitLab itself are left out."""
        query = {"sort": "asc", "order_by": "created_at"}
        for one in self._api.pages(f"{self._project}/merge_requests/{pull}/notes", query):
            if not one["system"]:
                yield Comment(one["id"], one["author"]["username"], one["body"] or "")

    def add_comment(self, pull: int, body: str) -> None:
        """Write a new note."""
        self._api.call("POST", f"{self._project}/merge_requests/{pull}/notes", {"body": body})

    def edit_comment(self, pull: int, identity: int, body: str) -> None:
        """Give a note another text."""
        self._api.call("PUT", f"{self._project}/merge_requests/{pull}/notes/{identity}", {"body": body})

    def issues(self, label: str) -> Iterator[Issue]:
        """Yield all open issues with a label."""
        for one in self._api.pages(f"{self._project}/issues", {"state": "opened", "labels": label}):
            yield Issue(one["iid"], one["author"]["username"], one["title"], one["description"] or "")

    def open_issue(self, title: str, body: str, label: str) -> None:
        """Open an issue."""
        self._api.call("POST", f"{self._project}/issues", {"title": title, "description": body, "labels": label})

    def edit_issue(self, number: int, title: str, body: str) -> None:
        """Give an issue another title and text."""
        self._api.call("PUT", f"{self._project}/issues/{number}", {"title": title, "description": body})

    def close_issue(self, number: int, comment: str) -> None:
        """Say why, and close an issue."""
        self._api.call("POST", f"{self._project}/issues/{number}/notes", {"body": comment})
        self._api.call("PUT", f"{self._project}/issues/{number}", {"state_event": "close"})

    def reviewed(self, commit: str, branch: str, name: str, made_by: str | None) -> Reviewed:
        """Return the plan that was reviewed with the merge request of a merged commit.

        Raises:
            NotReviewed: there is none.
        """
        merged = self._merged(commit, branch)
        number, head = merged["iid"], merged["sha"]
        for pipeline in self._pipelines(number, head):
            jobs = self._api.pages(f"{self._project}/pipelines/{pipeline}/jobs")
            named = [job["id"] for job in jobs if _is_of(job["name"], made_by or JOB)]
            for job in sorted(named, reverse=True):
                if self._file(job, name, "outcome.json") is None:
                    continue
                plan = self._file(job, name, "plan.json")
                if plan is None:
                    message = f"job {job} has no plan: what the merge request last showed was refused or had failed"
                    raise NotReviewed(message)
                return Reviewed(number, head, pipeline, plan)
        message = (
            f"merge request {number} has no plan of {name} for its commit {head} in this project: "
            "nothing was planned for it, or its artifacts have expired"
        )
        raise NotReviewed(message)

    def _merged(self, commit: str, branch: str) -> dict[str, Any]:
        """Return the merge request whose merge made a commit; others may merely contain it.

        Raises:
            NotReviewed: there is none.
        """
        for one in self._api.pages(f"{self._project}/repository/commits/{quote(commit)}/merge_requests"):
            # A fast-forward makes no commit: the branch's own, or the squashed one, is the newest then.
            made = (one.get("merge_commit_sha"), one.get("squash_commit_sha"), one["sha"])
            if one["state"] == "merged" and one["target_branch"] == branch and commit in made:
                return dict(one)
        message = f"commit {commit} of {branch} is no merge of a merge request: nobody has reviewed a plan for it"
        raise NotReviewed(message)

    def _pipelines(self, number: int, head: str) -> Iterator[int]:
        """Yield the pipelines of a merge request's newest commit, the newest first; those of forks are not ours."""
        found = [
            one
            for one in self._api.pages(f"{self._project}/merge_requests/{number}/pipelines")
            if one["source"] == "merge_request_event" and str(one.get("project_id", self._id)) == self._id
        ]
        for one in sorted(found, key=lambda one: int(one["id"]), reverse=True):
            if one["sha"] == head or head in self._parents(one["sha"]):
                yield one["id"]

    def _parents(self, commit: str) -> list[str]:
        """Return the parents of a commit: a pipeline for merged results runs on one that GitLab made of both sides."""
        try:
            return list(self._api.call("GET", f"{self._project}/repository/commits/{quote(commit)}")["parent_ids"])
        except NotPermitted:
            return []

    def _file(self, job: int, name: str, file: str) -> bytes | None:
        try:
            return self._api.download(f"{self._project}/jobs/{job}/artifacts/{_FOLDER}/{quote(name)}/{file}")
        except NotPermitted:
            return None


def _is_of(job: str, name: str) -> bool:
    """Say whether a job has a name; a matrix writes its values behind it: `anabranch-plan: [payments]`."""
    return job == name or job.startswith(f"{name}: [")
