"""The sandbox: from nothing to a first copied topic with the README's commands, and taken over from MirrorMaker 2."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from reconciler.declare import load
from reconciler.demo.sandbox import GROUP
from reconciler.observe.connection import Connection
from tests.support.commands.shell import LIMIT, Shell
from tests.support.commands.transcripts import unlike
from tests.support.deploying import lives
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.typed("anabranch sandbox down")


def block(language: str) -> list[str]:
    """Return the lines of the README's block."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    return str(found).splitlines()


def test_four_commands_lead_to_a_first_copied_topic(shell: Shell) -> None:
    install, up, replicate, status, end = block("bash")
    assert install.startswith("pip install"), "the long tests type that"
    said = shell.typed(up)
    assert "orders come in on hub" in said
    assert "anabranch sandbox down" in said
    topology = load([shell.folder / "anabranch.yaml"])
    there = shell.processes()
    assert len(there) > len(topology.clusters), "a process for each broker, and the one that holds them"
    hub = Connection(topology.clusters["hub"])
    eventually("an application reads", hub.consumer_groups, lambda groups: groups is not None and GROUP in groups)
    assert "a sandbox is up already" in shell.typed(up)
    with subprocess.Popen(["bash", "-c", f"{replicate}\nwait"], cwd=shell.folder, env=shell.env) as running:
        try:
            eventually(
                "status shows that it copies",
                lambda: shell.typed(status),
                lambda found: not unlike(tuple(block("text")), found),
            )
        finally:
            (copying,) = psutil.Process(running.pid).children()
            copying.terminate()
    assert end == "kill $! && anabranch sandbox down"
    assert "the sandbox is down" in shell.typed("anabranch sandbox down")
    # The process that held it has let it go, and is ending.
    eventually("none of its processes is left", lambda: [pid for pid in there if lives(pid)], lambda left: not left)
    assert (shell.folder / "anabranch.yaml").exists()
    assert "exists already" in shell.typed(up, code=2)
    assert "no sandbox is up" in shell.typed("anabranch sandbox down")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_what_its_mirror_maker_2_has_copied_is_taken_over(shell: Shell) -> None:
    said = shell.typed("anabranch sandbox up --mm2")
    ending, adopting = (
        re.search(pattern, said) for pattern in (r"kill \d+ && sleep 10", r"anabranch adopt [^ ].*--yes")
    )
    assert ending is not None
    assert adopting is not None
    topology = load([shell.folder / "anabranch.yaml"])
    paris = topology.clusters["paris"]
    eventually(
        "MirrorMaker 2 copies",
        lambda: "hub.orders" in Connection(paris).metadata.topics and "copied",
        bool,
        seconds=LIMIT,
    )
    shell.typed(ending[0])
    shell.typed(adopting[0])
    with subprocess.Popen(["anabranch", "replicate"], cwd=shell.folder, env=shell.env) as running:
        try:
            eventually(
                "it copies", lambda: shell.typed("anabranch status"), lambda found: found.count(" running ") == 2
            )
            verified = shell.typed("anabranch verify --flow hub-paris --copied-only")
        finally:
            running.terminate()
    assert "no difference" in verified
