"""The pipelines themselves: valid by the published schemas, with the least permissions, and calling what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gitops.github import WORKFLOW
from gitops.gitlab import JOB
from reconciler.model.connection.hosts import VARIABLE
from reconciler.operate.pipelines import write_pipelines
from tests.support.ci.forge_github import GitHubDouble
from tests.support.ci.forges import ForgeDouble, Pull
from tests.support.ci.gitops import ROOT, SCRIPTS, Ended, Job
from tests.unit.ci.test_comment import PLAN, bodies, checked
from tests.unit.ci.test_drift import CHANGED, told
from tests.unit.ci.test_reviewed import HEAD, MADE, run, saved

pytestmark = pytest.mark.slow

GITHUB = ROOT / "ci" / "github"
WORKFLOWS = sorted(GITHUB.glob("*"))
PLAN_YML, APPLY_YML, DRIFT_YML = (GITHUB / f"anabranch-{name}.yml" for name in ("plan", "apply", "drift"))
GITLAB = ROOT / "ci" / "gitlab" / "anabranch.gitlab-ci.yml"
SCHEMAS = [*((path, "vendor.github-workflows") for path in WORKFLOWS), (GITLAB, "vendor.gitlab-ci")]

# What each job may do, and nothing else.
PERMISSIONS = {
    PLAN_YML: {"contents": "read", "pull-requests": "write"},
    APPLY_YML: {"contents": "read", "pull-requests": "read", "actions": "read"},
    DRIFT_YML: {"contents": "read", "issues": "write"},
}


def loaded(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def job_of(path: Path) -> Any:
    (job,) = loaded(path)["jobs"].values()
    return job


def gitlab_job(name: str) -> Any:
    pipeline = loaded(GITLAB)
    return {**pipeline[".anabranch"], **pipeline[f"anabranch-{name}"]}


def called() -> Iterator[tuple[str, str]]:
    """Yield every command line of every pipeline, and where it stands."""
    for path in WORKFLOWS:
        for step in job_of(path)["steps"]:
            if "run" in step:
                yield path.name, step["run"]
    for name in ("plan", "apply", "drift"):
        for line in [*gitlab_job(name)["before_script"], *gitlab_job(name)["script"]]:
            yield f"{GITLAB.name} {name}", line


def valid(path: Path, schema: str) -> bool:
    line = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    # The schemas come with the package: nothing is asked of a network.
    environment = os.environ | {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    assert ended.returncode == 0 or "validation errors" in ended.stdout, ended.stdout
    return ended.returncode == 0


def test_the_pipelines_are_here() -> None:
    assert sorted(PERMISSIONS) == WORKFLOWS
    assert len([*called()]) == 18


@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: getattr(value, "name", ""))
def test_they_are_valid(path: Path, schema: str, tmp_path: Path) -> None:
    assert valid(path, schema)
    broken = tmp_path / path.name
    wrong = {"timeout-minutes: ": "timeout-minutes: soon and ", "interruptible: true": "interruptible: perhaps"}
    text = path.read_text()
    for right, instead in wrong.items():
        text = text.replace(right, instead)
    broken.write_text(text)
    assert not valid(broken, schema)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_have_the_least_permissions_and_pinned_actions(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {}
    assert job_of(path)["permissions"] == PERMISSIONS[path]
    uses = re.findall(r"uses: (.*)", path.read_text())
    assert uses
    assert [one for one in uses if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
    (checkout,) = (step for step in job_of(path)["steps"] if "checkout" in step.get("uses", ""))
    assert checkout["with"] == {"persist-credentials": False}
    # Only what talks to GitHub has the token.
    for step in job_of(path)["steps"]:
        speaks = any(script in step.get("run", "") for script in ("comment.py", "reviewed.py", "drift.py"))
        assert ("GITHUB_TOKEN" in step.get("env", {})) == speaks
    assert "GITHUB_TOKEN" not in {**workflow.get("env", {}), **job_of(path).get("env", {})}


def test_two_applies_never_run_at_once_and_none_is_dropped() -> None:
    assert loaded(APPLY_YML)["concurrency"] == {
        "group": "anabranch-apply",
        "cancel-in-progress": False,
        "queue": "max",
    }
    assert job_of(APPLY_YML)["strategy"]["max-parallel"] == 1
    assert gitlab_job("apply")["resource_group"] == "anabranch-apply"
    assert gitlab_job("apply")["interruptible"] is False


def test_no_provisioner_is_taken_that_nobody_asked_for() -> None:
    # A committed project and a runner that has Pulumi would be enough for `auto`.
    assert job_of(APPLY_YML)["env"]["ANABRANCH_PROVISIONER"] == "direct"
    assert gitlab_job("apply")["variables"] == {"ANABRANCH_PROVISIONER": "direct"}
    for path in (APPLY_YML, GITLAB):
        (line,) = (line for line in path.read_text().splitlines() if "ANABRANCH_PROVISIONER" in line)
        assert "# yours" in line


def test_where_secrets_may_go_is_said_outside_of_files() -> None:
    for path in WORKFLOWS:
        assert job_of(path)["env"][VARIABLE] == "${{ vars." + VARIABLE + " }}"
    # On GitLab a variable of the project is there by itself, and stronger than one of a file.
    assert VARIABLE not in {**loaded(GITLAB).get("variables", {}), **gitlab_job("apply")["variables"]}


def test_what_the_forge_allows_reaches_the_command(forge: ForgeDouble, job: Job) -> None:
    job.pretend("validate", 0, checked())
    job.pretend("plan", 0, PLAN, file="{}")
    if not isinstance(forge, GitHubDouble):
        job.variables[VARIABLE] = "*.example"
    assert go(forge, job, "plan").code == 0
    assert job.pretended_environment()[VARIABLE] == "*.example"


def test_two_runs_of_one_pull_request_do_not_write_at_once() -> None:
    assert loaded(PLAN_YML)["concurrency"] == {
        "group": "anabranch-plan-${{ github.event.pull_request.number }}",
        "cancel-in-progress": True,
    }
    assert loaded(DRIFT_YML)["concurrency"] == {"group": "anabranch-drift", "cancel-in-progress": False}
    assert gitlab_job("drift")["resource_group"] == "anabranch-drift"


def test_a_plan_is_made_of_whatever_is_applied() -> None:
    plan, apply = loaded(PLAN_YML)["on"]["pull_request"], loaded(APPLY_YML)["on"]["push"]
    assert plan == apply
    assert [gitlab_job(name)["rules"][0]["changes"] for name in ("plan", "apply")] == [["payments.yaml", "ci/**/*"]] * 2
    matrices = [job_of(path)["strategy"]["matrix"] for path in WORKFLOWS]
    assert matrices == [matrices[0]] * 3
    # Nothing else starts them: `pull_request_target` would run what a fork has changed, with our secrets.
    events = {path: set(loaded(path)["on"]) for path in WORKFLOWS}
    assert events == {PLAN_YML: {"pull_request"}, APPLY_YML: {"push"}, DRIFT_YML: {"schedule", "workflow_dispatch"}}


def test_the_plan_is_kept_where_it_is_looked_for() -> None:
    (upload,) = (step for step in job_of(PLAN_YML)["steps"] if "upload-artifact" in step.get("uses", ""))
    assert upload["with"]["name"] == "anabranch-plan-${{ github.event.pull_request.number }}-${{ matrix.name }}"
    assert upload["if"] == "${{ !cancelled() }}"
    artifacts = gitlab_job("plan")["artifacts"]
    assert (artifacts["when"], artifacts["paths"]) == ("always", ["anabranch-plan/"])


@pytest.mark.parametrize(("place", "line"), [*called()], ids=lambda value: value[:40])
def test_a_command_line_calls_what_there_is(place: str, line: str) -> None:
    # An expression would be put into the line before the shell reads it: what it holds belongs into a variable.
    assert "${{" not in line
    assert subprocess.run(["bash", "-n", "-c", line], check=False).returncode == 0
    if installed := re.search(r"sh (ci/\w+\.sh)$", line):
        assert subprocess.run(["sh", "-n", ROOT / installed[1]], check=False).returncode == 0
    elif script := re.search(r"python (ci/scripts/\w+\.py) (.*)", line):
        usage = said(sys.executable, str(ROOT / script[1]), "--help")
        required = re.sub(r"\[[^]]*\]", "", usage.split("\n\n")[0])
        assert flags(script[2]) <= flags(usage), place
        assert flags(required) <= flags(script[2]), place
    elif command := re.search(r"^anabranch (\w+) (.*)", line):
        program = str(Path(sys.executable).parent / "anabranch")
        assert flags(command[2]) <= flags(said(program, command[1], "--help")), place
    else:
        assert line.startswith(("commit=", "exit ")), place


@pytest.mark.parametrize(("place", "line"), [*called()], ids=lambda value: value[:40])
def test_nothing_that_a_stranger_may_name_is_read_as_a_command(place: str, line: str) -> None:
    # Names of branches, titles and the like come as variables, which a shell neither splits nor reads again in quotes.
    unquoted = re.findall(r"\$\w+|\$\{[^}]*\}", re.sub(r'"[^"]*"', "", line))
    assert set(unquoted) <= {"$FILES", "$?"}, place
    assert not re.search(r"\beval\b|`|\$\(", line), place


@pytest.mark.parametrize("path", [*WORKFLOWS, GITLAB], ids=lambda path: path.name)
def test_nothing_is_installed_but_by_hash(path: Path) -> None:
    lines = [line for place, line in called() if place.startswith(path.name)]
    assert lines.count("sh ci/install.sh") == (3 if path == GITLAB else 1)
    assert [line for line in lines if "pip" in line] == []


def flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - {"--help"}


def said(*line: str) -> str:
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_script_is_called() -> None:
    scripts = {path.name for path in SCRIPTS.glob("*.py")}
    for platform in (GITLAB.name, "anabranch-"):
        lines = [line for place, line in called() if place.startswith(platform)]
        assert {name for name in scripts if any(f"ci/scripts/{name}" in line for line in lines)} == scripts


def go(forge: ForgeDouble, job: Job, name: str) -> Ended:
    """Run the command lines of a pipeline's job, but for the installation, as its runner does."""
    if isinstance(forge, GitHubDouble):
        return github_runner(job, loaded(GITHUB / f"anabranch-{name}.yml"))
    own: Mapping[str, str] = {
        "TOPOLOGY": "payments",
        "FILES": "payments.yaml clusters.yaml",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_COMMIT_SHA": HEAD if name == "plan" else MADE,
        "CI_COMMIT_BRANCH": "main",
    }
    return shell(job, "\n".join(gitlab_job(name)["script"]), own)


