"""GitHub: comments and issues of one repository, and the plans that its workflow runs keep."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from gitops.api import Api, ApiError, NotPermitted
from gitops.forge import Comment, Issue, NotReviewed, Reviewed

WORKFLOW = "anabranch-plan.yml"
_ACTIONS = "github-actions[bot]"


class GitHub:
    """A repository on GitHub.

    Args:
        api: with the token.
        repository: `owner/name`.
    """

    def __init__(self, api: Api, repository: str) -> None:
        self._api = api
        self._repository = f"/repos/{quote(repository)}"

    @property
    def sleep(self) -> Callable[[float], None]:
        """How seconds are waited."""
        return self._api.sleep

    def me(self) -> str:
        """Return the login under which we write; a workflow's own token may not ask, and has a known one."""
        try:
            return str(self._api.call("GET", "/user")["login"])
        except NotPermitted:
            return _ACTIONS

    def comments(self, pull: int) -> Iterator[Comment]:
        """Yield all comments of a pull request, the oldest first."""
        for one in self._api.pages(f"{self._repository}/issues/{pull}/comments"):
            yield Comment(one["id"], _login(one), one["body"] or "")

    def add_comment(self, pull: int, body: str) -> None:
        """Write a new comment."""
        self._api.call("POST", f"{self._repository}/issues/{pull}/comments", {"body": body})

    def edit_comment(self, pull: int, identity: int, body: str) -> None:
        """Give a comment another text."""
        self._api.call("PATCH", f"{self._repository}/issues/comments/{identity}", {"body": body})

    def issues(self, label: str) -> Iterator[Issue]:
        """Yield all open issues with a label; pull requests, which GitHub lists as well, are none."""
        query = {"state": "open", "labels": label}
        for one in self._api.pages(f"{self._repository}/issues", query):
            if "pull_request" not in one:
                yield Issue(one["number"], _login(one), one["title"], one["body"] or "")

    def open_issue(self, title: str, body: str, label: str) -> None:
        """Open an issue.

        Raises:
            ApiError: it did not get its label, without which it would not be found again.
        """
        made = self._api.call("POST", f"{self._repository}/issues", {"title": title, "body": body, "labels": [label]})
        # GitHub drops labels without a word where the token may open issues and not more.
        if label not in (one["name"] for one in made["labels"]):
            number = made["number"]
            try:
                self._api.call("POST", f"{self._repository}/issues/{number}/labels", {"labels": [label]})
            except ApiError as error:
                self._api.call("PATCH", f"{self._repository}/issues/{number}", {"state": "closed"})
                message = f"issue {number} cannot have the label {label} and was closed again: {error}"
                raise ApiError(message) from None

    def edit_issue(self, number: int, title: str, body: str) -> None:
        """Give an issue another title and text."""
        self._api.call("PATCH", f"{self._repository}/issues/{number}", {"title": title, "body": body})

    def close_issue(self, number: int, comment: str) -> None:
        """Say why, and close an issue."""
        self._api.call("POST", f"{self._repository}/issues/{number}/comments", {"body": comment})
        self._api.call("PATCH", f"{self._repository}/issues/{number}", {"state": "closed"})

    def reviewed(self, commit: str, branch: str, name: str, made_by: str | None) -> Reviewed:
        """Return the plan that was reviewed with the pull request of a merged commit.

        Raises:
            NotReviewed: there is none.
        """
        pull = self._merged(commit, branch)
        number, head = pull["number"], pull["head"]["sha"]
        wanted = artifact(number, name)
        query = {"head_sha": head, "event": "pull_request"}
        workflow = f"{self._repository}/actions/workflows/{quote(made_by or WORKFLOW, safe='')}/runs"
        runs = [run for run in self._api.pages(workflow, query, "workflow_runs") if run["head_sha"] == head]
        for run in sorted(runs, key=lambda run: int(run["id"]), reverse=True):
            if found := self._artifact(run["id"], wanted, head):
                return Reviewed(number, head, run["id"], self._plan(found, wanted))
        message = f"pull request {number} has no artifact {wanted} of its commit {head}: nothing was planned for it"
        raise NotReviewed(message)

    def _merged(self, commit: str, branch: str) -> dict[str, Any]:
        """Return the pull request whose merge made a commit; others may merely contain it.

        Raises:
            NotReviewed: there is none.
        """
        for pull in self._api.pages(f"{self._repository}/commits/{quote(commit)}/pulls"):
            is_merged = pull["merged_at"] is not None and pull["merge_commit_sha"] == commit
            if is_merged and pull["base"]["ref"] == branch:
                return dict(pull)
        message = f"commit {commit} of {branch} is no merge of a pull request: nobody has reviewed a plan for it"
        raise NotReviewed(message)

    def _artifact(self, run: int, name: str, head: str) -> dict[str, Any] | None:
        """Return the newest artifact of a name; a run that was started again may have several."""
        path = f"{self._repository}/actions/runs/{run}/artifacts"
        found = [
            one
            for one in self._api.pages(path, {"name": name}, "artifacts")
            if one["name"] == name and (one.get("workflow_run") or {}).get("head_sha") == head
        ]
        return dict(max(found, key=lambda one: int(one["id"]))) if found else None

    def _plan(self, found: dict[str, Any], name: str) -> bytes:
        if found["expired"]:
            message = f"artifact {name} has expired: make the plan again in a new pull request"
            raise NotReviewed(message)
        content = self._api.download(f"{self._repository}/actions/artifacts/{found['id']}/zip")
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return archive.read("plan.json")
        except KeyError:
            message = f"artifact {name} has no plan: what the pull request last showed was refused or had failed"
            raise NotReviewed(message) from None
        except zipfile.BadZipFile:
            message = f"artifact {name} is no archive"
            raise NotReviewed(message) from None


def artifact(pull: int, name: str) -> str:
    """Return the name under which a plan is kept; one commit may be in several pull requests."""
    return f"anabranch-plan-{pull}-{name}"


def _login(value: dict[str, Any]) -> str:
    # Who has left GitHub is null.
    return str((value.get("user") or {}).get("login", ""))
