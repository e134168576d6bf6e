"""`plan` and `apply` between two real clusters: exit codes, what is printed where, and kills at any moment."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.observe.record import read_observed
from reconciler.state.declarations import Declarations
from reconciler.state.lock import Lock
from reconciler.state.ownership import Ownership
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared, names, set_config, topic_configs
from tests.support.commands.claims import wait_for_claims
from tests.support.commands.command import COMMAND, LIMIT_SECONDS, anabranch
from tests.support.commands.payments import write

CHANGES, USAGE, REFUSED, LOCKED, UNREACHABLE = 3, 2, 4, 5, 6


@pytest.fixture
def topology(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


def test_plan_then_apply_then_plan(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 3, {"retention.ms": "86400000"})
    remote = f"us-east.{topic_name}"

    planned = anabranch("plan", topology, "--detailed-exitcode")
    assert (planned.code, planned.stderr) == (CHANGES, "")
    assert f"+ topic  {remote}   3 partitions, replication 1, identical offsets" in planned.stdout
    assert "\x1b" not in planned.stdout
    assert remote not in names(target_cluster)

    applied = anabranch("apply", topology, "--yes")
    assert (applied.code, applied.stderr) == (0, "")
    assert f"done      eu-west  make {remote}" in applied.stdout
    assert topic_configs(target_cluster, remote)["retention.ms"] == "86400000"

    again = anabranch("plan", topology, "--detailed-exitcode")
    assert again.code == 0
    assert again.stdout.endswith("Nothing to do: 0 to add, 0 to change, 0 to delete.\n")


def test_drift_is_planned_and_mended(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, configs={"retention.ms": "86400000"})
    anabranch("apply", topology, "--yes")
    set_config(target_cluster, f"us-east.{topic_name}", "retention.ms", "1000")

    text = anabranch("plan", topology).stdout
    assert f"~ topic  us-east.{topic_name}" in text
    assert "retention.ms  1000 → 86400000   changed at the target since the last apply" in text
    value = json.loads(anabranch("apply", topology, "--yes", "--format", "json").stdout)
    assert value["plan"]["summary"] == {"add": 0, "own": 0, "change": 1, "delete": 0, "end": 0, "deploy": 0}
    assert [step["action"] for step in value["outcome"]["done"]] == ["alter-config"]
    assert topic_configs(target_cluster, f"us-east.{topic_name}")["retention.ms"] == "86400000"


def test_markdown_is_printed_for_pull_requests(
    topology: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    printed = anabranch("plan", topology, "--format", "markdown").stdout
    assert printed.startswith("### ")
    assert f"- `+` eu-west: `us-east.{topic_name}`, by flow" in printed


def test_what_was_observed_is_written_down_for_pulumi(
    topology: Path, tmp_path: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 3)
    folder = tmp_path / "observed"
    ended = anabranch("plan", topology, "--write-observed", folder)
    assert (ended.code, ended.stderr) == (0, f"wrote {folder / 'dc2.json'}\n")
    seen = read_observed(folder / "dc2.json", load((topology,)), ["us-east", "eu-west"])
    assert seen is not None
    assert seen["us-east"].topics[topic_name].partitions == 3


def test_a_data_centre_is_observed_whole_also_where_none_is_declared(
    topology: Path, tmp_path: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    topology.write_text(topology.read_text().replace(", datacenter: dc1", "").replace(", datacenter: dc2", ""))
    folder = tmp_path / "observed"
    ended = anabranch("plan", topology, "--write-observed", folder)
    assert (ended.code, ended.stderr) == (0, f"wrote {folder / 'default.json'}\n")
    assert read_observed(folder / "default.json", load((topology,)), ["us-east", "eu-west"]) is not None
    assert anabranch("plan", topology).stdout == ended.stdout


def test_without_a_terminal_apply_needs_yes(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    ended = anabranch("apply", topology)
    assert (ended.code, "1 to add" in ended.stdout) == (USAGE, True), "the plan is shown first"
    assert ended.stderr.startswith("nothing was changed: there is no terminal on which to confirm it [AB144]\n")
    assert ended.stderr.endswith(f": anabranch apply {topology} --yes\n")
    assert f"us-east.{topic_name}" not in names(target_cluster)


def test_on_a_terminal_apply_asks(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    refused = anabranch("apply", topology, answer="n\n")
    assert refused.code == 1
    assert refused.stderr == "Carry this out? [y/N] Nothing was changed.\n"
    assert f"us-east.{topic_name}" not in names(target_cluster)

    agreed = anabranch("apply", topology, answer="y\n")
    assert agreed.code == 0
    assert f"us-east.{topic_name}" in names(target_cluster)


def test_what_was_not_shown_is_not_done(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-shown")

    def meanwhile() -> str:
        create(source_cluster, f"{topic_name}-later")
        return "y\n"

    ended = anabranch("apply", topology, answer=meanwhile)
    assert ended.code == REFUSED
    assert f"read: eu-west: create-topic us-east.{topic_name}-later: was not planned [AB407]" in ended.stderr
    assert f"us-east.{topic_name}-shown" not in names(target_cluster)


def test_a_reviewed_plan_is_carried_out_as_long_as_nothing_moved(
    topology: Path, tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-a", 2)
    file = tmp_path / "plan.json"
    planned = anabranch("plan", topology, "--out", file, "--detailed-exitcode")
    assert (planned.code, planned.stderr) == (CHANGES, f"wrote {file}\n")

    create(source_cluster, f"{topic_name}-b")
    moved = anabranch("apply", topology, "--plan", file)
    assert (moved.code, moved.stdout) == (REFUSED, "")
    assert f"eu-west: create-topic us-east.{topic_name}-b: was not planned" in moved.stderr
    assert "[AB407]" in moved.stderr
    assert not {f"us-east.{topic_name}-a", f"us-east.{topic_name}-b"} & names(target_cluster)

    anabranch("plan", topology, "--out", file)
    declaration = topology.read_text()
    topology.write_text(declaration.replace("tasks: 2", "tasks: 3"))
    other = anabranch("apply", topology, "--plan", file)
    assert (other.code, "[AB412]" in other.stderr) == (REFUSED, True)

    topology.write_text(declaration)
    chosen = anabranch("apply", topology, "--plan", file, "--clusters", "eu-west")
    assert (chosen.code, "--clusters" in chosen.stderr) == (USAGE, True)
    # Without a terminal and without --yes: the plan was read when it was reviewed.
    applied = anabranch("apply", topology, "--plan", file)
    assert (applied.code, applied.stderr) == (0, "")
    assert {f"us-east.{topic_name}-a", f"us-east.{topic_name}-b"} <= names(target_cluster)
    again = anabranch("apply", topology, "--plan", file)
    assert (again.code, "there is no need any more" in again.stderr) == (REFUSED, True)


def test_a_foreign_topic_stops_everything(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, f"{topic_name}-a")
    create(source_cluster, f"{topic_name}-b")
    create(target_cluster, f"us-east.{topic_name}-a")
    ended = anabranch("apply", topology, "--yes")
    assert (ended.code, ended.stdout) == (REFUSED, "")
    assert "[AB401]" in ended.stderr
    assert f"us-east.{topic_name}-b" not in names(target_cluster)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        pytest.param(("us-east", "us-middle"), "AB432", id="source-renamed"),
        pytest.param(("eu-west", "eu-middle"), "AB432", id="target-renamed"),
        pytest.param(
            ("flows:\n  - {from: us-east, to: eu-west, tasks: 2, partitions: 3}\n", ""), "AB422", id="emptied"
        ),
        pytest.param(("partitions: 3", "partitions: 2"), "AB430", id="fewer-partitions"),
    ],
)
def test_what_a_file_must_not_do_changes_nothing(
    changed: tuple[str, str],
    code: str,
    topology: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
) -> None:
    create(source_cluster, topic_name)
    topology.write_text(topology.read_text().replace("tasks: 2}", "tasks: 2, partitions: 3}"))
    assert anabranch("apply", topology, "--yes").code == 0
    before, declared_now = names(target_cluster), load((topology,))
    in_force = Declarations(declared("eu-west", target_cluster), declared_now.name)
    digest = in_force.current().in_force
    text = topology.read_text()
    assert changed[0] in text
    topology.write_text(text.replace(*changed))
    for command in (("plan",), ("apply", "--yes")):
        refused = anabranch(command[0], topology, *command[1:])
        assert (refused.code, refused.stdout, f"[{code}]" in refused.stderr) == (REFUSED, "", True), refused
    assert names(target_cluster) == before
    assert in_force.current().in_force == digest
    in_force.close()


def test_of_two_at_once_the_second_waits_or_leaves(
    topology: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    alias, name = "eu-west", load((topology,)).name
    assert anabranch("apply", topology, "--yes").code == 0
    create(source_cluster, f"{topic_name}-later")
    with Lock(declared(alias, target_cluster), name) as held:
        held.take(0.0)
        ended = anabranch("apply", topology, "--yes", "--wait", "0.5")
        assert (ended.code, ended.stdout) == (LOCKED, "")
        assert "is being changed by" in ended.stderr
        assert "[AB501]" in ended.stderr
        command = [*COMMAND, "apply", str(topology), "--yes"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as second:
            wait_for_claims(declared(alias, target_cluster), name, 2)
            assert second.poll() is None
            held.release()
            stdout, _ = second.communicate(timeout=LIMIT_SECONDS)
    assert second.returncode == 0
    assert f"make us-east.{topic_name}-later" in stdout


def test_clusters_chooses_targets_and_must_be_declared(
    topology: Path, source_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    value = json.loads(anabranch("plan", topology, "--clusters", "eu-west", "--format", "json").stdout)
    assert [cluster["alias"] for cluster in value["clusters"]] == ["eu-west"]
    ended = anabranch("plan", topology, "--clusters", "eu-west,nowhere")
    assert (ended.code, "nowhere" in ended.stderr) == (USAGE, True)


def test_a_stopped_target_is_named(tmp_path: Path, make_clusters: MakeClusters, topic_name: str) -> None:
    source, target = make_clusters("source", "target")
    path = write(tmp_path, source.bootstrap, target.bootstrap, topic_name)
    create(source, topic_name)
    target.stop_broker()
    ended = anabranch("plan", path, "--detailed-exitcode")
    assert (ended.code, ended.stdout) == (UNREACHABLE, "")
    assert "cluster eu-west: does not answer" in ended.stderr
    assert target.bootstrap in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_an_apply_that_is_killed_again_and_again_is_finished_by_the_next(
    tmp_path: Path, make_clusters: MakeClusters, topic_name: str
) -> None:
    source, target = make_clusters("source", "target")
    path = write(tmp_path, source.bootstrap, target.bootstrap, topic_name)
    wanted = {f"us-east.{topic_name}-{number:03}" for number in range(60)}
    for name in sorted(wanted):
        create(source, name.removeprefix("us-east."))
    moments = random.Random(topic_name)
    killed = [killed_once_it_has_begun(path, target, moments.uniform(0, 0.4)) for _ in range(4)]
    assert any(killed)

    assert anabranch("apply", path, "--yes").code == 0
    assert anabranch("plan", path, "--detailed-exitcode").code == 0
    assert wanted <= names(target)
    owned = Ownership(declared("eu-west", target), load((path,)).name).read()
    assert {name for name, record in owned.items() if record.is_confirmed} == wanted


def killed_once_it_has_begun(path: Path, target: EmbeddedCluster, later: float) -> bool:
    """Kill an apply some moments after it has made its first topic; tell whether it was still alive then."""
    before = names(target)
    with subprocess.Popen(
        [*COMMAND, "apply", str(path), "--yes"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None and names(target) == before:
            time.sleep(0.01)
        time.sleep(later)
        process.kill()
        return process.wait(LIMIT_SECONDS) < 0
