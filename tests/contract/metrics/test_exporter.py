"""`anabranch metrics` on a real broker, scraped by a real Prometheus that evaluates the committed alert rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.support.commands.command import anabranch
from tests.support.commands.scraping import exporter, firing, prometheus, value
from tests.support.replicator.reporting import Reporting, declared
from tests.support.waiting import eventually


def test_a_real_prometheus_scrapes_every_state_and_its_alert_fires(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with Reporting(file), exporter(file) as url, prometheus(tmp_path, url.split("/")[2]) as server:
        eventually("a scrape", lambda: value(server, "anabranch_flow_up{flow='east-west'}"), lambda one: one == 1)
        shown = json.loads(anabranch("status", file, "--clusters", "west", "--format", "json").stdout)
        (flow,) = shown["flows"]
        for name, metric in (("lag", "anabranch_flow_lag_records"), ("lagSeconds", "anabranch_flow_lag_seconds")):
            assert value(server, metric) == flow[name]
        for one in flow["partitions"]:
            place = f"topic={json.dumps(one['topic'], ensure_ascii=False)},partition='{one['partition']}'"
            assert value(server, f"anabranch_partition_lag_records{{{place}}}") == one["lag"]
            latency = value(server, f"anabranch_partition_latency_seconds{{{place},stat='p99'}}")
            assert latency == pytest.approx(one["latencyMs"]["p99"] / 1_000)
        assert value(
            server, "kafka_connect_mirror_mirrorsourceconnector_record_count{topic='east.orders',partition='0'}"
        )
        assert value(server, "kafka_connect_plugins_record_count{topic='east.orders',partition='0',task='0'}") == 1_000
        fired = {"AnabranchParked", "AnabranchLag", "AnabranchStalled", "AnabranchClusterAway", "AnabranchGroupStale"}
        eventually(
            "the alerts of a parked partition, lag, a stall, a cluster that is away and a stale group",
            lambda: firing(server),
            lambda found: found == fired,
        )


def test_a_run_that_is_killed_is_down_and_its_alert_fires(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with exporter(file) as url, prometheus(tmp_path, url.split("/")[2]) as server:
        with Reporting(file):
            eventually("it is up", lambda: value(server, "anabranch_flow_up{flow='east-west'}"), lambda one: one == 1)
        # It ends without a last report, as a process that is killed.
        eventually("it is lost", lambda: value(server, "anabranch_flow_state{flow='east-west',state='lost'}"))
        assert value(server, "anabranch_flow_lag_seconds{flow='east-west'}") is None
        eventually(
            "its alert",
            lambda: firing(server),
            lambda found: "AnabranchFlowDown" in found,
        )


def test_once_prints_what_is_known_and_ends_with_6_where_a_cluster_is_away(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with Reporting(file):
        ended = anabranch("metrics", file, "--once")
    assert (ended.code, ended.stdout.endswith("# EOF\n")) == (6, True)
    assert f'anabranch_cluster_up{{topology="shop-{topic_name[-8:]}",cluster="gone"}} 0\n' in ended.stdout
    assert "AB310" in ended.stderr
    # A name of a topic is the value of a label, and nothing else.
    assert '\\n<img src=x onerror=alert(1)>"' in ended.stdout
    assert not any(line.startswith("<img") for line in ended.stdout.splitlines())
    assert anabranch("metrics", file, "--listen", "8080").code == 2
    assert anabranch("metrics", file, "--mirror-maker-names", "old").code == 2
