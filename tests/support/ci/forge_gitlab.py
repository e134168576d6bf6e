"""GitLab's REST API, as far as the pipelines use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.ci.forges import Elsewhere, ForgeDouble, Issue, Listed, Note, Request, Routes, Wrong

PROJECT = 42


class GitLabDouble(ForgeDouble):
    """One project; its token is an access token of the project."""

    bot = "project_42_bot"

    def variables(self) -> dict[str, str]:
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.address}/api/v4",
            "CI_PROJECT_ID": str(PROJECT),
            "CI_JOB_URL": "https://gitlab.example/acme/streams/-/jobs/77",
            "ANABRANCH_CI_TOKEN": self.token,
        }

    def told_token(self, headers: Mapping[str, str]) -> str | None:
        return {key.lower(): value for key, value in headers.items()}.get("private-token")

    def routes(self) -> Routes:
        here = f"/api/v4/projects/{PROJECT}"
        return (
            ("GET", "/api/v4/user", lambda request: {"username": request.user}),
            ("GET", f"{here}/merge_requests/(\\d+)/notes", self._notes),
            ("POST", f"{here}/merge_requests/(\\d+)/notes", self._add_note),
            ("PUT", f"{here}/merge_requests/(\\d+)/notes/(\\d+)", self._edit_note),
            ("GET", f"{here}/issues", self._open_issues),
            ("POST", f"{here}/issues", self._add_issue),
            ("PUT", f"{here}/issues/(\\d+)", self._edit_issue),
            ("POST", f"{here}/issues/(\\d+)/notes", self._add_issue_note),
            ("GET", f"{here}/repository/commits/([0-9a-f]+)/merge_requests", self._merge_requests),
            ("GET", f"{here}/repository/commits/([0-9a-f]+)", self._commit),
            ("GET", f"{here}/merge_requests/(\\d+)/pipelines", self._pipelines),
            ("GET", f"{here}/pipelines/(\\d+)/jobs", self._jobs),
            ("GET", f"{here}/jobs/(\\d+)/artifacts/anabranch-plan/([^/]+)/([^/]+)", self._file),
        )

    def _notes(self, request: Request) -> Any:
        notes = [_note(one) for one in self.notes.get(int(request.parts[0]), [])]
        system = {"id": 1, "system": True, "author": {"username": self.bot}, "body": "added 1 commit"}
        return Listed([system, *notes])

    def _add_note(self, request: Request) -> Any:
        return _note(self.note(int(request.parts[0]), request.user, request.body["body"]))

    def _edit_note(self, request: Request) -> Any:
        for one in self.notes.get(int(request.parts[0]), []):
            if one.identity == int(request.parts[1]):
                one.body = request.body["body"]
                return _note(one)
        raise Wrong(404, "404 Not found")

    def _open_issues(self, request: Request) -> Any:
        is_open, label = request.query["state"] == "opened", request.query["labels"]
        return Listed([_issue(one) for one in self.issues if one.is_open == is_open and label in one.labels])

    def _add_issue(self, request: Request) -> Any:
        body = request.body
        return _issue(self.new_issue(request.user, body["title"], body["description"], body["labels"].split(",")))

    def _edit_issue(self, request: Request) -> Any:
        one = self.issue(int(request.parts[0]))
        one.title = request.body.get("title", one.title)
        one.body = request.body.get("description", one.body)
        one.is_open = one.is_open and request.body.get("state_event") != "close"
        return _issue(one)

    def _add_issue_note(self, request: Request) -> Any:
        made = Note(self.new_identity(), request.user, request.body["body"])
        self.issue(int(request.parts[0])).notes.append(made)
        return _note(made)

    def _merge_requests(self, request: Request) -> Any:
        return Listed(
            [
                {
                    "iid": one.number,
                    "state": "merged" if one.made else "opened",
                    "merge_commit_sha": one.made,
                    "squash_commit_sha": None,
                    "sha": one.head,
                    "target_branch": one.branch,
                }
                for one in self.pulls_of(request.parts[0])
            ]
        )

    def _commit(self, request: Request) -> Any:
        return {"id": request.parts[0], "parent_ids": self.parents.get(request.parts[0], [])}

    def _pipelines(self, request: Request) -> Any:
        sources = {"pull_request": "merge_request_event"}
        return Listed(
            [
                {
                    "id": one.identity,
                    "sha": one.head,
                    "source": sources.get(one.event, one.event),
                    "project_id": one.project,
                }
                for one in self.runs
                if one.pull == int(request.parts[0])
            ]
        )

    def _jobs(self, request: Request) -> Any:
        (run,) = (one for one in self.runs if one.identity == int(request.parts[0]))
        named = enumerate(f"anabranch-plan: [{name}, {name}.yaml]" for name in run.kept)
        jobs = [{"id": run.identity * 10 + place, "name": name} for place, name in named]
        return Listed([{"id": run.identity * 10 + 9, "name": "lint"}, *jobs])

    def _file(self, request: Request) -> Elsewhere:
        identity, place = divmod(int(request.parts[0]), 10)
        (run,) = (one for one in self.runs if one.identity == identity)
        name, file = request.parts[1:]
        if run.is_expired or place >= len(run.kept) or [*run.kept][place] != name or file not in run.kept[name]:
            raise Wrong(404, "404 Not found")
        return self.put(f"{request.parts[0]}-{file}", run.kept[name][file])


def _note(note: Note) -> dict[str, Any]:
    return {"id": note.identity, "system": False, "author": {"username": note.author}, "body": note.body}


def _issue(issue: Issue) -> dict[str, Any]:
    return {
        "iid": issue.number,
        "author": {"username": issue.author},
        "title": issue.title,
        "description": issue.body,
        "labels": issue.labels,
    }
