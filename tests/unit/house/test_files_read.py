"""Whatever a file holds that a command reads: a value, or an error of ours that names the file; never another error."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler import declare
from reconciler.checkpoints.groups import files as offset_files
from reconciler.model.base import files
from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.base.files import MOST_DEPTH, UnreadableFile, parse_json, read_json, read_text
from reconciler.model.offsets.runs import CopyRecord, Handed, Run, Runs
from reconciler.model.offsets.verification import Difference
from reconciler.observe.record import read_observed, write_observed
from reconciler.operate.applying import read_reviewed
from reconciler.plan.findings.moved import moved
from reconciler.replicator.partition.shares import Place
from reconciler.report.plan.file import write_plan
from reconciler.report.plan.to_json import plan_json
from reconciler.verify.origin import Origin
from reconciler.verify.resume import FlowState, Resume
from reconciler.verify.slices import SliceBounds, SliceNames, SliceProgress
from reconciler.verify.survey import VerifyFilter
from stacks.handover import VARIABLE, Handover
from tests.unit.plan.facts import EAST, WEST, cluster, flow, plan_of, topic, topology

SHARED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
ONE = topology(flow())
SEEN = {EAST: cluster(EAST, topic("orders", 3, configs={"retention.ms": "1000"})), WEST: cluster(WEST)}
PLAN = plan_of(ONE, SEEN[EAST], SEEN[WEST])


def comparison() -> FlowState:
    """Return a kept comparison in which every kind of value stands."""
    record = CopyRecord("s", "t", 5, Runs((Run(3, 1),)), ((7, 9),), handed=Handed(4, (1, 2)))
    bounds = SliceBounds("orders", 0, "east.orders", "translated", "s", "t", 0, 9, 0, 9, record, 4, (1, 2))
    progress = SliceProgress(4, 4, True, compaction={"a2V5": [1, 2, 3, True]}, meeting=(5, 5))
    progress.findings.add(Difference("changed", 2, 2, "value differs"))
    problem = Problem("AB310", "cluster east", "does not answer", "")
    return FlowState(
        [(bounds, progress)], [Place("users", 0, "x")], [problem], [problem], [problem], Origin("a", "b", "c")
    )


def plan_file(path: Path) -> object:
    """Go on as `apply --plan` does: by itself, and against the plan of now."""
    return moved(read_reviewed(ONE, path).plan, plan_json(PLAN))


def resume_file(path: Path) -> object:
    found = Resume(path, "payments", VerifyFilter()).load()
    for state in found.values():
        for bounds, progress in state.partitions:
            one = SliceNames("flow", EAST, WEST).compared(bounds, progress)
            assert one.state in ("equal", "different", "unfinished")
            json.dumps([bounds.to_json(), progress.to_json()])
    return found


def handover(path: Path) -> object:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(VARIABLE, str(path))
        return Handover.received()


READERS: dict[str, Callable[[Path], object]] = {
    "plan.json": plan_file,
    "resume.json": resume_file,
    "offsets.json": offset_files.read_file,
    "offsets.csv": offset_files.read_file,
    "observed.json": lambda path: read_observed(path, ONE, [EAST, WEST]),
    "handover.json": handover,
    "topology.yaml": lambda path: declare.load((path,)),
}


def valid(name: str, folder: Path) -> dict[str, Any]:
    """Return what such a file holds, as it is written."""
    path = folder / name
    if name == "plan.json":
        write_plan(path, PLAN, [WEST])
    elif name == "resume.json":
        Resume(path, "payments", VerifyFilter()).save({"east-west": comparison()})
    elif name == "observed.json":
        (written,) = write_observed(folder / "observed", ONE, SEEN, [EAST, WEST])[:1]
        path = written
    elif name == "handover.json":
        Handover("observed", (WEST,), ("a",)).write(path)
    else:
        row = {"group": "billing", "topic": "orders", "partition": 0, "offset": 5, "metadata": None}
        return {"version": 1, "offsets": [row, row | {"partition": 1}]}
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value in another."""
    yield way
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*way, key))


