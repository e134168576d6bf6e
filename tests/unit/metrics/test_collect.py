"""Metrics of made-up readings, read back with prometheus-client's own parsers; hostile names; promtool's checks."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_plain

from reconciler.metrics import collect, mirrormaker, table
from reconciler.metrics.collect import Reading
from reconciler.metrics.exposition import Samples, text
from reconciler.metrics.observed import Observer
from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.groups import LastLook, SyncedGroup
from reconciler.model.declared.topology import Topology
from reconciler.model.tasks.latency import Latency
from reconciler.model.tasks.process import LATENCY_BOUNDS_MS, TaskProcess, bound_of
from reconciler.model.tasks.status import Metrics, PartitionStatus, Reason, TaskStatus
from reconciler.operate.watching import StatusView
from tests.support.replicator.words import NOW, PARKED, PAUSED, TOO_LARGE, flow, partition, said, with_groups

pytestmark = pytest.mark.slow

FIGURES = Metrics(5_000, 70_000, Latency(10, 1, 30, 20, 1_500, 1_600), 12, 2.5, fills=17, retries=3, shifted=-2)
CLUSTERS = {alias: Cluster(alias, (f"{alias}:9092",)) for alias in ("east", "west")}
PROCESS = TaskProcess(200_000_000, 7, tuple(range(len(LATENCY_BOUNDS_MS) + 1)), 5_500)


def topology() -> Topology:
    return Topology("shop", CLUSTERS, (with_groups(),))


def view(*statuses: TaskStatus, **changes: object) -> StatusView:
    return replace(StatusView(NOW, (with_groups(),), statuses, {}), **changes)  # type: ignore[arg-type]


def written(*statuses: TaskStatus, is_openmetrics: bool = True, **changes: object) -> str:
    reading = Reading.of(topology(), view(*statuses, **changes))
    observer = Observer()
    for now in (NOW - 2, NOW):
        observer.take(reading.partitions, now)
    found: list[Samples] = [*collect.samples(reading), *mirrormaker.samples(reading, observer, mirrormaker.FORMATS)]
    return "".join(text(found, is_openmetrics=is_openmetrics))


def values(written_text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families(written_text)
        for sample in family.samples
    }


def families(written_text: str) -> list[Metric]:
    read = read_openmetrics if written_text.endswith("# EOF\n") else read_plain
    return list(read(written_text))


def of(written_text: str, name: str, **labels: str) -> list[float]:
    wanted = set(labels.items())
    return [value for (one, some), value in values(written_text).items() if one == name and wanted <= some]


def full(number: int) -> PartitionStatus:
    return replace(partition(number, 90, 100), metrics=FIGURES)


def running(*partitions: PartitionStatus) -> TaskStatus:
    return replace(said(*partitions), process=PROCESS, since=NOW - 60)


@pytest.mark.parametrize("is_openmetrics", [True, False])
def test_a_running_flow_has_every_figure_of_status(is_openmetrics: bool) -> None:
    shown = written(running(full(0), full(1)), is_openmetrics=is_openmetrics)
    (one,) = view(running(full(0), full(1))).summaries()
    assert of(shown, "anabranch_flow_up", topology="shop", flow="east-west", source="east", target="west") == [1]
    assert of(shown, "anabranch_flow_state", state="running") == [1]
    assert sum(of(shown, "anabranch_flow_state")) == 1
    assert of(shown, "anabranch_flow_lag_records") == [one.lag] == [20]
    assert of(shown, "anabranch_flow_lag_seconds") == [one.lag_seconds] == [2.5]
    assert of(shown, "anabranch_flow_records_per_second") == [one.records_per_second]
    assert of(shown, "anabranch_partition_lag_records", topic="orders", partition="1") == [10]
    assert of(shown, "anabranch_partition_records_total", partition="0") == [5_000]
    assert of(shown, "anabranch_partition_latency_seconds", partition="0", stat="p99") == [1.5]
    assert of(shown, "anabranch_partition_shifted_offsets", partition="0") == [-2]
    assert of(shown, "anabranch_task_resident_memory_bytes", task="0") == [200_000_000]
    assert of(shown, "anabranch_task_rounds_total") == [7]
    assert of(shown, "anabranch_replication_latency_seconds_count") == [sum(PROCESS.latencies)]
    assert of(shown, "anabranch_replication_latency_seconds_bucket", le="0.01") == [1]
    assert of(shown, "anabranch_replication_latency_seconds_sum") == [5.5]
    assert of(shown, "anabranch_cluster_up", cluster="west") == [1]


def test_each_metric_is_in_the_table_with_its_labels_and_once() -> None:
    last = LastLook(NOW - 5, 1, (SyncedGroup("late", 0.0, "AB621"), SyncedGroup("app", NOW - 5)))
    shown = written(running(full(0), partition(1, 5, 9, PARKED, TOO_LARGE)), last_looks={"east-west": last})
    known = {one.name: one for one in (*table.OURS, *mirrormaker.families(mirrormaker.FORMATS))}
    seen = families(shown)
    assert len({family.name for family in seen}) == len(seen)
    for family in seen:
        one = known[family.name]
        assert (family.type, family.documentation) == (one.type, one.help)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(one.labels), sample
    # All but those that an exporter adds, and drift, which is read by another command.
    others = {"anabranch_build_info", "anabranch_look_time_seconds", "anabranch_look_duration_seconds"}
    assert known.keys() - {family.name for family in seen} == others | {"anabranch_drift_items"}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (replace(running(full(0)), time=NOW - 60), "lost"),
        (replace(running(full(0)), stopped=True), "stopped"),
        (None, "not running"),
    ],
)
def test_a_flow_that_reports_no_more_keeps_no_good_values(status: TaskStatus | None, state: str) -> None:
    shown = written(*([] if status is None else [status]))
    assert of(shown, "anabranch_flow_up") == [0]
    assert of(shown, "anabranch_flow_state", state=state) == [1]
    assert of(shown, "anabranch_flow_report_age_seconds") == ([] if status is None else [NOW - status.time])
    for name in ("anabranch_flow_lag_records", "anabranch_flow_records_per_second", "anabranch_partition_state"):
        assert of(shown, name) == []
    assert "mirrorsourceconnector" not in shown
    assert "anabranch_task" not in shown.replace("anabranch_flow_tasks", "")


def test_of_a_flow_with_a_silent_task_the_others_are_shown() -> None:
    quiet = replace(said(full(1), task=1), time=NOW - 60)
    shown = written(running(full(0)), quiet)
    assert of(shown, "anabranch_flow_tasks_silent") == [1]
    assert of(shown, "anabranch_flow_up") == [1]
    assert [dict(some)["partition"] for name, some in values(shown) if name == "anabranch_partition_state"] == ["0"]


def test_parked_held_back_and_paused_partitions_have_their_series() -> None:
    held = replace(full(2), reason=Reason("AB234", "an open transaction holds back 5 records"))
    shown = written(running(partition(0, 5, 9, PARKED, TOO_LARGE), partition(1, 5, 9, PAUSED), held))
    assert of(shown, "anabranch_partition_state", partition="0", state="parked") == [1]
    assert of(shown, "anabranch_partition_trouble", partition="0", code=TOO_LARGE.code) == [1]
    assert of(shown, "anabranch_partition_trouble", partition="2", code="AB234") == [1]
    assert of(shown, "anabranch_partition_state", partition="1", state="paused") == [1]
    assert of(shown, "anabranch_flow_partitions", state="parked") == [1]
    assert of(shown, "anabranch_flow_partitions", state="opening") == [0]


def test_groups_have_the_age_of_their_checkpoints_and_why_they_are_refused() -> None:
    last = LastLook(NOW - 5, 1, (SyncedGroup("late", NOW - 900, "AB621"), SyncedGroup("app", NOW - 5)))
    shown = written(running(full(0)), last_looks={"east-west": last})
    assert of(shown, "anabranch_group_checkpoint_age_seconds", group="late") == [900]
    assert of(shown, "anabranch_group_refused", group="late", code="AB621") == [1]
    assert of(shown, "anabranch_flow_groups_refused") == [1]
    assert of(shown, "anabranch_flow_groups") == [1]
    assert of(shown, "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms", group="app") == [5_000]


def test_a_cluster_that_is_away_is_a_series() -> None:
    away = Unreachable(Problem("AB310", "cluster west", "does not answer", "start it"))
    shown = written(flows=(), failures={"west": away})
    assert of(shown, "anabranch_cluster_up", cluster="west") == [0]


def test_both_sets_of_mirror_makers_names_have_the_same_values() -> None:
    shown = written(running(full(0)))
    tags = {"source": "east", "target": "west", "topic": "east.orders", "partition": "0"}
    for attribute, value in (
        ("record_count", 5_000),
        ("byte_count", 70_000),
        ("record_age_ms", 12),
        ("record_age_ms_max", 12),
        ("replication_latency_ms_min", 1),
        ("replication_latency_ms_avg", 30),
        ("replication_latency_ms_max", 1_600),
    ):
        assert of(shown, f"kafka_connect_mirror_mirrorsourceconnector_{attribute}", **tags) == [value]
        new = {"connector": "MirrorSourceConnector", "task": "0"}
        assert of(shown, f"kafka_connect_plugins_{attribute}", **tags, **new) == [value]


def test_rates_by_partition_follow_from_two_readings_and_begin_anew_with_a_process() -> None:
    observer = Observer()

    def rate(records: int, now: float) -> float | None:
        one = replace(full(0), metrics=replace(FIGURES, records=records))
        reading = Reading.of(topology(), view(running(one)))
        observer.take(reading.partitions, now)
        return observer.of(reading.partitions[0].labels).records_per_second

    assert rate(1_000, NOW) is None
    assert rate(1_500, NOW + 2) == 250
    assert rate(1_500, NOW + 100) == pytest.approx(0, abs=6)
    assert rate(10, NOW + 102) == pytest.approx(0, abs=6)
    assert rate(210, NOW + 104) == 100
    observer.take([], NOW + 106)
    assert observer.of("anything").records_per_second is None


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(name=HOSTILE)
def test_any_name_of_a_topic_or_a_group_comes_back_as_it_was(name: str) -> None:
    one = replace(full(0), topic=name, remote=name)
    last = LastLook(NOW, 1, (SyncedGroup(name, NOW),))
    for is_openmetrics in (True, False):
        shown = written(running(one), is_openmetrics=is_openmetrics, last_looks={"east-west": last})
        assert of(shown, "anabranch_partition_lag_records", topic=name) == [10]
        assert of(shown, "anabranch_group_checkpoint_age_seconds", group=name) == [0]
        # One sample is one line, whatever its names are.
        assert all(re.match(r"(# |[a-z_]+[{ ])", line) for line in shown.split("\n") if line)


@given(latency=st.integers(0, 10**13))
def test_a_latency_is_counted_below_its_bound(latency: int) -> None:
    index = bound_of(latency)
    bounds = (*LATENCY_BOUNDS_MS, math.inf)
    assert latency <= bounds[index]
    assert index == 0 or latency > bounds[index - 1]


def lint(names: Iterable[str], shown: str) -> str:
    kept: list[str] = []
    for line in shown.splitlines(keepends=True):
        name = line.split(" ")[2] if line.startswith("# ") else re.split(r"[{ ]", line)[0]
        if name.startswith(tuple(names)):
            kept.append(line)
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool on PATH: it is in the Debian package prometheus")
    done = subprocess.run(
        [promtool, "check", "metrics"], input="".join(kept), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    return done.stderr + done.stdout


def test_promtool_finds_nothing_to_say_of_our_names() -> None:
    last = LastLook(NOW - 5, 1, (SyncedGroup("late", 1.0, "AB621"), SyncedGroup("app", NOW - 5)))
    shown = written(running(full(0)), is_openmetrics=False, last_looks={"east-west": last})
    assert lint(["anabranch_"], shown) == ""
    # MirrorMaker's names are its own: what is wrong with them is that, and that it can be parsed is what counts.
    found = lint(["kafka_"], shown)
    assert all("kafka_connect" in line for line in found.splitlines())


def test_the_text_of_many_partitions_comes_in_pieces() -> None:
    reading = Reading.of(topology(), view(running(*(full(number) for number in range(2_000)))))
    observer = Observer()
    found = [*collect.samples(reading), *mirrormaker.samples(reading, observer, mirrormaker.FORMATS)]
    pieces = [len(piece) for piece in text(found, is_openmetrics=True)]
    assert max(pieces) < sum(pieces) / 4


def test_flows_of_one_name_elsewhere_do_not_mix() -> None:
    other = replace(running(full(0)), flow="another")
    shown = written(running(full(1)), other)
    assert [dict(some)["partition"] for name, some in values(shown) if name == "anabranch_partition_state"] == ["1"]
    assert flow().name == "east-west"
