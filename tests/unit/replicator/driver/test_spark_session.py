"""When queries begin: one after the other as far as processors allow, what was never begun first. Spark made up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver import processors
from reconciler.replicator.driver.restarts import RestartBackoff
from reconciler.replicator.driver.spark_session import ReplicationSession

WEST = Cluster("west", ("w:9092",))
FLOWS = tuple("abcdef")
BUSY = "Python worker failed to connect back."


class Query:
    """A query that runs until it is ended, or never begins."""

    def __init__(self) -> None:
        self.isActive = True
        self.why = ""

    def exception(self) -> str:
        return self.why

    def stop(self) -> None:
        self.isActive = False


class Pretended(ReplicationSession):
    """A session whose queries are begun nowhere."""

    def __init__(self, folder: Path, count: float) -> None:
        self.said: list[str] = []
        specs = [FlowSpec("t", "r", Flow(n, "east", "west", Selection(("x",))), WEST, WEST, ()) for n in FLOWS]
        super().__init__(specs, folder, self.said.append)
        self._failures = RestartBackoff(chance=lambda: 0.0)
        self.processors = count
        self.refused: set[str] = set()
        self.made: dict[str, Query] = {}

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        yield

    def _query(self, spec: FlowSpec) -> StreamingQuery:
        name = spec.flow.name
        self._ended.discard(name)
        self.begun[name] += 1
        if name in self.refused:
            raise PySparkException(BUSY)
        self.made[name] = Query()
        return cast("StreamingQuery", self.made[name])

    def end(self, flow: str, why: str = BUSY) -> None:
        self.made[flow].isActive = False
        self.made[flow].why = why

    @property
    def running(self) -> str:
        return "".join(sorted(flow for flow, query in self.made.items() if query.isActive))


def session(folder: Path, monkeypatch: pytest.MonkeyPatch, count: float) -> Pretended:
    monkeypatch.setattr(processors, "usable", lambda: count)
    return Pretended(folder, count)


@pytest.mark.parametrize(("count", "at_once"), [(0.5, 1), (1.0, 1), (2.0, 2), (4.7, 4), (64.0, 6)])
def test_as_many_begin_at_a_time_as_there_are_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: float, at_once: int
) -> None:
    spark = session(tmp_path, monkeypatch, count)
    for now in range(5):
        spark.check(float(now))
        assert spark.running == "abcdef"[:at_once]


def test_the_next_begins_when_one_has_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = session(tmp_path, monkeypatch, 2.0)
    for reported, running in (("", "ab"), ("", "ab"), ("b", "abc"), ("ab", "abcd"), ("abcd", "abcdef")):
        spark.check(0.0, set(reported))
        assert spark.running == running


def test_one_that_never_speaks_does_not_keep_the_others_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = session(tmp_path, monkeypatch, 1.0)
    spark.check(0.0)
    spark.check(89.0)
    assert spark.running == "a"
    spark.check(91.0)
    assert spark.running == "ab"


def test_what_has_ended_waits_until_the_others_have_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = session(tmp_path, monkeypatch, 1.0)
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
    # It may still count as failing, and whoever waits for the end is to wait on.
    assert spark.is_starved("a")
    (said,) = spark.said
    assert said.startswith(f"flow a: its Spark query is restarted: {BUSY} A Python process has ten seconds for that")
    assert "processors; see " in said
    assert str(spark.log) in said


def test_a_query_that_spark_refuses_is_tried_again_more_and_more_seldom(
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
    assert tried == pytest.approx([0.0, 0.1, 2.1, 6.1, 14.1, 30.1, 62.1, 122.1], abs=0.11)
    assert spark.running == "bcdef"
    assert list(failing) == ["a"]
    assert spark.is_starved("a")
    assert not spark.is_starved("b")


def test_one_that_is_replaced_is_begun_again_in_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = session(tmp_path, monkeypatch, 8.0)
    spark.check(0.0)
    spark.replace("c", "its task 0 published no status for 45 s", 50.0)
    assert not spark.made["c"].isActive
    spark.check(51.0, set("abdef"))
    assert (spark.running, spark.begun["c"]) == ("abcdef", 2)
    assert spark.said == ["flow c: its Spark query is restarted: its task 0 published no status for 45 s"]


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
    assert "on 8 processors" in processors.described()


def test_control_groups_of_the_first_version_count_as_well(kernel: Path) -> None:
    (kernel / "cgroup").write_text("7:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n1:name=systemd:/\n0::/\n")
    limit(kernel / "fs" / "memory" / "docker" / "a", cpu__cfs_quota_us="1\n", cpu__cfs_period_us="100000\n")
    group = kernel / "fs" / "cpu,cpuacct" / "docker" / "a"
    for quota, expected in (("-1", 8.0), ("250000", 2.5), ("50000", 0.5)):
        limit(group, cpu__cfs_quota_us=f"{quota}\n", cpu__cfs_period_us="100000\n")
        assert processors.usable() == expected