def changed(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    """Return a value in which another stands at a place; `...` takes it away."""
    if not way:
        return None if new is ... else new
    made = copy.deepcopy(value)
    inner = made
    for key in way[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[way[-1]]
    else:
        inner[way[-1]] = new
    return made


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400) | st.just(...),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def read(name: str, path: Path) -> None:
    """Read a file; it may be taken, and else the error is one of ours, and says which file it is."""
    try:
        READERS[name](path)
    except AnabranchError as error:
        assert error.problems
        assert all(str(path) in problem.where for problem in error.problems), error
        assert all(len(str(problem)) < 3_000 for problem in error.problems)


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith(".json")])
def test_whatever_stands_at_a_place_of_a_file(name: str, tmp_path: Path) -> None:
    good = valid(name, tmp_path)
    ways = list(places(good))
    path = tmp_path / f"odd-{name}"
    path.write_text(json.dumps(good))
    READERS[name](path)

    @SHARED
    @given(st.sampled_from(ways), ODD)
    def check(way: tuple[Any, ...], new: Any) -> None:
        path.write_text(json.dumps(changed(good, way, new), default=lambda _: None))
        read(name, path)

    check()


@pytest.mark.parametrize("name", READERS)
def test_whatever_a_file_holds(name: str, tmp_path: Path) -> None:
    path = tmp_path / name

    @SHARED
    @given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
    def check(content: bytes) -> None:
        path.write_bytes(content)
        read(name, path)

    check()


BOMBS = {
    "nested": "[" * 200_000,
    "nested and closed": "[" * 50_000 + "]" * 50_000,
    "nested as deeply as can be read": '{"a":' * 900 + "1" + "}" * 900,
    "digits": "9" * 5_000,
    "a key with digits": '{"version": ' + "9" * 5_000 + "}",
    "infinite": '{"version": 1e999, "format": -1e999, "time": Infinity, "x": NaN}',
    "nothing": "",
    "null bytes": "\0" * 1_000,
    "a long line": "a" * 500_000,
    "half a character": '{"version": 1, "offsets": [{"group": "\\ud800"}], "\\udfff": 1}',
    "commas": ",\n" * 200_000,
    "quotes": '"' * 200_001,
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("name", READERS)
def test_no_file_is_too_much(name: str, bomb: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(BOMBS[bomb])
    with pytest.raises(AnabranchError):
        READERS[name](path)


@pytest.mark.parametrize("name", ["plan.json", "resume.json", "offsets.json", "observed.json", "handover.json"])
@pytest.mark.parametrize("number", ["9" * 4_000, "9" * 5_000, "1e999", "NaN", "-Infinity", "1e400"])
def test_no_number_is_too_large(name: str, number: str, tmp_path: Path) -> None:
    """Put it in the place of each number that stands there."""
    good = valid(name, tmp_path)
    for way in places(good):
        value: Any = good
        for key in way:
            value = value[key]
        if isinstance(value, int | float) and not isinstance(value, bool):
            path = tmp_path / f"large-{name}"
            path.write_text(json.dumps(changed(good, way, "@")).replace('"@"', number))
            read(name, path)


MEASURED = """
import resource, sys
from pathlib import Path
from reconciler.model.base import files
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    files.read_json(Path(sys.argv[1]), 2**20)
except files.UnreadableFile as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


def test_no_more_of_a_file_is_read_than_it_may_have(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(2**33)
    ended = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True)
    grown, _, why = ended.stdout.partition(" ")
    assert why == "is larger than 1048576 bytes\n"
    assert int(grown) * 1024 < 64 * 2**20, "some MB, of 8 GB"


def test_what_does_not_end_is_not_waited_for() -> None:
    with pytest.raises(UnreadableFile, match="is larger than"):
        read_text(Path("/dev/zero"), 1000)


def test_what_json_may_say(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": [1, 2.5, "\\u00e4", null, true]}')
    assert read_json(path) == {"a": [1, 2.5, "ä", None, True]}
    deep = "[" * MOST_DEPTH + "]" * MOST_DEPTH
    assert parse_json(deep)
    for text, why in ((f"[{deep}]", "nested"), ("[1e999]", "too large"), ("NaN", "no number"), ("[1,]", "is not JSON")):
        with pytest.raises(UnreadableFile, match=why):
            parse_json(text)
    with pytest.raises(UnreadableFile) as told:
        parse_json("{\n\n x")
    assert told.value.where(path) == f"{path}:3"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o377])
def test_what_is_written_is_written_whole_for_this_user_and_through_no_link(tmp_path: Path, umask: int) -> None:
    path, victim = tmp_path / "file", tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    before = os.umask(umask)
    try:
        files.write_private(path, "new")
    finally:
        os.umask(before)
    assert (path.read_text(), path.is_symlink(), path.stat().st_mode & 0o777) == ("new", False, 0o600)
    assert victim.read_text() == "precious"

    def failing() -> None:
        with files.beside(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing()
    assert path.read_text() == "new"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "victim"]
    linked = tmp_path / "linked"
    linked.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        files.open_private(linked)
