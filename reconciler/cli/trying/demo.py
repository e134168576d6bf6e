"""`anabranch demo`: embedded clusters, orders coming in, plan, apply, replicate, and proof. Nothing to set up."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from reconciler.cli.apply import apply
from reconciler.cli.common import dim, stdout_console
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.installed import need

if TYPE_CHECKING:
    from reconciler.demo.compare import Comparison
    from reconciler.demo.story import Story
    from reconciler.report.text.line import Terminal

# What shells make of a signal.
_SIGNALLED = 128
_KAFKA_MB = 90
_LOOK_SECONDS = 0.5
PATTERNS_SAID = "fan-out, aggregation, active-active or xdcr"


def demo(
    pattern: Annotated[str, typer.Argument(help=f"Which example: {PATTERNS_SAID}.")] = "aggregation",
    seconds: Annotated[float, typer.Option(min=1.0, help="How long to watch the copies follow.")] = 15.0,
) -> None:
    """Show it all on this machine: real brokers, orders coming in, copied with identical offsets, proven identical."""
    from reconciler.demo.story import PATTERNS, Story
    from reconciler.report.text.line import Line

    if pattern not in PATTERNS:
        message = f"no example {pattern}: expected {PATTERNS_SAID}"
        raise typer.BadParameter(message, param_hint="PATTERN")
    need("replicate")
    console = stdout_console()
    began = time.monotonic()

    def chapter(title: str) -> None:
        console.print()
        console.print(Line.assemble((title, "bold"), "  ", (f"{time.monotonic() - began:.0f} s", "dim")))

    for number in (signal.SIGTERM, signal.SIGHUP):
        # Also when ended so, or with its terminal, it stops what it started, which would run on otherwise.
        signal.signal(number, _end)
    with Story(pattern) as story:
        _tell(story, console, chapter, seconds)
    chapter("The clusters are stopped")


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(_SIGNALLED + number)


def _tell(story: Story, console: Terminal, chapter: Callable[[str], None], seconds: float) -> None:
    from reconciler.report.status.live import LiveView

    names = ", ".join(story.topology.clusters)
    chapter(f"Starting {len(story.topology.clusters)} Kafka clusters: {names}")
    fetch(console)
    with console.status("starting brokers"):
        story.start_clusters()
    for cluster in story.topology.clusters.values():
        console.print(f"  ✓ {cluster.alias}  {','.join(cluster.addresses)}")
    shops = story.open_shops()
    for shop in shops:
        console.print(f"  orders come in on {shop.cluster.alias}: {', '.join(shop.topics)}")
    chapter("$ anabranch apply --yes")
    apply([story.file], yes=True, output="text", clusters=None)
    chapter("$ anabranch replicate")
    console.print(f"  in another terminal: anabranch status {story.file}", style="dim")
    story.start_replicator()
    with LiveView(console, story.topology.flows) as view:
        story.watch(seconds, view.show)
        story.finish(view.show)
    chapter("No more orders; every topic and its copy, read as a consumer reads them")
    _print_proof(console, story.prove())


def fetch(console: Terminal, what: str = "kafka") -> None:
    """Fetch jars of Kafka where they are not there yet, and show how far that is; `what` is as of `fetch_kafka`.

    Raises:
        EnvironmentFault: AB301, AB302, as `fetch_kafka` raises them.
    """
    from reconciler.embedded import jars

    if jars.is_fetched(what):
        return
    about = f"fetching Kafka {jars.version_of(what)} (about {_KAFKA_MB} MB, once)"
    if not console.is_terminal:
        console.print(f"  {about}")
    before = jars.fetched_bytes()
    with ThreadPoolExecutor(1) as pool, console.status(about) as shown:
        fetching = pool.submit(jars.fetch_kafka, what)
        while not wait([fetching], _LOOK_SECONDS).done:
            shown.update(dim(f"{about}: {(jars.fetched_bytes() - before) / 1e6:.0f} MB"))
        fetching.result()


def _print_proof(console: Terminal, comparisons: Sequence[Comparison]) -> None:
    from reconciler.report.text.line import Line

    width = max(len(comparison.remote) for comparison in comparisons)
    for comparison in comparisons:
        same = ("identical, offset by offset", "green") if comparison.is_identical else ("DIFFERENT", "red")
        said = f"  {comparison.topic:<9} {comparison.remote:<{width}}  {comparison.records:>8,} records  "
        console.print(Line.assemble(said, same))
    wrong = [comparison for comparison in comparisons if not comparison.is_identical or not comparison.records]
    if wrong:
        raise EnvironmentFault(
            [
                Problem("AB343", f"topic {found.remote}", f"is not identical to {found.topic}: {found.different}", "")
                for found in wrong
            ]
        )
