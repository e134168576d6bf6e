"""Pushes the metrics to an OpenTelemetry collector, by OTLP over HTTP with protobuf.

Needs the package opentelemetry-proto, which the extra `otlp` brings. Source: "OTLP Specification 1.9" and "Prometheus
and OpenMetrics Compatibility", both of opentelemetry.io: counters and histograms are cumulative, what is unknown is a
gauge, and the suffix `_total` stays away.
"""

from __future__ import annotations

import gzip
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from http.client import HTTPException
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, build_opener

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Histogram, NumberDataPoint

from reconciler.metrics.exposition import labels_in
from reconciler.model.base.errors import AnabranchError, DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.connection.hosts import is_loopback
from reconciler.model.connection.redirects import NoRedirects

if TYPE_CHECKING:
    from reconciler.metrics.exporter import Exporter
    from reconciler.metrics.exposition import Samples, Value

PATH = "/v1/metrics"
HEADERS, ATTRIBUTES, SERVICE_NAME = "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"
"""Variables that OpenTelemetry's own exporters read as well."""
_ANSWER_SECONDS = 30.0
_LARGEST_ANSWER = 65_536
_COUNTS_UP = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


class Collector(NamedTuple):
    """Where metrics are pushed, and as whose.

    Attributes:
        url: with the path of the metrics.
        headers: that each request has; their values may be secrets.
        attributes: of the resource, `service.name` among them.
    """

    url: str
    headers: Mapping[str, str]
    attributes: Mapping[str, str]

    @classmethod
    def of(cls, base: str, environment: Mapping[str, str]) -> Collector:
        """Return the collector at a base URL, such as `http://127.0.0.1:4318`.

        Args:
            base: `PATH` is appended, unless it has it already.
            environment: headers and attributes are taken from its variables.

        Raises:
            DeclaredInputError: AB139, it is no such URL, a variable has no such form, or headers would travel in clear.
        """
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            _refuse("--otlp", "expected the URL of a collector, as http://127.0.0.1:4318; found another text")
        if parts.username is not None or parts.password is not None:
            _refuse("--otlp", f"the URL holds a user or a password; {HEADERS} takes what authenticates")
        headers = _pairs(HEADERS, environment)
        if headers and parts.scheme == "http" and not is_loopback(parts.hostname):
            _refuse("--otlp", f"{HEADERS} would be sent without encryption to {parts.hostname}; use https")
        attributes = {"service.name": "anabranch", "service.version": version("anabranch")}
        attributes |= _pairs(ATTRIBUTES, environment)
        if name := environment.get(SERVICE_NAME):
            attributes["service.name"] = name
        url = base.rstrip("/")
        return cls(url if url.endswith(PATH) else url + PATH, headers, attributes)


class OtlpPusher:
    """Pushes what an exporter has read, again and again.

    Args:
        exporter: gives the samples.
        collector: where to.
        every: seconds between two pushes.
        warn: receives why a push failed, once for as long as the reason stays the same.
    """

    def __init__(
        self, exporter: Exporter, collector: Collector, every: float, warn: Callable[[AnabranchError], None]
    ) -> None:
        self._exporter = exporter
        self._collector = collector
        self._every = every
        self._warn = warn
        self._warned = ""
        self._opener = build_opener(NoRedirects)

    def run(self, stopping: threading.Event) -> None:
        """Push until `stopping` is set, and a last time then. What could not be pushed is in the next push."""
        while not stopping.wait(self._every):
            self._push()
        self._push()

    def _push(self) -> None:
        try:
            self.push()
        except AnabranchError as error:
            if str(error) != self._warned:
                self._warn(error)
            self._warned = str(error)
        else:
            self._warned = ""

    def push(self) -> None:
        """Push once.

        Raises:
            EnvironmentFault: AB326, the collector does not answer, refuses it, or has not taken all of it.
        """
        body = request(self._exporter.samples(), self._collector.attributes, time.time_ns()).SerializeToString()
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", **self._collector.headers}
        asked = Request(self._collector.url, gzip.compress(body, 1), headers, method="POST")
        try:
            with self._opener.open(asked, timeout=_ANSWER_SECONDS) as answer:
                told = ExportMetricsServiceResponse.FromString(answer.read(_LARGEST_ANSWER))
        except HTTPError as error:
            with error:
                self._fail(f"answers with status {error.code}")
        except DecodeError:
            self._fail("gives an answer that is not OTLP's")
        except (OSError, HTTPException, ValueError) as error:
            self._fail(f"does not answer: {getattr(error, 'reason', error)}")
        if rejected := told.partial_success.rejected_data_points:
            self._fail(f"rejects {rejected} data points")

    def _fail(self, message: str) -> NoReturn:
        remedy = "check the address, and what the collector logs; samples go with the next push"
        raise EnvironmentFault(Problem("AB326", self._collector.url, message, remedy)) from None


