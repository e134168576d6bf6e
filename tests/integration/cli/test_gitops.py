"""The pipelines' scripts around the real commands on real clusters: planned, merged, applied, drifted, mended."""

from __future__ import annotations

from pathlib import Path

from reconciler.embedded import EmbeddedCluster
from tests.support.ci.forge_github import GitHubDouble
from tests.support.ci.forges import Pull, Run, Store
from tests.support.ci.gitops import Job
from tests.support.clusters.kafka import create, set_config
from tests.support.commands.command import anabranch
from tests.support.commands.payments import write

PULL, HEAD, MADE = 7, "aaaa1111", "cccc3333"
REFUSED, UNREACHABLE = 4, 6
NOBODY = "127.0.0.1:9"


def kept(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_pull_request_becomes_a_change_and_drift_an_issue(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)
    name = topic_name[-40:].strip("-")
    create(source_cluster, topic_name, 2, {"retention.ms": "86400000"})
    with Store() as store, GitHubDouble(store) as forge:
        job = Job(tmp_path, forge.variables())
        assert job.run("plan", "--name", name, "--folder", "plan", file).code == 0
        assert job.run("comment", "--pull", PULL, "--commit", HEAD, "--folder", "plan").code == 0
        (comment,) = forge.notes[PULL]
        assert f"- `+` eu-west: `us-east.{topic_name}`, by flow" in comment.body

        forge.pulls.append(Pull(PULL, HEAD, MADE))
        forge.runs.append(Run(3, PULL, HEAD, "pull_request", {name: kept(tmp_path / "plan")}))
        fetched = ("--name", name, "--commit", MADE, "--branch", "main", "--out", tmp_path / "plan.json")
        assert job.run("reviewed", *fetched).code == 0
        assert anabranch("apply", file, "--plan", tmp_path / "plan.json", "--yes").code == 0
        # What it planned is done: carried out again it is another plan than the one that was reviewed.
        assert anabranch("apply", file, "--plan", tmp_path / "plan.json", "--yes").code == REFUSED

        drift = ("--name", name, file)
        assert "no issue is open" in job.run("drift", *drift).stderr
        set_config(target_cluster, f"us-east.{topic_name}", "retention.ms", "1000")
        assert job.run("drift", *drift).code == 0
        (issue,) = forge.issues
        assert f"| `us-east.{topic_name}` | `retention.ms` | `86400000` | `1000` |" in issue.body
        said = issue.body

        gone = tmp_path / "gone.yaml"
        gone.write_text(file.read_text().replace(target_cluster.bootstrap, NOBODY))
        assert job.run("drift", "--name", name, gone).code == UNREACHABLE
        assert (issue.is_open, issue.body, issue.notes) == (True, said, [])

        assert anabranch("apply", file, "--yes").code == 0
        assert job.run("drift", *drift).code == 0
        assert (issue.is_open, len(issue.notes)) == (False, 1)
