"""Which declaration is in force, on a real broker: kept, put there by apply, and the gate that goes by it."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.cli.common import TERMINAL
from reconciler.cli.main import main
from reconciler.cli.planning import DIFFERENT as CHANGES
from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import state_names
from reconciler.model.planning.changes import FieldChange
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.declaration import DeclarationStanding, digest_into
from reconciler.model.tasks.status import TaskStatus
from reconciler.observe.elsewhere import in_force_elsewhere
from reconciler.observe.topology import observe
from reconciler.operate.flows import gate as gates
from reconciler.operate.flows.gate import FlowGate
from reconciler.plan.build import build_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.provision.work import record_in_force
from reconciler.state.declarations import Declarations
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from reconciler.state.status import StatusReader, StatusWriter, newest_runs
from tests.support.clusters.kafka import create, declared
from tests.support.waiting import eventually

SECONDS = 30.0
ME = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture
def cluster(target_cluster: EmbeddedCluster) -> Cluster:
    return declared("west", target_cluster)


def test_a_history_is_kept_by_topology(cluster: Cluster, topic_name: str) -> None:
    follower, other = Declarations(cluster, topic_name), Declarations(cluster, f"{topic_name}-other")
    try:
        assert follower.current().standing("one") is DeclarationStanding.ALONE
        writer = Declarations(cluster, topic_name)
        for digest in ("one", "two", "two"):
            writer.put_in_force(digest)
        eventually("it is heard", lambda: follower.current().standing("one") is DeclarationStanding.OLDER)
        eventually("the newest too", lambda: follower.current().standing("two") is DeclarationStanding.IN_FORCE)
        entries = follower.current().entries
        assert [(entry.digest, entry.by) for entry in entries] == [("one", ME), ("two", ME)], "nothing is put twice"
        assert abs(entries[-1].since - time.time()) < SECONDS
        writer.put_in_force("one")
        eventually("going back is heard", lambda: follower.current().standing("one") is DeclarationStanding.IN_FORCE)
        assert follower.current().standing("two") is DeclarationStanding.OLDER
        assert other.current().in_force is None
        assert Ownership(cluster, topic_name).read().keys().isdisjoint({"one", "two", topic_name})
    finally:
        follower.close()
        other.close()


FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
  north: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, tasks: {tasks}, topics: {{include: [{topic}]}}}}
"""
NORTH = '  - {{from: east, to: north, tasks: {tasks}, policy: {{separator: "-to-"}}, topics: {{include: [{topic}]}}}}\n'


class Files:
    """A topology file that changes, and its topology applied as `anabranch apply` does it."""

    def __init__(self, east: EmbeddedCluster, west: EmbeddedCluster, topic: str, path: Path) -> None:
        self._facts = {
            "name": topic[-40:].strip("-"),
            "east": east.bootstrap,
            "west": west.bootstrap,
            "topic": topic,
        }
        self.path = path
        self.west = declared("west", west)
        self.write(1)

    def write(self, tasks: int, north: int = 0) -> str:
        """Write the file anew, with these numbers of tasks; return the digest that it now has for west."""
        text = FILE.format(**self._facts, tasks=tasks)
        self.path.write_text(text + (NORTH.format(**self._facts, tasks=north) if north else ""))
        return digest_into(self.topology, "west")

    @property
    def topology(self) -> Topology:
        return load((self.path,))

    def apply(self, *targets: str) -> None:
        plan = self.plan(*targets)
        outcome = DirectProvisioner(self.topology).apply(plan)
        assert (outcome.is_complete, outcome.in_force) == (True, [alias for alias, _ in plan.to_put_in_force])
        assert self.plan(*targets).changes_nothing

    def plan(self, *targets: str) -> Plan:
        one, aliases = self.topology, targets or ("west",)
        return build_plan(one, observe(one, aliases), aliases)

    def in_force(self) -> str | None:
        asked = Declarations(self.west, self.topology.name)
        entry = asked.current().in_force
        asked.close()
        return entry.digest if entry else None


