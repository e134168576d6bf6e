"""`apply` deploys the processes of a data centre, replaces them while records flow, and stops them again."""

from __future__ import annotations

import os
import signal
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from reconciler.embedded import EmbeddedCluster, running
from reconciler.embedded.ports import PortLease
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.kafka import create
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.commands.trees import below
from tests.support.deployed_site import LIMIT, Site, longest_break
from tests.support.deploying import BROKEN, interpreter
from tests.support.replicator.copying import assert_copied
from tests.support.waiting import eventually

CHANGES = 3
RECORDS = 400_000


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, EmbeddedCluster]]:
    made = EmbeddedCluster("east"), EmbeddedCluster("west")
    with running(*made):
        yield dict(zip(("east", "west"), made, strict=True))


@pytest.fixture
def site(
    tmp_path: Path, clusters: dict[str, EmbeddedCluster], topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    name = f"s{topic_name[-8:]}"
    create(clusters["east"], name, 2)
    made = Site(tmp_path, clusters, name)
    yield made
    made.write(kind="none")
    ended = made.apply()
    assert ended.code == 0, ended


@pytest.mark.spark
def test_a_data_centre_is_deployed_heals_and_is_replaced_while_records_flow(
    site: Site, clusters: dict[str, EmbeddedCluster], tmp_path: Path
) -> None:
    (port,) = PortLease.take(1).ports
    metrics = {"listen": f"127.0.0.1:{port}"}
    site.write(metrics=metrics)
    planned = anabranch("plan", site.file, "--detailed-exitcode")
    assert planned.code == CHANGES, planned
    assert "dc2 (processes, local)" in planned.stdout
    assert "+ deploy replicate" in planned.stdout
    assert "2 processes to deploy." in planned.stdout
    assert not site.folder.exists()
    traffic = Traffic(clusters["east"], site.name, 2, RECORDS, 2_000, per_second=500)
    traffic.start()
    applied = site.apply()
    assert applied.code == 0, applied
    assert {"  done      dc2  deploy replicate", "  done      dc2  deploy metrics"} <= set(applied.stdout.splitlines())
    assert anabranch("plan", site.file, "--detailed-exitcode").code == 0
    assert anabranch("drift", site.file, "--detailed-exitcode").code == 0
    assert b"anabranch_partition_lag" in scrape(port)
    eventually("records are copied", site.copied)
    check_it_heals(site)
    check_new_files_restart_nothing_that_copies(site, metrics)
    check_another_takes_its_place(site, metrics, tmp_path)
    check_what_does_not_come_up_changes_nothing(site, metrics, tmp_path)
    assert scrape(port)

    traffic.finish()
    eventually("all is copied", site.copied, lambda copied: copied >= RECORDS)
    east, west = (Cluster(alias, (one.bootstrap,)) for alias, one in clusters.items())
    assert_copied(east, site.name, west, f"east.{site.name}", RECORDS)
    check_it_stops(site)


def check_it_heals(site: Site) -> None:
    """What is killed is started again, and goes on."""
    first = site.pids()
    for java in below(first["replicate"], lambda child: child.name() == "java"):
        java.kill()
    os.kill(first["metrics"], signal.SIGKILL)
    eventually("metrics runs again", lambda: site.pids().get("metrics") not in (None, first["metrics"]))
    eventually("the flow runs again", site.states, lambda states: set(states) == {"running"})
    os.kill(site.pids()["replicate"], signal.SIGKILL)
    eventually("replicate runs again", lambda: site.pids().get("replicate") not in (None, first["replicate"]))
    eventually("the flow runs again", site.states, lambda states: set(states) == {"running"})


def check_new_files_restart_nothing_that_copies(site: Site, metrics: dict[str, str]) -> None:
    before = site.pids()
    site.linger = "2ms"
    site.write(metrics=metrics)
    changed = site.apply()
    assert changed.code == 0, changed
    assert "  done      dc2  write files of replicate" in changed.stdout.splitlines()
    after = site.pids()
    assert after["replicate"] == before["replicate"]
    assert after["metrics"] != before["metrics"]


def check_another_takes_its_place(site: Site, metrics: dict[str, str], folder: Path) -> None:
    """Another interpreter, as of another version, replaces the first one while records flow."""
    before = site.pids()
    site.write(metrics=metrics, python=interpreter(folder, f'#!/bin/sh\nexec {sys.executable} "$@"\n', "other"))
    longest, replaced = longest_break(site)
    print(f"longest time without progress while replaced: {longest:.1f} s")
    assert replaced.code == 0, replaced
    assert "  done      dc2  replace replicate" in replaced.stdout.splitlines()
    assert not {*before.values()} & {*site.pids().values()}


def check_what_does_not_come_up_changes_nothing(site: Site, metrics: dict[str, str], folder: Path) -> None:
    """One that cannot run is ended again, and the former one goes on."""
    site.write(metrics=metrics, python=interpreter(folder, BROKEN))
    before = site.pids()
    failed = site.apply()
    assert failed.code == 1, failed
    assert "[AB766]" in failed.stderr
    assert "no good" in failed.stderr
    assert site.pids()["replicate"] == before["replicate"]
    assert anabranch("drift", site.file, "--detailed-exitcode").code == CHANGES


def check_it_stops(site: Site) -> None:
    """What is no longer declared ends, and leaves its logs."""
    pids = site.pids()
    site.write(kind="none")
    stopped = site.apply()
    assert stopped.code == 0, stopped
    assert "  done      dc2  stop replicate" in stopped.stdout.splitlines()
    assert not any(psutil.pid_exists(pid) for pid in pids.values())
    assert sorted(path.name for path in site.folder.iterdir()) == ["logs"]


@pytest.mark.long
@pytest.mark.spark
def test_destroy_stops_what_runs_before_it_deletes(site: Site) -> None:
    applied = site.apply()
    assert applied.code == 0, applied
    (pid,) = site.pids().values()
    refused = anabranch("destroy", site.file, "--yes")
    assert (refused.code, "stop   replicate" in refused.stdout) == (4, True), refused
    assert site.pids()
    ended = anabranch("destroy", site.file, "--yes", "--allow-delete", "topic=1", limit=LIMIT)
    assert ended.code == 0, ended
    assert not psutil.pid_exists(pid)
    assert ended.stdout.index("stop replicate") < ended.stdout.index("delete east.")


def scrape(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        found: bytes = answer.read()
    return found
