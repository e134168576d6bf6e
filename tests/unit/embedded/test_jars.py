"""Java and jars: what is looked for, and that a fetch is all or nothing. Ivy is played by a small script."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
from pathlib import Path
from typing import Protocol

import pytest

from reconciler.embedded import jars
from reconciler.model.base.errors import EnvironmentFault
from tests.support.programs import write_program

PLAIN = (jars.Coordinate("org.example", "thing", "1.0"),)
EMPTY = hashlib.sha256(b"").hexdigest()
KNOWN = {"thing-1.0.jar": EMPTY}


class FakeJava(Protocol):
    def __call__(self, ivy: str, version: str = "21.0.1") -> Path: ...


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """Make a `java` of version 21 whose Ivy runs the given shell lines; `$into` is the folder to retrieve into."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "cache"))

    def make(ivy: str, version: str = "21.0.1") -> Path:
        java = tmp_path / "jdk" / "bin" / "java"
        program = f"""#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2023-10-17' >&2; exit 0; fi
for argument; do last="$argument"; done
into="${{last%/*}}"
echo "$@" >> {tmp_path}/calls
{ivy}
"""
        write_program(java, program)
        return java

    return make


def test_cache_folder_is_the_users_own_choice_first() -> None:
    home = {"HOME": "/home/u"}
    assert jars.cache_folder({**home, "XDG_CACHE_HOME": "/x", "ANABRANCH_CACHE": "/a"}) == Path("/a")
    assert jars.cache_folder({**home, "XDG_CACHE_HOME": "/x"}) == Path("/x/anabranch")
    assert jars.cache_folder(home) == Path.home() / ".cache" / "anabranch"


def test_java_home_wins_over_path(fake_java: FakeJava) -> None:
    java = fake_java("exit 0")
    assert jars.java_executable({"JAVA_HOME": str(java.parent.parent), "PATH": "/nowhere"}) == java
    assert jars.java_executable({"PATH": f"/nowhere:{java.parent}"}) == java


@pytest.mark.parametrize("variable", ["JAVA_HOME", "PATH"])
def test_missing_java_says_where_it_was_looked_for(variable: str, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        jars.java_executable({"PATH": "", variable: str(tmp_path)})
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB301", variable)
    assert "JAVA_HOME" in problem.remedy


@pytest.mark.parametrize(("version", "known_as"), [("1.8.0_392", "is 8"), ("11.0.2", "is 11")])
def test_old_java_is_refused_with_its_version(fake_java: FakeJava, version: str, known_as: str) -> None:
    java = fake_java("exit 0", version)
    with pytest.raises(EnvironmentFault) as caught:
        jars.java_executable({"PATH": str(java.parent)})
    (problem,) = caught.value.problems
    assert problem.code == "AB301"
    assert known_as in problem.message


def test_fetched_folder_is_used_again(fake_java: FakeJava, tmp_path: Path) -> None:
    fake_java('touch "$into/thing-1.0.jar"')
    first = jars.fetch_jars("things", PLAIN, KNOWN)
    assert first == tmp_path / "cache" / "things"
    assert [jar.name for jar in first.iterdir()] == ["thing-1.0.jar"]
    assert jars.fetch_jars("things", PLAIN, KNOWN) == first
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "ivy",
    [
        'touch "$into/half-1.0.jar"; echo "UNRESOLVED DEPENDENCY: thing"; exit 1',
        'touch "$into/other-1.0.jar"; echo "UNRESOLVED DEPENDENCY: thing"; exit 0',
    ],
    ids=["failed", "without the artifact"],
)
def test_failed_fetch_tells_ivys_words_and_leaves_nothing(fake_java: FakeJava, tmp_path: Path, ivy: str) -> None:
    fake_java(ivy)
    with pytest.raises(EnvironmentFault) as caught:
        jars.fetch_jars("things", PLAIN, KNOWN)
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB302", "org.example:thing:1.0")
    assert caught.value.log == ("UNRESOLVED DEPENDENCY: thing",)
    assert [left.name for left in (tmp_path / "cache").iterdir()] == ["fetch.lock"]


@pytest.mark.parametrize(
    ("ivy", "name", "said"),
    [
        ('echo other > "$into/thing-1.0.jar"', "thing-1.0.jar", f"expected SHA-256 {EMPTY}, fetched was one of "),
        (
            'touch "$into/thing-1.0.jar" "$into/more-1.0.jar"',
            "more-1.0.jar",
            "expected SHA-256 of a known jar, fetched",
        ),
    ],
    ids=["another one", "one that is not known"],
)
def test_another_jar_is_refused_and_not_kept(
    fake_java: FakeJava, tmp_path: Path, ivy: str, name: str, said: str
) -> None:
    fake_java(ivy)
    for _ in range(2):
        with pytest.raises(EnvironmentFault) as caught:
            jars.fetch_jars("things", PLAIN, KNOWN)
        (problem,) = caught.value.problems
        assert (problem.code, problem.where) == ("AB302", name)
        assert problem.message.startswith(said)
        assert str(tmp_path / "cache" / "ivy") in problem.remedy
        assert [left.name for left in (tmp_path / "cache").iterdir()] == ["fetch.lock"]


def test_every_jar_of_kafka_is_known() -> None:
    known = jars.known_jars()
    assert all(re.fullmatch("[0-9a-f]{64}", sha) for sha in known.values())
    named = {f"{one.artifact}-{one.version}.jar" for coordinates in jars.KAFKA.values() for one in coordinates}
    assert named <= known.keys()


def test_cache_that_cannot_be_written_is_named(
    fake_java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java("exit 0")
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentFault) as caught:
        jars.fetch_jars("things", PLAIN, KNOWN)
    assert caught.value.problems[0].code == "AB302"
    assert "ANABRANCH_CACHE" in caught.value.problems[0].remedy


def test_processes_that_want_the_same_jars_fetch_once(fake_java: FakeJava, tmp_path: Path) -> None:
    fake_java('sleep 0.3; touch "$into/thing-1.0.jar"')
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        folders = pool.starmap(jars.fetch_jars, [("things", PLAIN, KNOWN)] * 3)
    assert set(folders) == {tmp_path / "cache" / "things"}
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
