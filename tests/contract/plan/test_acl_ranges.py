"""ACLs about ranges of addresses (Kafka 4.4): which clusters take them, and which clients they match."""

from __future__ import annotations

import subprocess
from pathlib import Path

from reconciler.embedded import EmbeddedCluster
from reconciler.embedded.jars import class_path, fetch_kafka, java_executable
from reconciler.observe.registered import takes_ranges
from tests.support.clusters.kafka import declared
from tests.support.security.acl_hosts import CASES

PROGRAM = Path(__file__).parents[2] / "support" / "clusters" / "java" / "MatchHosts.java"


def test_a_cluster_shows_that_it_takes_ranges(source_cluster: EmbeddedCluster) -> None:
    assert takes_ranges(declared("east", source_cluster))


def test_hosts_match_as_kafka_itself_matches_them() -> None:
    command = [str(java_executable()), "-XX:TieredStopAtLevel=1", "-cp", class_path(fetch_kafka()), str(PROGRAM)]
    command += [text for address, host, _ in CASES for text in (address, host)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    expected = [str(matches).lower() for _, _, matches in CASES]
    assert done.stdout.split() == expected, list(zip(done.stdout.split(), CASES, strict=True))
