"""What is pushed to an OpenTelemetry collector: every sample that a scrape has; and faults of collectors."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.parser import text_string_to_metric_families as read_plain

from reconciler.cli.main import main
from reconciler.metrics import exporter as exporters
from reconciler.metrics.exporter import Exporter
from reconciler.metrics.exposition import Samples, cumulative, labelled, text
from reconciler.metrics.otlp import Collector, OtlpPusher, request
from reconciler.metrics.table import MetricFamily
from reconciler.model.base.errors import AnabranchError, DeclaredInputError, EnvironmentFault
from tests.support.answering import answering
from tests.support.waiting import eventually
from tests.unit.metrics.test_server import TOPOLOGY, FixedLookout, seen

SECRET = "Bearer s3cret"
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Receiver(ThreadingHTTPServer):
    """A collector: keeps what is pushed, and answers as it is told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ReceivingHandler)
        self.pushed: list[ExportMetricsServiceRequest] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.status = 200
        self.answer = b""
        self.url = f"http://127.0.0.1:{self.server_port}"


class ReceivingHandler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.pushed.append(ExportMetricsServiceRequest.FromString(gzip.decompress(body)))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exporter]:
    monkeypatch.setattr("reconciler.metrics.exporter.time.time", lambda: 1_000.0)
    monkeypatch.setattr(exporters, "status_lookout", lambda *_: FixedLookout(seen(1_000.0)))
    one = Exporter(TOPOLOGY)
    one.look()
    yield one
    one.close()


def pushed_series(message: ExportMetricsServiceRequest) -> Series:
    """All numbers of a push, under the names and labels that Prometheus has for them."""
    found: Series = {}
    (resource,) = message.resource_metrics
    (scope,) = resource.scope_metrics
    for metric in scope.metrics:
        for one in [*metric.gauge.data_points, *metric.sum.data_points]:
            labels = tuple(sorted((pair.key, pair.value.string_value) for pair in one.attributes))
            name = metric.name + ("_total" if metric.HasField("sum") else "")
            found[name, labels] = one.as_int if one.HasField("as_int") else one.as_double
        for series in metric.histogram.data_points:
            labels = tuple((pair.key, pair.value.string_value) for pair in series.attributes)
            found[f"{metric.name}_count", tuple(sorted(labels))] = series.count
            found[f"{metric.name}_sum", tuple(sorted(labels))] = series.sum
            passed = 0
            for bound, count in zip([*series.explicit_bounds, float("inf")], series.bucket_counts, strict=True):
                passed += count
                le = "+Inf" if bound == float("inf") else str(bound)
                found[f"{metric.name}_bucket", tuple(sorted((*labels, ("le", le))))] = passed
    return found


def scraped_series(body: str) -> Series:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in read_plain(body)
        for one in family.samples
    }


def pusher(exporter: Exporter, collector: Collector) -> OtlpPusher:
    return OtlpPusher(exporter, collector, 3_600.0, lambda error: pytest.fail(str(error)))


def test_a_push_has_every_sample_of_a_scrape(exporter: Exporter) -> None:
    with answering(Receiver()) as server:
        environment = {
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret, x-scope-orgid = shop ",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=prod,service.name=other",
            "OTEL_SERVICE_NAME": "mirrors",
        }
        pusher(exporter, Collector.of(f"{server.url}/", environment)).push()
    wanted = scraped_series("".join(text(exporter.samples(), is_openmetrics=False)))
    (message,), (headers,) = server.pushed, server.headers
    assert pushed_series(message) == wanted
    assert len(wanted) > 30
    assert server.paths == ["/v1/metrics"]
    assert (headers["authorization"], headers["x-scope-orgid"]) == (SECRET, "shop")
    assert headers["content-type"] == "application/x-protobuf"
    attributes = {pair.key: pair.value.string_value for pair in message.resource_metrics[0].resource.attributes}
    assert (attributes["service.name"], attributes["deployment.environment"]) == ("mirrors", "prod")


def test_a_histogram_has_the_same_counts() -> None:
    family = MetricFamily("x_latency_seconds", "histogram", "Latency.", ("flow",))
    lines = [
        *cumulative((0.1, 1.0), (3, 0, 2), 4.5, labelled(("flow",), ("a",))),
        *cumulative((0.1, 1.0), (0, 1, 0), 0.7, labelled(("flow",), ("b",))),
    ]
    message = request([Samples(family, lines)], {}, 5)
    assert pushed_series(message) == scraped_series("".join(text([Samples(family, lines)], is_openmetrics=False)))
    (metric,) = message.resource_metrics[0].scope_metrics[0].metrics
    assert [list(one.bucket_counts) for one in metric.histogram.data_points] == [[3, 0, 2], [0, 1, 0]]
    assert metric.histogram.aggregation_temporality == 2