@pytest.fixture
def files(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> Iterator[Files]:
    create(source_cluster, topic_name)
    yield Files(source_cluster, target_cluster, topic_name, tmp_path / "one.yaml")


def test_an_apply_without_any_step_puts_another_declaration_in_force(files: Files) -> None:
    assert files.in_force() is None
    first = files.write(1)
    files.apply()
    assert files.in_force() == first
    second = files.write(2)
    (change,) = files.plan().clusters[0].changes
    assert (change.name, change.fields) == ("east-west", (FieldChange("tasks", "1", "2"),))
    files.apply()
    assert files.in_force() == second
    files.write(1)
    files.apply()
    assert files.in_force() == first, "going back is as good"


def test_what_a_former_release_put_in_force_is_recorded_by_the_next_apply(files: Files) -> None:
    first = files.write(1)
    files.apply()
    Declarations(files.west, files.topology.name).put_in_force("another")
    # As a release writes it that keeps the digest alone.
    Declarations(files.west, files.topology.name).put_in_force(first)
    plan = files.plan()
    assert plan.changes_nothing
    assert plan.clusters[0].declared is not None
    assert plan.clusters[0].declared.former is None
    record_in_force(files.topology, plan, (), lambda alias: None)
    assert files.plan() == plan, "the lock is not held"
    record_in_force(files.topology, plan, ("west",), lambda alias: None)
    recorded = files.plan().clusters[0].declared
    assert recorded is not None
    assert recorded.former == recorded.declaration
    before = plan.clusters[0].declared.in_force
    assert before is not None
    assert recorded.in_force == replace(before, targets=("west",)), "nothing else was put in force"


def test_an_apply_that_fails_leaves_what_is_in_force(files: Files, target_cluster: EmbeddedCluster) -> None:
    one, plan = files.topology, files.plan()
    (remote,) = (step.name for step in plan.steps if step.name not in state_names(one.name).journals)
    create(target_cluster, remote)
    outcome = DirectProvisioner(one).apply(plan)
    assert [failure.problem.code for failure in outcome.failed] == ["AB315"]
    assert (outcome.in_force, files.in_force()) == ([], None)


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_LOOK_EVERY", 0.05)


def opened(files: Files, waits: bool = True) -> FlowGate:
    return FlowGate((files.path,), None, waits, TERMINAL)


def looked_again(gate: FlowGate) -> bool:
    """Ask the gate once more, however short ago it looked."""
    gate._next_look = 0.0
    return gate.is_superseded()


def test_the_gate_ends_a_run_when_another_declaration_is_in_force_and_reads_the_files_anew(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = opened(files)
    try:
        assert gate.passed()[:2] == (files.topology, ("west",)), "nothing was ever put in force"
        assert "nothing was ever put in force by `anabranch apply`" in capsys.readouterr().err
        files.apply()
        assert not looked_again(gate), "it is its own"
        second = files.write(2)
        assert not looked_again(gate), "a file that changes is no declaration in force"
        files.apply()
        eventually("it hears of it", lambda: looked_again(gate))
        assert f"digest {second} is in force since" in capsys.readouterr().err
        assert gate.passed()[:2] == (files.topology, ("west",))
        assert gate.topology.flows[0].tasks == 2
    finally:
        gate.close()


def test_the_gate_holds_a_declaration_until_it_is_applied_and_says_what_is_in_force(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    second = files.write(2)
    files.apply()
    third = files.write(3)
    gate, reader = opened(files), StatusReader(files.west, files.topology.name)

    def held() -> list[TaskStatus]:
        return [one for one in newest_runs(reader.current(), time.time()) if one.is_held and one.digest == third]

    try:
        with ThreadPoolExecutor(1) as pool:
            passed = pool.submit(gate.passed)
            eventually("status tells", lambda: len(held()) == 1)
            assert held()[0].waiting == "until its declaration is in force [AB411]"
            eventually("it looks again and again", lambda: held()[0].time > time.time() - SECONDS)
            assert not passed.done()
            files.apply()
            assert passed.result(SECONDS)[0].flows[0].tasks == 3
        said = " ".join(capsys.readouterr().err.split())
        for text in (
            f"digest {second} is in force since",
            f"applied by {ME}",
            f"digest {third}, which was never put in",
        ):
            assert text in said
        assert said.count("AB411") == 1, "the same is not said again at once"
        eventually("what was said is taken back", lambda: held() == [])
    finally:
        gate.close()
        reader.close()


def test_the_gate_refuses_an_older_declaration_where_nobody_is_to_wait(files: Files) -> None:
    first = files.write(1)
    files.apply()
    files.write(2)
    files.apply()
    files.write(1)
    gate = opened(files, waits=False)
    try:
        with pytest.raises(Refused) as caught:
            gate.passed()
    finally:
        gate.close()
    (problem,) = caught.value.problems
    assert (problem.code, caught.value.exit_code) == ("AB411", 4)
    assert f"digest {first}, which was in force before" in problem.message


def test_the_gate_lets_flows_into_other_targets_pass_and_goes_by_no_broken_file(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write(1, north=1)
    files.apply("west", "north")
    files.write(1, north=2)
    gate = opened(files)
    try:
        assert gate.passed()[1] == ("west",)
        whole = files.path.read_text()
        files.path.write_text(f"{whole}  broken")
        assert not looked_again(gate)
        assert "[AB1" in capsys.readouterr().err
        files.write(2, north=1)
        assert not looked_again(gate), "that would only exchange one for the other"
        files.write(1, north=1)
        assert looked_again(gate), "with the files of now both may run"
        assert gate.passed()[1] == ("west", "north")
    finally:
        gate.close()


def test_the_gate_tells_who_runs_a_flow_with_another_digest(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    Journal(files.west, own(files.topology.name).status).ensure()
    word = TaskStatus.of_process(files.topology.flows[0], "a-run", "another")
    StatusWriter(files.west, files.topology.name).post_last(replace(word, task=0, tasks=1))
    gate = FlowGate((files.path,), None, waits=True, reporter=TERMINAL)
    try:
        gate.passed()
    finally:
        gate.close()
    assert "run a-run copies flow east-west with digest another" in " ".join(capsys.readouterr().err.split())


def test_the_last_flow_into_a_target_ends_by_being_taken_out(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.write(1, north=1)
    files.apply("west", "north")
    gate = opened(files)
    try:
        assert gate.passed()[1] == ("west", "north")
        files.write(1)
        assert in_force_elsewhere(files.topology, ("west",)) == (("north",), ())
        assert main(["plan", str(files.path), "--detailed-exitcode"]) == CHANGES
        said = capsys.readouterr().out
        assert "  - flow   east-north ends   no file declares it any more\n" in said
        assert "records stay in east-to-" in said.replace("0 records", "records")
        assert f"\n0 to add, 0 to change, 0 to delete. 1 flow ends.\nnext: anabranch apply {files.path}\n" in said
        assert main(["apply", str(files.path), "--yes"]) == 0
        assert "This declaration is now in force at north." in capsys.readouterr().out
        eventually("what runs hears of it", lambda: looked_again(gate))
        held = " ".join(capsys.readouterr().err.split())
        assert "by which no flow leads into it any more" in held
        assert "its flows are drained" in held
        # It is over, and nothing is left to do.
        assert main(["plan", str(files.path), "--detailed-exitcode"]) == 0
        assert "1 target cluster" in capsys.readouterr().out
        # The very last one, and by `enabled: false`.
        files.path.write_text(files.path.read_text().replace("tasks: 1", "enabled: false"))
        assert main(["plan", str(files.path), "--detailed-exitcode"]) == CHANGES
        assert "  - flow   east-west ends   enabled: false\n" in capsys.readouterr().out
        assert main(["apply", str(files.path), "--yes"]) == 0
        assert main(["plan", str(files.path), "--detailed-exitcode"]) == 0
        assert "0 target clusters" in capsys.readouterr().out
    finally:
        gate.close()


def test_another_owner_takes_over_only_where_that_is_allowed(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    path, whole = str(files.path), files.path.read_text()

    def of(owner: str, tasks: int) -> None:
        text = whole.replace("tasks: 1", f"tasks: {tasks}")
        files.path.write_text(text.replace("version: 1", f"version: 1\nowner: {owner}"))

    def ended(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        said = capsys.readouterr()
        return code, said.out, " ".join(said.err.split())

    of("team-a", 1)
    assert ended("apply", path, "--yes")[0] == 0
    first = files.in_force()
    of("team-b", 2)
    for arguments in (
        ("plan", path),
        ("apply", path, "--yes"),
        ("destroy", path, "--yes", "--allow-delete", "topic=1"),
    ):
        code, _, err = ended(*arguments)
        assert (code, "[AB447]" in err, "owner team-a; these files are team-b's" in err) == (4, True, True), err
    assert files.in_force() == first
    code, out, _ = ended("plan", path, "--take-over", "--detailed-exitcode")
    assert (code, ["owner", "team-a", "→", "team-b"] in [line.split() for line in out.splitlines()]) == (CHANGES, True)
    assert ended("apply", path, "--yes", "--take-over")[0] == 0
    assert files.in_force() != first
    # The digest stays, and another owner's all the same.
    of("team-a", 2)
    assert ended("plan", path)[0] == 4
    of("team-b", 2)
    assert ended("plan", path, "--detailed-exitcode")[0] == 0
