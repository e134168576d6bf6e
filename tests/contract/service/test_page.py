"""The page of `anabranch serve` in a real browser: states by their text, buttons, colour schemes, narrow screens."""

from __future__ import annotations

import json
import time
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState
from tests.contract.service.test_serve import TOKEN, prepared
from tests.support.commands.browsing import assert_accessible, opened
from tests.support.commands.serving import ready, serving
from tests.support.replicator.copying import Running, all_running
from tests.support.replicator.reporting import Reporting, declared


def flow_row(page: Page) -> Locator:
    """Return the row of the flow; drift may name it as well, of topics that other tests have made at the target."""
    return page.get_by_role("region", name="Flows").get_by_role("row").filter(has_text="east-west")


def test_every_state_is_told_by_its_text(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str, browser: Browser
) -> None:
    """Names with markup are text; nothing is asked of another host; axe finds nothing, light, dark and narrow."""
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    faults: list[str] = []
    with serving(file) as service:
        with Reporting(file):
            ready(service)
            for options in (
                {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
                {"color_scheme": "dark", "viewport": {"width": 375, "height": 800}},
            ):
                with opened(browser, service.url, faults, **options) as page:
                    row = flow_row(page)
                    expect(row).to_contain_text("degraded")
                    expect(row).to_contain_text("not ready")
                    expect(page.locator("main")).to_contain_text("Cluster gone does not answer")
                    expect(page.locator("svg.anabranch g.flow").first).to_contain_text("degraded")
                    assert_accessible(page)
                    assert page.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"]  # type: ignore[index]
                    row.get_by_role("link").click()
                    main = page.locator("main")
                    expect(main).to_contain_text("the batch at offset 4 has 2,000,000 bytes [AB212]")
                    expect(main).to_contain_text("<img src=x onerror=alert(1)>")
                    expect(main).to_contain_text("<b>app</b>")
                    expect(main).to_contain_text("AB621")
                    expect(main).to_contain_text("You may read here.")
                    expect(page.locator("figure canvas").first).to_be_visible()
                    assert page.locator("main img, main b").count() == 0
                    assert_accessible(page)
                    assert page.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"]  # type: ignore[index]
            page_open = opened(browser, f"{service.url}/#/flow/east-west", faults)
            with page_open as page:
                expect(page.locator("main")).to_contain_text("degraded")
                page.goto(f"{service.url}/#/flow/%3Cimg%20src=x%20onerror=alert(1)%3E")
                expect(page.locator("main")).to_contain_text("No flow <img src=x onerror=alert(1)> is shown")
        with opened(browser, service.url, faults) as page:
            expect(flow_row(page)).to_contain_text("lost")
    # Drift is not compared while a target is away: the answer is 503, which a browser logs.
    assert [one for one in faults if "503" not in one] == []


def test_a_flow_is_paused_and_resumed_by_hand(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    *,
    browser: Browser,
) -> None:
    spec, file = prepared(tmp_path, source_cluster, target_cluster, (source, target), topic_name)
    faults: list[str] = []
    with Running(spec) as copying, serving(file, "--operate") as service:
        copying.wait(lambda status: all_running(status.partitions))
        ready(service)
        with opened(browser, f"{service.url}/#/flow/{spec.flow.name}", faults) as page:
            state = page.locator(".cards .state").first
            expect(state).to_have_text("running")
            page.get_by_role("button", name="pause").click()
            assert_accessible(page)
            page.get_by_role("button", name="No").click()
            assert all_running(copying.wait(lambda _: True).partitions)
            page.get_by_role("button", name="pause").click()
            began = time.monotonic()
            page.get_by_role("button", name="Yes, pause").click()
            copying.wait(lambda status: {one.state for one in status.partitions} == {PartitionState.PAUSED})
            print(f"paused after {time.monotonic() - began:.1f} s")
            expect(page.get_by_text(f"pause of {spec.flow.name}: confirmed by 1 of 1 running tasks")).to_be_visible()
            expect(state).to_have_text("paused")
            page.get_by_role("button", name="resume").click()
            page.get_by_role("button", name="Yes, resume").click()
            copying.wait(lambda status: all_running(status.partitions))
            expect(state).to_have_text("running")
    assert [one for one in faults if "503" not in one] == []


def test_a_token_is_asked_for(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str, browser: Browser
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    faults: list[str] = []
    with (
        Reporting(file),
        serving(file, "--token", "operate:ops=env:TOKEN", env={"TOKEN": TOKEN}) as service,
        opened(browser, service.url, faults) as page,
    ):
        expect(page.get_by_role("heading", name="A token is needed")).to_be_visible()
        assert_accessible(page)
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_role("alert")).to_have_text("This token is wrong.")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Go on").click()
        expect(flow_row(page)).to_contain_text("degraded")
        expect(page.locator("header")).to_contain_text("ops, may operate")
        assert TOKEN not in json.dumps(page.content())
    assert [one for one in faults if "401" not in one and "503" not in one] == []
