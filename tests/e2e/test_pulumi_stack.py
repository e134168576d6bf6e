"""The real `pulumi` command on the real program: preview, up, and a preview that is empty, on a local backend."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from pulumi import automation

from reconciler.embedded import EmbeddedCluster
from tests.contract.kafka import admin, create, set_config, topic_configs

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.pulumi,
    pytest.mark.skipif(shutil.which("pulumi") is None, reason="the pulumi command is not on PATH"),
]

DECLARATION = """\
version: 1
name: payments
clusters:
  us-east: {{bootstrap: ["{source}"], datacenter: dc1}}
  eu-west: {{bootstrap: ["{target}"], datacenter: dc2}}
defaults:
  topics: {{include: ["{topic}.*"]}}
flows:
  - {{from: us-east, to: eu-west}}
"""


@pytest.fixture
def stack(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> automation.Stack:
    """The stack of the target's data centre, in a copy of the project, with its state in a folder."""
    project, backend = tmp_path / "project", tmp_path / "backend"
    backend.mkdir()
    shutil.copytree(ROOT / "stacks", project / "stacks", ignore=shutil.ignore_patterns("observed", "Pulumi.*.yaml"))
    shutil.copy(ROOT / "Pulumi.yaml", project)
    (project / "payments.yaml").write_text(
        DECLARATION.format(source=source_cluster.bootstrap, target=target_cluster.bootstrap, topic=topic_name)
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
    made = automation.create_or_select_stack(
        stack_name="dc2", work_dir=str(project), opts=automation.LocalWorkspaceOptions(env_vars=environment)
    )
    made.set_config("anabranch:topology", automation.ConfigValue("payments.yaml"))
    return made


def test_preview_up_preview(
    stack: automation.Stack, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-a", 3, {"retention.ms": "86400000"})
    create(source_cluster, f"{topic_name}-b")
    remote = f"us-east.{topic_name}-a"

    # Two topics, their flow, the provider and the stack itself.
    assert stack.preview().change_summary == {automation.OpType.CREATE: 5}
    client = admin(target_cluster)
    assert remote not in client.list_topics(timeout=30).topics

    stack.up()
    assert topic_configs(target_cluster, remote)["retention.ms"] == "86400000"
    assert topic_configs(target_cluster, remote)["compression.type"] == "producer"
    assert stack.preview().change_summary == {automation.OpType.SAME: 5}

    # What somebody else has set on a topic survives the provider's way of setting everything at once.
    set_config(target_cluster, remote, "flush.ms", "1000")
    set_config(source_cluster, f"{topic_name}-a", "retention.ms", "90000000")
    stack.up()
    found = topic_configs(target_cluster, remote)
    assert (found["retention.ms"], found["flush.ms"]) == ("90000000", "1000")
