"""ACLs of principals that no terminal may see as they are: the loop goes on, and all printers show them as text."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from reconciler.cli.common import stderr_console
from reconciler.cli.main import main
from reconciler.cli.replicate import warn
from reconciler.declare import load
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.text import shown
from reconciler.model.tasks.spec import FlowSpec
from reconciler.operate.flows.following import growing
from reconciler.replicator.driver.refresh import Refresh
from reconciler.report.text.markdown import code
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import create, grant

USERS = {"admin": "admin-secret"}
PRINCIPALS = (
    "User:[/x]",
    "User:\x1b]0;mine\x07\x1b[31m",
    "User:a\n  failed  west  all",
    "User:\u202egnirts",
    "User:=cmd|`x`",
)
LOGIN = "{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: admin, password: env:PW}"


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture
def topic(topic_name: str, secured: EmbeddedCluster) -> str:
    create(secured, topic_name)
    return topic_name


@pytest.fixture
def file(topic: str, secured: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PW", USERS["admin"])
    path, side = tmp_path / "topology.yaml", f"{{bootstrap: '{secured.bootstrap}', security: {LOGIN}}}"
    flow = f"{{from: north, to: south, topics: {{include: ['{topic}.*']}}}}"
    path.write_text(f"version: 1\nname: {topic}\nclusters:\n  north: {side}\n  south: {side}\nflows: [{flow}]\n")
    return path


def let_read(broker: EmbeddedCluster, topic: str) -> None:
    parts = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
    grant(broker, [AclBinding(*parts, one, "*", AclOperation.READ, AclPermissionType.ALLOW) for one in PRINCIPALS])


def check_text(text: str) -> None:
    assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert [one for one in PRINCIPALS if shown(one) not in text] == []
    assert not re.search(r"^  failed", text, re.MULTILINE)


def test_a_running_loop_grants_them_and_goes_on(
    file: Path, topic: str, secured: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = load((file,))
    spec = FlowSpec.compile(topology, topology.flows[0], uuid.uuid4().hex)
    Journal(spec.target, own(spec.topology).control).ensure()
    refresh = Refresh(spec, growing(topology), warn, partial(stderr_console().print, style="dim"))
    refresh.look()
    let_read(secured, topic)
    refresh.look()
    create(secured, f"{topic}-later")
    refresh.look()
    assert not refresh.has_failed
    told = capsys.readouterr()
    check_text(told.err)
    assert [line for line in told.err.splitlines() if "granted User:" in line] != []
    assert f"made north.{topic}-later" in told.err
    assert "warning" not in told.err


@pytest.mark.parametrize("output", ["text", "markdown", "json", "mermaid", "svg"])
def test_a_plan_shows_them_as_text(
    file: Path, topic: str, secured: EmbeddedCluster, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    let_read(secured, topic)
    assert main(["plan", str(file), "--format", output, "--out", str(file.with_suffix(".json"))]) == 0
    told = capsys.readouterr()
    assert [line for line in told.out.split("\n") + told.err.split("\n") if not line.isprintable()] == []
    if output == "text":
        check_text(told.out)
    elif output == "markdown":
        # One line for all, as they get the same: every principal is named in it, as code.
        (line,) = (line for line in told.out.splitlines() if "READ on topic" in line)
        assert [one for one in PRINCIPALS if code(one) not in line] == []
    # What was planned is what is applied, and told.
    assert main(["apply", str(file), "--plan", str(file.with_suffix(".json"))]) == 0
    check_text(capsys.readouterr().out)


def test_the_command_that_reconciles_tells_them(
    file: Path, topic: str, secured: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    let_read(secured, topic)
    assert main(["reconcile", str(file), "--once"]) == 0
    check_text(capsys.readouterr().out)
