"""When flows begin: a few at a time for each processor, what was never begun first. Spark made up."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyarrow import parquet
from pyspark.errors import PySparkException

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.spark import processors
from reconciler.replicator.spark.engine import first_line
from reconciler.replicator.spark.flow_rounds import FlowRounds
from reconciler.replicator.spark.ledger_files import LedgerFiles
from reconciler.replicator.spark.ledger_schema import COLUMNS
from reconciler.replicator.spark.restarts import RestartBackoff
from reconciler.replicator.spark.session import ReplicationSession

WEST = Cluster("west", ("w:9092",))
FLOWS = tuple("abcdef")
BUSY = "Python worker failed to connect back."


class Rounds:
    """The rounds of a flow that go on until they are ended, or never begin."""

    def __init__(self, failure: Exception | None) -> None:
        self.is_active = failure is None
        self.failure = failure
        self.is_last = False

    def finish(self) -> None:
        self.is_last = True

    def cancel(self) -> None:
        self.is_active = False


class Pretended(ReplicationSession):
    """A session whose flows are begun nowhere."""

    def __init__(self, folder: Path, count: float, ledgers: LedgerFiles | None = None) -> None:
        self.said: list[str] = []
        specs = [FlowSpec("t", "r", Flow(n, "east", "west", Selection(("x",))), WEST, WEST, ()) for n in FLOWS]
        super().__init__(specs, folder, self.said.append, ledgers)
        self._failures = RestartBackoff(chance=lambda: 0.0)
        self.processors = count
        self.refused: set[str] = set()
        self.made: dict[str, Rounds] = {}

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        yield

    def _begun(self, spec: FlowSpec) -> FlowRounds:
        name = spec.flow.name
        self.made[name] = Rounds(PySparkException(BUSY) if name in self.refused else None)
        return cast("FlowRounds", self.made[name])

    def end(self, flow: str, why: str = BUSY) -> None:
        self.made[flow].is_active = False
        self.made[flow].failure = PySparkException(why)

    @property
    def running(self) -> str:
        return "".join(sorted(flow for flow, rounds in self.made.items() if rounds.is_active))


def session(folder: Path, monkeypatch: pytest.MonkeyPatch, count: float) -> Pretended:
    monkeypatch.setattr(processors, "usable", lambda: count)
    return Pretended(folder, count)


@pytest.mark.parametrize(("count", "at_once"), [(0.1, 1), (0.25, 1), (0.5, 2), (1.2, 4), (64.0, 6)])
def test_four_begin_at_a_time_for_each_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: float, at_once: int
) -> None:
    spark = session(tmp_path, monkeypatch, count)
    for now in range(5):
        spark.check(float(now))
        assert spark.running == "abcdef"[:at_once]


def test_the_next_begins_when_one_has_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = session(tmp_path, monkeypatch, 0.5)
    for reported, running in (("", "ab"), ("", "ab"), ("b", "abc"), ("ab", "abcd"), ("abcd", "abcdef")):
        spark.check(0.0, set(reported))
        assert spark.running == running


def test_one_that_never_speaks_does_not_keep_the_others_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session(tmp_path, monkeypatch, 0.25)
    spark.check(0.0)
    spark.check(89.0)
    assert spark.running == "a"
    spark.check(91.0)
    assert spark.running == "ab"


def test_what_has_ended_waits_until_the_others_have_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = session(tmp_path, monkeypatch, 0.25)
    spark.check(0.0)
    spark.end("a")
    reported: set[str] = set()
    for now, flow in enumerate("bcdef", start=1):
        spark.check(float(now), reported)
        assert spark.running == "bcdef"[:now]
        reported.add(flow)
    assert spark.said == []
    spark.check(10.0, reported)
    assert spark.running == "abcdef"
    assert spark.said == [f"flow a: its Spark job is restarted: {BUSY}"]


def test_a_flow_that_spark_refuses_is_tried_again_more_and_more_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session(tmp_path, monkeypatch, 8.0)
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


def test_one_that_is_replaced_is_begun_again_in_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = session(tmp_path, monkeypatch, 8.0)
    spark.check(0.0)
    spark.replace("c", "its task 0 published no status for 45 s", 50.0)
    assert not spark.made["c"].is_active
    spark.check(51.0, set("abdef"))
    assert (spark.running, spark.begun["c"]) == ("abcdef", 2)
    assert spark.said == ["flow c: its Spark job is restarted: its task 0 published no status for 45 s"]


def test_the_ledger_of_each_round_is_a_file(tmp_path: Path) -> None:
    spark = Pretended(tmp_path, 1.0, LedgerFiles(tmp_path / "kept"))
    row = ("a", "orders", 1, "east.orders", 10, 19, 10, 19, 0, 10, 300, 0, 900, None, None)
    for rows in ([row], [], [row, row]):
        spark._keep(spark._specs["a"], rows)
    first, second = sorted((tmp_path / "kept" / "a" / "r").iterdir())
    assert (first.name, second.name) == ("part-000000.json", "part-000002.json")
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
    spark = Pretended(tmp_path, 1.0, LedgerFiles(tmp_path / "kept"))
    spark.check(0.0)
    spark._keep(spark._specs["a"], [("a",) * len(COLUMNS)])
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


def limit(group: Path, **files: str) -> None:
    group.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (group / name.replace("__", ".")).write_text(text)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(processors, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(processors, "_MOUNT", tmp_path / "fs")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    return tmp_path


def test_processors_are_counted_with_what_control_groups_allow(kernel: Path) -> None:
    assert processors.usable() == 8.0
    (kernel / "cgroup").write_text("1:name=systemd:/x\n0::/kube/pod\n")
    group = kernel / "fs" / "kube" / "pod"
    for around, own, expected in [
        ("max 100000", "max 100000", 8.0),
        ("150000 100000", "max 100000", 1.5),
        ("150000 100000", "50000 100000", 0.5),
        ("150000 100000", "nonsense", 1.5),
        ("150000 0", "-1 100000", 8.0),
    ]:
        limit(group.parent, cpu__max=f"{around}\n")
        limit(group, cpu__max=f"{own}\n")
        assert processors.usable() == expected


def test_control_groups_of_the_first_version_count_as_well(kernel: Path) -> None:
    (kernel / "cgroup").write_text("7:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n1:name=systemd:/\n0::/\n")
    limit(kernel / "fs" / "memory" / "docker" / "a", cpu__cfs_quota_us="1\n", cpu__cfs_period_us="100000\n")
    group = kernel / "fs" / "cpu,cpuacct" / "docker" / "a"
    for quota, expected in (("-1", 8.0), ("250000", 2.5), ("50000", 0.5)):
        limit(group, cpu__cfs_quota_us=f"{quota}\n", cpu__cfs_period_us="100000\n")
        assert processors.usable() == expected
