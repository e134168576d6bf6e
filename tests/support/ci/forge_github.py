"""GitHub's REST API, as far as the pipelines use it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

from tests.support.ci.forges import Elsewhere, ForgeDouble, Issue, Listed, Note, Request, Routes, Run, Wrong

REPOSITORY = "acme/streams"


class GitHubDouble(ForgeDouble):
    """One repository; its token is a workflow's own, which may not ask who it is."""

    bot = "github-actions[bot]"

    def variables(self) -> dict[str, str]:
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.address,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_RUN_ID": "77",
            "GITHUB_TOKEN": self.token,
        }

    def told_token(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("Authorization", "").removeprefix("Bearer ")

    def routes(self) -> Routes:
        here = f"/repos/{REPOSITORY}"
        return (
            ("GET", "/user", self._user),
            ("GET", f"{here}/issues/(\\d+)/comments", lambda r: Listed([*map(_note, self._notes(r))])),
            ("POST", f"{here}/issues/(\\d+)/comments", self._add_note),
            ("PATCH", f"{here}/issues/comments/(\\d+)", self._edit_note),
            ("GET", f"{here}/issues", self._open_issues),
            ("POST", f"{here}/issues", self._add_issue),
            ("PATCH", f"{here}/issues/(\\d+)", self._edit_issue),
            ("POST", f"{here}/issues/(\\d+)/labels", self._add_labels),
            ("GET", f"{here}/commits/([0-9a-f]+)/pulls", self._pulls),
            ("GET", f"{here}/actions/workflows/([^/]+)/runs", self._runs),
            ("GET", f"{here}/actions/runs/(\\d+)/artifacts", self._artifacts),
            ("GET", f"{here}/actions/artifacts/(\\d+)/zip", self._zip),
        )

    def _user(self, request: Request) -> Any:
        if request.user == self.bot:
            raise Wrong(403, "Resource not accessible by integration")
        return {"login": request.user}

    def _notes(self, request: Request) -> list[Note]:
        number = int(request.parts[0])
        return self.issue(number).notes if number > 100 else self.notes.get(number, [])

    def _add_note(self, request: Request) -> Any:
        number = int(request.parts[0])
        made = Note(self.new_identity(), request.user, request.body["body"])
        (self.issue(number).notes if number > 100 else self.notes.setdefault(number, [])).append(made)
        return _note(made)

    def _edit_note(self, request: Request) -> Any:
        for one in (one for notes in self.notes.values() for one in notes):
            if one.identity == int(request.parts[0]):
                one.body = request.body["body"]
                return _note(one)
        raise Wrong(404, "no such comment")

    def _open_issues(self, request: Request) -> Any:
        is_open, label = request.query["state"] == "open", request.query["labels"]
        return Listed([_issue(one) for one in self.issues if one.is_open == is_open and label in one.labels])

    def _add_issue(self, request: Request) -> Any:
        # Who may not push gets an issue without labels, and no word about it.
        labels = [] if "no-labels" in self.tokens else request.body["labels"]
        return _issue(self.new_issue(request.user, request.body["title"], request.body["body"], labels))

    def _edit_issue(self, request: Request) -> Any:
        one = self.issue(int(request.parts[0]))
        one.title = request.body.get("title", one.title)
        one.body = request.body.get("body", one.body)
        one.is_open = request.body.get("state", "open" if one.is_open else "closed") == "open"
        return _issue(one)

    def _add_labels(self, request: Request) -> Any:
        if self.tokens.get("no-labels") == "for ever":
            raise Wrong(403, "Resource not accessible by integration")
        one = self.issue(int(request.parts[0]))
        one.labels += request.body["labels"]
        return [{"name": name} for name in one.labels]

    def _pulls(self, request: Request) -> Any:
        return Listed(
            [
                {
                    "number": one.number,
                    "merged_at": "2026-01-01T00:00:00Z" if one.made else None,
                    "merge_commit_sha": one.made or "7e57",
                    "head": {"sha": one.head},
                    "base": {"ref": one.branch},
                }
                for one in self.pulls_of(request.parts[0])
            ]
        )

    def _runs(self, request: Request) -> Any:
        if request.parts[0] != "anabranch-plan.yml":
            raise Wrong(404, "no such workflow")
        wanted = (request.query["head_sha"], request.query["event"])
        runs = [{"id": one.identity, "head_sha": one.head} for one in self.runs if (one.head, one.event) == wanted]
        return Listed(runs, "workflow_runs")

    def _artifacts(self, request: Request) -> Any:
        (run,) = (one for one in self.runs if one.identity == int(request.parts[0]))
        names = {name: f"anabranch-plan-{run.pull}-{name}" for name in run.kept}
        return Listed(
            [
                {
                    "id": run.identity * 10 + place,
                    "name": full,
                    "expired": run.is_expired,
                    "workflow_run": {"id": run.identity, "head_sha": run.head},
                }
                for place, full in enumerate(names.values())
                if full == request.query["name"]
            ],
            "artifacts",
        )

    def _zip(self, request: Request) -> Elsewhere:
        run_identity, place = divmod(int(request.parts[0]), 10)
        (run,) = (one for one in self.runs if one.identity == run_identity)
        return self.put(f"{request.parts[0]}.zip", _zipped(run, [*run.kept][place]))


def _zipped(run: Run, name: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file, kept in run.kept[name].items():
            archive.writestr(file, kept)
    return content.getvalue()


def _note(note: Note) -> dict[str, Any]:
    return {"id": note.identity, "user": {"login": note.author} if note.author else None, "body": note.body}


def _issue(issue: Issue) -> dict[str, Any]:
    told = {
        "number": issue.number,
        "user": {"login": issue.author},
        "title": issue.title,
        "body": issue.body,
        "labels": [{"name": name} for name in issue.labels],
    }
    return told | ({"pull_request": {}} if issue.is_pull else {})
