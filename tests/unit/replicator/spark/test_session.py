"""When slots begin, and begin again; what becomes of ledgers and failures. Spark made up."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from py4j.protocol import Py4JNetworkError
from pyarrow import parquet
from pyspark.errors import PySparkException

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.spark import control_groups
from reconciler.replicator.spark.engine import first_line
from reconciler.replicator.spark.ledger_files import LedgerFiles
from reconciler.replicator.spark.ledger_schema import COLUMNS
from reconciler.replicator.spark.restarts import RestartBackoff
from reconciler.replicator.spark.session import ReplicationSession
from reconciler.replicator.spark.slot_rounds import SlotRounds
from reconciler.replicator.spark.slots import TaskOfFlow
from reconciler.replicator.task.rounds import TaskFailure

WEST = Cluster("west", ("w:9092",))
FLOWS = tuple("abcdef")
BUSY = "Python worker failed to connect back."


class Rounds:
    """The rounds of a slot that go on until they are ended, or never begin."""

    def __init__(self, tasks: Sequence[TaskOfFlow], failure: Exception | None) -> None:
        self.flows = tuple(dict.fromkeys(task.flow for task in tasks))
        self.is_active = failure is None
        self.failure = failure
        self.is_last = False

    def finish(self) -> None:
        self.is_last = True

    def cancel(self) -> None:
        self.is_active = False


class Pretended(ReplicationSession):
    """A session whose slots are begun nowhere."""

    def __init__(
        self, folder: Path, flows: Sequence[str] = FLOWS, ledgers: LedgerFiles | None = None, tasks: int = 1
    ) -> None:
        self.said: list[str] = []
        declared = [Flow(name, "east", "west", Selection(("x",)), tasks=tasks) for name in flows]
        specs = [FlowSpec("t", "r", flow, WEST, WEST, ()) for flow in declared]
        super().__init__(specs, folder, self.said.append, ledgers)
        self._failures = RestartBackoff(chance=lambda: 0.0)
        self.refused: set[str] = set()
        self.made: dict[int, Rounds] = {}
        self.resting: dict[int, Collection[str]] = {}

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        yield

    def _begun(self, slot: int, resting: Collection[str]) -> SlotRounds:
        tasks = self._slots_of[slot]
        self.resting[slot] = resting
        is_refused = any(task.flow in self.refused for task in tasks)
        self.made[slot] = Rounds(tasks, PySparkException(BUSY) if is_refused else None)
        return cast("SlotRounds", self.made[slot])

    def end(self, flow: str, failure: Exception) -> None:
        for rounds in self.made.values():
            if flow in rounds.flows:
                rounds.is_active, rounds.failure = False, failure

    @property
    def running(self) -> str:
        return "".join(sorted(flow for rounds in self.made.values() if rounds.is_active for flow in rounds.flows))


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_groups, "processors", lambda: 2.0)


def test_all_begin_at_once_and_one_that_ends_begins_again(tmp_path: Path) -> None:
    spark = Pretended(tmp_path)
    assert spark.check(0.0) == {}
    assert spark.running == "abcdef"
    spark.end("a", PySparkException(BUSY))
    spark.check(1.0)
    assert spark.running == "abcdef"
    assert spark.said == [f"flow a: its Spark job is restarted: {BUSY}"]
    assert spark.begun == {"a": 2} | dict.fromkeys("bcdef", 1)


@pytest.mark.parametrize("failure", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("empty")])
def test_a_connection_that_ends_is_sparks_own_end(tmp_path: Path, failure: Exception) -> None:
    spark = Pretended(tmp_path)
    spark.check(0.0)
    spark.end("a", failure)
    with pytest.raises(type(failure)):
        spark.check(1.0)


def test_a_flow_that_spark_refuses_is_tried_again_more_and_more_seldom(tmp_path: Path) -> None:
    spark = Pretended(tmp_path)
    spark.refused = {"a"}
    tried = []
    for tenth in range(1500):
        before = spark.begun["a"]
        failing = spark.check(tenth / 10, set("bcdef"))
        if spark.begun["a"] > before:
            tried.append(tenth / 10)
    assert tried == pytest.approx([0.0, 0.1, 2.1, 6.1, 14.1, 30.1, 62.1, 122.1], abs=1.0)
    assert spark.running == "bcdef"
    assert list(failing) == ["a"]


def test_one_that_is_replaced_is_begun_again(tmp_path: Path) -> None:
    spark = Pretended(tmp_path)
    spark.check(0.0)
    spark.replace("c", "its task 0 published no status for 45 s", 50.0)
    assert spark.running == "abdef"
    spark.check(51.0, set("abdef"))
    assert (spark.running, spark.begun["c"]) == ("abcdef", 2)
    assert spark.said == ["flow c: its Spark job is restarted: its task 0 published no status for 45 s"]


def test_what_fails_in_all_slots_of_a_flow_at_once_is_one_failure(tmp_path: Path) -> None:
    spark = Pretended(tmp_path, ["a"], tasks=4)
    spark.check(0.0)
    for now in range(1, 5):
        spark.end("a", PySparkException(BUSY))
        assert spark.check(float(20 * now)) == {}
        # A first failure is no reason to wait, and the last one was long ago.
        spark.check(20.0 * now + 10)
        assert len(spark.running) == 4
    assert spark.begun["a"] == 20


def test_flows_that_share_a_slot_begin_again_together(tmp_path: Path) -> None:
    flows = [f"f{number}" for number in range(20)]
    spark = Pretended(tmp_path, flows)
    spark.check(0.0)
    assert len(spark.made) == 8
    assert [rounds.flows for rounds in spark.made.values()][3] == ("f3", "f11", "f19")
    spark.replace("f11", "its task 0 published no status for 45 s", 50.0)
    spark.check(51.0)
    assert spark.begun == dict.fromkeys(flows, 1) | dict.fromkeys(("f3", "f11", "f19"), 2)
    why = "its Spark job is restarted: of flow f11, its task 0 published no status for 45 s"
    assert spark.said == [f"flow {flow}: {why}" for flow in ("f3", "f11", "f19")]


def test_a_flow_that_hangs_again_and_again_rests_while_those_beside_it_go_on(tmp_path: Path) -> None:
    spark = Pretended(tmp_path, [f"f{number}" for number in range(20)])
    spark.check(0.0)
    for now in (50.0, 100.0, 150.0):
        spark.replace("f11", "its task 0 published no status for 45 s", now)
        spark.check(now + 0.1)
        assert spark.made[3].is_active
    assert spark.resting[3] == ["f11"]
    assert spark.begun["f3"] == 4
    assert "f3" in spark.running


def test_a_task_that_fails_among_others_is_told_and_rests(tmp_path: Path) -> None:
    spark = Pretended(tmp_path)
    spark.check(0.0)
    for _ in range(2):
        spark._failed(1, TaskFailure("b", 1, "Unreachable: no answer [AB310]"))
    assert 0.0 < spark._rest("b") <= 2.0
    assert spark._rest("a") <= 0.0
    spark.check(1.0)
    assert spark.said == ["flow b: its task 1 is restarted: Unreachable: no answer [AB310]"] * 2
    # The watchdog then allows as long for the first status as after a start.
    assert spark.begun["b"] == 3
    assert spark.running == "abcdef"


def test_the_ledger_of_each_round_is_a_file(tmp_path: Path) -> None:
    spark = Pretended(tmp_path, ledgers=LedgerFiles(tmp_path / "kept"))
    row = ("a", "orders", 1, "east.orders", 10, 19, 10, 19, 0, 10, 300, 0, 900, None, None)
    other = ("b", *row[1:])
    for rows in ([row], [], [row, other, row]):
        spark._keep(rows)
    (of_b,) = (tmp_path / "kept" / "b" / "r").iterdir()
    assert json.loads(of_b.read_text())["flow"] == "b"
    first, second = sorted((tmp_path / "kept" / "a" / "r").iterdir())
    assert (first.name, second.name) == ("part-000000.json", "part-000001.json")
    assert [json.loads(line)["last_offset"] for line in second.read_text().splitlines()] == [19, 19]
    assert "latency_avg" not in json.loads(first.read_text())


def test_ledgers_as_parquet_have_the_columns_and_types_of_sparks(tmp_path: Path) -> None:
    row = ("a", "orders", 1, "east.orders", 10, 19, 10, 19, 0, 10, 300, 0, 900, 7, None)
    LedgerFiles(tmp_path, "parquet").write("a", "r", 0, [row])
    table = parquet.read_table(tmp_path / "a" / "r" / "part-000000.parquet")
    assert table.column_names == list(COLUMNS)
    assert {str(field.type) for field in table.schema} == {"string", "int32", "int64"}
    assert tuple(table.to_pylist()[0].values()) == row


def test_a_ledger_that_cannot_be_written_is_told_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file is here")
    spark = Pretended(tmp_path, ledgers=LedgerFiles(tmp_path / "kept"))
    spark.check(0.0)
    spark._keep([("a",) * len(COLUMNS)])
    spark.check(1.0)
    (said,) = spark.said
    assert said.startswith("flow a: the ledger of a round, 1 rows, is not written: ")
    assert "Not a directory" in said
    assert "a" in spark.running


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "no reason given"),
        ("Job aborted.\n\tat org.apache.spark.Task", "Job aborted."),
        (
            'Lost task 0.7: PythonException: Traceback (most recent call last):\n  File "x.py", line 1, in run\n'
            "    raise\nreconciler.model.base.errors.Unreachable: cluster west (w:9092): no answer [AB310]\n\n\tat org",
            "Lost task 0.7: PythonException: "
            "reconciler.model.base.errors.Unreachable: cluster west (w:9092): no answer [AB310]",
        ),
        ("PythonException: Traceback (most recent call last):", "PythonException: no reason given"),
    ],
)
def test_a_failure_is_told_in_one_line_with_what_python_raised(text: str, line: str) -> None:
    assert first_line(text) == line
