"""A pull request has one comment for each topology, whatever the plan became and however often it is made."""

from __future__ import annotations

import json

import pytest

from tests.support.ci.forges import Fault, ForgeDouble
from tests.support.ci.gitops import Ended, Job

pytestmark = pytest.mark.slow

PULL = 7
MARK = "<!-- anabranch plan payments -->"
PLAN = "### payments: 2 to add, 0 to change, 0 to delete\n\n#### New: 2 topics\n\n- `+` eu-west: `a`\n"
HEAD = "0123456789abcdef0123"


def checked(name: str = "payments") -> str:
    return json.dumps({"name": name, "valid": True})


def plan(job: Job, name: str = "payments") -> Ended:
    (job.folder / "payments.yaml").touch()
    return job.run("plan", "--name", name, "--folder", f"plan/{name}", "payments.yaml")


def comment(job: Job, name: str = "payments") -> Ended:
    return job.run("comment", "--pull", PULL, "--commit", HEAD, "--folder", f"plan/{name}")


@pytest.fixture
def planned(job: Job) -> Job:
    job.pretend("validate", 0, checked())
    job.pretend("plan", 3, PLAN, "wrote plan.json\n", file='{"kind": "anabranch-plan"}')
    assert plan(job).code == 0
    return job


def bodies(forge: ForgeDouble) -> list[tuple[str, str]]:
    return [(one.author, one.body) for one in forge.notes.get(PULL, [])]


def test_a_plan_is_kept_and_shown_as_it_is(forge: ForgeDouble, planned: Job) -> None:
    assert (planned.folder / "plan/payments/plan.json").read_text() == '{"kind": "anabranch-plan"}'
    assert planned.pretended_lines() == [
        "validate payments.yaml --format json",
        "plan payments.yaml --format markdown --longest 64000 --whole plan/payments/whole.md "
        "--out plan/payments/plan.json --detailed-exitcode",
    ]
    ended = comment(planned)
    assert (ended.code, ended.stderr) == (0, "a comment was written\n")
    ((author, body),) = bodies(forge)
    assert author == forge.bot
    assert body.startswith(f"{MARK}\n{PLAN}")
    assert (planned.folder / "plan/payments/whole.md").read_text() == PLAN
    assert "0123456789ab; whole: [the " in body
    assert "/77" in body
    assert (planned.folder / "plan/payments/comment.md").read_text() == body


def test_two_runs_give_one_comment_on_whatever_page_it_stands(forge: ForgeDouble, planned: Job) -> None:
    for number in range(8):
        forge.note(PULL, "alice", f"remark {number}")
    assert comment(planned).code == 0
    for number in range(5):
        forge.note(PULL, "bob", f"answer {number}")
    planned.pretend("plan", 0, "### payments: no changes\n", file="{}")
    assert plan(planned).code == 0
    assert comment(planned).stderr == "the comment was updated\n"
    (ours,) = [body for author, body in bodies(forge) if author == forge.bot]
    assert "### payments: no changes" in ours
    assert "2 to add" not in ours
    assert len(bodies(forge)) == 14
    assert comment(planned).stderr == "the comment says so already\n"


def test_comments_of_others_are_left_alone_whatever_they_say(forge: ForgeDouble, planned: Job) -> None:
    others = [
        ("alice", f"{MARK}\n### payments: copied by hand"),
        (forge.bot, f"> {MARK}\nquoted"),
        (forge.bot, f"see below\n{MARK}"),
        (forge.bot, MARK.replace("payments", "payments-2") + "\nanother topology"),
        (forge.bot, MARK.replace("plan", "drift") + "\nanother kind"),
        ("", "by somebody who has left"),
    ]
    for author, body in others:
        forge.note(PULL, author, body)
    assert comment(planned).stderr == "a comment was written\n"
    assert bodies(forge)[:-1] == others
    assert comment(planned).code == 0
    assert bodies(forge)[:-1] == others


def test_each_topology_has_a_comment_of_its_own(forge: ForgeDouble, planned: Job) -> None:
    assert comment(planned).code == 0
    planned.pretend("validate", 0, checked("orders"))
    planned.pretend("plan", 0, "### orders: no changes\n", file="{}")
    assert plan(planned, "orders").code == 0
    assert comment(planned, "orders").code == 0
    first, second = (body for _, body in bodies(forge))
    assert first.startswith(MARK)
    assert second.startswith("<!-- anabranch plan orders -->")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, "could not be made"),
        (2, "could not be made: `anabranch` does not know what it was asked"),
        (4, "was refused"),
        (5, "could not be made: another run is at work"),
        (6, "is missing: some clusters did not answer"),
    ],
)
def test_a_plan_that_could_not_be_made_says_why_and_fails(
    forge: ForgeDouble, planned: Job, code: int, said: str
) -> None:
    assert comment(planned).code == 0
    error = "orders: is not ours [AB401]\n    → adopt it\n```\nand ``` more\n"
    planned.pretend("plan", code, "half a pl", error, file="{}")
    assert plan(planned).code == code
    assert not (planned.folder / "plan/payments/plan.json").exists()
    assert comment(planned).code == 0
    ((_, body),) = bodies(forge)
    assert body.startswith(f"{MARK}\n### payments: the plan {said}\n")
    assert f"exit code {code}" in body
    # What the error says cannot end the block in which it stands.
    assert f"````text\n{error.strip()}\n````\n" in body
    assert "half a pl" not in body


