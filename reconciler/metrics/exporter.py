"""Reads the status topics again and again in a thread, and answers scrapes from the newest reading.

`anabranch metrics` and `anabranch serve` use it. A scrape does not wait for a cluster. Where the newest reading
is older than half a minute only its time is given: nothing else of it is true any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.metadata import version

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

from reconciler.metrics import collect, mirrormaker, table
from reconciler.metrics.exposition import Samples, labelled, text, with_labels
from reconciler.metrics.observed import Observer
from reconciler.model.base.errors import AnabranchError, Unreachable, together
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.drift import Drift
from reconciler.operate.drifting import DriftOptions, drift
from reconciler.operate.watching import Lookout, StatusView, status_lookout

LOOK_EVERY = 2.0
"""Seconds between two readings."""
OLDEST = 30.0
"""Seconds after which a reading counts no longer."""


class Exporter:
    """The metrics of a topology.

    Args:
        topology: what is declared.
        clusters: aliases of the targets that are read; none means all.
        formats: which of MirrorMaker 2's names are given beside ours, of `mirrormaker.FORMATS`.
        drift_every: seconds between two comparisons of the targets with what was applied; None for none.
        warn: receives, once each, why something could not be read.
        on_look: receives each reading of the status topics.

    Raises:
        InvalidArgument: `clusters`, an alias is not declared.
    """

    def __init__(
        self,
        topology: Topology,
        clusters: Sequence[str] = (),
        formats: Collection[str] = mirrormaker.FORMATS,
        drift_every: float | None = None,
        warn: Callable[[AnabranchError], None] = lambda _error: None,
        on_look: Callable[[collect.Reading], None] = lambda _reading: None,
    ) -> None:
        # Drift is what differs from the files, whatever is in force beside them.
        self._declared = self._topology = self._newest = topology
        self._clusters = clusters
        self._formats = formats
        self._drift_every = drift_every
        self._warn = warn
        self._on_look = on_look
        self._warned: set[str] = set()
        self._lookout: Lookout = status_lookout(topology, clusters)
        self._observer = Observer()
        self._lock = threading.Lock()
        self._reading: collect.Reading | None = None
        self._took = 0.0
        self._drift: tuple[float, Drift] | None = None
        self._drift_due = 0.0
        self._own = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._own)

    @property
    def reading(self) -> collect.Reading | None:
        """The newest reading; None before the first one, and where it is too old to count."""
        reading = self._reading
        return None if reading is None or time.time() - reading.view.now > OLDEST else reading

    @property
    def view(self) -> StatusView | None:
        """What the newest reading found, however old it is; None before the first one."""
        reading = self._reading
        return None if reading is None else reading.view

    @property
    def drift(self) -> tuple[float, Drift] | None:
        """What differs at the targets from the last apply, and when that was found, in seconds since 1970."""
        return self._drift

    def take(self, topology: Topology) -> None:
        """Read the flows of another declaration from the next reading on: what is in force over the same files."""
        self._newest = topology

    def look(self) -> StatusView:
        """Read the status topics once.

        Raises:
            AnabranchError: nothing could be read.
        """
        began = time.monotonic()
        if self._newest is not self._topology:
            self._lookout.close()
            self._topology = self._newest
            self._lookout = status_lookout(self._topology, self._clusters)
        view = self._lookout.look()
        reading = collect.Reading.of(self._topology, view)
        self._observer.take(reading.partitions, view.now)
        with self._lock:
            self._reading, self._took = reading, time.monotonic() - began
        self._on_look(reading)
        self._report(view.failures.values())
        return view

    def look_first(self) -> None:
        """Read the status topics once; targets that are away will be asked again.

        Raises:
            AnabranchError: a target refuses what no waiting mends, as a wrong password.
        """
        failures = self.look().failures.values()
        if refused := [error for error in failures if not isinstance(error, Unreachable)]:
            raise together(refused)

    def look_for_drift(self, *, now: bool = False) -> None:
        """Compare the targets with what was applied, where that is due, or `now`.

        Raises:
            AnabranchError: a target cannot be read.
        """
        if not now and (self._drift_every is None or time.monotonic() < self._drift_due):
            return
        self._drift_due = time.monotonic() + (self._drift_every or 0.0)
        self._drift = time.time(), drift(self._declared, DriftOptions(clusters=self._clusters))

    def _drift_samples(self, found: Drift) -> Samples:
        counts: dict[tuple[str, str], int] = {}
        for one in found.drifted:
            counts[one.cluster, one.kind] = counts.get((one.cluster, one.kind), 0) + 1
        targets = dict.fromkeys(flow.target for flow in self._topology.flows if flow.enabled)
        lines = [
            ("", labelled((*table.CLUSTER, "kind"), (self._topology.name, alias, kind)), count)
            for (alias, kind), count in sorted(counts.items())
        ]
        known = {alias for alias, _ in counts}
        # A cluster without drift has a series as well: its absence would look as if it had not been compared.
        lines += [
            ("", labelled((*table.CLUSTER, "kind"), (self._topology.name, alias, "none")), 0)
            for alias in targets
            if alias not in known
        ]
        return Samples(table.DRIFT, lines)

    def run(self, stopping: threading.Event) -> None:
        """Read until `stopping` is set; a cluster that is away, or refuses, is asked again."""
        while not stopping.is_set():
            for step in (self.look, self.look_for_drift):
                try:
                    step()
                except AnabranchError as error:
                    self._report([error])
            stopping.wait(LOOK_EVERY)

    def close(self) -> None:
        """Close all connections."""
        self._lookout.close()

    def text(self, *, is_openmetrics: bool, only: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """Yield all metrics as text in UTF-8, piece by piece.

        Args:
            is_openmetrics: else the format of before.
            only: labels and their values; samples without them are left out, and those of this process.
        """
        if not is_openmetrics and only is None:
            yield generate_latest(self._own)
        found = self.samples()
        if only is not None:
            found = with_labels(found, only)
        for piece in text(found, is_openmetrics=is_openmetrics):
            yield piece.encode()

    def samples(self) -> Iterator[Samples]:
        """Yield the samples of each metric; none of the status topics where the newest reading is too old to count."""
        with self._lock:
            reading, took = self._reading, self._took
        yield Samples(table.BUILD, [("", labelled(table.BUILD.labels, (version("anabranch"),)), 1)])
        if reading is None:
            return
        yield Samples(table.LOOK_TIME, [("", "", round(reading.view.now, 3))])
        yield Samples(table.LOOK_SECONDS, [("", "", round(took, 3))])
        if time.time() - reading.view.now > OLDEST:
            return
        yield from collect.samples(reading)
        yield from mirrormaker.samples(reading, self._observer, self._formats)
        if self._drift is not None:
            yield self._drift_samples(self._drift[1])

    def _report(self, errors: Collection[AnabranchError] | Sequence[AnabranchError]) -> None:
        """Report each error once for as long as it lasts."""
        texts = {str(error) for error in errors}
        for error in errors:
            if str(error) not in self._warned:
                self._warn(error)
        self._warned = texts
