"""Clusters for the tests: two that the whole session shares, a factory for the others, and names for topics."""

from __future__ import annotations

import functools
import logging
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from reconciler import starting
from reconciler.cli import common, log
from reconciler.embedded import ClusterOptions, EmbeddedCluster, start_all, stop_all

# What helpers assert is told with its values, as in tests.
pytest.register_assert_rewrite("tests.support", "tests.support.clusters.kafka")

from tests.support.clusters import light  # noqa: E402

# A slow machine is no failure: only what an example finds counts.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

light.use()

# This repository is a Pulumi project: where there is a `pulumi`, every apply from here would take it.
os.environ["ANABRANCH_PROVISIONER"] = "direct"

# Commands of tests have no terminal, where their logs would be JSON: tests read what people read.
os.environ["ANABRANCH_LOG_FORMAT"] = "text"

# What takes longest, in this order: begun last, one process would work at it alone while the others are done.
LONGEST = (
    "integration/replicator/test_kills.py",
    "integration/replicator/test_translated.py",
    "integration/failover/test_commands.py",
    "e2e/test_readme.py",
    "integration/replicator/test_faults.py",
    "integration/replicator/test_replicate.py",
    "integration/cli/test_declaration_in_force.py",
    "integration/failover/test_failed_over_run.py",
    "integration/cli/test_adopt.py",
    "integration/checkpoints/test_mirrormaker.py",
)

# Where `make test` looks for those that start Spark.
WITH_SPARK = ("integration", "e2e")

TESTS = Path(__file__).parent

MakeClusters = Callable[..., tuple[EmbeddedCluster, ...]]


def file(item: pytest.Item) -> str:
    """Return the path of a test's file, within the folder of all tests."""
    return item.path.relative_to(TESTS).as_posix()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest files begin first; all others keep their order. Refuse tests that `make test` would not find."""
    for item in items:
        is_in_test = item.get_closest_marker("spark") and not item.get_closest_marker("long")
        if is_in_test and file(item).partition("/")[0] not in WITH_SPARK:
            message = f"{item.nodeid}: tests that start Spark stand in {' or '.join(WITH_SPARK)}"
            raise pytest.UsageError(message)
    items.sort(key=lambda item: LONGEST.index(file(item)) if file(item) in LONGEST else len(LONGEST))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make what lets Spark begin quickly only where a test starts it."""
    if item.get_closest_marker("spark"):
        archive_classes()


@functools.cache
def archive_classes() -> None:
    """Make the archive from which Spark's classes are mapped: the tests start Spark some forty times."""
    subprocess.run([sys.executable, "-m", "reconciler.replicator.spark.class_archive"], check=False, timeout=1200)


@pytest.fixture(autouse=True)
def without_a_log() -> Iterator[None]:
    """Take back what a command that ran inside of this process did to logging: later tests expect plain lines."""
    yield
    common.log_to(None)
    log.end_logging()
    # Levels that were set over REST, in a server of this process.
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == starting.TREE]:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def source_cluster() -> Iterator[EmbeddedCluster]:
    """A cluster of one node, started by the first test that asks; tests keep apart by their topics' names."""
    with EmbeddedCluster("source") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def target_cluster() -> Iterator[EmbeddedCluster]:
    """A second cluster of one node, shared as `source_cluster` is."""
    with EmbeddedCluster("target") as cluster:
        yield cluster


@pytest.fixture
def make_clusters() -> Iterator[MakeClusters]:
    """Start clusters side by side, one per name, that end with the test: `make_clusters("a", "b", options=...)`."""
    made: list[EmbeddedCluster] = []

    def make(*names: str, options: ClusterOptions | None = None) -> tuple[EmbeddedCluster, ...]:
        clusters = tuple(EmbeddedCluster(name, options) for name in names)
        start_all(clusters)
        made.extend(clusters)
        return clusters

    yield make
    stop_all(made)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses; more topics of one test may take it as their prefix."""
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))[:60].strip("-")
    return f"{readable}-{uuid.uuid4().hex[:8]}"