def test_files_with_errors_are_not_planned(forge: ForgeDouble, job: Job) -> None:
    job.pretend("validate", 1, "", "payments.yaml:9:44: expected a declared cluster [AB105]\n")
    assert plan(job).code == 1
    assert comment(job).code == 0
    ((_, body),) = bodies(forge)
    assert body.startswith(f"{MARK}\n### payments: the declaration has errors\n")
    assert "[AB105]" in body
    assert job.pretended_lines() == ["validate payments.yaml --format json"]


def test_files_of_another_topology_do_not_pass_for_this_one(forge: ForgeDouble, job: Job) -> None:
    job.pretend("validate", 0, checked("orders"))
    assert plan(job).code == 1
    assert comment(job).code == 0
    assert "calls this topology payments, and its files declare orders" in bodies(forge)[0][1]


@pytest.mark.parametrize("kind", ["reader", "none"])
def test_who_may_not_comment_shows_the_plan_elsewhere_and_does_not_fail(
    forge: ForgeDouble, planned: Job, kind: str
) -> None:
    if kind == "reader":
        forge.readers.add(forge.token)
    else:
        planned.variables.pop("GITHUB_TOKEN", None)
        planned.variables.pop("ANABRANCH_CI_TOKEN", None)
    ended = comment(planned)
    assert ended.code == 0
    assert "not allowed to comment" in ended.stderr
    assert "- `+` eu-west: `a`" in planned.fallback(ended)
    assert bodies(forge) == []


def test_a_repository_that_cannot_be_seen_is_as_one_that_may_not_be_commented(forge: ForgeDouble, planned: Job) -> None:
    for variable, value in (("GITHUB_REPOSITORY", "acme/hidden"), ("CI_PROJECT_ID", "99")):
        if variable in planned.variables:
            planned.variables[variable] = value
    ended = comment(planned)
    assert ended.code == 0
    assert ": 404 " in ended.stderr
    assert "- `+` eu-west: `a`" in planned.fallback(ended)


def test_a_wrong_token_fails_and_the_plan_is_shown_all_the_same(forge: ForgeDouble, planned: Job) -> None:
    forge.tokens = {"another": forge.bot}
    ended = comment(planned)
    assert ended.code == 1
    assert "401 Bad credentials" in ended.stderr
    assert forge.token not in ended.stderr
    assert "- `+` eu-west: `a`" in planned.fallback(ended)


def test_a_comment_that_was_written_though_the_answer_failed_is_not_written_twice(
    forge: ForgeDouble, planned: Job
) -> None:
    end = "/comments" if "GITHUB_ACTIONS" in forge.variables() else "/notes"
    forge.faults.append(Fault("POST", end, 502, is_carried_out=True))
    assert comment(planned).code == 0
    assert len(bodies(forge)) == 1
    forge.notes.clear()
    forge.faults.append(Fault("POST", end, 502))
    assert comment(planned).code == 0
    assert len(bodies(forge)) == 1


def test_secrets_do_not_get_into_comments_or_summaries(forge: ForgeDouble, job: Job) -> None:
    key = job.folder / "key.pem"
    key.write_text("-----BEGIN-----\nc2VjcmV0\n")
    job.variables |= {"EAST_PW": "hunter2", "WEST_PW": "hunter2 and more", "RACK": "rack-1", "ANABRANCH_DEBUG": "1"}
    (job.folder / "payments.yaml").write_text(
        "us-east: {security: {username: mirror, password: env:EAST_PW}, rack: env:RACK}\n"
        f'eu-west: {{security: {{"password": "env:WEST_PW", key: file:{key}}}}}\n'
    )
    job.pretend("validate", 0, checked())
    # A line break of another is printed as an escape.
    escaped = key.read_text().replace("\n", "\\n")
    job.pretend("plan", 1, "", f"rack-1 refused: hunter2 and more, hunter2, {escaped}, {key.read_text()}")
    ended = job.run("plan", "--name", "payments", "--folder", "plan/payments", "payments.yaml")
    assert ended.code == 1
    shown = comment(job)
    told = [body for _, body in bodies(forge)] + [ended.stdout, ended.stderr, shown.stdout, shown.stderr]
    told += [path.read_text() for path in (job.folder / "plan/payments").iterdir()]
    for secret in ("hunter2", "and more", "c2VjcmV0", forge.token):
        assert [text for text in told if secret in text] == []
    assert "rack-1 refused: ***, ***, ***, ***" in bodies(forge)[0][1]
    had = job.pretended_environment()
    assert had["EAST_PW"] == "hunter2"
    assert not {"GITHUB_TOKEN", "ANABRANCH_CI_TOKEN", "ANABRANCH_DEBUG"} & set(had)


def test_a_machine_without_anabranch_says_so(forge: ForgeDouble, job: Job) -> None:
    job.variables["PATH"] = str(job.folder)
    assert plan(job).code == 1
    assert comment(job).code == 0
    assert "anabranch is not installed" in bodies(forge)[0][1]


def test_without_a_plan_folder_nothing_is_shown(forge: ForgeDouble, job: Job) -> None:
    ended = comment(job)
    assert ended.code == 1
    assert "nothing to show" in ended.stderr
    assert forge.asked == []


def test_outside_of_a_pipeline_it_says_what_is_missing(planned: Job) -> None:
    for variable in ("GITHUB_ACTIONS", "GITLAB_CI"):
        planned.variables.pop(variable, None)
    ended = comment(planned)
    assert ended.code == 1
    assert "neither GITHUB_ACTIONS nor GITLAB_CI" in ended.stderr
