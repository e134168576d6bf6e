"""Every state that a flow can have, as the page of `anabranch serve` tells it by its text."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from reconciler import operate
from reconciler.embedded import EmbeddedCluster
from reconciler.model.recorded.declaration import DESTROYED
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.report.status.states import FlowState
from reconciler.state.declarations import Declarations
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.status import StatusWriter
from tests.support.commands.browsing import assert_accessible, opened
from tests.support.commands.serving import ready, serving
from tests.support.replicator.reporting import posted_again_and_again

STATES: tuple[str, ...] = get_args(FlowState)
RUN = PartitionStatus("orders", 0, "orders", PartitionState.RUNNING, 90, 100)
LEASED = Reason("AB241", "another run copies it")
# Of each state in which something reports, what its partition's state is.
PARTITIONS: Mapping[str, PartitionStatus] = {
    "running": RUN,
    "opening": replace(RUN, state=PartitionState.OPENING),
    "waiting": replace(RUN, state=PartitionState.WAITING, reason=LEASED),
    "degraded": replace(RUN, state=PartitionState.PARKED, reason=Reason("AB212", "the batch is too large")),
    "paused": replace(RUN, state=PartitionState.PAUSED),
    "stopped": RUN,
    "lost": RUN,
}


def named(state: str) -> str:
    return state.replace(" ", "-")


def flow_of(state: str) -> str:
    return f"{named(state)}-{'north' if state == 'destroyed' else 'west'}"


def row_of(page: Page, flow: str) -> Locator:
    rows = page.get_by_role("region", name="Flows").get_by_role("row")
    return rows.filter(has=page.locator(f'a[href="#/flow/{flow}"]'))


def declared(folder: Path, target: EmbeddedCluster, other: EmbeddedCluster, name: str) -> Path:
    """Write a topology with a flow for each state, from a source named after it; sources do not answer."""
    sources = {named(state): {"bootstrap": [f"127.0.0.1:{port}"]} for port, state in enumerate(STATES, 9)}
    targets = {"west": {"bootstrap": [target.bootstrap]}, "north": {"bootstrap": [other.bootstrap]}}
    more: Mapping[str, Mapping[str, object]] = {
        "disabled": {"enabled": False},
        "failed over": {"failed-over": True},
        "destroyed": {"to": "north"},
    }
    flows = [{"from": named(state), "to": "west", **more.get(state, {})} for state in STATES]
    path = folder / "states.yaml"
    path.write_text(json.dumps({"version": 1, "name": name, "clusters": sources | targets, "flows": flows}))
    return path


@contextmanager
def every_state(file: Path) -> Iterator[None]:
    """Have each flow be in the state that its source is named after."""
    topology = operate.load([file])
    west, north = topology.clusters["west"], topology.clusters["north"]
    Journal(west, JournalPlace(topology.name, "status")).ensure()
    for one in (west, north):
        Declarations(one, topology.name).put_in_force(DESTROYED if one is north else "0123456789abcdef")

    writer = StatusWriter(west, topology.name)

    def status(state: str) -> TaskStatus:
        # Whoever goes on writing is alive, whatever its clock says: the one that is lost is written once.
        said = time.time() - (60 if state == "lost" else 0)
        return TaskStatus(
            flow_of(state), named(state), "west", "run", 0, 1, said, state == "stopped", None, 10, 100, 0.0, 0.0,
            (PARTITIONS[state],), since=said - 60,
        )  # fmt: skip

    writer.post_last(status("lost"))
    with posted_again_and_again(writer, lambda: [status(state) for state in PARTITIONS if state != "lost"]):
        yield


@pytest.mark.long
def test_each_state_is_told(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    browser: Browser,
) -> None:
    file = declared(tmp_path, target_cluster, source_cluster, f"states-{topic_name[-8:]}")
    faults: list[str] = []
    with every_state(file), serving(file) as service:
        ready(service)
        for scheme, width in (("light", 1280), ("dark", 375)):
            options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
            with opened(browser, service.url, faults, **options) as page:
                for state in STATES:
                    flow = flow_of(state)
                    row = row_of(page, flow)
                    expect(row.locator(".state")).to_have_text(state)
                    label = page.locator(f'svg.anabranch g.flow[data-flow="{flow}"] text').last
                    expect(label).to_contain_text(state)
                    # A flow with records behind is not ready, nor is one of which nothing runs.
                    expect(row.locator("td").last).to_contain_text("not ready")
                assert_accessible(page)
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                expect(row_of(page, "waiting-west")).to_contain_text("another run copies it [AB241]")
        for state in STATES:
            with opened(browser, f"{service.url}/#/flow/{flow_of(state)}", faults) as page:
                expect(page.locator(".cards .state").first).to_have_text(state)
    # Sources are away, so drift cannot be compared: the answer is 503, which a browser logs.
    assert [one for one in faults if "503" not in one] == []