def request(found: Iterable[Samples], attributes: Mapping[str, str], now: int) -> ExportMetricsServiceRequest:
    """Return a push of some samples.

    Args:
        found: each metric once.
        attributes: of the resource.
        now: in nanoseconds since 1970.
    """
    message = ExportMetricsServiceRequest()
    resource = message.resource_metrics.add()
    for key, text in attributes.items():
        resource.resource.attributes.add(key=key).value.string_value = text
    scope = resource.scope_metrics.add()
    scope.scope.name, scope.scope.version = "anabranch", version("anabranch")
    # A partition has the same labels in a dozen metrics, and to make a message of them takes the most time.
    labelled_point = cache(_labelled_point)
    for family, lines in found:
        some = list(lines)
        if not some:
            continue
        metric = scope.metrics.add(name=family.name, description=family.help, unit=_unit(family.name))
        if family.type == "histogram":
            _add_histogram(metric.histogram, some, now)
            continue
        if family.type == "counter":
            metric.sum.aggregation_temporality, metric.sum.is_monotonic = _COUNTS_UP, True
        points = metric.sum.data_points if family.type == "counter" else metric.gauge.data_points
        for _, labels, value in some:
            point = points.add()
            point.MergeFromString(labelled_point(labels))
            point.time_unix_nano = now
            if isinstance(value, int):
                point.as_int = value
            else:
                point.as_double = value
    return message


def _unit(name: str) -> str:
    """Return the unit of a metric as OpenTelemetry writes it (UCUM)."""
    return "s" if name.endswith("_seconds") else "By" if name.endswith("_bytes") else ""


def _add_histogram(histogram: Histogram, lines: Iterable[tuple[str, str, Value]], now: int) -> None:
    """Add the series of a histogram: of each its buckets, ascending, then its sum and its count."""
    histogram.aggregation_temporality = _COUNTS_UP
    bounds: list[float] = []
    counts: list[int] = []
    total = 0.0
    for suffix, labels, value in lines:
        if suffix == "_bucket":
            bounds.append(float(dict(labels_in(labels))["le"]))
            counts.append(int(value))
        elif suffix == "_sum":
            total = value
        else:
            point = histogram.data_points.add(time_unix_nano=now, count=int(value), sum=total)
            point.explicit_bounds.extend(bound for bound in bounds if math.isfinite(bound))
            # Prometheus' buckets hold all below their bound; OTLP's hold what is above the bound before.
            point.bucket_counts.extend(after - before for before, after in zip((0, *counts[:-1]), counts, strict=True))
            point.attributes.extend(_attributes(labels))
            bounds, counts = [], []


def _labelled_point(labels: str) -> bytes:
    """Return a point that has nothing but its attributes, as OTLP encodes it."""
    encoded: bytes = NumberDataPoint(attributes=_attributes(labels)).SerializeToString()
    return encoded


def _attributes(labels: str) -> list[KeyValue]:
    return [KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in labels_in(labels)]


def _pairs(variable: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a variable holds as `key=value,key=value`, each value percent-encoded (W3C Baggage).

    Raises:
        DeclaredInputError: AB139, it holds something else; the message leaves the text out, as it may be a secret.
    """
    pairs: dict[str, str] = {}
    for number, item in enumerate(filter(str.strip, environment.get(variable, "").split(",")), 1):
        key, equals, value = item.partition("=")
        key, value = key.strip(), unquote(value.strip())
        if not equals or not key or not (key + value).isprintable():
            _refuse(variable, f"expected key=value, separated by commas; item {number} has no such form")
        pairs[key] = value
    return pairs


def _refuse(where: str, message: str) -> NoReturn:
    raise DeclaredInputError(Problem("AB139", where, message, "see docs/reference/metrics.md"))
