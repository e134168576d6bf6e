"""Sizes, rates and times in a topology: what is meant, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.declare.documents.quantities import byte_count, byte_rate, seconds
from reconciler.model.declared.flow import Flow
from tests.unit.declare.declaring import HEAD, HEAD_LINES, load, place, refused


def flow(folder: Path, field: str) -> Flow:
    (made,) = load(folder, f"{HEAD}flows: [{{from: a, to: b, {field}}}]\n").flows
    return made


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("1B/s", 1), ("50KB/s", 50_000), ("50MB/s", 50_000_000), ("2GB/s", 2_000_000_000)),
        *(("1KiB/s", 1024), ("3MiB/s", 3 * 1024**2), ("1GiB/s", 1024**3), ("50 MB/s", 50_000_000)),
    ],
)
def test_a_quota(tmp_path: Path, written: str, meant: int) -> None:
    assert flow(tmp_path, f"quota: {written}").quota == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0", 0), ("0B", 0), ("16384B", 16_384), ("256KiB", 262_144), ("1MB", 1_000_000), ("999MiB", 999 * 1024**2)],
)
def test_a_batch_size(tmp_path: Path, written: str, meant: int) -> None:
    assert flow(tmp_path, f"batch-size: {written}").batch_size == meant


@pytest.mark.parametrize(
    ("written", "meant"), [("1MB", 1_000_000), ("64MiB", 2**26), ("999 MiB", 999 * 2**20), ("1GiB", 2**30)]
)
def test_a_largest_batch(tmp_path: Path, written: str, meant: int) -> None:
    assert flow(tmp_path, f"largest-batch: {written}").largest_batch == meant


@pytest.mark.parametrize(("written", "meant"), [("1s", 1.0), ("60s", 60.0), ("5min", 300.0), ("2 h", 7200.0)])
def test_a_refresh_interval(tmp_path: Path, written: str, meant: float) -> None:
    assert flow(tmp_path, f"refresh-interval: {written}").refresh_interval == meant


@pytest.mark.parametrize(("written", "meant"), [("0ms", 0.0), ("5ms", 0.005), ("999 ms", 0.999)])
def test_a_linger(tmp_path: Path, written: str, meant: float) -> None:
    assert flow(tmp_path, f"linger: {written}").linger == meant


@pytest.mark.parametrize("written", ["0", "5", "1000ms", "-1ms", "0.5ms", "1s", "long"])
def test_a_linger_that_is_none(tmp_path: Path, written: str) -> None:
    (problem,) = refused(tmp_path, f"{HEAD}defaults: {{linger: {written}}}\n")
    assert (problem.code, problem.remedy) == ("AB104", "for example: linger: 5ms")
    assert problem.message.startswith("expected a time below 1 s in ms")


@pytest.mark.parametrize("written", ["0", "0MB/s", "-5MB/s", "-1", "50MB", "50", "fast", "5.5MB/s", "~", "MB/s", "[]"])
def test_a_quota_of_nothing_or_without_a_unit_is_refused_where_it_stands(tmp_path: Path, written: str) -> None:
    (problem,) = refused(tmp_path, f"{HEAD}flows:\n  - {{from: a, to: b, quota: {written}}}\n")
    assert place(problem, tmp_path) == f"0.yaml:{HEAD_LINES + 2}:29 (flows[0].quota)"
    assert problem.code == "AB104"
    assert problem.message.startswith("expected bytes per second above 0, with a unit: B/s, KB/s, MB/s, GB/s")
    assert "found " in problem.message
    assert problem.remedy == "for example: quota: 50MB/s; leave it out for no limit, enabled: false stops a flow"


@pytest.mark.parametrize("written", ["-1", "5", "16384", "256", "1GB", "1000MB", "-5KB", "1.5MB", "big", "true"])
def test_a_batch_size_that_is_none(tmp_path: Path, written: str) -> None:
    (problem,) = refused(tmp_path, f"{HEAD}defaults: {{batch-size: {written}}}\n")
    assert problem.code == "AB104"
    assert problem.message.startswith("expected 0, or a size below 1 GB with a unit")
    assert problem.remedy == "for example: batch-size: 256KiB"


@pytest.mark.parametrize("written", ["0", "1048576", "0MB", "512KiB", "2GiB", "1000MB", "-1MB", "1.5MB", "true"])
def test_a_largest_batch_that_is_none(tmp_path: Path, written: str) -> None:
    (problem,) = refused(tmp_path, f"{HEAD}defaults: {{largest-batch: {written}}}\n")
    assert problem.code == "AB104"
    assert problem.message.startswith("expected a size from 1MB to 1GiB, in MB, MiB, GB or GiB")
    assert problem.remedy == "for example: largest-batch: 256MiB"


@pytest.mark.parametrize("written", ["0s", "0", "60", "500ms", "-1s", "1d", "soon"])
def test_a_refresh_interval_below_a_second_or_without_a_unit(tmp_path: Path, written: str) -> None:
    (problem,) = refused(tmp_path, f"{HEAD}defaults: {{refresh-interval: {written}}}\n")
    assert (problem.code, problem.remedy) == ("AB104", "for example: refresh-interval: 60s")
    assert problem.message.startswith("expected a time of at least 1s, with a unit")


@pytest.mark.parametrize("written", ["0ms", "9ms", "10000ms", "11s", "0s", "1min", "500", "soon"])
def test_a_commit_interval_that_is_none(tmp_path: Path, written: str) -> None:
    (problem,) = refused(tmp_path, f"{HEAD}defaults: {{commit-interval: {written}}}\n")
    assert (problem.code, problem.remedy) == ("AB104", "for example: commit-interval: 500ms")
    assert problem.message.startswith("expected a time from 10ms to 10s in ms or s; found ")


@pytest.mark.parametrize(
    ("field", "remedy"),
    [
        ("fill: marker", "did you mean markers?"),
        ("on-data-loss: ignore", "use park or continue"),
        ("on-recreate: restrat", "did you mean restart?"),
    ],
)
def test_a_choice_that_is_none(tmp_path: Path, field: str, remedy: str) -> None:
    (problem,) = refused(tmp_path, f"{HEAD}defaults: {{{field}}}\n")
    assert (problem.code, problem.remedy) == ("AB104", remedy)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("soon", "expected earliest, latest, a timestamp or offsets; found 'soon'"),
        ("5", "expected earliest, latest, a timestamp or offsets; found 5"),
        ("{}", "expected earliest, latest, a timestamp or offsets; found an empty mapping"),
        ("{timestamp: yesterday}", "expected a time with its zone; found 'yesterday'"),
        ("{timestamp: 2026-11-01T00:00:00}", "expected a time with its zone; found '2026-11-01T00:00:00'"),
        ("{timestamp: 2025-02-30T00:00:00Z}", "expected a time since 1970; found '2025-02-30T00:00:00Z'"),
        ("{timestamp: 2999-01-01T00:00:00Z}", "expected a time that is over; 2999-01-01T00:00:00Z is yet to come"),
        ("{offsets: {orders: 5}}", "expected a list; found 5"),
        ("{offsets: {orders: [-1]}}", "expected a whole number from 0 to 9223372036854775806; found -1"),
    ],
)
def test_a_start_that_is_none(tmp_path: Path, written: str, expected: str) -> None:
    body = f"{HEAD}flows: [{{from: a, to: b}}]\ndefaults: {{start: {written}}}\n"
    (problem,) = refused(tmp_path, body)
    assert (problem.code, problem.message) == ("AB104", expected)
    assert problem.remedy


def test_what_has_passed_no_schema_is_no_quantity() -> None:
    assert (byte_count("1KB"), byte_rate("1KB/s"), seconds("1s")) == (1000, 1000, 1.0)
    for text in ("1", "KB", "1 KB KB"):
        with pytest.raises(ValueError, match="no number with a unit"):
            byte_count(text)


@pytest.mark.parametrize(
    ("written", "seconds"), [("true", 1.0), ("false", 0.0), ("10s", 10.0), ("2 min", 120.0), ("~", None), ("0s", None)]
)
def test_heartbeats_are_written_or_not_or_so_often(tmp_path: Path, written: str, seconds: float | None) -> None:
    body = HEAD + f"flows: [{{from: a, to: b, heartbeats: {written}}}]\n"
    if seconds is None:
        assert [one.code for one in refused(tmp_path, body)] == ["AB104"]
        return
    (one,) = load(tmp_path, body).flows
    assert (one.heartbeats, one.has_service) == (seconds, seconds > 0)
