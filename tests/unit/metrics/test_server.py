"""The exporter's HTTP server: formats, probes, other paths and methods; nothing of it waits for a cluster."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_plain

from reconciler.metrics import exporter as exporters
from reconciler.metrics.exporter import Exporter
from reconciler.metrics.server import ListenAddress, MetricsServer
from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.operate.watching import StatusView
from tests.support.replicator.words import flow, partition, said

TOPOLOGY = Topology("shop", {alias: Cluster(alias, (f"{alias}:9092",)) for alias in ("east", "west")}, (flow(),))


class FixedLookout:
    """Gives one view after the other, the last one for ever."""

    def __init__(self, *views: StatusView | Exception) -> None:
        self.views = list(views)

    def look(self) -> StatusView:
        one = self.views.pop(0) if len(self.views) > 1 else self.views[0]
        if isinstance(one, Exception):
            raise one
        return one

    def close(self) -> None:
        """Nothing is open."""


def seen(now: float) -> StatusView:
    status = replace(said(partition(0, 5, 9)), time=now - 0.5)
    return StatusView(now, (flow(),), (status,), {})


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exporter]:
    monkeypatch.setattr("reconciler.metrics.exporter.time.time", lambda: 1_000.0)
    monkeypatch.setattr(exporters, "status_lookout", lambda *_: FixedLookout(seen(1_000.0)))
    one = Exporter(TOPOLOGY)
    yield one
    one.close()


def families(body: str) -> list[Metric]:
    read = read_openmetrics if body.endswith("# EOF\n") else read_plain
    return list(read(body))


def answer(url: str, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, body


def test_scrapes_get_the_format_that_they_accept(exporter: Exporter) -> None:
    exporter.look()
    with MetricsServer(exporter, ListenAddress("127.0.0.1", 0)) as server:
        url = server.url
        status, headers, body = answer(url, Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
        assert (status, headers["content-type"][:28]) == (200, "application/openmetrics-text")
        assert {family.name for family in families(body)} >= {"anabranch_flow_up", "anabranch_build_info"}
        status, headers, body = answer(url)
        assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        found = {family.name for family in families(body)}
        # The exporter's own process is there as well.
        assert found >= {"anabranch_flow_up", "process_resident_memory_bytes", "python_info"}
        status, _, body = answer(url, method="HEAD")
        assert (status, body) == (200, "")


def test_probes_other_paths_and_methods(exporter: Exporter) -> None:
    with MetricsServer(exporter, ListenAddress("127.0.0.1", 0)) as server:
        url = server.url
        assert answer(url, "/livez")[0] == 200
        assert answer(url, "/readyz")[0] == 503
        exporter.look()
        assert answer(url, "/readyz")[0] == 200
        assert answer(url, "/")[2] == "anabranch: metrics are at /metrics\n"
        status, _, body = answer(url, "/etc/passwd<script>")
        assert status == 404
        assert "<script>" not in body
        assert answer(url, method="POST")[0] == 501
        assert answer(url, "/metrics?name[]=x")[0] == 200


def test_an_old_reading_is_not_given_as_new(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter.look()
    text = b"".join(exporter.text(is_openmetrics=True)).decode()
    assert "anabranch_flow_up" in text
    monkeypatch.setattr("reconciler.metrics.exporter.time.time", lambda: 1_000.0 + exporters.OLDEST + 1)
    text = b"".join(exporter.text(is_openmetrics=True)).decode()
    assert "anabranch_look_time_seconds 1000.0\n" in text
    assert "anabranch_flow" not in text


def test_an_error_is_reported_once_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    away = Unreachable(Problem("AB310", "cluster west", "does not answer", "start it"))
    views = [replace(seen(1_000.0), failures={"west": away}) for _ in range(3)]
    monkeypatch.setattr(exporters, "status_lookout", lambda *_: FixedLookout(*views, seen(1_000.0), views[0]))
    heard: list[str] = []
    one = Exporter(TOPOLOGY, warn=lambda error: heard.append(error.problems[0].code))
    for _ in range(3):
        one.look()
    assert heard == ["AB310"]
    one.look()
    one.look()
    assert heard == ["AB310", "AB310"]
