"""`apply --provisioner`: who carries a plan out, what is said of it, and exit codes; with the stand-in for Pulumi."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from stacks import project
from tests.support.clusters.kafka import create, grow, partitions
from tests.support.commands.command import anabranch
from tests.support.commands.payments import write
from tests.support.provision import fake_pulumi
from tests.support.provision.provisioning import make_way

ROOT = Path(__file__).parents[3]
USAGE, LOCKED = 2, 5


@pytest.fixture
def topology(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project, and a `pulumi` on PATH."""
    return make_way("stand-in", tmp_path, monkeypatch).project


def ups(folder: Path) -> int:
    calls = fake_pulumi.calls(folder.parent / "home")
    return sum("up" in call["argv"][:2] for call in calls)


def test_apply_with_pulumi_then_plan(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 3)
    applied = anabranch("apply", topology, "--yes", "--provisioner", "pulumi", "--pulumi-dir", folder)
    assert (applied.code, applied.stderr) == (0, "")
    assert f"done      eu-west  make us-east.{topic_name}" in applied.stdout
    assert "This declaration is now in force at eu-west." in applied.stdout
    assert partitions(target_cluster, f"us-east.{topic_name}") == 3
    # The stack's settings may be committed: they hold no path of this machine.
    settings = (folder / "stacks" / "Pulumi.dc2.yaml").read_text()
    assert "anabranch:topology: ../payments.yaml" in settings
    assert "anabranch:datacenter: dc2" in settings
    assert anabranch("plan", topology, "--detailed-exitcode").code == 0


