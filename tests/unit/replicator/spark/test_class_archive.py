"""The archive of Spark's classes: which one is taken, when it is made, and what becomes of those that nothing takes."""

from __future__ import annotations

import fcntl
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.replicator.spark import class_archive, control_groups
from reconciler.replicator.spark.class_archive import ArchiveMaker
from tests.support.programs import write_program


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "cache"))
    class_archive._path.cache_clear()
    monkeypatch.setattr(class_archive, "_make", lambda path, _: path.write_text("classes"))
    yield tmp_path / "cache"
    class_archive._path.cache_clear()


def archives(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("*.jsa"))


def test_java_takes_the_archive_only_where_there_is_one(cache: Path) -> None:
    assert class_archive.taking() == ""
    assert class_archive.make(cache)
    (name,) = archives(cache)
    assert class_archive.taking().startswith(f"-XX:SharedArchiveFile={cache / name} ")
    (cache / name).write_text("others")
    assert class_archive.make(cache)
    assert (cache / name).read_text() == "others"


def test_another_java_takes_another_archive(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for number in range(2):
        home = tmp_path / f"jdk{number}"
        write_program(home / "bin" / "java", "#!/bin/sh\n")
        monkeypatch.setenv("JAVA_HOME", str(home))
        class_archive._path.cache_clear()
        assert class_archive.make(cache)
        names.append(archives(cache))
    assert [len(found) for found in names] == [1, 2]


def test_nothing_waits_for_a_process_that_makes_it(cache: Path) -> None:
    path = class_archive._path()
    assert path is not None
    cache.mkdir()
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not class_archive.make(cache)
    assert class_archive.make(cache)


def test_what_nothing_has_taken_for_a_week_makes_room(cache: Path) -> None:
    cache.mkdir()
    for name, days in (("spark-old.jsa", 8), (".spark-torn.jsa.7", 8), ("spark-young.jsa", 6), ("kafka-old.jsa", 8)):
        (cache / name).write_text("")
        os.utime(cache / name, (time.time() - days * 86_400,) * 2)
    assert class_archive.make(cache)
    left = {path.name for path in cache.iterdir()}
    assert {"spark-young.jsa", "kafka-old.jsa"} < left
    assert not left & {"spark-old.jsa", ".spark-torn.jsa.7"}


def test_a_cache_that_cannot_be_named_or_written_is_done_without(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("no folder")
    assert not class_archive.make(cache)
    assert class_archive.taking() == ""
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "with a space"))
    class_archive._path.cache_clear()
    assert not class_archive.make(cache)


def test_a_run_that_ends_ends_the_process_that_makes_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "python", "#!/bin/sh\nsleep 600\n")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    for left, mode in ((2**30 - 1, 0o755), (math.inf, 0o555)):
        monkeypatch.setattr(control_groups, "memory_left", lambda left=left: left)
        monkeypatch.setattr("os.access", lambda *_, mode=mode: bool(mode & os.W_OK << 6))
        none = ArchiveMaker(tmp_path / "archive")
        none.begin()
        assert none._process is None
    monkeypatch.setattr("os.access", lambda *_: True)
    maker = ArchiveMaker(tmp_path / "archive")
    maker.end()
    maker.begin()
    maker.begin()
    process = maker._process
    assert process is not None
    path = class_archive._path()
    assert path is not None
    cache.mkdir()
    class_archive._unfinished(path, process.pid).write_text("half")
    maker.end()
    assert (process.returncode, list(cache.iterdir())) == (-9, [])
    class_archive.make(cache)
    other = ArchiveMaker(tmp_path / "archive")
    other.begin()
    assert other._process is None
