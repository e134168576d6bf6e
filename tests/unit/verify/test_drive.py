"""How a comparison is driven: what fails is tried again, what is done never, and what was not seen is told."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest
from typer import BadParameter

from reconciler.cli.verify import _check_names
from reconciler.model.base.errors import EnvironmentFault, Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.offsets.verification import Sofar, Verification
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.shares import Place
from reconciler.verify import drive
from reconciler.verify.drive import Options, Verify, VerifyWatcher
from reconciler.verify.origin import Origin
from reconciler.verify.slices import SliceBounds, SliceProgress
from reconciler.verify.survey import Found, VerifyFilter

CLUSTERS = {alias: Cluster(alias, ("127.0.0.1:9",)) for alias in ("east", "west", "north")}
FLOWS = tuple(Flow(f"east-{to}", "east", to, Selection((".*",))) for to in ("west", "north"))
TOPOLOGY = Topology("payments", CLUSTERS, FLOWS)
SILENT = Problem("AB310", "cluster east", "does not answer", "")


def bounds(partition: int) -> SliceBounds:
    ends = (0, 100, 0, 100)
    return SliceBounds("orders", partition, "east.orders", "identical", None, None, *ends, CopyRecord(None, None))


class FakeSurvey:
    """Three partitions of each flow, and one without a copy; the flow into north cannot be looked at."""

    def __init__(self, spec: FlowSpec, _wanted: VerifyFilter, _warn: object, _rate: float | None) -> None:
        self._target = spec.target.alias

    def look(self) -> Found:
        if self._target == "north":
            raise Unreachable(SILENT)
        return Found(tuple(bounds(number) for number in range(3)), (Place("users", 0, "east.users"),), ())


class FakeJobs:
    """Compares 60 offsets a piece; partition 1 fails as often as it is told."""

    fails: int
    calls: Counter[int]
    # What became of Spark, in order.
    words: list[str]

    def __init__(self, *_: object) -> None:
        type(self).words = []

    def open(self) -> None:
        self.words.append("open")

    def start(self) -> None:
        self.words.append("start")

    def need(self, slots: int) -> None:
        self.words.append(f"need {slots}")

    def abandon(self) -> None:
        self.words.append("abandon")

    def stop(self) -> None:
        self.words.append("stop")

    def cancel(self) -> None: ...

    def run(self, _work: Callable[[str], str], text: str) -> str:
        found = []
        for one in json.loads(text)["slices"]:
            number, progress = one["bounds"]["partition"], SliceProgress.from_json(one["progress"])
            self.calls[number] += 1
            if number == 1 and self.calls[1] <= self.fails:
                progress.failure = SILENT
            else:
                progress.source = min(100, progress.source + 60)
                progress.findings.counts.records = progress.source
                progress.is_done = progress.source == 100
            found.append(progress.to_json())
        # What comes behind the first the worker had no time for.
        return json.dumps(found[:1] + [None] * (len(found) - 1))


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "Survey", FakeSurvey)
    monkeypatch.setattr(drive, "SparkJobs", FakeJobs)
    monkeypatch.setattr(drive, "_PAUSE", 0.001)
    monkeypatch.setattr(drive, "origin_of", lambda _: Origin("d", "s", "t"))
    monkeypatch.setattr(drive, "made_anew", lambda *_: [])


def verify(folder: Path, fails: int = 0, flows: tuple[Flow, ...] = FLOWS[:1]) -> tuple[Verification, list[Sofar]]:
    FakeJobs.fails, FakeJobs.calls = fails, Counter()
    seen: list[Sofar] = []
    watcher = VerifyWatcher(warn=print, phase=lambda _: None, seen=seen.append)
    options = Options(folder, slots=2, resume=folder / "progress.json")
    return Verify(TOPOLOGY, flows, options, watcher).run(), seen


def test_all_partitions_are_compared_to_their_ends_and_never_twice(tmp_path: Path) -> None:
    found, seen = verify(tmp_path)
    assert [(one.topic, one.partition, one.state) for one in found.partitions] == [
        *[("orders", number, "equal") for number in range(3)],
        ("users", 0, "different"),
    ]
    assert found.counts.records == 300
    # What a worker has no time for counts as a call here, and is asked for again.
    assert all(count >= 2 for count in FakeJobs.calls.values())
    assert (seen[-1].offsets, seen[-1].of) == (300, 300)
    assert FakeJobs.words == ["open", "need 3", "start", "stop"]
    again, _ = verify(tmp_path)
    assert (again, FakeJobs.calls) == (found, Counter())
    # Begun early, as nearly always something is left.
    assert FakeJobs.words == ["open", "abandon"]


def test_what_fails_is_tried_again_and_told_when_that_does_not_help(tmp_path: Path) -> None:
    found, _ = verify(tmp_path, fails=1_000)
    states = {one.partition: (one.state, one.failure) for one in found.partitions if one.topic == "orders"}
    assert states == {0: ("equal", None), 1: ("unfinished", SILENT), 2: ("equal", None)}
    assert found.failures == (SILENT,)
    # Later it goes on where it stood, with nothing else.
    found, _ = verify(tmp_path, fails=1)
    assert (found.failures, set(FakeJobs.calls)) == ((), {1})
    assert found.counts.records == 300


def test_troubles_in_between_do_not_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_self: object, _work: object, text: str) -> str:
        found = []
        for one in json.loads(text)["slices"]:
            progress = SliceProgress.from_json(one["progress"])
            progress.source = progress.target = progress.source + 10
            progress.is_done = progress.source == 100
            progress.failure = None if progress.is_done else SILENT
            found.append(progress.to_json())
        return json.dumps(found)

    monkeypatch.setattr(FakeJobs, "run", run)
    found, _ = verify(tmp_path)
    assert found.failures == ()


def test_a_flow_that_cannot_be_looked_at_is_told_and_looked_at_the_next_time(tmp_path: Path) -> None:
    found, _ = verify(tmp_path, flows=FLOWS)
    assert (found.unseen, {one.flow for one in found.partitions}) == ((SILENT,), {"east-west"})
    kept = json.loads((tmp_path / "progress.json").read_text())
    assert list(kept["flows"]) == ["east-west"]
    # Another flow alone does not make it forget the first.
    found, _ = verify(tmp_path, flows=FLOWS[1:])
    assert (found.unseen, found.partitions) == ((SILENT,), ())
    assert json.loads((tmp_path / "progress.json").read_text()) == kept


def test_what_could_not_be_seen_is_looked_at_again_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaderless = Problem("AB609", "cluster west, east.orders/1", "cannot be read: it has no leader", "")
    users = (Place("users", 0, "east.users"),)
    looks = [
        Found((bounds(0),), users, (leaderless,)),
        Found((replace(bounds(0), source_end=200), bounds(1)), (*users, Place("users", 1, "east.users")), ()),
    ]
    monkeypatch.setattr(FakeSurvey, "look", lambda _: looks.pop(0))
    found, _ = verify(tmp_path)
    assert (found.failures, {one.topic: one.partition for one in found.partitions}) == (
        (leaderless,),
        {"orders": 0, "users": 0},
    )
    # What is compared keeps its ends, and nothing is there twice.
    for _ in range(2):
        found, _ = verify(tmp_path)
        assert found.failures == ()
        assert [(one.topic, one.partition, one.source_range[1]) for one in found.partitions] == [
            ("orders", 0, 100),
            ("orders", 1, 100),
            ("users", 0, 0),
            ("users", 1, 0),
        ]
    assert looks == []


def test_what_makes_it_say_less_is_told_again_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unsure(FakeSurvey):
        def __init__(
            self, spec: FlowSpec, wanted: VerifyFilter, warn: Callable[[Problem], None], rate: float | None
        ) -> None:
            super().__init__(spec, wanted, warn, rate)
            warn(Problem("AB612", "topic orders", "cleanup.policy cannot be read", ""))

    monkeypatch.setattr(drive, "Survey", Unsure)
    for _ in range(2):
        verify(tmp_path)
        assert capsys.readouterr().out.count("AB612") == 1


def test_spark_that_fails_ends_it_with_what_is_done_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = EnvironmentFault(Problem("AB320", "Spark", "has ended", ""))

    def run(_self: object, _work: object, _text: str) -> str:
        raise fault

    monkeypatch.setattr(FakeJobs, "run", run)
    with pytest.raises(EnvironmentFault, match="AB320"):
        verify(tmp_path)
    assert len(json.loads((tmp_path / "progress.json").read_text())["flows"]["east-west"]["partitions"]) == 3


def test_spark_does_not_outlive_a_look_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(_self: object) -> Found:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeSurvey, "look", look)
    with pytest.raises(KeyboardInterrupt):
        verify(tmp_path)
    assert FakeJobs.words == ["open", "abandon"]


def test_who_chooses_topics_hears_which_there_are_before_they_are_compared(tmp_path: Path) -> None:
    def looked(known: Collection[tuple[str, str]]) -> None:
        heard.append(set(known))
        raise refused

    refused = BadParameter("no such topic")
    heard: list[set[tuple[str, str]]] = []
    watcher = VerifyWatcher(warn=print, phase=lambda _: None, seen=print, looked=looked)
    kept = tmp_path / "progress.json"
    with pytest.raises(BadParameter):
        Verify(TOPOLOGY, FLOWS[:1], Options(tmp_path, resume=kept), watcher).run()
    assert heard == [{("orders", "east.orders"), ("users", "east.users")}]
    assert (kept.exists(), FakeJobs.words) == (False, ["open", "abandon"])
    # What was not seen may have any name.
    FakeJobs.fails, FakeJobs.calls = 0, Counter()
    Verify(TOPOLOGY, FLOWS, Options(tmp_path), watcher).run()
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("topics", "remotes", "wrong"),
    [
        (("orders", "user"), (), "user"),
        ((), ("east.orders", "east.order"), "east.order"),
        (("orders",), ("orders",), "orders"),
        (("orders", "users"), ("east.users",), None),
    ],
)
def test_each_name_that_is_chosen_must_be_one_of_a_copy(
    topics: tuple[str, ...], remotes: tuple[str, ...], wrong: str | None
) -> None:
    known = {("orders", "east.orders"), ("users", "east.users")}
    with pytest.raises(BadParameter, match=f": {wrong}$") if wrong else contextlib.nullcontext():
        _check_names(topics, remotes, known)


def kept_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **change: str) -> list[str]:
    """Compare, then go on when something is otherwise; return the problems."""
    verify(tmp_path)
    before = (tmp_path / "progress.json").read_bytes()
    monkeypatch.setattr(drive, "origin_of", lambda _: replace(Origin("d", "s", "t"), **change))
    with pytest.raises(EnvironmentFault) as told:
        verify(tmp_path)
    assert FakeJobs.calls == Counter()
    assert (tmp_path / "progress.json").read_bytes() == before
    return [str(problem).replace(str(tmp_path), "") for problem in told.value.problems]


ANEW = "name another file, or delete this one to begin anew"


def test_what_was_compared_of_other_clusters_or_another_flow_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept_of_another(tmp_path, monkeypatch, source="x", declared="x") == [
        f"/progress.json: flow east-west was declared otherwise when it was compared — {ANEW} [AB610]",
        "/progress.json: flow east-west was compared on a cluster with the id s; cluster east "
        f"(127.0.0.1:9) is x — {ANEW} [AB614]",
    ]


def test_what_was_compared_of_other_topics_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem("AB614", "file", "another topic", "")
    asked: list[list[SliceBounds]] = []

    def made_anew(_path: str, _spec: FlowSpec, compared: list[SliceBounds]) -> list[Problem]:
        asked.append(compared)
        return [problem]

    verify(tmp_path)
    monkeypatch.setattr(drive, "made_anew", made_anew)
    with pytest.raises(EnvironmentFault, match="AB614"):
        verify(tmp_path)
    assert asked == [[bounds(number) for number in range(3)]]


def test_what_is_kept_of_a_flow_whose_clusters_are_away_counts_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: FlowSpec) -> Origin:
        raise Unreachable(SILENT)

    before, _ = verify(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(drive, "origin_of", away)
        found, _ = verify(tmp_path)
        assert (found.unseen, found.partitions, found.is_equal) == ((SILENT,), (), None)
    assert verify(tmp_path)[0] == before
    assert FakeJobs.calls == Counter()
