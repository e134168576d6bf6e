"""The real `pulumi` command on the real program, on a local backend: by hand, and as `apply` drives it.

One stack has two clusters, another stack one of its own on the same brokers, which nothing here may touch.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from pulumi import automation

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, grow, names, partitions, set_config, topic_configs, topic_id
from tests.support.commands.command import anabranch

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.pulumi,
    pytest.mark.skipif(shutil.which("pulumi") is None, reason="the pulumi command is not on PATH"),
]

DECLARATION = """\
version: 1
name: {name}
clusters:
  us-east: {{bootstrap: ["{source}"], datacenter: dc1}}
  eu-west: {{bootstrap: ["{target}"], datacenter: dc2}}
  eu-south: {{bootstrap: ["{source}"], datacenter: dc2}}
  ap-east: {{bootstrap: ["{target}"], datacenter: dc3}}
defaults:
  topics: {{include: ["{topic}.*"]}}
flows:
  - {{from: us-east, to: eu-west}}
  - {{from: us-east, to: eu-south}}
  - {{from: us-east, to: ap-east, policy: {{type: default, separator: "-in-asia-"}}}}
"""
# The stack itself, two flows, two providers, and two topics at each of two clusters.
ALL = 9


@pytest.fixture
def project(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A copy of the project, with its state in a folder, and two topics to be copied."""
    folder, backend = tmp_path / "project", tmp_path / "backend"
    backend.mkdir()
    shutil.copytree(ROOT / "stacks", folder / "stacks", ignore=shutil.ignore_patterns("observed", "Pulumi.*.yaml"))
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    (folder / "payments.yaml").write_text(
        DECLARATION.format(
            name=topic_name[-40:].strip("-"),
            source=source_cluster.bootstrap,
            target=target_cluster.bootstrap,
            topic=topic_name,
        )
    )
    environment = {
        "PULUMI_BACKEND_URL": backend.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "for this test alone",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # The program runs in this interpreter's environment, and imports what is tested here.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        # A provider that read the environment would now fail: there is no such certificate.
        "KAFKA_ENABLE_TLS": "true",
        "KAFKA_CA_CERT": str(tmp_path / "missing.pem"),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    create(source_cluster, f"{topic_name}-a", 3, {"retention.ms": "86400000"})
    create(source_cluster, f"{topic_name}-b")
    return folder


def stack_of(project: Path, name: str = "dc2") -> automation.Stack:
    """The stack of a data centre."""
    made = automation.create_or_select_stack(stack_name=name, work_dir=str(project))
    made.set_config("anabranch:topology", automation.ConfigValue("payments.yaml"))
    return made


def test_by_hand(
    project: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    stack, other = stack_of(project), stack_of(project, "dc3")
    remote, there = f"us-east.{topic_name}-a", f"us-east-in-asia-{topic_name}-a"
    other.up()
    kept = topic_id(target_cluster, there)

    assert stack.preview().change_summary == {automation.OpType.CREATE: ALL}
    assert remote not in names(target_cluster)
    stack.up()
    for broker in (target_cluster, source_cluster):
        assert topic_configs(broker, remote)["retention.ms"] == "86400000"
        assert topic_configs(broker, remote)["compression.type"] == "producer"
    assert stack.preview().change_summary == {automation.OpType.SAME: ALL}

    # What somebody else has set on a topic survives the provider's way of setting everything at once.
    set_config(target_cluster, remote, "flush.ms", "1000")
    set_config(source_cluster, f"{topic_name}-a", "retention.ms", "90000000")
    stack.up()
    found = topic_configs(target_cluster, remote)
    assert (found["retention.ms"], found["flush.ms"]) == ("90000000", "1000")

    # A refresh finds what the program declares, and leaves nothing to do.
    stack.refresh()
    assert stack.preview().change_summary == {automation.OpType.SAME: ALL}

    # Topics are protected: nothing goes before somebody says so.
    with pytest.raises(automation.CommandError, match="protect"):
        stack.destroy()
    assert {remote, there} <= names(target_cluster)
    workspace = stack.workspace
    workspace.pulumi_command.run(["state", "unprotect", "--all", "--yes", "--stack", "dc2"], workspace.work_dir, {})
    stack.destroy()
    assert not {remote, f"us-east.{topic_name}-b"} & (names(target_cluster) | names(source_cluster))
    assert topic_id(target_cluster, there) == kept


def test_as_apply_drives_it(
    project: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = project / "payments.yaml"
    with_pulumi = ("--yes", "--provisioner", "pulumi", "--pulumi-dir", project)
    remote, there = f"us-east.{topic_name}-a", f"us-east-in-asia-{topic_name}-a"

    first = anabranch("apply", file, *with_pulumi, "--clusters", "eu-west,eu-south", limit=600)
    assert first.code == 0, first.stderr
    assert partitions(source_cluster, remote) == partitions(target_cluster, remote) == 3
    assert there not in names(target_cluster)
    assert stack_of(project).preview().change_summary == {automation.OpType.SAME: ALL}

    # Made and grown directly, then with Pulumi: what it does not know is imported, and nothing is made twice.
    directly = anabranch("apply", file, "--yes", "--provisioner", "direct")
    assert directly.code == 0, directly.stderr
    kept = {name: topic_id(target_cluster, name) for name in (remote, there)}
    grow(source_cluster, f"{topic_name}-a", 5)
    set_config(target_cluster, remote, "flush.ms", "1000")
    again = anabranch("apply", file, *with_pulumi, limit=600)
    assert again.code == 0, again.stderr
    assert {name: topic_id(target_cluster, name) for name in (remote, there)} == kept
    assert [partitions(target_cluster, name) for name in (remote, there)] == [5, 5]
    assert topic_configs(target_cluster, remote)["flush.ms"] == "1000"
    assert anabranch("plan", file, "--detailed-exitcode").code == 0
    for name, count in (("dc2", ALL), ("dc3", 5)):
        assert stack_of(project, name).preview().change_summary == {automation.OpType.SAME: count}
