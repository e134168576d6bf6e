"""How many processors and how much memory a process may use, by its control groups."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from reconciler.replicator.spark import control_groups


def limit(group: Path, **files: str) -> None:
    group.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (group / name.replace("__", ".")).write_text(text)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(control_groups, "_MOUNT", tmp_path / "fs")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    return tmp_path


def test_processors_are_counted_with_what_control_groups_allow(kernel: Path) -> None:
    assert control_groups.processors() == 8.0
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
        assert control_groups.processors() == expected


def test_control_groups_of_the_first_version_count_as_well(kernel: Path) -> None:
    (kernel / "cgroup").write_text("7:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n1:name=systemd:/\n0::/\n")
    limit(kernel / "fs" / "memory" / "docker" / "a", cpu__cfs_quota_us="1\n", cpu__cfs_period_us="100000\n")
    group = kernel / "fs" / "cpu,cpuacct" / "docker" / "a"
    for quota, expected in (("-1", 8.0), ("250000", 2.5), ("50000", 0.5)):
        limit(group, cpu__cfs_quota_us=f"{quota}\n", cpu__cfs_period_us="100000\n")
        assert control_groups.processors() == expected


def test_memory_is_what_the_narrowest_group_leaves(kernel: Path) -> None:
    assert control_groups.memory_left() == math.inf
    (kernel / "cgroup").write_text("1:name=systemd:/x\n0::/kube/pod\n")
    group = kernel / "fs" / "kube" / "pod"
    limit(group, memory__max="max\n", memory__current="500\n")
    assert control_groups.memory_left() == math.inf
    limit(group.parent, memory__max="3000\n", memory__current="1000\n")
    assert control_groups.memory_left() == 2_000
    limit(group, memory__max="800\n")
    assert control_groups.memory_left() == 300
    limit(group, memory__current="nonsense\n")
    assert control_groups.memory_left() == 2_000


def test_memory_of_groups_of_the_first_version_counts_as_well(kernel: Path) -> None:
    (kernel / "cgroup").write_text("7:memory:/docker/a\n4:cpu,cpuacct:/docker/b\n")
    limit(kernel / "fs" / "memory" / "docker" / "a", memory__limit_in_bytes="900\n", memory__usage_in_bytes="100\n")
    assert control_groups.memory_left() == 800
