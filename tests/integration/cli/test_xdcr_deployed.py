"""Three data centres of two clusters each, all deployed by one `apply`: each by itself, and none harms another."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from reconciler.declare import load
from reconciler.model.tasks.status import PartitionState
from reconciler.state.status import StatusReader
from tests.support.clusters import kafka
from tests.support.clusters.datacenters import ALIASES, REPLICATION, Clusters, declared, six_running
from tests.support.commands.command import Ended, anabranch
from tests.support.deploying import BROKEN, interpreter
from tests.support.replicator.copying import log_end
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3_000)]

PLACES = ("east", "west", "north")
SECONDS = 1_200
FILE = """\
version: 1
name: meshed
{clusters}defaults: {{tasks: 1, heartbeats: false}}
datacenters:
{places}{replication}"""


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    with six_running() as started:
        for one in started.values():
            kafka.create(one, "orders", 2)
        yield started


class Sites:
    """Three deployments on this machine.

    Args:
        folder: for everything.
        clusters: by alias.
    """

    def __init__(self, folder: Path, clusters: Clusters) -> None:
        self.folder, self.file, self._clusters = folder, folder / "meshed.yaml", clusters
        self.write()

    def write(self, pythons: dict[str, str] | None = None, kind: str = "local") -> None:
        """Declare them; some data centres with another interpreter."""
        places = ""
        for wave, place in enumerate(PLACES, 1):
            deploy = {"kind": kind, "folder": str(self.folder / place)}
            deploy |= {"python": pythons[place]} if pythons and place in pythons else {}
            places += f"  {place}: {{wave: {wave}, deploy: {json.dumps(deploy)}}}\n"
        self.file.write_text(FILE.format(clusters=declared(self._clusters), places=places, replication=REPLICATION))

    def apply(self) -> Ended:
        return anabranch("apply", self.file, "--yes", limit=SECONDS)

    def processes(self) -> dict[str, dict[str, Any]]:
        """Return the one process of each data centre."""
        told = anabranch("deployments", self.file, "--json", limit=SECONDS)
        assert told.code == 0, told
        return {one["datacenter"]: one for one in json.loads(told.stdout)["processes"]}

    def states(self) -> dict[str, str]:
        """Return the state of each flow by its name."""
        told = anabranch("status", self.file, "--format", "json", limit=SECONDS)
        return {one["name"]: one["state"] for one in json.loads(told.stdout)["flows"]}

    def run_by(self, pid: int) -> set[str]:
        """Return the flows of which all partitions run in a process."""
        topology, now = load([self.file]), time.time()
        running: set[str] = set()
        for alias in topology.targets:
            reader = StatusReader(topology.clusters[alias], topology.name)
            try:
                words = [one for one in reader.current() if one.is_live(now) and one.run.endswith(f"-{pid}")]
            finally:
                reader.close()
            states = {(one.flow, partition.state) for one in words for partition in one.partitions}
            running |= {flow for flow, _ in states}
            running -= {flow for flow, state in states if state is not PartitionState.RUNNING}
        return running

    def copies(self, place: str) -> int:
        """Return how many offsets the copies of orders in one data centre have together."""
        here = [(alias, self._clusters[alias]) for alias in (f"{place}-1", f"{place}-2")]
        topics = [(kafka.declared(*one), topic) for one in here for topic in kafka.names(one[1])]
        return sum(log_end(one, topic, n) for one, topic in topics if topic.endswith(".orders") for n in range(2))

    def produce(self, records: int) -> None:
        for alias, one in self._clusters.items():
            producer = Producer(one.client_config())
            for number in range(records):
                producer.produce("orders", value=f"{alias} {number}".encode(), partition=number % 2)
            assert producer.flush(SECONDS) == 0


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory, clusters: Clusters) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("sites")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        made = Sites(folder, clusters)
        yield made
        made.write(kind="none")
        assert made.apply().code == 0


def all_run(sites: Sites) -> None:
    eventually("all flows run", sites.states, lambda states: set(states.values()) == {"running"}, seconds=SECONDS)


def copied_everywhere(sites: Sites) -> None:
    """Wait until there are copies in all data centres, and no more come."""
    before: dict[str, int] = {}
    since = time.monotonic()
    while time.monotonic() < since + SECONDS:
        now = {place: sites.copies(place) for place in PLACES}
        if now == before and all(now.values()):
            return
        before = now
        time.sleep(5)
    message = f"copies still change: {before}"
    raise AssertionError(message)


def test_each_data_centre_runs_the_flows_into_its_clusters(sites: Sites) -> None:
    applied = sites.apply()
    assert applied.code == 0, applied
    assert [line for line in applied.stderr.splitlines() if line.startswith("wave")] == [
        f"wave {number} of 3: {place}-1, {place}-2" for number, place in enumerate(sorted(PLACES, key=PLACES.index), 1)
    ]
    processes = sites.processes()
    assert processes.keys() == set(PLACES)
    for place, one in processes.items():
        assert one["running"], one
        assert one["facts"]["command"] == f"replicate --clusters {place}-1,{place}-2 --wait=forever"
    all_run(sites)
    sites.produce(100)
    copied_everywhere(sites)
    assert anabranch("plan", sites.file, "--detailed-exitcode", limit=SECONDS).code == 0


@pytest.mark.parametrize("place", PLACES)
def test_a_driver_that_is_killed_heals_and_harms_no_other(place: str, sites: Sites) -> None:
    all_run(sites)
    before = sites.processes()
    killed = before[place]["pid"]
    os.kill(killed, signal.SIGKILL)
    began = time.monotonic()
    healed = eventually("it runs again", lambda: sites.processes()[place], lambda one: one["pid"] not in (0, killed))
    again = time.monotonic() - began
    eventually(
        "its flows run in it", lambda: sites.run_by(healed["pid"]), lambda flows: len(flows) == 4, seconds=SECONDS
    )
    print(f"{place}: another process after {again:.1f} s, its flows ran after {time.monotonic() - began:.1f} s")
    now = sites.processes()
    assert [now[other]["pid"] for other in PLACES if other != place] == [
        before[other]["pid"] for other in PLACES if other != place
    ]


def test_a_whole_data_centre_that_is_lost_shows_as_such_and_harms_no_other(sites: Sites, clusters: Clusters) -> None:
    all_run(sites)
    lost = sites.processes()["north"]["pid"]
    keeper = psutil.Process(lost).ppid()
    family = [psutil.Process(lost), *psutil.Process(lost).children(recursive=True)]
    os.kill(keeper, signal.SIGKILL)
    for one in family:
        if one.is_running():
            one.kill()
    into = {name for name in sites.states() if "-north-" in f"-{name}" and name.split("-")[-2] == "north"}
    assert len(into) == 4
    eventually(
        "its flows are lost, and no others",
        sites.states,
        lambda states: {name for name, state in states.items() if state != "running"} == into,
        seconds=SECONDS,
    )
    told = sites.processes()["north"]
    assert (told["running"], told["why"]) == (False, "its keeper does not run")
    before = {place: sites.copies(place) for place in PLACES}
    sites.produce(50)
    eventually(
        "the others go on",
        lambda: [sites.copies(place) > before[place] for place in ("east", "west")],
        all,
        seconds=SECONDS,
    )
    assert sites.copies("north") == before["north"]
    planned = anabranch("plan", sites.file, limit=SECONDS)
    assert "+ deploy replicate   it does not run: its keeper does not run" in planned.stdout, planned
    assert sites.apply().code == 0
    all_run(sites)
    eventually("it has caught up", lambda: sites.copies("north") > before["north"], seconds=SECONDS)
    assert len(clusters) == len(ALIASES)


def test_a_wave_that_is_refused_keeps_the_next_from_beginning(sites: Sites, tmp_path: Path) -> None:
    all_run(sites)
    other = interpreter(tmp_path, f'#!/bin/sh\nexec {sys.executable} "$@"\n', "other")
    sites.write({"east": interpreter(tmp_path, BROKEN), "west": other, "north": other})
    before = sites.processes()
    failed = sites.apply()
    assert failed.code == 1, failed
    assert "[AB766]" in failed.stderr
    assert "wave 2" not in failed.stderr
    assert "  not done  west  replace replicate: wave 1 was not completed" in failed.stdout.splitlines()
    now = sites.processes()
    assert {place: now[place]["pid"] for place in PLACES} == {place: before[place]["pid"] for place in PLACES}
    all_run(sites)
    sites.write()
    # The first data centre has the files of what was in force meanwhile.
    again = sites.apply()
    assert again.code == 0, again
    assert "  done      east  write files of replicate" in again.stdout.splitlines()
    assert sites.processes()["east"]["pid"] == before["east"]["pid"]
