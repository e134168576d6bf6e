"""How many processors a process may use, by its control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.replicator.spark import processors


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