def test_types_units_and_foreign_names_stay_what_they_are() -> None:
    name = 'a"b\\n\n<img src=x>,x="1"'
    labels = labelled(("topic", "more"), (name, "\\"))
    found = [
        Samples(MetricFamily("x_records", "counter", "Records.", ("topic", "more")), [("", labels, 7)]),
        Samples(MetricFamily("x_lag_seconds", "gauge", "Lag.", ("topic", "more")), [("", labels, 0.5)]),
        Samples(MetricFamily("x_memory_bytes", "unknown", "Memory.", ()), [("", "", 3)]),
        Samples(MetricFamily("x_none", "gauge", "Nothing.", ()), []),
    ]
    message = request(found, {"service.name": "x"}, 5)
    metrics = message.resource_metrics[0].scope_metrics[0].metrics
    assert [(one.name, one.unit, one.WhichOneof("data")) for one in metrics] == [
        ("x_records", "", "sum"),
        ("x_lag_seconds", "s", "gauge"),
        ("x_memory_bytes", "By", "gauge"),
    ]
    assert (metrics[0].sum.is_monotonic, metrics[0].sum.aggregation_temporality) == (True, 2)
    (point,) = metrics[0].sum.data_points
    assert (point.as_int, point.time_unix_nano) == (7, 5)
    assert {pair.key: pair.value.string_value for pair in point.attributes} == {"topic": name, "more": "\\"}


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        (503, b"", "answers with status 503"),
        (401, b"who are you", "answers with status 401"),
        (307, b"", "answers with status 307"),
        (200, b"<html>", "gives an answer that is not OTLP's"),
        (
            200,
            ExportMetricsServiceResponse(
                partial_success=ExportMetricsPartialSuccess(rejected_data_points=3)
            ).SerializeToString(),
            "rejects 3 data points",
        ),
    ],
)
def test_what_a_collector_does_not_take_is_told_and_nothing_secret(
    exporter: Exporter, status: int, answer: bytes, told: str
) -> None:
    with answering(Receiver()) as server:
        server.status, server.answer = status, answer
        one = pusher(
            exporter, Collector.of(server.url, {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret"})
        )
        with pytest.raises(EnvironmentFault) as failed:
            one.push()
    (problem,) = failed.value.problems
    assert (problem.code, problem.where, problem.message) == ("AB326", f"{server.url}/v1/metrics", told)
    # No redirect is followed: it would take the header elsewhere.
    assert (server.paths, "s3cret" in str(failed.value)) == (["/v1/metrics"], False)


def test_a_collector_that_is_away_is_told_once_and_gets_the_newest_when_it_is_back(exporter: Exporter) -> None:
    warned: list[AnabranchError] = []
    with answering(Receiver()) as server:
        collector = Collector.of(server.url, {})
    stopping = threading.Event()
    one = OtlpPusher(exporter, collector, 0.01, warned.append)
    thread = threading.Thread(target=one.run, args=(stopping,))
    thread.start()
    eventually("it is told", lambda: warned)
    stopping.set()
    thread.join()
    assert ["does not answer: " in str(error) for error in warned] == [True]
    with answering(Receiver()) as server:
        pusher(exporter, Collector.of(server.url, {})).run(stopping)
    assert len(server.pushed) == 1


@pytest.mark.parametrize(
    ("url", "environment", "told"),
    [
        ("127.0.0.1:4318", {}, "expected the URL of a collector"),
        ("ftp://here", {}, "expected the URL of a collector"),
        ("http://", {}, "expected the URL of a collector"),
        ("http://me:s3cret@here", {}, "the URL holds a user or a password"),
        ("http://here:4318", {"OTEL_EXPORTER_OTLP_HEADERS": "a=s3cret"}, "without encryption to here"),
        ("https://here", {"OTEL_EXPORTER_OTLP_HEADERS": "a=1,s3cret"}, "item 2 has no such form"),
        ("https://here", {"OTEL_EXPORTER_OTLP_HEADERS": "a=s3cret%0Ab"}, "item 1 has no such form"),
        ("https://here", {"OTEL_RESOURCE_ATTRIBUTES": "=s3cret"}, "item 1 has no such form"),
    ],
)
def test_a_wrong_collector_is_told_before_anything_is_sent(url: str, environment: dict[str, str], told: str) -> None:
    with pytest.raises(DeclaredInputError) as failed:
        Collector.of(url, environment)
    (problem,) = failed.value.problems
    assert (problem.code, told in problem.message, "s3cret" in str(problem)) == ("AB139", True, False)


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--otlp", "nowhere"], 1, "AB139"),
        (["--otlp", "http://127.0.0.1:1", "--once"], 2, "pushes none"),
        (["--otlp", "http://127.0.0.1:1", "--otlp-every", "soon"], 2, "--otlp-every"),
    ],
)
def test_wrong_options_end_the_command(
    options: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metrics", str(tmp_path / "none.yaml"), *options]) == code
    assert told in capsys.readouterr().err
