"""Where a script runs: which forge the job's variables name, where its run is to be seen, where summaries go.

GitHub: `GITHUB_API_URL`, `GITHUB_REPOSITORY`, `GITHUB_TOKEN`, which a step must be given. GitLab: `CI_API_V4_URL`,
`CI_PROJECT_ID`, and `ANABRANCH_CI_TOKEN`, an access token of the project, as a job's own token may not write notes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gitops.api import Api, ApiError, NotPermitted
from gitops.forge import Forge
from gitops.github import GitHub
from gitops.gitlab import GitLab
from gitops.text import logged


def forge() -> Forge:
    """Return the forge that the job runs on.

    Raises:
        NotPermitted: the job has no token, as in a fork.
        ApiError: the job's variables name no forge.
    """
    try:
        if os.environ.get("GITHUB_ACTIONS") == "true":
            headers = {
                "Authorization": f"Bearer {_token('GITHUB_TOKEN')}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
            }
            return GitHub(Api(os.environ["GITHUB_API_URL"], headers), os.environ["GITHUB_REPOSITORY"])
        if os.environ.get("GITLAB_CI") == "true":
            headers = {"PRIVATE-TOKEN": _token("ANABRANCH_CI_TOKEN")}
            return GitLab(Api(os.environ["CI_API_V4_URL"], headers), os.environ["CI_PROJECT_ID"])
    except KeyError as error:
        message = f"the variable {error.args[0]} is not set"
        raise ApiError(message) from None
    message = "this is no job of GitHub Actions or GitLab: neither GITHUB_ACTIONS nor GITLAB_CI is true"
    raise ApiError(message)


def _token(variable: str) -> str:
    token = os.environ.get(variable, "").strip()
    if not token:
        message = f"the variable {variable} is not set"
        raise NotPermitted(message)
    return token


def artifact_place() -> str:
    """Return where the job's artifact is, as Markdown."""
    if job := os.environ.get("CI_JOB_URL"):
        return f"[the job's artifacts]({job}/artifacts/browse)"
    variables = [os.environ.get(name) for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
    if all(variables):
        return "[the run's artifacts]({}/{}/actions/runs/{})".format(*variables)
    return "the job's artifacts"


def summarise(text: str) -> None:
    """Show a text where it needs no permission: the job's summary on GitHub, else the job's log."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"{text.rstrip()}\n")
    else:
        sys.stdout.write(logged(f"{text.rstrip()}\n"))


def say(text: str) -> None:
    """Tell the job's log what was done."""
    sys.stderr.write(logged(f"{text}\n"))