def test_the_commands_of_its_page(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name)
    page = (ROOT / "docs" / "reference" / "pulumi.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)]))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shell = [sys.executable, "-m", "reconciler.cli.main"]
    script = commands.replace("anabranch ", f"{shlex.join(shell)} ")
    ended = subprocess.run(
        ["sh", "-ec", script],
        cwd=topology.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert f"make us-east.{topic_name}" in ended.stdout
    assert folder == topology.parent / "pulumi"
    assert project.is_ours(folder)


@pytest.mark.long
def test_auto_takes_pulumi_where_its_command_and_a_project_are(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("apply", topology, "--yes", "--provisioner", "auto", "--pulumi-dir", folder)
    create(source_cluster, topic_name)
    applied = anabranch(*command)
    assert (applied.code, "--provisioner pulumi makes one" in applied.stderr, ups(folder)) == (USAGE, True, 0)
    monkeypatch.chdir(folder.parent)
    applied = anabranch(*command[:-2])
    assert (applied.code, applied.stderr, ups(folder)) == (0, "", 0), "there is no project"

    project.ensure(folder, "shop")
    grow(source_cluster, topic_name, 2)
    applied = anabranch(*command)
    assert (applied.code, applied.stderr) == (0, f"with Pulumi: its project is in {folder}\n")
    # Once to import what was made directly, once to let it grow.
    assert ups(folder) == 2

    grow(source_cluster, topic_name, 3)
    without = [part for part in os.environ["PATH"].split(os.pathsep) if not (Path(part) / "pulumi").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(without))
    applied = anabranch(*command)
    assert applied.code == 0
    assert applied.stderr == f"directly: a Pulumi project is in {folder}, and no pulumi on PATH\n"
    assert ups(folder) == 2


def test_some_topics_alone_are_refused(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    part = ("apply", topology, "--yes", "--target", f"us-east.{topic_name}")
    refused = anabranch(*part, "--provisioner", "pulumi", "--pulumi-dir", folder)
    assert (refused.code, "[AB440]" in refused.stderr, "use --provisioner direct" in refused.stderr) == (4, True, True)
    assert not folder.exists()
    assert anabranch(*part, "--provisioner", "direct").code == 0


def test_a_refusal_of_pulumi_is_one_problem_and_exit_code_1(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, f"{topic_name}-a")
    create(source_cluster, f"{topic_name}-b")
    monkeypatch.setenv("FAKE_PULUMI_REFUSE", json.dumps({"-b": "the broker says no"}))
    applied = anabranch("apply", topology, "--yes", "--provisioner", "pulumi", "--pulumi-dir", folder)
    assert applied.code == 1
    assert f"done      eu-west  make us-east.{topic_name}-a" in applied.stdout
    assert f"failed    eu-west  make us-east.{topic_name}-b" in applied.stdout
    assert "This declaration is now in force at eu-west." in applied.stdout
    assert f"Missing: us-east.{topic_name}-b. Flows copy the others; `replicate` and the next" in applied.stdout
    assert applied.stderr.count("the broker says no") == 1
    assert "[AB314]" in applied.stderr


def test_exit_codes_before_anything_is_done(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name)
    command = ("apply", topology, "--yes", "--provisioner", "pulumi")
    monkeypatch.setenv("FAKE_PULUMI_LOCKED", "root@elsewhere (pid 7)")
    locked = anabranch(*command, "--pulumi-dir", folder)
    assert (locked.code, "[AB503]" in locked.stderr, "by root@elsewhere, process 7" in locked.stderr) == (
        LOCKED,
        True,
        True,
    )
    assert f"pulumi cancel --stack dc2 --cwd {os.path.relpath(folder)}" in locked.stderr
    directly = anabranch("apply", topology, "--yes", "--provisioner", "direct", "--pulumi-dir", folder)
    assert (directly.code, "the provisioner is direct" in directly.stderr) == (USAGE, True)
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "Pulumi.yaml").write_text("name: of-somebody-else\n")
    other = anabranch(*command, "--pulumi-dir", folder.parent / "other")
    assert (other.code, "[AB372]" in other.stderr) == (1, True)
    monkeypatch.setenv("PATH", "/nowhere")
    missing = anabranch(*command, "--pulumi-dir", folder)
    assert (missing.code, "use --provisioner direct" in missing.stderr, "[AB370]" in missing.stderr) == (1, True, True)


def preview(folder: Path) -> int:
    """Run `pulumi preview` by hand, and return its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = ["pulumi", "preview", "--stack", "dc2"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


@pytest.mark.long
def test_an_apply_with_nothing_to_do_brings_a_stack_in_line(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    for end in ("a", "b"):
        create(source_cluster, f"{topic_name}-{end}")
    by_pulumi = ("apply", topology, "--yes", "--provisioner", "pulumi", "--pulumi-dir", folder)
    directly = ("apply", topology, "--yes", "--provisioner", "direct")
    assert (anabranch(*by_pulumi).code, preview(folder)) == (0, 0)
    # Nothing that is right is touched.
    applied = anabranch(*by_pulumi)
    assert (applied.code, applied.stderr, ups(folder)) == (0, "", 1)

    whole = topology.read_text()
    topology.write_text(whole.replace('.*"]', f'.*"], exclude: ["{topic_name}-b"]'))
    assert anabranch(*directly, "--allow-delete", "topic=1").code == 0
    assert preview(folder) != 0, "the stack has a topic that is protected, and not declared any more"
    applied = anabranch(*by_pulumi)
    assert (applied.code, "Nothing to do" in applied.stdout) == (0, True)
    assert "Pulumi stack dc2 was brought in line with its clusters: 1 forgotten" in applied.stderr
    assert (preview(folder), ups(folder)) == (0, 1)

    topology.write_text(whole)
    assert anabranch(*directly).code == 0
    applied = anabranch(*by_pulumi)
    assert "Pulumi stack dc2 was brought in line with its clusters: 1 added" in applied.stderr
    stack = fake_pulumi.saved(folder.parent / "home", "dc2")["deployment"]["resources"]
    assert f"us-east.{topic_name}-b" in {one["id"] for one in stack}
    assert (anabranch(*by_pulumi).stderr, preview(folder), ups(folder)) == ("", 0, 2)


@pytest.mark.long
def test_a_stack_that_cannot_be_brought_in_line_is_a_warning(
    topology: Path, folder: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name)
    command = ("apply", topology, "--yes", "--provisioner", "pulumi", "--pulumi-dir", folder)
    assert anabranch(*command).code == 0
    monkeypatch.setenv("FAKE_PULUMI_FAIL", json.dumps({"stack export": [3, "it said so"]}))
    applied = anabranch(*command)
    assert (applied.code, "[AB371]" in applied.stderr, "it said so" in applied.stderr) == (0, True, True)