def github_runner(job: Job, workflow: Any) -> Ended:
    """Do what a runner does with the steps of a job: the first failure stands, and `!cancelled()` goes on."""
    known = {
        "matrix.name": "payments",
        "matrix.files": "payments.yaml clusters.yaml",
        "github.token": job.variables["GITHUB_TOKEN"],
        "github.event.pull_request.number": "7",
        "github.event.pull_request.head.sha": HEAD,
        "github.sha": MADE,
        "github.ref_name": "main",
        "vars.ANABRANCH_ALLOWED_HOSTS": "*.example",
    }
    ((_, steps),) = workflow["jobs"].items()
    ended = Ended(0, "", "")
    given = {key: value for key, value in job.variables.items() if key != "GITHUB_TOKEN"}
    for step in steps["steps"]:
        if "run" not in step or step["name"] == "Install" or (ended.code and step.get("if") != "${{ !cancelled() }}"):
            continue
        told_to = {**steps.get("env", {}), **step.get("env", {})}
        own = {key: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: known[found[1]], text) for key, text in told_to.items()}
        now = shell(job, step["run"], own, given)
        ended = Ended(ended.code or now.code, ended.stdout + now.stdout, ended.stderr + now.stderr)
    return ended


def shell(job: Job, text: str, own: Mapping[str, str], given: Mapping[str, str] | None = None) -> Ended:
    here = job.folder / "ci"
    if not here.exists():
        here.symlink_to(ROOT / "ci")
    line = ["bash", "-e", "-o", "pipefail", "-c", text]
    environment = {**(job.variables if given is None else given), **own}
    ended = subprocess.run(
        line, cwd=job.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize(("code", "ends_with"), [(0, 0), (3, 0), (1, 1), (4, 4), (6, 6)])
def test_a_pull_request_is_planned_and_its_job_ends_as_the_plan(
    forge: ForgeDouble, job: Job, code: int, ends_with: int
) -> None:
    job.pretend("validate", 0, checked())
    job.pretend("plan", code, PLAN, "AB401\n", file="{}")
    assert go(forge, job, "plan").code == ends_with
    ((author, body),) = bodies(forge)
    assert author == forge.bot
    assert ("2 to add" in body) == (ends_with == 0)
    assert [line.split(" --")[0] for line in job.pretended_lines()] == [
        "validate payments.yaml clusters.yaml",
        "plan payments.yaml clusters.yaml",
    ]


@pytest.mark.parametrize("code", [0, 4, 5, 6])
def test_a_merge_applies_the_reviewed_plan_and_its_job_ends_as_the_apply(
    forge: ForgeDouble, job: Job, code: int
) -> None:
    forge.pulls.append(Pull(7, HEAD, MADE))
    forge.runs += [run(1, saved("first")), run(2, saved("right"))]
    job.pretend("apply", code)
    assert go(forge, job, "apply").code == code
    assert (job.folder / "plan.json").read_bytes() == saved("right")
    assert job.pretended_lines() == ["apply payments.yaml clusters.yaml --plan plan.json --yes --wait 600"]


def test_what_was_not_reviewed_is_not_applied(forge: ForgeDouble, job: Job) -> None:
    forge.pulls.append(Pull(7, HEAD, None))
    forge.runs.append(run(1, saved("right")))
    job.pretend("apply", 0)
    assert go(forge, job, "apply").code == 1
    with pytest.raises(FileNotFoundError):
        job.pretended_lines()


def test_a_schedule_keeps_the_issue(forge: ForgeDouble, job: Job) -> None:
    job.pretend("drift", 3, told(CHANGED))
    assert go(forge, job, "drift").code == 0
    assert [one.is_open for one in forge.issues] == [True]
    job.pretend("drift", 6, told(unseen=True))
    assert go(forge, job, "drift").code == 6
    job.pretend("drift", 0, told())
    assert go(forge, job, "drift").code == 0
    assert [one.is_open for one in forge.issues] == [False]


def test_the_scripts_look_for_plans_where_the_pipelines_make_them() -> None:
    assert PLAN_YML.name == WORKFLOW
    assert JOB in loaded(GITLAB)


def test_what_the_guide_says_to_type_puts_everything_in_its_place(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "gitops.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    # What Python leaves there where a package is installed, or a script was imported.
    (ROOT / "ci" / "scripts" / "__pycache__").mkdir(exist_ok=True)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    line = ["bash", "-e", "-c", commands]
    ended = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in (tmp_path / ".github" / "workflows").iterdir()) == [
        path.name for path in WORKFLOWS
    ]
    for folder in (".", "scripts"):
        copied = {path.name for path in (tmp_path / "ci" / folder).iterdir() if path.is_file()}
        assert copied == {path.name for path in (ROOT / "ci" / folder).iterdir() if path.is_file()}
    assert not list((tmp_path / "ci").rglob("__pycache__"))
    write_pipelines(tmp_path, "gitlab")
    assert valid(tmp_path / ".gitlab-ci.yml", "vendor.gitlab-ci")


def test_links_of_the_guide_lead_somewhere() -> None:
    guide = ROOT / "docs" / "gitops.md"
    links = re.findall(r"\]\((?!http)([^)#]+)(?:#(\w+))?\)", guide.read_text(encoding="utf-8"))
    assert links
    for link, heading in links:
        target = guide.parent / link
        assert target.exists(), link
        assert not heading or f"## {heading}" in target.read_text(encoding="utf-8").lower(), heading
